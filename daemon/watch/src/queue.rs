//! The interface between a watched folder and the imports.

use std::{ffi::OsStr, path::PathBuf, sync::Arc};

use satchel_core::ingest::{
    Imports, IngestError, JobView, WatchedImport,
    receipt::{ImportRecord, ImportStatus},
};
use satchel_source::chain;

use super::mailbox::Mailbox;

/// The outcome of importing a watched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The file is in the store.
    Imported,
    /// No importer recognises it; a description of the file.
    Unrecognised(String),
    /// The import failed; the reason.
    Failed(String),
    /// The import was cancelled.
    Cancelled,
    /// The file was written to during the import, and must settle again.
    Changed,
}

/// The reason why an import cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The queue is full.
    Busy,
    /// The import cannot start at all, unless something changes.
    Never(String),
}

/// Starts imports; [`Feed`] is the real one.
pub(super) trait Queue: Send {
    /// Starts the import of a name in the folder and returns its job. The outcome arrives in the mailbox.
    ///
    /// # Errors
    /// If the import cannot start.
    fn start(&self, name: &OsStr) -> Result<String, Refused>;

    /// Returns the importers and their versions.
    fn importers(&self) -> String;
}

/// Starts the imports of one watched folder.
pub(super) struct Feed {
    pub imports: Imports,
    pub root: PathBuf,
    pub providers: Vec<String>,
    pub mailbox: Arc<Mailbox>,
}

impl Queue for Feed {
    fn start(&self, name: &OsStr) -> Result<String, Refused> {
        let request = WatchedImport {
            root: self.root.clone(),
            name: name.to_owned(),
            providers: self.providers.clone(),
        };
        let (mailbox, name) = (Arc::clone(&self.mailbox), name.to_owned());
        let ended =
            Box::new(move |view: &JobView, changed: bool| mailbox.ended(name, outcome(view, changed)));
        match self.imports.start_watched(request, ended) {
            Ok(job) => Ok(job.to_string()),
            Err(IngestError::Busy) => Err(Refused::Busy),
            Err(error) => Err(Refused::Never(chain(&error))),
        }
    }

    fn importers(&self) -> String {
        self.imports.importers().to_owned()
    }
}

/// Returns the worst outcome of a job's imports. Whatever was stored stays in the store.
fn outcome(view: &JobView, changed: bool) -> Outcome {
    if changed {
        return Outcome::Changed;
    }
    let first = |status: ImportStatus| view.imports.iter().find(|import| import.status == status);
    let reason = |import: &ImportRecord| import.reason.clone().unwrap_or_default();
    if let Some(failed) = first(ImportStatus::Failed) {
        return Outcome::Failed(reason(failed));
    }
    if first(ImportStatus::Cancelled).is_some() {
        return Outcome::Cancelled;
    }
    match first(ImportStatus::Unrecognized) {
        Some(unknown) if view.imports.len() == 1 => Outcome::Unrecognised(reason(unknown)),
        _ => Outcome::Imported,
    }
}
