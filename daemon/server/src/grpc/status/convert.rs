//! Conversion of the errors of the lower layers to a [`CallError`].

use std::{io, path::Path};

use satchel_bundle::verify::VerifyError;
use satchel_core::{
    backup::create::BackupError,
    data_dir::DataDirError,
    edits::EditError,
    embeddings::EmbeddingsError,
    export::ExportError,
    export_ledger::ExportLedgerError,
    ingest::IngestError,
    recording::RecordingError,
    series::SeriesStoreError,
    sync::{FileError, SeriesKeyError, SyncError},
    uploads::UploadError,
};
use satchel_devices::{DevicesError, PairingError};
use satchel_indexer::{HistoryError, IndexerError, VectorSearchError};
use satchel_registry::{InstallError, PluginLoadError, RegistryError, compile::CompileError};
use satchel_search::index::IndexError;
use satchel_source::{SourceError, chain};
use satchel_watch::{SpecError, WatchError};

use super::{CallError, ResourceKind};

impl From<IngestError> for CallError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Store(error) | IngestError::Exported(ExportLedgerError::Store(error)) => {
                Self::Store(error)
            }
            IngestError::UnknownProvider { .. } => {
                Self::invalid_field("platform", format!("is not known: {error}"))
            }
            IngestError::UnknownPlugin { .. } => {
                Self::invalid_field("plugin", format!("is not in use: {error}"))
            }
            IngestError::Busy => Self::Busy(error.to_string()),
            IngestError::Stopping => Self::ShuttingDown,
            IngestError::Refused(problem) => Self::ImportState { id: String::new(), problem },
            IngestError::UndoneMeanwhile => {
                Self::ImportState { id: String::new(), problem: error.to_string() }
            }
            IngestError::Clock(error) => Self::Clock(error),
            IngestError::Temporary(source) if source.kind() == io::ErrorKind::StorageFull => Self::DiskFull,
            IngestError::Plugins(_)
            | IngestError::Source(_)
            | IngestError::Exported(_)
            | IngestError::Temporary(_)
            | IngestError::Series(_)
            | IngestError::Unencodable { .. }
            | IngestError::Cancelled
            | IngestError::Panicked => Self::internal(error),
        }
    }
}

impl From<SyncError> for CallError {
    fn from(error: SyncError) -> Self {
        match error {
            SyncError::Series(SeriesStoreError::Store(error)) => Self::Store(error),
            SyncError::Cancelled => Self::ShuttingDown,
            SyncError::Edit(error) => error.into(),
            SyncError::Key(SeriesKeyError::Io { source, .. })
                if source.kind() == io::ErrorKind::StorageFull =>
            {
                Self::DiskFull
            }
            error => Self::internal(error),
        }
    }
}

impl From<FileError> for CallError {
    fn from(error: FileError) -> Self {
        let problem = error.to_string();
        match error {
            FileError::NotWanted(_) => Self::invalid_field("sha256", format!("is not wanted: {problem}")),
            FileError::Damaged(_) => Self::ChecksumMismatch { problem },
            FileError::Sync(error) => error.into(),
        }
    }
}

impl From<IndexError> for CallError {
    fn from(error: IndexError) -> Self {
        Self::IndexUnusable { damaged: error.is_damage(), problem: chain(&error) }
    }
}

impl From<IndexerError> for CallError {
    fn from(error: IndexerError) -> Self {
        let damaged = matches!(&error, IndexerError::Index(index) if index.is_damage());
        Self::IndexUnusable { damaged, problem: chain(&error) }
    }
}

impl From<HistoryError> for CallError {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::TooManyMemories(_) => {
                Self::invalid_field("as_of_revision", format!("cannot be searched: {error}"))
            }
            HistoryError::Indexer(error) => error.into(),
        }
    }
}

impl From<VectorSearchError> for CallError {
    fn from(error: VectorSearchError) -> Self {
        let problem = error.to_string();
        match error {
            VectorSearchError::NoModel { .. } => {
                Self::invalid_field("meaning.model", format!("cannot be used: {problem}"))
            }
            VectorSearchError::NoVector { .. } => {
                Self::invalid_field("meaning.memory_id", format!("cannot be used: {problem}"))
            }
            VectorSearchError::Dimension { .. } | VectorSearchError::Query(_) => {
                Self::invalid_field("meaning.vector", format!("cannot be used: {problem}"))
            }
            VectorSearchError::Store(error) => Self::Store(error),
        }
    }
}

