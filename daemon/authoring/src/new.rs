//! Writes the project of a new importer.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    embedded::{self, EmbeddedFile},
    language::Language,
};

/// The ending of templates that tools of this repository must not take for their own files.
const TEMPLATE_ENDING: &str = ".tmpl";
/// Longest name of a platform, as the host checks it.
const MAX_PLATFORM: usize = 32;

/// A project that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its folder.
    pub folder: PathBuf,
    /// The importer's name.
    pub name: String,
    /// Its language.
    pub language: Language,
    /// The paths of all files in the folder, sorted.
    pub files: Vec<String>,
    /// The commands that the author runs next in the folder.
    pub next: Vec<String>,
}

/// Why a project was not written. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NewError {
    /// The name cannot be an importer's.
    #[error(
        "{name:?} cannot be the name of an importer: it must be 2 to 41 of a-z, 0-9 and -, and not begin with -"
    )]
    Name { name: String },
    /// The folder has files.
    #[error("{folder:?} is not empty; name a folder that does not exist yet")]
    NotEmpty { folder: PathBuf },
    /// There is a file with the name of the folder.
    #[error("{folder:?} is a file; name a folder that does not exist yet")]
    NotAFolder { folder: PathBuf },
    /// The file system refuses.
    #[error("cannot write {path:?}")]
    Write { path: PathBuf, source: io::Error },
}

/// Writes the project of an importer called `name` into `folder`, which must not exist or be empty.
///
/// # Errors
/// The name or the folder cannot be used, or the file system refuses.
pub fn new(name: &str, language: Language, folder: &Path) -> Result<Created, NewError> {
    if !is_name(name) {
        return Err(NewError::Name { name: name.to_owned() });
    }
    let exists = refuse_full(folder)?;
    let refused = |source| NewError::Write { path: folder.to_owned(), source };
    // Everything is written on the same file system first, and appears in the folder at once.
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = if exists { folder } else { parent };
    fs::create_dir_all(beside).map_err(refused)?;
    let staging = tempfile::Builder::new().prefix(".satchel-new-").tempdir_in(beside).map_err(refused)?;
    let staged = staging.path().join("project");
    let placeholders = Placeholders::of(name);
    let mut files = Vec::new();
    for file in embedded::files(language) {
        files.push(write(&staged, &file, &placeholders)?);
    }
    files.sort();
    if exists { move_into(&staged, folder) } else { fs::rename(&staged, folder) }.map_err(refused)?;
    let next = next_commands(language);
    Ok(Created { folder: folder.to_owned(), name: name.to_owned(), language, files, next })
}

/// Returns whether the folder exists; an error if it has files.
fn refuse_full(folder: &Path) -> Result<bool, NewError> {
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(true),
            Some(_) => Err(NewError::NotEmpty { folder: folder.to_owned() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(NewError::NotAFolder { folder: folder.to_owned() })
        }
        Err(source) => Err(NewError::Write { path: folder.to_owned(), source }),
    }
}

fn write(project: &Path, file: &EmbeddedFile, placeholders: &Placeholders) -> Result<String, NewError> {
    let EmbeddedFile { path, content, template } = file;
    let (relative, content) = if *template {
        let path = placeholders.fill(path.strip_suffix(TEMPLATE_ENDING).unwrap_or(path));
        let content = str::from_utf8(content).map(|text| placeholders.fill(text).into_bytes());
        (path, content.unwrap_or_else(|_| file.content.to_vec()))
    } else {
        (path.clone(), content.to_vec())
    };
    let path = project.join(&relative);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
    written.map_err(|source| NewError::Write { path, source })?;
    Ok(relative)
}

/// Moves what is in `from` into the existing folder `to`, or nothing. Replacing the folder itself would leave a shell
/// that is in it without one.
fn move_into(from: &Path, to: &Path) -> io::Result<()> {
    let mut moved = Vec::new();
    let mut move_all = || {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            fs::rename(entry.path(), &target)?;
            moved.push((entry.path(), target));
        }
        Ok(())
    };
    let outcome: io::Result<()> = move_all();
    if outcome.is_err() {
        // The staging folder is deleted with what is moved back.
        moved.iter().try_for_each(|(from, to)| fs::rename(to, from))?;
    }
    outcome
}

