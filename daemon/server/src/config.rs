//! Settings: the content of `satchel.toml`, and the checked configuration that the program runs on.

mod confidence;
mod file;
mod unknown_key;
mod web;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use satchel_host::CodeCache;
use serde::{Deserialize, Serialize};

pub use confidence::ConfidenceDecay;
pub use web::{InvalidLoopbackAddress, InvalidOrigin, LoopbackAddress, WebOrigin};

use confidence::ConfidenceSection;
use file::{
    ConfigFile, ExportSection, ImportSection, LogSection, OwnerSection, SecuritySection, ServerSection,
    StoreSection, WatchSection,
};

use satchel_core::{
    data_dir::{self, DataDirError},
    ingest::SecretHandling,
    plain_file,
    schedule::{InvalidSchedule, RenewalPolicy, ScheduledExports},
    uploads::DEFAULT_TOTAL_BYTES,
    vault::UnlockOptions,
};
use satchel_embedder::{EndpointConfig, EndpointConfigError};
use satchel_registry::Plugins;
use satchel_source::{
    Limits,
    envelope::{EnvelopeError, ExportEncryption},
};
use satchel_watch::{SpecError, WatchConfig, WatchSpec};

/// Default memory limit of the storage engine, in MiB.
const DEFAULT_CACHE_MIB: u64 = 32;
/// Default size at which a log file is rotated, in MiB.
const DEFAULT_LOG_MIB: u64 = 10;
/// Default number of rotated log files to keep.
const DEFAULT_LOG_FILES: u32 = 5;
/// Largest number of rotated log files; each costs a rename at every rotation.
const MAX_LOG_FILES: u32 = 100;
/// Default number of full exports of a schedule to keep.
const DEFAULT_KEEP: usize = 3;

