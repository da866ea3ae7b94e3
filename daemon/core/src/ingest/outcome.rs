//! Writes the result of a run into its receipt.

use satchel_host::{PluginError, RunSummary};
use satchel_pam::record::RecordKind;
use satchel_source::{SourceError, chain};

use super::{
    error::IngestError,
    receipt::{Counts, ImportRecord, ImportStatus},
};

/// The result of a run.
pub(super) enum ReadOutcome {
    /// Everything was read; the summary counts records that only the host has counted.
    Done(RunSummary),
    /// The run was cancelled.
    Cancelled,
    /// The run stopped before its end or was refused; holds the reason.
    Failed(String),
}

impl From<Result<RunSummary, PluginError>> for ReadOutcome {
    fn from(outcome: Result<RunSummary, PluginError>) -> Self {
        match outcome {
            Ok(summary) => Self::Done(summary),
            Err(PluginError::Cancelled) => Self::Cancelled,
            Err(error) => Self::Failed(chain(&error)),
        }
    }
}

pub(super) fn unchanged(record: ImportRecord, earlier: &ImportRecord) -> ImportRecord {
    let seen = |counts: &Counts| {
        let stored = counts.found - counts.skipped;
        Counts { found: counts.found, new: 0, updated: 0, unchanged: stored, skipped: counts.skipped }
    };
    ImportRecord {
        files: earlier.files.clone(),
        files_found: earlier.files_found,
        status: ImportStatus::Unchanged,
        reason: Some(format!("these bytes were imported before{}, as {}", on_machine(earlier), earlier.id)),
        conversations: seen(&earlier.conversations),
        messages: seen(&earlier.messages),
        memories: seen(&earlier.memories),
        embeddings: seen(&earlier.embeddings),
        skipped: earlier.skipped.clone(),
        issue_pages: earlier.issue_pages,
        same_as: Some(earlier.id.clone()),
        machine: earlier.machine.clone(),
        accounts: earlier.accounts.clone(),
        ..record
    }
}

/// Says on which machine an import was made, if on another one.
fn on_machine(import: &ImportRecord) -> String {
    import.machine.as_ref().map(|machine| format!(" on {machine}")).unwrap_or_default()
}

/// Returns the receipt for bytes that were imported before and whose import was undone.
pub(super) fn stays_undone(record: ImportRecord, undone: &ImportRecord) -> ImportRecord {
    let id = &undone.id;
    ImportRecord {
        status: ImportStatus::Unchanged,
        reason: Some(format!(
            "these bytes were imported{} as {id}, which was undone; `satchel imports redo {id}` brings it back",
            on_machine(undone)
        )),
        same_as: Some(id.clone()),
        machine: undone.machine.clone(),
        ..record
    }
}

/// Writes the result of the run into the receipt. `changed`: why the bytes on disk may differ from those that were
/// read. `changes`: the document is an incremental export, which may legitimately be empty.
pub(super) fn conclude(
    record: &mut ImportRecord,
    outcome: Result<ReadOutcome, IngestError>,
    changed: Option<SourceError>,
    changes: bool,
) {
    match outcome {
        Ok(ReadOutcome::Done(summary)) => {
            add_uncounted(record, &summary);
            record.status = match (changed, record_skips(record)) {
                (Some(error), _) => failed(record, &error),
                (None, true) => ImportStatus::CompletedWithSkips,
                (None, false) => ImportStatus::Completed,
            };
            if record.status == ImportStatus::Completed && nothing(record) && !changes {
                record.status = ImportStatus::CompletedWithSkips;
                record.reason = Some("the export holds no conversation and no memory".into());
            }
        }
        Ok(ReadOutcome::Cancelled) => {
            record.status = ImportStatus::Cancelled;
            record.reason =
                Some("it was cancelled; what is stored stays, importing again completes it".into());
        }
        Ok(ReadOutcome::Failed(reason)) => {
            record.reason = Some(reason);
            record.status = ImportStatus::Failed;
        }
        Err(error) => record.status = failed(record, &error),
    }
}

fn failed(record: &mut ImportRecord, error: &dyn std::error::Error) -> ImportStatus {
    record.reason = Some(chain(error));
    ImportStatus::Failed
}

fn nothing(record: &ImportRecord) -> bool {
    let ImportRecord { conversations, messages, memories, embeddings, accounts, .. } = record;
    accounts.is_empty() && conversations.found + messages.found + memories.found + embeddings.found == 0
}

fn record_skips(record: &ImportRecord) -> bool {
    !record.skipped.is_empty()
        || record.conversations.skipped + record.messages.skipped + record.memories.skipped > 0
}

/// Adds the skips beyond the host's limit, which only the host's summary counts.
fn add_uncounted(record: &mut ImportRecord, summary: &RunSummary) {
    for (kind, counts) in [
        (RecordKind::Conversation, &mut record.conversations),
        (RecordKind::Message, &mut record.messages),
        (RecordKind::Memory, &mut record.memories),
    ] {
        let found = summary.skipped.get(&kind).copied().unwrap_or(0);
        let more = found.saturating_sub(counts.skipped);
        counts.found += more;
        counts.skipped += more;
    }
}
