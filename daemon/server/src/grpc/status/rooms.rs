//! Conversion of the errors of the lower layers to a [`Fault`].

use std::io;

use satchel_bundle::verify::VerifyError;
use satchel_core::{
    backup::create::BackupError, data_dir::DataDirError, export::ExportError, exported::ExportedError,
    ingest::IngestError, plugins::PluginsError,
};
use satchel_source::SourceError;
use satchel_watch::WatchError;

use super::{Fault, Kind};

impl From<IngestError> for Fault {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Store(error) | IngestError::Exported(ExportedError::Store(error)) => {
                Self::Store(error)
            }
            IngestError::UnknownProvider { .. } => Self::field("platform", format!("is not known: {error}")),
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
            | IngestError::Unencodable { .. }
            | IngestError::Cancelled
            | IngestError::Panicked => Self::internal(error),
        }
    }
}

impl From<WatchError> for Fault {
    fn from(error: WatchError) -> Self {
        let problem = error.to_string();
        match error {
            WatchError::Spec(_) => Self::field("path", format!("cannot be watched: {problem}")),
            WatchError::Overlap { path, .. } | WatchError::Fixed { path, .. } => {
                Self::SourceRefused { path: path.to_string_lossy().into_owned(), problem }
            }
            WatchError::TooMany => Self::Busy(problem),
            WatchError::Unknown { path } => Self::missing(Kind::Source, path.to_string_lossy()),
            WatchError::Store(error) => Self::Store(error),
        }
    }
}

impl From<PluginsError> for Fault {
    fn from(error: PluginsError) -> Self {
        Self::internal(error)
    }
}

impl Fault {
    /// Returns the reason why the bundle at `path` could not be checked.
    pub(in crate::grpc) fn unverified(path: &str, error: &VerifyError) -> Self {
        match error {
            VerifyError::Source(SourceError::Missing { .. }) => Self::missing(Kind::Path, path),
            VerifyError::BadSigner { .. } => Self::field("signer", format!("is not a key: {error}")),
            VerifyError::Source(_)
            | VerifyError::NoBundle { .. }
            | VerifyError::Several { .. }
            | VerifyError::Read { .. }
            | VerifyError::Temporary(_)
            | VerifyError::Cancelled
            | VerifyError::TooLarge { .. } => {
                Self::BundleUnreadable { path: path.to_owned(), problem: satchel_source::chain(error) }
            }
        }
    }
}

impl From<BackupError> for Fault {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Store(error) => Self::Store(error),
            BackupError::Occupied { path } => {
                Self::OutputExists { path: path.to_string_lossy().into_owned() }
            }
            BackupError::Place(error) => inside(&error),
            BackupError::BadOutput { .. } => Self::field("output", "must name a file"),
            BackupError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Self::DiskFull
            }
            BackupError::Write { path, source } => {
                Self::OutputRefused { path: path.to_string_lossy().into_owned(), problem: source.to_string() }
            }
            BackupError::TooMany { path } => {
                let problem = "there are more files in the data directory than a backup holds";
                Self::OutputRefused { path: path.to_string_lossy().into_owned(), problem: problem.to_owned() }
            }
            error @ BackupError::Cancelled => Self::internal(error),
        }
    }
}

impl From<ExportedError> for Fault {
    fn from(error: ExportedError) -> Self {
        match error {
            ExportedError::Store(error) => Self::Store(error),
            error @ ExportedError::Unencodable { .. } => Self::internal(error),
        }
    }
}

/// Returns the error for an output path that is not allowed.
fn inside(error: &DataDirError) -> Fault {
    match error {
        DataDirError::OutputInside { path, .. } => {
            let problem =
                "it lies in the data directory, which is for Satchel's own files; name a place outside of it";
            Fault::OutputRefused { path: path.to_string_lossy().into_owned(), problem: problem.to_owned() }
        }
        _ => Fault::field("output", error.to_string()),
    }
}

impl From<ExportError> for Fault {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) | ExportError::Ledger(ExportedError::Store(error)) => {
                Self::Store(error)
            }
            ExportError::Occupied { path } => {
                Self::OutputExists { path: path.to_string_lossy().into_owned() }
            }
            ExportError::Place(error) => inside(&error),
            ExportError::Clock(error) => Self::Clock(error),
            ExportError::Key { ref path, .. } => {
                Self::SigningKey { path: path.to_string_lossy().into_owned(), problem: error.to_string() }
            }
            ExportError::BadOutput { .. } => Self::field("output", "must name a file or folder"),
            ExportError::Write { source, .. } | ExportError::Temporary(source)
                if source.kind() == io::ErrorKind::StorageFull =>
            {
                Self::DiskFull
            }
            ExportError::Write { path, source } => {
                Self::OutputRefused { path: path.to_string_lossy().into_owned(), problem: source.to_string() }
            }
            ExportError::UnknownBase { id } => Self::missing(Kind::Export, id),
            ExportError::UnfitBase { id, problem } => {
                Self::field("base_export_id", format!("names {id:?}, which {problem}"))
            }
            ExportError::NoIncrement => {
                Self::field("type", "must be full in this format: only PAM knows incremental exports")
            }
            ExportError::NotSealed { .. } => {
                Self::field("output", "must end in .age, as the export is encrypted: it is one file")
            }
            ExportError::NoLock { .. } => {
                Self::field("output", "must not end in .age without age_recipients or a passphrase")
            }
            ExportError::PartialIncrement => Self::field(
                "type",
                "must be full with a filter or strip_identifiers: changes are of the whole store",
            ),
            ExportError::WholeOnly => {
                Self::field("format", "must be PAM or Markdown with a filter or strip_identifiers")
            }
            ExportError::KeyWorks => Self::field("new_identity", error.to_string()),
            ExportError::NotOurs { .. } => Self::field("id", error.to_string()),
            ExportError::Lock(_) => Self::field("age_recipients", error.to_string()),
            ExportError::Gone { path, .. } => Self::BundleGone { path: path.to_string_lossy().into_owned() },
            ExportError::Ledger(_)
            | ExportError::Temporary(_)
            | ExportError::Cancelled
            | ExportError::Unencodable { .. } => Self::internal(error),
        }
    }
}
