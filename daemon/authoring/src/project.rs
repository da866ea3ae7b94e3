//! Reads `satchel-plugin.toml`, which describes an author's project.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use satchel_host::PluginInfo;
use satchel_registry::package::{MANIFEST_VERSION, Manifest, PackageError};
use toml::{Table, Value};

use crate::language::Language;

/// The file's name, in the project's folder.
pub const FILE_NAME: &str = "satchel-plugin.toml";

/// All keys of the file.
const KEYS: [&str; 9] = [
    "manifest-version",
    "language",
    "description",
    "authors",
    "license",
    "homepage",
    "files",
    "contains",
    "memory-mib",
];
/// Memory of an importer that asks for none, in MiB.
const DEFAULT_MEMORY_MIB: u32 = 128;
/// Largest difference between a mistyped key and the one that is named in its place.
const MAX_TYPING_ERRORS: usize = 3;
/// Longest value that an error shows, in characters.
const MAX_SHOWN: usize = 100;

/// A project's checked description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its folder.
    pub folder: PathBuf,
    /// How it is built.
    pub language: Language,
    /// What the importer reads.
    pub description: String,
    /// The names of its authors.
    pub authors: Vec<String>,
    /// SPDX expression.
    pub license: String,
    /// `https://…`
    pub homepage: Option<String>,
    /// Glob patterns on file names.
    pub files: Vec<String>,
    /// Texts of which one is in the first 64 KiB of such a file.
    pub contains: Vec<String>,
    /// The memory that it asks for, in MiB.
    pub memory_mib: u32,
}

/// Why `satchel-plugin.toml` is not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// The folder has no such file.
    #[error(
        "{folder:?} is not an importer's project: it has no {FILE_NAME}; `satchel plugins new NAME --language rust` \
         makes a project"
    )]
    NotAProject { folder: PathBuf },
    /// The file system refuses.
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    /// The file is not TOML.
    #[error("{path:?} is not valid TOML: {reason}")]
    Syntax { path: PathBuf, reason: String },
    /// The file has a key that does not exist.
    #[error("{path:?} has the unknown key {key:?}; {}", hint(*nearest))]
    UnknownKey { path: PathBuf, key: String, nearest: Option<&'static str> },
    /// A key is missing.
    #[error("{path:?} lacks the key `{key}`: {rule}")]
    Missing { path: PathBuf, key: &'static str, rule: &'static str },
    /// A value breaks a rule.
    #[error("{path:?}: `{key}` is {value}, but must be {rule}")]
    Value { path: PathBuf, key: &'static str, value: String, rule: &'static str },
}

fn hint(nearest: Option<&str>) -> String {
    nearest
        .map_or_else(|| format!("the keys are {}", KEYS.join(", ")), |key| format!("did you mean `{key}`?"))
}

