//! The way from a watched folder to the imports.

use std::{ffi::OsStr, path::PathBuf, sync::Arc};

use satchel_core::ingest::{
    Imports, IngestError, JobView, WatchedImport,
    receipt::{ImportRecord, ImportStatus},
};
use satchel_source::chain;

use super::mailbox::Mailbox;

/// How an import of a watched file ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is in the store.
    Imported,
    /// No importer knows it; what was seen.
    Unrecognised(String),
    /// Why it failed.
    Failed(String),
    /// Somebody stopped it.
    Cancelled,
    /// It was written to meanwhile, and has to settle again.
    Changed,
}

/// Why an import cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Others come first.
    Busy,
    /// It never will as things are.
    Never(String),
}

/// Where imports begin; the real one is [`Feed`].
pub(super) trait Queue: Send {
    /// Begins the import of a name in the folder and answers its job; how it ends comes by the mailbox.
    ///
    /// # Errors
    /// When it cannot begin.
    fn start(&self, name: &OsStr) -> Result<String, Refused>;

    /// Says which importers there are, in which versions.
    fn importers(&self) -> String;
}

/// Begins imports of one watched folder.
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

/// The worst of a job's imports; what is in the store is there all the same.
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
