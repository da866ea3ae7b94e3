//! The interface between a watched folder and the imports.

use std::{ffi::OsStr, path::PathBuf, sync::Arc};

use satchel_core::ingest::{Imports, IngestError, JobView, WatchedImport};
use satchel_source::chain;

use super::{mailbox::Mailbox, outcome::FileOutcome};

/// The reason why an import cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StartError {
    /// The queue is full.
    Busy,
    /// The import cannot start at all, unless something changes.
    Rejected(String),
}

/// Starts imports; [`FolderImportQueue`] is the real one.
pub(super) trait ImportQueue: Send {
    /// Starts the import of a name in the folder and returns its job. The outcome arrives in the mailbox.
    ///
    /// # Errors
    /// If the import cannot start.
    fn start(&self, name: &OsStr) -> Result<String, StartError>;

    /// Returns the importers and their versions.
    fn importers(&self) -> String;
}

/// Starts the imports of one watched folder.
pub(super) struct FolderImportQueue {
    pub imports: Imports,
    pub root: PathBuf,
    /// Whether the names are those of sessions.
    pub sessions: bool,
    pub providers: Vec<String>,
    pub mailbox: Arc<Mailbox>,
}

impl ImportQueue for FolderImportQueue {
    fn start(&self, name: &OsStr) -> Result<String, StartError> {
        let request = WatchedImport {
            root: self.root.clone(),
            name: name.to_owned(),
            session: self.sessions,
            providers: self.providers.clone(),
        };
        let (mailbox, name) = (Arc::clone(&self.mailbox), name.to_owned());
        let ended = Box::new(move |view: &JobView, changed: bool| {
            mailbox.import_ended(name, FileOutcome::of_job(view, changed));
        });
        match self.imports.start_watched(request, ended) {
            Ok(job) => Ok(job.to_string()),
            Err(IngestError::Busy) => Err(StartError::Busy),
            Err(error) => Err(StartError::Rejected(chain(&error))),
        }
    }

    fn importers(&self) -> String {
        self.imports.importers()
    }
}
