//! Settings: what was typed in `satchel.toml`, and what the program runs on.

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

/// MiB that the engine may keep in memory.
const CACHE_MIB: u64 = 32;
/// MiB at which a log file is set aside.
const LOG_MIB: u64 = 10;
/// Log files set aside that are kept.
const LOG_FILES: u32 = 5;
/// Most log files that may be kept; each costs a rename when one more is set aside.
const MAX_LOG_FILES: u32 = 100;
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
    /// Where a daemon logs, and how much.
    pub log: LogConfig,
    /// Which folders are watched; nothing is before `active` is set.
    pub watching: Watching,
    /// What `~` means in a path of the file.
    pub home: Option<PathBuf>,
    /// Who exports say that their owner is; none: the signing key.
    pub owner_did: Option<String>,
    /// When an incremental export becomes a full one.
    pub renewal: Renewal,
    /// What the daemon exports by itself; none: nothing.
    pub regular: Option<Regular>,
    /// Where the types of your own are written down; stands in exports.
    pub type_registry: Option<String>,
    /// How confidence fades on reads.
    pub fading: Fading,
    /// What opens the data directory if it is encrypted.
    pub unlock: Unlock,
    /// Where compiled importers are kept; none: they are compiled at each start.
    pub code_cache: Option<CodeCache>,
    /// Whether a data directory of another user is opened.
    pub allow_other_owner: bool,
}

/// Where a daemon logs, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// None: what the command line says.
    pub level: Option<LogLevel>,
    /// None: stderr.
    pub file: Option<PathBuf>,
    /// Bytes at which the file is set aside and a new one begun.
    pub max_bytes: u64,
    /// How many set aside are kept.
    pub keep: u32,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// What other settings do to a daemon that runs, by the names of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// These apply at once.
    pub now: Vec<&'static str>,
    /// These apply at the next start.
    pub later: Vec<&'static str>,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path:?}")]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is not TOML, or has a key that is not known.
    #[error("the configuration {path:?} is not valid: {problem}")]
    Syntax { path: PathBuf, problem: String },
    /// A key that there is not.
    #[error("the configuration {path:?} has the unknown key {key:?} in line {line}; {advice}")]
    UnknownKey { path: PathBuf, key: String, line: usize, advice: String },
    /// A path that would mean another file in every folder.
    #[error("{key} in the configuration must be an absolute path, not {found:?}")]
    Relative { key: &'static str, found: PathBuf },
    /// An output among the data.
    #[error("{key} in the configuration cannot be used: {problem}")]
    Inside { key: &'static str, problem: DataDirError },
    /// A value makes no sense.
    #[error("{key} in the configuration must be 1 to {most}, not {found}")]
    Value { key: &'static str, most: u64, found: u64 },
    /// A folder cannot be watched as it stands there.
    #[error("[[watch]] in the configuration: {0}")]
    Watch(#[source] SpecError),
    /// A platform that no importer reads.
    #[error("[[watch]] providers in the configuration names {found:?}, which no importer reads; {advice}")]
    Provider { found: String, advice: String },
    /// A text that is no DID, or one that names another key.
    #[error(
        "[owner] did in the configuration is no DID that can stand for you: {found:?}; write one such as did:web:example.org, or leave it out for that of the signing key"
    )]
    Did { found: String },
    /// A text that is no schedule.
    #[error("[export] schedule in the configuration: {0}")]
    Schedule(#[from] NoSchedule),
    /// A schedule without a place, or a place that is not one.
    #[error("[export] schedule in the configuration needs a folder with an absolute path: folder = \"/…\"")]
    Folder,
    /// What only a schedule makes use of.
    #[error(
        "[export] {key} in the configuration does nothing without a schedule: add schedule = \"daily 03:00\", or leave it out"
    )]
    NoSchedule { key: &'static str },
    /// A text that is no recipient.
    #[error("[export] encrypt-to in the configuration: {0}")]
    EncryptTo(#[from] EnvelopeError),
    /// A registry of types that is nowhere.
    #[error(
        "[export] type-registry in the configuration must be an address such as https://example.org/types, not {found:?}"
    )]
    Registry { found: String },
}

impl Config {
    /// The defaults for a data directory.
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

    /// What changes in a daemon that runs on these settings when it gets `new` ones.
    #[must_use]
    pub fn changes(&self, new: &Self) -> Changes {
        // Every field is named, so that a new one fails to compile until someone decides. Where the data lies is not in
        // the file.
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

    /// The settings as they are typed; what is not set has no default that could be typed.
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

    /// Takes what `path` sets. A file that was not `named` by the person may be absent.
    ///
    /// # Errors
    /// When the file cannot be read or used.
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

    /// What stands already was said with a flag, which goes before the file.
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
            // Whoever names a place waits for files in it.
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

    /// Refuses an output that would lie among the data.
    fn outside(&self, key: &'static str, path: &Path) -> Result<(), ConfigError> {
        let inside = data_dir::refuse_inside(&self.data_dir, path);
        inside.map_err(|problem| ConfigError::Inside { key, problem })
    }

    /// The path that is meant, where `~` stands for the person's home.
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

/// A DID as PAM's schema has them.
fn checked_did(did: String) -> Result<String, ConfigError> {
    let parts = did.strip_prefix("did:").and_then(|rest| rest.split_once(':'));
    let named = |method: &str| {
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    // The key's own DID is the default, and another key's would never fit the signature.
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