impl Project {
    /// Reads and checks the description of the project in `folder`.
    ///
    /// # Errors
    /// There is none, or it breaks a rule.
    pub fn read(folder: &Path) -> Result<Self, ProjectError> {
        let path = folder.join(FILE_NAME);
        let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ProjectError::NotAProject { folder: folder.to_owned() },
            _ => ProjectError::Read { path: path.clone(), source },
        })?;
        Self::parse(folder, &text)
    }

    /// Parses the text of the file in `folder`.
    ///
    /// # Errors
    /// As [`Project::read`].
    pub fn parse(folder: &Path, text: &str) -> Result<Self, ProjectError> {
        let path = folder.join(FILE_NAME);
        let table = text.parse::<Table>();
        let table =
            table.map_err(|error| ProjectError::Syntax { path: path.clone(), reason: one_line(&error) })?;
        let fields = Fields { path: &path, table: &table };
        fields.refuse_unknown_keys()?;
        let version = fields.number("manifest-version")?;
        if version != Some(MANIFEST_VERSION) {
            return Err(fields.wrong_or_missing("manifest-version", "1"));
        }
        let language = fields.required("language", fields.text("language")?, LANGUAGES)?;
        let project = Self {
            folder: folder.to_owned(),
            language: language.parse().map_err(|_| fields.wrong_or_missing("language", LANGUAGES))?,
            description: fields.required(
                "description",
                fields.text("description")?,
                "what the importer reads",
            )?,
            authors: fields.required("authors", fields.texts("authors")?, "the names of its authors")?,
            license: fields.required(
                "license",
                fields.text("license")?,
                "an SPDX expression such as \"MIT\"",
            )?,
            homepage: fields.text("homepage")?,
            files: fields.required(
                "files",
                fields.texts("files")?,
                "patterns of file names such as [\"*.json\"]",
            )?,
            contains: fields.texts("contains")?.unwrap_or_default(),
            memory_mib: fields.number("memory-mib")?.unwrap_or(DEFAULT_MEMORY_MIB),
        };
        project.check(&fields)?;
        Ok(project)
    }

    /// Returns the manifest of a package: what the author states, and what the component says of itself.
    pub fn manifest(&self, info: &PluginInfo, api: &str, toolchain: &str) -> Manifest {
        let Self {
            folder: _,
            language: _,
            description,
            authors,
            license,
            homepage,
            files,
            contains,
            memory_mib,
        } = self.clone();
        let PluginInfo { name, version, platform, importer_version, formats } = info.clone();
        Manifest {
            manifest_version: MANIFEST_VERSION,
            name,
            version,
            platform,
            importer_version,
            formats,
            api: api.to_owned(),
            description,
            authors,
            license,
            homepage,
            files,
            contains,
            memory_mib,
            toolchain: toolchain.to_owned(),
        }
    }

    /// Checks the author's values by the rules of the package's manifest.
    fn check(&self, fields: &Fields<'_>) -> Result<(), ProjectError> {
        let described = PluginInfo {
            name: "a-name".to_owned(),
            version: "1.0.0".to_owned(),
            platform: "a-name".to_owned(),
            importer_version: "a-name/1".to_owned(),
            formats: vec!["a-name/1".to_owned()],
        };
        match self.manifest(&described, "1.0.0", "").check() {
            Ok(()) => Ok(()),
            Err(PackageError::Field { field, value, rule }) => Err(ProjectError::Value {
                path: fields.path.to_owned(),
                key: field,
                value: format!("{value:?}"),
                rule,
            }),
            Err(error) => {
                Err(ProjectError::Syntax { path: fields.path.to_owned(), reason: error.to_string() })
            }
        }
    }
}

const LANGUAGES: &str = "one of \"rust\", \"javascript\" and \"python\"";

/// The keys of the file that is read.
struct Fields<'a> {
    path: &'a Path,
    table: &'a Table,
}

impl Fields<'_> {
    fn refuse_unknown_keys(&self) -> Result<(), ProjectError> {
        let Some(key) = self.table.keys().find(|key| !KEYS.contains(&key.as_str())) else { return Ok(()) };
        let plain = key.to_lowercase().replace('_', "-");
        let distance = |known: &&str| strsim::damerau_levenshtein(&plain, known);
        let nearest =
            KEYS.into_iter().min_by_key(distance).filter(|known| distance(known) <= MAX_TYPING_ERRORS);
        Err(ProjectError::UnknownKey { path: self.path.to_owned(), key: key.clone(), nearest })
    }

    fn required<T>(
        &self,
        key: &'static str,
        value: Option<T>,
        rule: &'static str,
    ) -> Result<T, ProjectError> {
        value.ok_or_else(|| ProjectError::Missing { path: self.path.to_owned(), key, rule })
    }

    fn text(&self, key: &'static str) -> Result<Option<String>, ProjectError> {
        self.value(key, "a text in quotes", |value| value.as_str().map(str::to_owned))
    }

    fn texts(&self, key: &'static str) -> Result<Option<Vec<String>>, ProjectError> {
        self.value(key, "a list of texts, such as [\"…\"]", |value| {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    fn number(&self, key: &'static str) -> Result<Option<u32>, ProjectError> {
        self.value(key, "a whole number that is not negative", |value| {
            value.as_integer().and_then(|number| number.try_into().ok())
        })
    }

    fn value<T>(
        &self,
        key: &'static str,
        rule: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ProjectError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.wrong_or_missing(key, rule))
    }

    fn wrong_or_missing(&self, key: &'static str, rule: &'static str) -> ProjectError {
        let path = self.path.to_owned();
        match self.table.get(key) {
            None => ProjectError::Missing { path, key, rule },
            Some(value) => {
                let value = value.to_string().chars().take(MAX_SHOWN).collect();
                ProjectError::Value { path, key, value, rule }
            }
        }
    }
}

/// Returns the place and the message of an error, which are on the first and the last line.
fn one_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let place = text.lines().next().and_then(|line| line.strip_prefix("TOML parse error at "));
    place.map_or_else(|| error.message().to_owned(), |place| format!("{place}: {}", error.message()))
}

#[cfg(test)]
mod tests;