/// The configuration that the program runs on; every value is present and checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory.
    pub data_dir: PathBuf,
    /// The folder for the socket if the path of the data directory is too long for a socket address.
    pub runtime_dir: PathBuf,
    /// Limits on the data that an import may unpack.
    pub import_limits: Limits,
    /// What imports do with secrets in what tools printed.
    pub secrets: SecretHandling,
    /// Bytes that the storage engine may keep in memory.
    pub cache_bytes: u64,
    /// Where a daemon logs, and how much.
    pub log: LogConfig,
    /// The folders to watch; none is watched unless `active` is set.
    pub watching: WatchConfig,
    /// The home folder that `~` stands for in paths of the file.
    pub home: Option<PathBuf>,
    /// The DID of the owner in exports; `None` means that of the signing key.
    pub owner_did: Option<String>,
    /// When an incremental export becomes a full one.
    pub renewal: RenewalPolicy,
    /// The scheduled exports of the daemon, if any.
    pub export_schedule: Option<ScheduledExports>,
    /// The address where the user's custom types are documented; it is written into exports.
    pub type_registry: Option<String>,
    /// How confidence decays on reads.
    pub confidence_decay: ConfidenceDecay,
    /// The key or passphrase that unlocks an encrypted data directory.
    pub unlock: UnlockOptions,
    /// The cache of compiled importers; without one they are compiled at each start.
    pub code_cache: Option<CodeCache>,
    /// The program that compiles packages of importers in a child process: this one. `None`: they are compiled in this
    /// process.
    pub plugin_compiler: Option<PathBuf>,
    /// Whether to open a data directory that another user owns.
    pub allow_other_owner: bool,
    /// The address on which the daemon accepts devices over TLS; `None`: only the socket of the data directory.
    pub listen: Option<SocketAddr>,
    /// The loopback address on which the daemon accepts gRPC-Web; `None`: nowhere.
    pub web: Option<LoopbackAddress>,
    /// The origins of the web pages that may call over gRPC-Web.
    pub web_origins: Vec<WebOrigin>,
    /// Bytes that all files that are being uploaded may have together.
    pub upload_bytes: u64,
    /// The server that makes embeddings; `None`: nothing is sent anywhere.
    pub embeddings: Option<EndpointConfig>,
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
pub struct ConfigChanges {
    /// Keys that apply at once.
    pub immediate: Vec<&'static str>,
    /// Keys that apply at the next start.
    pub on_restart: Vec<&'static str>,
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
    InsideDataDir { key: &'static str, problem: DataDirError },
    /// A value is out of range.
    #[error("{key} in the configuration must be 1 to {max}, not {found}")]
    Value { key: &'static str, max: u64, found: u64 },
    /// The text is not an address with a port.
    #[error(
        "[server] listen in the configuration must be an address and a port such as \"0.0.0.0:7443\" or \"[::]:7443\", not {found:?}"
    )]
    Listen { found: String },
    /// The text is not a loopback address with a port.
    #[error("[server] web in the configuration: {0}")]
    Web(#[from] InvalidLoopbackAddress),
    /// The text is not the origin of a web page.
    #[error("[server] web-origins in the configuration: {0}")]
    WebOrigin(#[from] InvalidOrigin),
    /// The server for embeddings cannot be used.
    #[error("[embeddings] cannot be used")]
    Embeddings(#[from] EndpointConfigError),
    /// A folder cannot be watched as specified.
    #[error("[[watch]] in the configuration: {0}")]
    Watch(#[source] SpecError),
    /// No importer reads this platform.
    #[error("[[watch]] providers in the configuration names {found:?}, which no importer reads; {advice}")]
    Provider { found: String, advice: String },
    /// The text is not a DID, or it names another key.
    #[error(
        "[owner] did in the configuration is not a usable DID: {found:?}; set one such as did:web:example.org, or remove the key to use the DID of the signing key"
    )]
    Did { found: String },
    /// The text is not a schedule.
    #[error("[export] schedule in the configuration: {0}")]
    Schedule(#[from] InvalidSchedule),
    /// A schedule has no folder, or its folder is not an absolute path.
    #[error("[export] schedule in the configuration needs a folder with an absolute path: folder = \"/…\"")]
    Folder,
    /// A key has an effect only with a schedule.
    #[error(
        "[export] {key} in the configuration does nothing without a schedule: add schedule = \"daily 03:00\", or leave it out"
    )]
    InvalidSchedule { key: &'static str },
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
        let log =
            LogConfig { level: None, file: None, max_bytes: DEFAULT_LOG_MIB << 20, keep: DEFAULT_LOG_FILES };
        Self {
            data_dir,
            runtime_dir,
            import_limits: Limits::default(),
            secrets: SecretHandling::default(),
            cache_bytes: DEFAULT_CACHE_MIB << 20,
            log,
            watching: WatchConfig::default(),
            home: None,
            owner_did: None,
            renewal: RenewalPolicy::default(),
            export_schedule: None,
            type_registry: None,
            confidence_decay: ConfidenceDecay::default(),
            unlock: UnlockOptions::default(),
            code_cache: None,
            plugin_compiler: None,
            allow_other_owner: false,
            listen: None,
            web: None,
            web_origins: Vec::new(),
            upload_bytes: DEFAULT_TOTAL_BYTES,
            embeddings: None,
        }
    }

    /// Returns the settings that change in a running daemon when it gets the configuration `new`.
    #[must_use]
    pub fn changes(&self, new: &Self) -> ConfigChanges {
        // Every field is named, so that a new one fails to compile until someone decides. The location of the data is
        // not set in the file.
        let Self {
            data_dir: _,
            runtime_dir: _,
            import_limits,
            secrets,
            cache_bytes,
            log,
            watching,
            home: _,
            owner_did,
            renewal,
            export_schedule,
            type_registry,
            confidence_decay,
            unlock,
            code_cache: _,
            plugin_compiler: _,
            allow_other_owner: _,
            listen,
            web,
            web_origins,
            upload_bytes,
            embeddings,
        } = self;
        let LogConfig { level, file, max_bytes, keep } = log;
        let names = |all: &[(bool, &'static str)]| {
            all.iter().filter(|(changed, _)| *changed).map(|(_, key)| *key).collect::<Vec<_>>()
        };
        let immediate = [
            (*import_limits != new.import_limits || *secrets != new.secrets, "[import]"),
            (*level != new.log.level, "[log] level"),
            (watching.folders != new.watching.folders, "[[watch]]"),
        ];
        let on_restart = [
            (*cache_bytes != new.cache_bytes, "[store] cache-mib"),
            (*listen != new.listen, "[server] listen"),
            (*web != new.web, "[server] web"),
            (*web_origins != new.web_origins, "[server] web-origins"),
            (*upload_bytes != new.upload_bytes, "[server] max-upload-mib"),
            (*embeddings != new.embeddings, "[embeddings]"),
            (*file != new.log.file, "[log] file"),
            (*max_bytes != new.log.max_bytes, "[log] max-mib"),
            (*keep != new.log.keep, "[log] keep"),
            (*owner_did != new.owner_did, "[owner] did"),
            (
                *renewal != new.renewal
                    || *export_schedule != new.export_schedule
                    || *type_registry != new.type_registry,
                "[export]",
            ),
            (*confidence_decay != new.confidence_decay, "[confidence]"),
            (unlock.key_file != new.unlock.key_file, "[security] key-file"),
            (unlock.passphrase_file != new.unlock.passphrase_file, "[security] passphrase-file"),
        ];
        ConfigChanges { immediate: names(&immediate), on_restart: names(&on_restart) }
    }

    /// Returns the settings in the form of the file. Settings that are not set and have no default stay empty.
    pub fn to_file(&self) -> impl Serialize {
        ConfigFile {
            import: ImportSection {
                max_files: Some(self.import_limits.entries),
                max_file_mib: Some(self.import_limits.entry_bytes >> 20),
                max_total_mib: Some(self.import_limits.total_bytes >> 20),
                secrets: Some(self.secrets),
            },
            store: StoreSection { cache_mib: Some(self.cache_bytes >> 20) },
            log: LogSection {
                level: self.log.level,
                file: self.log.file.clone(),
                max_mib: Some(self.log.max_bytes >> 20),
                keep: Some(self.log.keep),
            },
            watch: self.watching.folders.iter().map(WatchSection::of).collect(),
            export: ExportSection::of(
                self.renewal,
                self.export_schedule.as_ref(),
                self.type_registry.as_deref(),
            ),
            owner: OwnerSection { did: self.owner_did.clone() },
            confidence: ConfidenceSection::of(&self.confidence_decay),
            server: ServerSection {
                listen: self.listen.map(|address| address.to_string()),
                web: self.web.map(|address| address.to_string()),
                web_origins: self.web_origins.iter().map(ToString::to_string).collect(),
                max_upload_mib: Some(self.upload_bytes >> 20),
            },
            embeddings: self.embeddings.clone(),
            security: SecuritySection {
                key_file: self.unlock.key_file.clone(),
                passphrase_file: self.unlock.passphrase_file.clone(),
            },
        }
    }

    /// Applies the settings of the file at `path`. A file that the user did not name (`explicit` is false) may be missing.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub fn with_file(self, path: &Path, explicit: bool) -> Result<Self, ConfigError> {
        let read = plain_file::open_argument(path).and_then(|file| {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut &file, &mut text).map(|_| text)
        });
        match read {
            Ok(text) => self.with_text(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !explicit => Ok(self),
            Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    fn with_text(mut self, text: &str, path: &Path) -> Result<Self, ConfigError> {
        let settings: ConfigFile = toml::from_str(text).map_err(|error| syntax_error(text, path, &error))?;
        let default = Limits::default();
        if let Some(files) = settings.import.max_files {
            check_range("[import] max-files", files as u64, default.entries as u64)?;
            self.import_limits.entries = files;
        }
        if let Some(mib) = settings.import.max_file_mib {
            check_range("[import] max-file-mib", mib, 64 << 10)?;
            self.import_limits.entry_bytes = mib << 20;
        }
        if let Some(mib) = settings.import.max_total_mib {
            check_range("[import] max-total-mib", mib, 1 << 20)?;
            self.import_limits.total_bytes = mib << 20;
        }
        self.secrets = settings.import.secrets.unwrap_or_default();
        if let Some(mib) = settings.store.cache_mib {
            check_range("[store] cache-mib", mib, 4 << 10)?;
            self.cache_bytes = mib << 20;
        }
        let file = settings.log.file.map(|file| self.expand_home(file));
        self.log = log_config(LogSection { file, ..settings.log }, self.log)?;
        if let Some(file) = &self.log.file {
            self.check_outside_data_dir("[log] file", file)?;
        }
        self.watching.folders =
            settings.watch.into_iter().map(|section| self.watch_spec(section)).collect::<Result<_, _>>()?;
        self.apply_export(settings.export)?;
        if let Some(did) = settings.owner.did {
            self.owner_did = Some(check_did(did)?);
        }
        self.confidence_decay = settings.confidence.read()?;
        self.apply_security(settings.security)?;
        self.apply_server(settings.server)?;
        if let Some(mut embeddings) = settings.embeddings {
            embeddings.check()?;
            embeddings.api_key_file = embeddings.api_key_file.map(|path| self.expand_home(path));
            self.embeddings = Some(embeddings);
        }
        Ok(self)
    }

    /// Applies the security settings. Values that are already set come from flags, which take precedence over the file.
    fn apply_security(&mut self, section: SecuritySection) -> Result<(), ConfigError> {
        let SecuritySection { key_file, passphrase_file } = section;
        let absolute =
            |key: &'static str, path: Option<PathBuf>| match path.map(|path| self.expand_home(path)) {
                Some(found) if !found.is_absolute() => Err(ConfigError::Relative { key, found }),
                path => Ok(path),
            };
        let key_file = absolute("[security] key-file", key_file)?;
        let passphrase_file = absolute("[security] passphrase-file", passphrase_file)?;
        self.unlock.key_file = self.unlock.key_file.take().or(key_file);
        self.unlock.passphrase_file = self.unlock.passphrase_file.take().or(passphrase_file);
        Ok(())
    }

    fn apply_server(&mut self, section: ServerSection) -> Result<(), ConfigError> {
        let ServerSection { listen, web, web_origins, max_upload_mib } = section;
        if let Some(address) = listen {
            self.listen = Some(address.parse().map_err(|_| ConfigError::Listen { found: address })?);
        }
        if let Some(mib) = max_upload_mib {
            self.upload_bytes = mib.saturating_mul(1 << 20);
        }
        if let Some(address) = web {
            self.web = Some(address.parse()?);
        }
        self.web_origins = web_origins.iter().map(|origin| origin.parse()).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn apply_export(&mut self, section: ExportSection) -> Result<(), ConfigError> {
        let ExportSection {
            full_after_days,
            full_after_percent,
            schedule,
            folder,
            keep,
            encrypt_to,
            type_registry,
        } = section;
        if let Some(registry) = type_registry {
            if !is_web_address(&registry) {
                return Err(ConfigError::Registry { found: registry });
            }
            self.type_registry = Some(registry);
        }
        if let Some(days) = full_after_days {
            check_range("[export] full-after-days", days.into(), 3_650)?;
            self.renewal.days = days;
        }
        if let Some(percent) = full_after_percent {
            check_range("[export] full-after-percent", percent.into(), 100)?;
            self.renewal.percent = percent;
        }
        check_range("[export] keep", keep.unwrap_or(DEFAULT_KEEP) as u64, 1_000)?;
        let recipients = encrypt_to.unwrap_or_default();
        ExportEncryption::parse(&recipients, None)?;
        let Some(schedule) = schedule else {
            // A user who sets one of these keys expects exports.
            let export_keys = [
                ("folder", folder.is_some()),
                ("keep", keep.is_some()),
                ("encrypt-to", !recipients.is_empty()),
            ];
            let without_effect = export_keys.into_iter().find(|(_, set)| *set);
            return without_effect.map_or(Ok(()), |(key, _)| Err(ConfigError::InvalidSchedule { key }));
        };
        let folder = folder.map(|folder| self.expand_home(folder));
        let folder = folder.filter(|folder| folder.is_absolute()).ok_or(ConfigError::Folder)?;
        self.check_outside_data_dir("[export] folder", &folder)?;
        let keep = keep.unwrap_or(DEFAULT_KEEP);
        self.export_schedule =
            Some(ScheduledExports { schedule: schedule.parse()?, folder, keep, recipients });
        Ok(())
    }

    /// Refuses an output path inside the data directory.
    fn check_outside_data_dir(&self, key: &'static str, path: &Path) -> Result<(), ConfigError> {
        let inside = data_dir::refuse_inside(&self.data_dir, path);
        inside.map_err(|problem| ConfigError::InsideDataDir { key, problem })
    }

    /// Replaces a leading `~` by the user's home folder.
    fn expand_home(&self, path: PathBuf) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    }

    fn watch_spec(&self, section: WatchSection) -> Result<WatchSpec, ConfigError> {
        let WatchSection { path, recursive, poll, providers, ignore, sessions, settle_ms } = section;
        let path = self.expand_home(path);
        let known = Plugins::known_platforms(&self.data_dir.join(data_dir::PLUGINS));
        if let Some(found) = providers.iter().find(|name| !known.contains(name)) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let advice = unknown_key::suggest(found, &known);
            return Err(ConfigError::Provider { found: found.clone(), advice });
        }
        let spec = WatchSpec {
            recursive: recursive.unwrap_or(true),
            poll: poll.unwrap_or(false),
            providers,
            ignore,
            sessions: sessions.unwrap_or(false),
            settle: settle_ms.map(Duration::from_millis),
            ..WatchSpec::with_defaults(path)
        };
        spec.checked().map_err(ConfigError::Watch)
    }
}

/// Checks that the text is a DID as in PAM's schema.
fn check_did(did: String) -> Result<String, ConfigError> {
    let parts = did.strip_prefix("did:").and_then(|rest| rest.split_once(':'));
    let valid_method = |method: &str| {
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    // The key's own DID is the default, and the DID of another key would never match the signature.
    let fits = parts.is_some_and(|(method, id)| valid_method(method) && method != "key" && !id.is_empty());
    let plain = !did.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#');
    if fits && plain { Ok(did) } else { Err(ConfigError::Did { found: did }) }
}

fn log_config(section: LogSection, default: LogConfig) -> Result<LogConfig, ConfigError> {
    let LogSection { level, file, max_mib, keep } = section;
    let mut log = LogConfig { level: level.or(default.level), ..default };
    if let Some(file) = file {
        if !file.is_absolute() {
            return Err(ConfigError::Relative { key: "[log] file", found: file });
        }
        log.file = Some(file);
    }
    if let Some(mib) = max_mib {
        check_range("[log] max-mib", mib, 1 << 10)?;
        log.max_bytes = mib << 20;
    }
    if let Some(keep) = keep {
        check_range("[log] keep", keep.into(), MAX_LOG_FILES.into())?;
        log.keep = keep;
    }
    Ok(log)
}

fn syntax_error(text: &str, path: &Path, error: &toml::de::Error) -> ConfigError {
    let path = path.to_owned();
    let Some((key, advice)) = unknown_key::advice(error.message()) else {
        return ConfigError::Syntax { path, problem: error.to_string() };
    };
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    ConfigError::UnknownKey { path, key, line: before.matches('\n').count() + 1, advice }
}

fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !text.contains(char::is_whitespace))
}

fn check_range(key: &'static str, found: u64, max: u64) -> Result<(), ConfigError> {
    if (1..=max).contains(&found) { Ok(()) } else { Err(ConfigError::Value { key, max, found }) }
}

#[cfg(test)]
mod tests;