impl From<EmbeddingsError> for CallError {
    fn from(error: EmbeddingsError) -> Self {
        let problem = error.to_string();
        match error {
            EmbeddingsError::Invalid { field, problem } => Self::InvalidField { field, problem },
            EmbeddingsError::RequestReused(_) => Self::RequestIdReused { problem },
            EmbeddingsError::Store(error) => Self::Store(error),
            EmbeddingsError::Provenance(_) | EmbeddingsError::Unencodable => Self::internal(error),
        }
    }
}

impl From<UploadError> for CallError {
    fn from(error: UploadError) -> Self {
        let problem = error.to_string();
        match error {
            UploadError::NotFound { id } => Self::not_found(ResourceKind::Upload, id),
            UploadError::Field { field, problem } => Self::invalid_field(field, problem),
            UploadError::TooMany | UploadError::Quota { .. } | UploadError::TooManyChunks => {
                Self::Busy(problem)
            }
            UploadError::DiskFull { .. } => Self::DiskFull,
            UploadError::Offset { offset, committed } => Self::UploadOffset { offset, committed },
            UploadError::Sha256 => Self::ChecksumMismatch { problem },
            UploadError::Incomplete { id, .. } => Self::UploadIncomplete { id, problem },
            UploadError::Io(error) => Self::internal(error),
        }
    }
}

impl From<DevicesError> for CallError {
    fn from(error: DevicesError) -> Self {
        match &error {
            DevicesError::NotFound { text } => Self::not_found(ResourceKind::Device, text),
            DevicesError::Request { .. } => Self::InvalidField {
                field: "certificate_request_der".to_owned(),
                problem: format!("cannot be used: {error}"),
            },
            DevicesError::Name { .. } => Self::invalid_field("name", format!("cannot be used: {error}")),
            DevicesError::Policy { .. } => Self::invalid_field("policy", format!("cannot be used: {error}")),
            DevicesError::TokenLifetime { .. } => {
                Self::invalid_field("expire_time", format!("cannot be used: {error}"))
            }
            DevicesError::Ambiguous { .. } | DevicesError::WrongKind { .. } => {
                Self::invalid_field("device", format!("cannot be used: {error}"))
            }
            DevicesError::Revoked { name } => Self::DeviceRevoked { device: name.clone() },
            DevicesError::AlreadyPaired { .. } => {
                Self::invalid_field("certificate_request_der", format!("cannot be used: {error}"))
            }
            DevicesError::TooMany { .. } => Self::Busy(error.to_string()),
            DevicesError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Self::DiskFull,
            _ => Self::internal(error),
        }
    }
}

impl From<PairingError> for CallError {
    fn from(error: PairingError) -> Self {
        match error {
            PairingError::Devices(error) => error.into(),
            error => Self::invalid_field("valid_for", format!("cannot be used: {error}")),
        }
    }
}

impl From<EditError> for CallError {
    fn from(error: EditError) -> Self {
        let problem = error.to_string();
        match error {
            EditError::Invalid { field, problem } => Self::InvalidField { field, problem },
            EditError::NoMemory(id) | EditError::NotQuarantined(id) => {
                Self::not_found(ResourceKind::Memory, id)
            }
            EditError::NoRelation(id) => Self::not_found(ResourceKind::Relation, id),
            EditError::NoChange(id) => Self::not_found(ResourceKind::Change, id),
            EditError::NoVersion { .. } => {
                Self::invalid_field("memory_version.version", format!("is not known: {problem}"))
            }
            EditError::Changed { etag, .. } => Self::EtagMismatch { current: etag, problem },
            EditError::Transition { id, .. } => Self::IllegalTransition { id, problem },
            EditError::State { id, .. } => Self::MemoryState { id, problem },
            EditError::Count { matched, .. } => Self::MatchCountChanged { matched, problem },
            EditError::TooMany { .. } | EditError::QuarantineFull { .. } => Self::Busy(problem),
            EditError::RequestReused(_) => Self::RequestIdReused {
                problem: "was already used for another request; use a new one".to_owned(),
            },
            EditError::Store(error) => Self::Store(error),
            EditError::Temporary(source) if source.kind() == io::ErrorKind::StorageFull => Self::DiskFull,
            EditError::Temporary(_) | EditError::Series(_) | EditError::Unencodable { .. } => {
                Self::internal(error)
            }
        }
    }
}

