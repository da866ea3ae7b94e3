//! The outcome of an import, as the watcher of a folder uses it.

use satchel_core::ingest::{JobView, receipt::ImportStatus};

/// The outcome of importing a watched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileOutcome {
    /// The file is in the store.
    Imported,
    /// No importer recognises it.
    Unrecognised,
    /// The import failed; the reason.
    Failed(String),
    /// The import was cancelled.
    Cancelled,
    /// The file was written to during the import, and must settle again.
    Changed,
}

impl FileOutcome {
    /// Returns the worst outcome of a job's imports. Whatever was stored stays in the store.
    pub(super) fn of_job(view: &JobView, changed: bool) -> Self {
        if changed {
            return Self::Changed;
        }
        let first = |status: ImportStatus| view.imports.iter().find(|import| import.status == status);
        if let Some(failed) = first(ImportStatus::Failed) {
            return Self::Failed(failed.reason.clone().unwrap_or_default());
        }
        if first(ImportStatus::Cancelled).is_some() {
            return Self::Cancelled;
        }
        match first(ImportStatus::Unrecognized) {
            Some(_) if view.imports.len() == 1 => Self::Unrecognised,
            _ => Self::Imported,
        }
    }
}
