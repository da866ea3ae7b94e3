//! Settings: the content of `satchel.toml`, and the checked configuration that the program runs on.

mod confidence;
mod typed;
mod unknown;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use satchel_host::CodeCache;
use serde::{Deserialize, Serialize};

pub use confidence::Fading;

use confidence::ConfidenceSection;
use typed::{
    ExportSection, Import, LogSection, OwnerSection, SecuritySection, StoreSection, Typed, WatchSection,
};

use satchel_core::{
    data_dir::{self, DataDirError},
    plain_file,
    plugins::Plugins,
    schedule::{NoSchedule, Regular, Renewal},
    vault::Unlock,
};
use satchel_source::{
    Limits,
    envelope::{EnvelopeError, Lock},
};
use satchel_watch::{SpecError, WatchSpec, Watching};

/// Default memory limit of the storage engine, in MiB.
const CACHE_MIB: u64 = 32;
/// Default size at which a log file is rotated, in MiB.
const LOG_MIB: u64 = 10;
/// Default number of rotated log files to keep.
const LOG_FILES: u32 = 5;
/// Largest number of rotated log files; each costs a rename at every rotation.
const MAX_LOG_FILES: u32 = 100;
/// Default number of full exports of a schedule to keep.
const KEEP: usize = 3;

/// The configuration that the program runs on; every value is present and checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory.
    pub data_dir: PathBuf,
    /// The folder for the socket if the path of the data directory is too long for a socket address.
    pub runtime_dir: PathBuf,
    /// Limits on the data that an import may unpack.
    pub intake: Limits,
    /// Bytes that the storage engine may keep in memory.
    pub cache_bytes: u64,
    /// Where a daemon logs, and how much.
    pub log: LogConfig,
    /// The folders to watch; none is watched unless `active` is set.
    pub watching: Watching,
    /// The home folder that `~` stands for in paths of the file.
    pub home: Option<PathBuf>,
    /// The DID of the owner in exports; `None` means that of the signing key.
    pub owner_did: Option<String>,
    /// When an incremental export becomes a full one.
    pub renewal: Renewal,
    /// The scheduled exports of the daemon, if any.
    pub regular: Option<Regular>,
    /// The address where the user's custom types are documented; it is written into exports.
    pub type_registry: Option<String>,
    /// How confidence decays on reads.
    pub fading: Fading,
    /// The key or passphrase that unlocks an encrypted data directory.
    pub unlock: Unlock,
    /// The cache of compiled importers; without one they are compiled at each start.
    pub code_cache: Option<CodeCache>,
    /// Whether to open a data directory that another user owns.
    pub allow_other_owner: bool,
}

/// Where a daemon logs, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// The level; `None` means the level of the command line.
    pub level: Option<LogLevel>,
    /// The log file; `None` means stderr.
    pub file: Option<PathBuf>,
    /// Bytes at which the file is rotated.
    pub max_bytes: u64,
    /// Number of rotated files to keep.
    pub keep: u32,
}

/// The log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// The effect of changed settings on a running daemon, by the names of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys that apply at once.
    pub now: Vec<&'static str>,
    /// Keys that apply at the next start.
    pub later: Vec<&'static str>,
}