impl From<RecordingError> for CallError {
    fn from(error: RecordingError) -> Self {
        match error {
            RecordingError::Invalid { field, problem } => Self::InvalidField { field, problem },
            RecordingError::NoConversation(id) => Self::not_found(ResourceKind::Conversation, id),
            RecordingError::NoMessage(id) => Self::not_found(ResourceKind::Message, id),
            RecordingError::State { id, problem } => Self::ConversationState { id, problem },
            RecordingError::TooLong { .. } => Self::Busy(error.to_string()),
            RecordingError::RequestReused(_) => Self::RequestIdReused {
                problem: "was already used for another request; use a new one".to_owned(),
            },
            RecordingError::Store(error) => Self::Store(error),
            RecordingError::Temporary(source) if source.kind() == io::ErrorKind::StorageFull => {
                Self::DiskFull
            }
            RecordingError::Temporary(_) | RecordingError::Series(_) | RecordingError::Unencodable { .. } => {
                Self::internal(error)
            }
        }
    }
}

impl From<WatchError> for CallError {
    fn from(error: WatchError) -> Self {
        let problem = error.to_string();
        match error {
            WatchError::Spec(SpecError::Settle { .. }) => Self::invalid_field("settle_time", problem),
            WatchError::Spec(SpecError::Pattern { pattern, problem, .. }) => {
                Self::invalid_field("ignore", format!("pattern {pattern:?} is not valid: {problem}"))
            }
            WatchError::Spec(SpecError::TooManyPatterns { .. }) => {
                Self::invalid_field("ignore", format!("list is too long: {problem}"))
            }
            WatchError::Spec(_) => Self::invalid_field("path", format!("cannot be watched: {problem}")),
            WatchError::Overlap { path, .. } | WatchError::Fixed { path, .. } => {
                Self::SourceRefused { path: text(path), problem }
            }
            WatchError::TooMany => Self::Busy(problem),
            WatchError::Unknown { path } => Self::not_found(ResourceKind::Source, text(path)),
            WatchError::Store(error) => Self::Store(error),
        }
    }
}

impl From<PluginLoadError> for CallError {
    fn from(error: PluginLoadError) -> Self {
        Self::internal(error)
    }
}

impl From<RegistryError> for CallError {
    fn from(error: RegistryError) -> Self {
        let problem = error.to_string();
        match error {
            RegistryError::NotInstalled { name, version } => {
                let id = version.map_or_else(|| name.clone(), |version| format!("{name} {version}"));
                Self::not_found(ResourceKind::Plugin, id)
            }
            RegistryError::BuiltIn { name } => Self::PluginState { name, problem },
            RegistryError::UnknownKey { .. } => {
                Self::invalid_field("public_key", format!("is not known: {problem}"))
            }
            RegistryError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Self::DiskFull,
            RegistryError::Damaged { .. } | RegistryError::NoFolder => {
                Self::PluginState { name: String::new(), problem }
            }
            _ => Self::internal(error),
        }
    }
}

impl From<InstallError> for CallError {
    fn from(error: InstallError) -> Self {
        let problem = error.to_string();
        let (name, consent) = match error {
            InstallError::KeyNotTrusted { name, .. } => (name, "trust_key"),
            InstallError::Unsigned { name } => (name, "allow_unsigned"),
            InstallError::BuiltIn { name, .. } => (name, "replace_built_in"),
            InstallError::Downgrade { name, .. } => (name, "allow_downgrade"),
            InstallError::Registry(error) => return error.into(),
            InstallError::Compile(CompileError::Cancelled) => return Self::internal(error),
            _ => return Self::PluginRefused { problem },
        };
        Self::PluginConsentNeeded { name, consent, problem }
    }
}

