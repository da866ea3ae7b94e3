//! Settings: what was typed in `satchel.toml`, and what the program runs on.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;

use crate::{
    intake::Limits,
    watch::{SpecError, WatchSpec, Watching},
};

/// MiB that the engine may keep in memory.
const CACHE_MIB: u64 = 32;

/// What the program runs on; every value is there and checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Where the socket goes when the data directory's path is too long for one.
    pub runtime_dir: PathBuf,
    /// What an import may unpack.
    pub intake: Limits,
    /// Bytes that the engine may keep in memory.
    pub cache_bytes: u64,
    /// Which folders are watched; nothing is before `active` is set.
    pub watching: Watching,
    /// What `~` means in a path of the file.
    pub home: Option<PathBuf>,
}

/// The file as it was typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Typed {
    import: Import,
    store: StoreSection,
    watch: Vec<WatchSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Import {
    max_files: Option<usize>,
    max_file_mib: Option<u64>,
    max_total_mib: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct StoreSection {
    cache_mib: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WatchSection {
    path: PathBuf,
    recursive: Option<bool>,
    poll: Option<bool>,
    #[serde(default)]
    providers: Vec<String>,
    #[serde(default)]
    ignore: Vec<String>,
    settle_ms: Option<u64>,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path:?}")]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is not TOML, or has a key that is not known.
    #[error("the configuration {path:?} is not valid: {problem}")]
    Syntax { path: PathBuf, problem: String },
    /// A value makes no sense.
    #[error("{key} in the configuration must be 1 to {most}, not {found}")]
    Value { key: &'static str, most: u64, found: u64 },
    /// A folder cannot be watched as it stands there.
    #[error("[[watch]] in the configuration: {0}")]
    Watch(#[source] SpecError),
}

impl Config {
    /// The defaults for a data directory.
    pub fn new(data_dir: PathBuf, runtime_dir: PathBuf) -> Self {
        Self {
            data_dir,
            runtime_dir,
            intake: Limits::default(),
            cache_bytes: CACHE_MIB << 20,
            watching: Watching::default(),
            home: None,
        }
    }

    /// Takes what `path` sets. A file that was not `named` by the person may be absent.
    ///
    /// # Errors
    /// When the file cannot be read or used.
    pub fn with_file(self, path: &Path, named: bool) -> Result<Self, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => self.with_text(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => Ok(self),
            Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    fn with_text(mut self, text: &str, path: &Path) -> Result<Self, ConfigError> {
        let typed: Typed = toml::from_str(text)
            .map_err(|error| ConfigError::Syntax { path: path.to_owned(), problem: error.to_string() })?;
        let default = Limits::default();
        if let Some(files) = typed.import.max_files {
            within("[import] max-files", files as u64, default.entries as u64)?;
            self.intake.entries = files;
        }
        if let Some(mib) = typed.import.max_file_mib {
            within("[import] max-file-mib", mib, 64 << 10)?;
            self.intake.entry_bytes = mib << 20;
        }
        if let Some(mib) = typed.import.max_total_mib {
            within("[import] max-total-mib", mib, 1 << 20)?;
            self.intake.total_bytes = mib << 20;
        }
        if let Some(mib) = typed.store.cache_mib {
            within("[store] cache-mib", mib, 4 << 10)?;
            self.cache_bytes = mib << 20;
        }
        self.watching.folders =
            typed.watch.into_iter().map(|section| self.watched(section)).collect::<Result<_, _>>()?;
        Ok(self)
    }

    fn watched(&self, section: WatchSection) -> Result<WatchSpec, ConfigError> {
        let WatchSection { path, recursive, poll, providers, ignore, settle_ms } = section;
        let path = match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        };
        let spec = WatchSpec {
            recursive: recursive.unwrap_or(true),
            poll: poll.unwrap_or(false),
            providers,
            ignore,
            settle: settle_ms.map(Duration::from_millis),
            ..WatchSpec::of(path)
        };
        spec.checked().map_err(ConfigError::Watch)
    }
}

fn within(key: &'static str, found: u64, most: u64) -> Result<(), ConfigError> {
    if (1..=most).contains(&found) { Ok(()) } else { Err(ConfigError::Value { key, most, found }) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::new("/d".into(), "/r".into()).with_text(text, Path::new("satchel.toml"))
    }

    #[test]
    fn what_is_not_set_keeps_its_default() {
        let config = parse("[import]\nmax-total-mib = 5\n").unwrap();
        assert_eq!(
            (config.intake.total_bytes, config.intake.entry_bytes),
            (5 << 20, Limits::default().entry_bytes)
        );
    }

    #[test]
    fn an_unknown_key_is_refused_and_the_known_ones_are_named() {
        let error = parse("[import]\nmax-totl-mib = 5\n").unwrap_err().to_string();
        assert!(error.contains("max-totl-mib") && error.contains("max-total-mib"), "{error}");
    }

    #[test]
    fn watched_folders_are_read_with_their_settings() {
        let text = "[[watch]]\npath = \"/a/Downloads/\"\n\n[[watch]]\npath = \"/b\"\nrecursive = false\n\
                    poll = true\nproviders = [\"claude\"]\nignore = [\"*.txt\"]\nsettle-ms = 5000\n";
        let folders = parse(text).unwrap().watching.folders;
        assert_eq!(folders[0], WatchSpec::of("/a/Downloads".into()));
        assert_eq!(folders[0].path.to_str(), Some("/a/Downloads"));
        let expected = WatchSpec {
            recursive: false,
            poll: true,
            providers: vec!["claude".into()],
            ignore: vec!["*.txt".into()],
            settle: Some(Duration::from_secs(5)),
            ..WatchSpec::of("/b".into())
        };
        assert_eq!(folders[1..], [expected]);
    }

    #[test]
    fn a_tilde_means_the_home_of_the_person() {
        let mut config = Config::new("/d".into(), "/r".into());
        config.home = Some("/home/ana".into());
        let config = config.with_text("[[watch]]\npath = \"~/Downloads\"\n", Path::new("s")).unwrap();
        assert_eq!(config.watching.folders, [WatchSpec::of("/home/ana/Downloads".into())]);
    }

    #[test]
    fn a_watched_folder_that_makes_no_sense_is_refused() {
        for (lines, problem) in [
            ("path = \"Downloads\"", "not an absolute path"),
            ("path = \"/a\"\nignore = [\"[\"]", "is no pattern"),
            ("path = \"/a\"\nsettle-ms = 1", "settle-ms"),
            ("path = \"/a\"\nrecursiv = true", "recursiv"),
            ("recursive = true", "path"),
        ] {
            let error = crate::chain(&parse(&format!("[[watch]]\n{lines}\n")).unwrap_err());
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused() {
        for value in ["0", "4097"] {
            let error = parse(&format!("[store]\ncache-mib = {value}\n")).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("[store] cache-mib in the configuration must be 1 to 4096, not {value}")
            );
        }
    }
}
