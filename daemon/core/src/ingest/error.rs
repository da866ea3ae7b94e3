//! The reasons why an import fails.

use satchel_registry::PluginLoadError;
use satchel_seal::PackedMapError;
use satchel_source::SourceError;
use satchel_store::StoreError;

use super::request::WAITING;
use crate::{
    clock::ClockError, edits::EditError, export_ledger::ExportLedgerError, provenance::ProvenanceError,
    series::SeriesStoreError,
};

/// The reason why an import could not be made, or stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The request is not allowed in the current state.
    #[error("{0}")]
    Refused(String),
    /// An importer failed to load.
    #[error(transparent)]
    Plugins(#[from] PluginLoadError),
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger of exports cannot be read or written.
    #[error(transparent)]
    Exported(#[from] ExportLedgerError),
    /// There is no importer of this name.
    #[error("no importer reads exports of {provider:?}; known are {known}")]
    UnknownProvider { provider: String, known: String },
    /// There is no enabled importer of this name.
    #[error("no importer {plugin:?} is in use; these are: {known}")]
    UnknownPlugin { plugin: String, known: String },
    /// The clock of the machine is unusable.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// Too many imports are waiting.
    #[error("{WAITING} imports are waiting already; try again when some have ended")]
    Busy,
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
    /// The import was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// Records that this import counted as stored are no longer shown.
    #[error("an earlier import of the same records was undone meanwhile; import it again")]
    UndoneMeanwhile,
    /// A temporary file could not be read or written.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[source] std::io::Error),
    /// The store's own series of changes cannot be continued.
    #[error(transparent)]
    Series(SeriesStoreError),
    /// A bug in Satchel.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
    /// A bug in Satchel.
    #[error("the import broke off by an internal error; please report this")]
    Panicked,
}

impl From<SeriesStoreError> for IngestError {
    fn from(error: SeriesStoreError) -> Self {
        match error {
            SeriesStoreError::Store(error) => Self::Store(error),
            error => Self::Series(error),
        }
    }
}

impl From<EditError> for IngestError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Store(error) => Self::Store(error),
            _ => Self::Unencodable { what: "a change by hand" },
        }
    }
}

impl From<PackedMapError> for IngestError {
    fn from(error: PackedMapError) -> Self {
        ProvenanceError::from(error).into()
    }
}

impl From<ProvenanceError> for IngestError {
    fn from(error: ProvenanceError) -> Self {
        match error {
            ProvenanceError::Store(error) => Self::Store(error),
            ProvenanceError::Unreadable { what } => Self::Unencodable { what },
            ProvenanceError::Temporary(error) => Self::Temporary(error),
        }
    }
}