impl CallError {
    /// Returns the reason why the bundle at `path` could not be checked.
    pub(in crate::grpc) fn bundle_unreadable(path: &str, error: &VerifyError) -> Self {
        match error {
            VerifyError::Source(SourceError::Missing { .. }) => Self::not_found(ResourceKind::Path, path),
            VerifyError::BadSigner { .. } => Self::invalid_field("signer", format!("is not a key: {error}")),
            VerifyError::Source(_)
            | VerifyError::NoBundle { .. }
            | VerifyError::MultipleBundles { .. }
            | VerifyError::Read { .. }
            | VerifyError::Temporary(_)
            | VerifyError::Cancelled
            | VerifyError::TooLarge { .. } => {
                Self::BundleUnreadable { path: path.to_owned(), problem: chain(error) }
            }
        }
    }
}

impl From<BackupError> for CallError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Store(error) => Self::Store(error),
            BackupError::OutputExists { path } => Self::OutputExists { path: text(path) },
            BackupError::InsideDataDir(error) => output_inside_data_dir(&error),
            BackupError::BadOutput { .. } => Self::invalid_field("output", "must name a file"),
            BackupError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Self::DiskFull
            }
            BackupError::Write { path, source } => {
                Self::OutputRefused { path: text(path), problem: source.to_string() }
            }
            BackupError::TooManyFiles { path } => {
                let problem = "the data directory contains more files than a backup can hold";
                Self::OutputRefused { path: text(path), problem: problem.to_owned() }
            }
            error @ BackupError::Cancelled => Self::internal(error),
        }
    }
}

impl From<ExportLedgerError> for CallError {
    fn from(error: ExportLedgerError) -> Self {
        match error {
            ExportLedgerError::Store(error) => Self::Store(error),
            error @ ExportLedgerError::Unencodable { .. } => Self::internal(error),
        }
    }
}

fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

/// Returns the error for an output path that is not allowed.
fn output_inside_data_dir(error: &DataDirError) -> CallError {
    match error {
        DataDirError::OutputInside { path, .. } => {
            let problem = "it lies in the data directory, which is for Satchel's own files; choose a path outside of it";
            CallError::OutputRefused { path: text(path), problem: problem.to_owned() }
        }
        _ => CallError::invalid_field("output", error.to_string()),
    }
}

impl From<ExportError> for CallError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) | ExportError::Ledger(ExportLedgerError::Store(error)) => {
                Self::Store(error)
            }
            ExportError::Occupied { path } => Self::OutputExists { path: text(path) },
            ExportError::InsideDataDir(error) => output_inside_data_dir(&error),
            ExportError::Clock(error) => Self::Clock(error),
            ExportError::Key { ref path, .. } => {
                Self::SigningKey { path: text(path), problem: error.to_string() }
            }
            ExportError::BadOutput { .. } => Self::invalid_field("output", "must name a file or folder"),
            ExportError::Write { source, .. } | ExportError::Temporary(source)
                if source.kind() == io::ErrorKind::StorageFull =>
            {
                Self::DiskFull
            }
            ExportError::Write { path, source } => {
                Self::OutputRefused { path: text(path), problem: source.to_string() }
            }
            ExportError::UnknownBase { id } => Self::not_found(ResourceKind::Export, id),
            ExportError::UnfitBase { id, problem } => {
                Self::invalid_field("base_export_id", format!("names {id:?}, which {problem}"))
            }
            ExportError::NoIncrement => {
                Self::invalid_field("type", "must be full in this format: only PAM knows incremental exports")
            }
            ExportError::NotEncryptedName { .. } => {
                Self::invalid_field("output", "must end in .age, as the export is encrypted: it is one file")
            }
            ExportError::NoRecipients { .. } => {
                Self::invalid_field("output", "must not end in .age without age_recipients or a passphrase")
            }
            ExportError::PartialIncrement => Self::invalid_field(
                "type",
                "must be full with a filter or strip_identifiers: an incremental export covers the whole store",
            ),
            ExportError::WholeOnly => {
                Self::invalid_field("format", "must be PAM or Markdown with a filter or strip_identifiers")
            }
            ExportError::KeyWorks => Self::invalid_field("new_identity", error.to_string()),
            ExportError::NotOurs { .. } => Self::invalid_field("id", error.to_string()),
            ExportError::Lock(_) => Self::invalid_field("age_recipients", error.to_string()),
            ExportError::Gone { path, .. } => Self::BundleGone { path: text(path) },
            ExportError::Ledger(_)
            | ExportError::Temporary(_)
            | ExportError::Cancelled
            | ExportError::Unencodable { .. } => Self::internal(error),
        }
    }
}
