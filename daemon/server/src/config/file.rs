//! The structure of the configuration file: sections and keys, all of them optional.

use std::path::PathBuf;

use satchel_core::{
    ingest::SecretHandling,
    schedule::{RenewalPolicy, ScheduledExports},
};
use satchel_embedder::EndpointConfig;
use satchel_watch::WatchSpec;
use serde::{Deserialize, Serialize};

use super::{LogLevel, confidence::ConfidenceSection};

/// The content of the configuration file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ConfigFile {
    pub(super) import: ImportSection,
    pub(super) store: StoreSection,
    pub(super) log: LogSection,
    pub(super) watch: Vec<WatchSection>,
    pub(super) export: ExportSection,
    pub(super) owner: OwnerSection,
    pub(super) confidence: ConfidenceSection,
    pub(super) server: ServerSection,
    pub(super) security: SecuritySection,
    pub(super) embeddings: Option<EndpointConfig>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ServerSection {
    pub(super) listen: Option<String>,
    pub(super) web: Option<String>,
    pub(super) web_origins: Vec<String>,
    pub(super) max_upload_mib: Option<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct OwnerSection {
    pub(super) did: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ImportSection {
    pub(super) max_files: Option<usize>,
    pub(super) max_file_mib: Option<u64>,
    pub(super) max_total_mib: Option<u64>,
    pub(super) secrets: Option<SecretHandling>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct StoreSection {
    pub(super) cache_mib: Option<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LogSection {
    pub(super) level: Option<LogLevel>,
    pub(super) file: Option<PathBuf>,
    pub(super) max_mib: Option<u64>,
    pub(super) keep: Option<u32>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WatchSection {
    pub(super) path: PathBuf,
    pub(super) recursive: Option<bool>,
    pub(super) poll: Option<bool>,
    #[serde(default)]
    pub(super) providers: Vec<String>,
    #[serde(default)]
    pub(super) ignore: Vec<String>,
    pub(super) sessions: Option<bool>,
    pub(super) settle_ms: Option<u64>,
}

impl ExportSection {
    pub(super) fn of(
        renewal: RenewalPolicy,
        export_schedule: Option<&ScheduledExports>,
        type_registry: Option<&str>,
    ) -> Self {
        Self {
            full_after_days: Some(renewal.days),
            full_after_percent: Some(renewal.percent),
            schedule: export_schedule.map(|regular| regular.schedule.to_string()),
            folder: export_schedule.map(|regular| regular.folder.clone()),
            keep: export_schedule.map(|regular| regular.keep),
            encrypt_to: export_schedule.map(|regular| regular.recipients.clone()),
            type_registry: type_registry.map(str::to_owned),
        }
    }
}

impl WatchSection {
    pub(super) fn of(spec: &WatchSpec) -> Self {
        let WatchSpec { path, recursive, poll, providers, ignore, sessions, settle } = spec.clone();
        let settle_ms = settle.map(|settle| u64::try_from(settle.as_millis()).unwrap_or(u64::MAX));
        Self {
            path,
            recursive: Some(recursive),
            poll: Some(poll),
            providers,
            ignore,
            sessions: Some(sessions),
            settle_ms,
        }
    }
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ExportSection {
    pub(super) full_after_days: Option<u32>,
    pub(super) full_after_percent: Option<u32>,
    pub(super) schedule: Option<String>,
    pub(super) folder: Option<PathBuf>,
    pub(super) keep: Option<usize>,
    pub(super) encrypt_to: Option<Vec<String>>,
    pub(super) type_registry: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SecuritySection {
    pub(super) key_file: Option<PathBuf>,
    pub(super) passphrase_file: Option<PathBuf>,
}