/// The reason why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path:?}")]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is not TOML, or has an unknown key.
    #[error("the configuration {path:?} is not valid: {problem}")]
    Syntax { path: PathBuf, problem: String },
    /// The file has an unknown key.
    #[error("the configuration {path:?} has the unknown key {key:?} in line {line}; {advice}")]
    UnknownKey { path: PathBuf, key: String, line: usize, advice: String },
    /// A path is relative, so that it would mean another file in every folder.
    #[error("{key} in the configuration must be an absolute path, not {found:?}")]
    Relative { key: &'static str, found: PathBuf },
    /// An output is inside the data directory.
    #[error("{key} in the configuration cannot be used: {problem}")]
    Inside { key: &'static str, problem: DataDirError },
    /// A value is out of range.
    #[error("{key} in the configuration must be 1 to {most}, not {found}")]
    Value { key: &'static str, most: u64, found: u64 },
    /// A folder cannot be watched as specified.
    #[error("[[watch]] in the configuration: {0}")]
    Watch(#[source] SpecError),
    /// No importer reads this platform.
    #[error("[[watch]] providers in the configuration names {found:?}, which no importer reads; {advice}")]
    Provider { found: String, advice: String },
    /// The text is not a DID, or it names another key.
    #[error(
        "[owner] did in the configuration is no DID that can stand for you: {found:?}; write one such as did:web:example.org, or leave it out for that of the signing key"
    )]
    Did { found: String },
    /// The text is not a schedule.
    #[error("[export] schedule in the configuration: {0}")]
    Schedule(#[from] NoSchedule),
    /// A schedule has no folder, or its folder is not an absolute path.
    #[error("[export] schedule in the configuration needs a folder with an absolute path: folder = \"/…\"")]
    Folder,
    /// A key has an effect only with a schedule.
    #[error(
        "[export] {key} in the configuration does nothing without a schedule: add schedule = \"daily 03:00\", or leave it out"
    )]
    NoSchedule { key: &'static str },
    /// The text is not a recipient.
    #[error("[export] encrypt-to in the configuration: {0}")]
    EncryptTo(#[from] EnvelopeError),
    /// The type registry is not a web address.
    #[error(
        "[export] type-registry in the configuration must be an address such as https://example.org/types, not {found:?}"
    )]
    Registry { found: String },
}

impl Config {
    /// Returns the defaults for a data directory.
    pub fn new(data_dir: PathBuf, runtime_dir: PathBuf) -> Self {
        let log = LogConfig { level: None, file: None, max_bytes: LOG_MIB << 20, keep: LOG_FILES };
        Self {
            data_dir,
            runtime_dir,
            intake: Limits::default(),
            cache_bytes: CACHE_MIB << 20,
            log,
            watching: Watching::default(),
            home: None,
            owner_did: None,
            renewal: Renewal::default(),
            regular: None,
            type_registry: None,
            fading: Fading::default(),
            unlock: Unlock::default(),
            code_cache: None,
            allow_other_owner: false,
        }
    }