fn next_commands(language: Language) -> Vec<String> {
    let prepare: &[&str] = match language {
        Language::Rust => &["cargo test"],
        Language::JavaScript => &["npm install"],
        Language::Python => &["python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt"],
    };
    let all = ["satchel plugins build", "satchel plugins test"];
    prepare.iter().copied().chain(all).map(str::to_owned).collect()
}

fn is_name(name: &str) -> bool {
    let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (2..=41).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(allowed)
}

/// What stands for `{{…}}` in the templates.
struct Placeholders([(&'static str, String); 4]);

impl Placeholders {
    fn of(name: &str) -> Self {
        Self([
            ("{{name}}", name.to_owned()),
            ("{{crate}}", name.replace('-', "_")),
            ("{{type}}", type_name(name)),
            ("{{platform}}", name.chars().take(MAX_PLATFORM).collect()),
        ])
    }

    fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
    }
}

/// Returns the name in the form of a type: `example-notes` becomes `ExampleNotes`. A type does not begin with a digit.
fn type_name(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    };
    let joined: String = name.split('-').map(capitalised).collect();
    if joined.starts_with(|first: char| first.is_ascii_digit()) { format!("N{joined}") } else { joined }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_project_of_each_language_is_written_without_placeholders() {
        for language in Language::ALL {
            let place = tempfile::tempdir().unwrap();
            let folder = place.path().join("deep/notes");
            let created = new("example-notes", language, &folder).unwrap();
            assert!(created.files.contains(&"satchel-plugin.toml".to_owned()), "{:?}", created.files);
            assert!(created.files.contains(&"sdk/wit/importer.wit".to_owned()), "{:?}", created.files);
            for file in &created.files {
                assert!(!file.ends_with(TEMPLATE_ENDING) && !file.contains("{{"), "{file}");
                let text = fs::read_to_string(folder.join(file)).unwrap();
                let word = |rest: &str| {
                    let word = rest.split_once("}}").map_or("", |(word, _)| word);
                    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())
                };
                assert!(!text.split("{{").skip(1).any(word), "{language}: {file}");
            }
            assert_eq!(crate::project::Project::read(&folder).unwrap().language, language);
            assert_eq!(
                fs::read_dir(folder.parent().unwrap()).unwrap().count(),
                1,
                "no staging folder is left"
            );
        }
    }

    #[test]
    fn a_folder_with_files_is_refused_and_an_empty_one_is_filled() {
        let place = tempfile::tempdir().unwrap();
        let created = new("notes", Language::Rust, place.path()).unwrap();
        assert!(place.path().join("Cargo.toml").is_file());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), top_level(&created));
        let again = new("notes", Language::Rust, place.path());
        assert!(matches!(again, Err(NewError::NotEmpty { .. })), "{again:?}");
        let file = new("notes", Language::Rust, &place.path().join("Cargo.toml"));
        assert!(matches!(file, Err(NewError::NotAFolder { .. })), "{file:?}");
    }

    fn top_level(created: &Created) -> usize {
        let first = |path: &String| path.split('/').next().unwrap().to_owned();
        created.files.iter().map(first).collect::<std::collections::BTreeSet<_>>().len()
    }

    #[test]
    fn a_bad_name_is_refused_before_anything_is_written() {
        let place = tempfile::tempdir().unwrap();
        for name in ["", "a", "Notes", "-notes", "no tes", "n\u{f6}tes", &"n".repeat(42)] {
            let refused = new(name, Language::Rust, &place.path().join("project"));
            assert!(matches!(refused, Err(NewError::Name { .. })), "{name}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn every_name_gives_valid_names_in_code() {
        assert_eq!(type_name("example-notes"), "ExampleNotes");
        assert_eq!(type_name("4chan"), "N4chan");
        assert_eq!(type_name("a--b-"), "AB");
        assert_eq!(Placeholders::of(&"n".repeat(41)).fill("{{platform}}").len(), MAX_PLATFORM);
    }
}
