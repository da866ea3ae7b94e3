//! Settings: what was typed in `satchel.toml`, and what the program runs on.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{
    intake::Limits,
    schedule::{NoSchedule, Regular, Renewal},
};

/// MiB that the engine may keep in memory.
const CACHE_MIB: u64 = 32;
/// Full exports of a schedule that stay.
const KEEP: usize = 3;

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
    /// When an incremental export becomes a full one.
    pub renewal: Renewal,
    /// What the daemon exports by itself; none: nothing.
    pub regular: Option<Regular>,
}

/// The file as it was typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Typed {
    import: Import,
    store: StoreSection,
    export: ExportSection,
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

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct ExportSection {
    full_after_days: Option<u32>,
    full_after_percent: Option<u32>,
    schedule: Option<String>,
    folder: Option<PathBuf>,
    keep: Option<usize>,
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
    /// A text that is no schedule.
    #[error("[export] schedule in the configuration: {0}")]
    Schedule(#[from] NoSchedule),
    /// A schedule without a place, or a place that is not one.
    #[error("[export] schedule in the configuration needs a folder with an absolute path: folder = \"/…\"")]
    Folder,
}

impl Config {
    /// The defaults for a data directory.
    pub fn new(data_dir: PathBuf, runtime_dir: PathBuf) -> Self {
        Self {
            data_dir,
            runtime_dir,
            intake: Limits::default(),
            cache_bytes: CACHE_MIB << 20,
            renewal: Renewal::default(),
            regular: None,
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
        self.export(typed.export)?;
        Ok(self)
    }

    fn export(&mut self, typed: ExportSection) -> Result<(), ConfigError> {
        let ExportSection { full_after_days, full_after_percent, schedule, folder, keep } = typed;
        if let Some(days) = full_after_days {
            within("[export] full-after-days", days.into(), 3_650)?;
            self.renewal.days = days;
        }
        if let Some(percent) = full_after_percent {
            within("[export] full-after-percent", percent.into(), 100)?;
            self.renewal.percent = percent;
        }
        let keep = keep.unwrap_or(KEEP);
        within("[export] keep", keep as u64, 1_000)?;
        if let Some(schedule) = schedule {
            let folder = folder.filter(|folder| folder.is_absolute()).ok_or(ConfigError::Folder)?;
            self.regular = Some(Regular { schedule: schedule.parse()?, folder, keep });
        }
        Ok(())
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
    fn a_schedule_names_its_folder() {
        let config =
            parse("[export]\nschedule = \"daily 03:00\"\nfolder = \"/backup\"\nfull-after-days = 7\n")
                .unwrap();
        let regular = config.regular.unwrap();
        assert_eq!((regular.schedule.to_string().as_str(), regular.keep), ("daily 03:00", KEEP));
        assert_eq!(config.renewal, Renewal { days: 7, ..Renewal::default() });
        for (text, problem) in [
            ("schedule = \"daily\"", "needs a folder"),
            ("schedule = \"daily\"\nfolder = \"backup\"", "needs a folder"),
            ("schedule = \"often\"\nfolder = \"/backup\"", "is no schedule"),
            ("keep = 0", "[export] keep"),
            ("full-after-percent = 101", "full-after-percent"),
        ] {
            let error = parse(&format!("[export]\n{text}\n")).unwrap_err().to_string();
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