    /// Returns the settings that change in a running daemon when it gets the configuration `new`.
    #[must_use]
    pub fn changes(&self, new: &Self) -> Changes {
        // Every field is named, so that a new one fails to compile until someone decides. The location of the data is
        // not set in the file.
        let Self {
            data_dir: _,
            runtime_dir: _,
            intake,
            cache_bytes,
            log,
            watching,
            home: _,
            owner_did,
            renewal,
            regular,
            type_registry,
            fading,
            unlock,
            code_cache: _,
            allow_other_owner: _,
        } = self;
        let LogConfig { level, file, max_bytes, keep } = log;
        let named = |all: &[(bool, &'static str)]| {
            all.iter().filter(|(changed, _)| *changed).map(|(_, key)| *key).collect::<Vec<_>>()
        };
        let now = [
            (*intake != new.intake, "[import]"),
            (*level != new.log.level, "[log] level"),
            (watching.folders != new.watching.folders, "[[watch]]"),
        ];
        let later = [
            (*cache_bytes != new.cache_bytes, "[store] cache-mib"),
            (*file != new.log.file, "[log] file"),
            (*max_bytes != new.log.max_bytes, "[log] max-mib"),
            (*keep != new.log.keep, "[log] keep"),
            (*owner_did != new.owner_did, "[owner] did"),
            (
                *renewal != new.renewal || *regular != new.regular || *type_registry != new.type_registry,
                "[export]",
            ),
            (*fading != new.fading, "[confidence]"),
            (unlock.key_file != new.unlock.key_file, "[security] key-file"),
            (unlock.passphrase_file != new.unlock.passphrase_file, "[security] passphrase-file"),
        ];
        Changes { now: named(&now), later: named(&later) }
    }

    /// Returns the settings in the form of the file. Settings that are not set and have no default stay empty.
    pub fn typed(&self) -> impl Serialize {
        Typed {
            import: Import {
                max_files: Some(self.intake.entries),
                max_file_mib: Some(self.intake.entry_bytes >> 20),
                max_total_mib: Some(self.intake.total_bytes >> 20),
            },
            store: StoreSection { cache_mib: Some(self.cache_bytes >> 20) },
            log: LogSection {
                level: self.log.level,
                file: self.log.file.clone(),
                max_mib: Some(self.log.max_bytes >> 20),
                keep: Some(self.log.keep),
            },
            watch: self.watching.folders.iter().map(WatchSection::of).collect(),
            export: ExportSection::of(self.renewal, self.regular.as_ref(), self.type_registry.as_deref()),
            owner: OwnerSection { did: self.owner_did.clone() },
            confidence: ConfidenceSection::of(&self.fading),
            security: SecuritySection {
                key_file: self.unlock.key_file.clone(),
                passphrase_file: self.unlock.passphrase_file.clone(),
            },
        }
    }

    /// Applies the settings of the file at `path`. A file that the user did not name (`named` is false) may be missing.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub fn with_file(self, path: &Path, named: bool) -> Result<Self, ConfigError> {
        let read = plain_file::open_given(path).and_then(|file| {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut &file, &mut text).map(|_| text)
        });
        match read {
            Ok(text) => self.with_text(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => Ok(self),
            Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    fn with_text(mut self, text: &str, path: &Path) -> Result<Self, ConfigError> {
        let typed: Typed = toml::from_str(text).map_err(|error| misread(text, path, &error))?;
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
        let file = typed.log.file.map(|file| self.at_home(file));
        self.log = log(LogSection { file, ..typed.log }, self.log)?;
        if let Some(file) = &self.log.file {
            self.outside("[log] file", file)?;
        }
        self.watching.folders =
            typed.watch.into_iter().map(|section| self.watched(section)).collect::<Result<_, _>>()?;
        self.export(typed.export)?;
        if let Some(did) = typed.owner.did {
            self.owner_did = Some(checked_did(did)?);
        }
        self.fading = typed.confidence.read()?;
        self.security(typed.security)?;
        Ok(self)
    }

    /// Applies the security settings. Values that are already set come from flags, which take precedence over the file.
    fn security(&mut self, typed: SecuritySection) -> Result<(), ConfigError> {
        let SecuritySection { key_file, passphrase_file } = typed;
        let absolute = |key: &'static str, path: Option<PathBuf>| match path.map(|path| self.at_home(path)) {
            Some(found) if !found.is_absolute() => Err(ConfigError::Relative { key, found }),
            path => Ok(path),
        };
        let key_file = absolute("[security] key-file", key_file)?;
        let passphrase_file = absolute("[security] passphrase-file", passphrase_file)?;
        self.unlock.key_file = self.unlock.key_file.take().or(key_file);
        self.unlock.passphrase_file = self.unlock.passphrase_file.take().or(passphrase_file);
        Ok(())
    }

    fn export(&mut self, typed: ExportSection) -> Result<(), ConfigError> {
        let ExportSection {
            full_after_days,
            full_after_percent,
            schedule,
            folder,
            keep,
            encrypt_to,
            type_registry,
        } = typed;
        if let Some(registry) = type_registry {
            if !web_address(&registry) {
                return Err(ConfigError::Registry { found: registry });
            }
            self.type_registry = Some(registry);
        }
        if let Some(days) = full_after_days {
            within("[export] full-after-days", days.into(), 3_650)?;
            self.renewal.days = days;
        }
        if let Some(percent) = full_after_percent {
            within("[export] full-after-percent", percent.into(), 100)?;
            self.renewal.percent = percent;
        }
        within("[export] keep", keep.unwrap_or(KEEP) as u64, 1_000)?;
        let recipients = encrypt_to.unwrap_or_default();
        Lock::parse(&recipients, None)?;
        let Some(schedule) = schedule else {
            // A user who sets one of these keys expects exports.
            let said = [
                ("folder", folder.is_some()),
                ("keep", keep.is_some()),
                ("encrypt-to", !recipients.is_empty()),
            ];
            let idle = said.into_iter().find(|(_, said)| *said);
            return idle.map_or(Ok(()), |(key, _)| Err(ConfigError::NoSchedule { key }));
        };
        let folder = folder.map(|folder| self.at_home(folder));
        let folder = folder.filter(|folder| folder.is_absolute()).ok_or(ConfigError::Folder)?;
        self.outside("[export] folder", &folder)?;
        let keep = keep.unwrap_or(KEEP);
        self.regular = Some(Regular { schedule: schedule.parse()?, folder, keep, recipients });
        Ok(())
    }

    /// Refuses an output path inside the data directory.
    fn outside(&self, key: &'static str, path: &Path) -> Result<(), ConfigError> {
        let inside = data_dir::refuse_inside(&self.data_dir, path);
        inside.map_err(|problem| ConfigError::Inside { key, problem })
    }

    /// Replaces a leading `~` by the user's home folder.
    fn at_home(&self, path: PathBuf) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    }

    fn watched(&self, section: WatchSection) -> Result<WatchSpec, ConfigError> {
        let WatchSection { path, recursive, poll, providers, ignore, settle_ms } = section;
        let path = self.at_home(path);
        if let Some(found) = providers.iter().find(|name| !Plugins::knows(name)) {
            let advice = unknown::near(found, &Plugins::platforms());
            return Err(ConfigError::Provider { found: found.clone(), advice });
        }
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

/// Checks that the text is a DID as in PAM's schema.
fn checked_did(did: String) -> Result<String, ConfigError> {
    let parts = did.strip_prefix("did:").and_then(|rest| rest.split_once(':'));
    let named = |method: &str| {
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    // The key's own DID is the default, and the DID of another key would never match the signature.
    let fits = parts.is_some_and(|(method, id)| named(method) && method != "key" && !id.is_empty());
    let plain = !did.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#');
    if fits && plain { Ok(did) } else { Err(ConfigError::Did { found: did }) }
}

fn log(typed: LogSection, default: LogConfig) -> Result<LogConfig, ConfigError> {
    let LogSection { level, file, max_mib, keep } = typed;
    let mut log = LogConfig { level: level.or(default.level), ..default };
    if let Some(file) = file {
        if !file.is_absolute() {
            return Err(ConfigError::Relative { key: "[log] file", found: file });
        }
        log.file = Some(file);
    }
    if let Some(mib) = max_mib {
        within("[log] max-mib", mib, 1 << 10)?;
        log.max_bytes = mib << 20;
    }
    if let Some(keep) = keep {
        within("[log] keep", keep.into(), MAX_LOG_FILES.into())?;
        log.keep = keep;
    }
    Ok(log)
}

fn misread(text: &str, path: &Path, error: &toml::de::Error) -> ConfigError {
    let path = path.to_owned();
    let Some((key, advice)) = unknown::advice(error.message()) else {
        return ConfigError::Syntax { path, problem: error.to_string() };
    };
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    ConfigError::UnknownKey { path, key, line: before.matches('\n').count() + 1, advice }
}

fn web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !text.contains(char::is_whitespace))
}

fn within(key: &'static str, found: u64, most: u64) -> Result<(), ConfigError> {
    if (1..=most).contains(&found) { Ok(()) } else { Err(ConfigError::Value { key, most, found }) }
}

#[cfg(test)]
mod tests;
