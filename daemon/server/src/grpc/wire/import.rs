//! Receipts and jobs.

use std::time::Duration;

use prost::Message as _;
use satchel_core::ingest::{
    JobView, Phase,
    receipt::{
        Account, Counts, Difference, DifferenceKind, DocumentStanding, HeldBack, ImportRecord, ImportStatus,
    },
    undo::{UndoEffect, UndoOutcome},
};
use satchel_pam::record::{RecordKind, Skip, Warning};
use satchel_proto::{integers::signed, v1};

use super::{
    memory,
    scalar::{duration_to_wire, enum_pair, time_to_wire, truncate},
};
use crate::grpc::request::PAGE_BYTES;

/// Longest locator or reason in a response, in bytes: a receipt lists a thousand of each.
const MAX_TEXT_BYTES: usize = 1_024;
/// Longest content of a differing memory, in bytes, for the same reason.
const MAX_DIFFERENCE_BYTES: usize = 256;
/// Longest reason of an import in a response, in bytes.
const MAX_REASON_BYTES: usize = 2_048;

enum_pair!(status_to_wire, status_from_wire, ImportStatus, v1::ImportStatus, [
    Running => Running,
    Completed => Completed,
    CompletedWithSkips => CompletedWithSkips,
    Unchanged => Unchanged,
    Unrecognized => Unrecognized,
    Failed => Failed,
    Cancelled => Cancelled,
    Undone => Undone,
    Waiting => Waiting,
]);

enum_pair!(difference_kind_to_wire, difference_kind_from_wire, DifferenceKind, v1::DifferenceKind, [
    New => New,
    Changed => Changed,
    Kept => Kept,
]);

enum_pair!(standing_to_wire, standing_from_wire, DocumentStanding, v1::DocumentStanding, [
    Own => Own,
    Trusted => Trusted,
    Untrusted => Stranger,
    Forced => Forced,
]);

enum_pair!(record_kind_to_wire, record_kind_from_wire, RecordKind, v1::RecordKind, [
    Conversation => Conversation,
    Message => Message,
    Memory => Memory,
    File => File,
]);

/// Converts the counts of one kind to the wire.
#[must_use]
pub fn counts_to_wire(counts: Counts) -> v1::RecordCounts {
    let Counts { found, new, updated, unchanged, skipped } = counts;
    v1::RecordCounts {
        found: signed(found),
        new: signed(new),
        updated: signed(updated),
        unchanged: signed(unchanged),
        skipped: signed(skipped),
    }
}

/// Converts the effect on the records of one kind to the wire.
#[must_use]
pub fn effect_to_wire(effect: UndoEffect) -> v1::RecordEffect {
    let UndoEffect { withdrawn, restored, changed } = effect;
    v1::RecordEffect { withdrawn: signed(withdrawn), restored: signed(restored), changed: signed(changed) }
}

/// Converts a skip to the wire; long texts are truncated.
#[must_use]
pub fn skip_to_wire(skip: Skip) -> v1::ImportIssue {
    let Skip { kind, locator, reason } = skip;
    v1::ImportIssue {
        kind: v1::IssueKind::Skip.into(),
        record: record_kind_to_wire(kind),
        locator: truncate(locator, MAX_TEXT_BYTES),
        message: truncate(reason, MAX_TEXT_BYTES),
    }
}

/// Converts a warning to the wire; long texts are truncated.
#[must_use]
pub fn warning_to_wire(warning: Warning) -> v1::ImportIssue {
    let Warning { locator, message } = warning;
    v1::ImportIssue {
        kind: v1::IssueKind::Warning.into(),
        record: v1::RecordKind::Unspecified.into(),
        locator: truncate(locator, MAX_TEXT_BYTES),
        message: truncate(message, MAX_TEXT_BYTES),
    }
}

/// Converts the effect of a merge on a memory to the wire; long texts are truncated.
#[must_use]
pub fn difference_to_wire(difference: Difference) -> v1::MemoryDifference {
    let Difference { id, kind, held, came: (status, content) } = difference;
    let unspecified = v1::MemoryStatus::Unspecified.into();
    let (held_status, held_content) = match held {
        Some((status, content)) => (memory::status_to_wire(status), content),
        None => (unspecified, String::new()),
    };
    v1::MemoryDifference {
        id,
        kind: difference_kind_to_wire(kind),
        held_status,
        held_content: truncate(held_content, MAX_DIFFERENCE_BYTES),
        status: memory::status_to_wire(status),
        content: truncate(content, MAX_DIFFERENCE_BYTES),
    }
}

fn held_back_to_wire(held: HeldBack) -> v1::HeldBack {
    let HeldBack { memories, relations, conversations, embeddings, listed } = held;
    v1::HeldBack {
        memories: signed(memories),
        relations: signed(relations),
        conversations: signed(conversations),
        embeddings: signed(embeddings),
        memory_ids: listed.into_iter().map(|id| truncate(id, MAX_DIFFERENCE_BYTES)).collect(),
    }
}

fn account_to_wire(account: Account) -> v1::ImportAccount {
    let Account { id, name } = account;
    v1::ImportAccount { id, name }
}

/// Converts a receipt to the wire; long texts are truncated.
#[must_use]
pub fn import_to_wire(record: ImportRecord) -> v1::Import {
    let ImportRecord {
        id,
        job,
        source,
        path,
        files,
        files_found,
        source_checksum,
        provider,
        importer,
        plugin,
        plugin_sha256,
        plugin_signer,
        status,
        reason,
        conversations,
        messages,
        memories,
        embeddings,
        same_as: _,
        machine,
        attachments,
        skipped,
        warnings,
        warnings_found,
        issue_pages,
        revisions,
        bytes,
        started_at,
        finished_at,
        elapsed_ms,
        dry_run,
        differences,
        differences_found,
        accounts,
        standing,
        signer,
        partly_signed,
        would_change,
        forced,
    } = record;
    v1::Import {
        id,
        operation_id: job,
        source,
        source_checksum: source_checksum.unwrap_or_default(),
        platform: provider.unwrap_or_default(),
        format: importer.unwrap_or_default(),
        status: status_to_wire(status),
        conversations: Some(counts_to_wire(conversations)),
        messages: Some(counts_to_wire(messages)),
        memories: Some(counts_to_wire(memories)),
        embeddings: (embeddings != Counts::default()).then(|| counts_to_wire(embeddings)),
        skipped: skipped.into_iter().map(skip_to_wire).collect(),
        warnings: warnings.into_iter().map(warning_to_wire).collect(),
        more_skipped: issue_pages > 0,
        warnings_total: signed(warnings_found),
        revisions: revisions.map(revisions_to_wire),
        elapsed: Some(duration_to_wire(Duration::from_millis(elapsed_ms))),
        reason: truncate(reason.unwrap_or_default(), MAX_REASON_BYTES),
        dry_run,
        started_at: Some(time_to_wire(started_at)),
        finished_at: finished_at.map(time_to_wire),
        path,
        plugin: plugin.unwrap_or_default(),
        plugin_unsigned: plugin_sha256.is_some() && plugin_signer.is_none(),
        plugin_signer: plugin_signer.unwrap_or_default(),
        plugin_sha256: plugin_sha256.unwrap_or_default(),
        attachments: signed(attachments),
        bytes: signed(bytes),
        differences: differences.into_iter().map(difference_to_wire).collect(),
        differences_total: signed(differences_found),
        accounts: accounts.into_iter().map(account_to_wire).collect(),
        files,
        files_total: signed(files_found),
        standing: standing.map(standing_to_wire).unwrap_or_default(),
        signer: signer.unwrap_or_default(),
        partly_signed,
        would_change: (!would_change.none()).then(|| held_back_to_wire(would_change)),
        machine: machine.unwrap_or_default(),
        forced: forced.into_iter().map(|problem| truncate(problem, MAX_TEXT_BYTES)).collect(),
    }
}

/// Converts a receipt without its issues to the wire, for lists and for progress.
#[must_use]
pub fn import_summary_to_wire(record: ImportRecord) -> v1::Import {
    let more_skipped = !record.skipped.is_empty() || record.issue_pages > 0;
    let summary = ImportRecord {
        skipped: Vec::new(),
        warnings: Vec::new(),
        differences: Vec::new(),
        accounts: Vec::new(),
        ..record
    };
    v1::Import { more_skipped, ..import_to_wire(summary) }
}

/// Converts the revisions that an import or its reversal committed to the wire.
#[must_use]
pub fn revisions_to_wire([first, last]: [u64; 2]) -> v1::RevisionRange {
    v1::RevisionRange { first: signed(first), last: signed(last) }
}

/// Converts the result of undoing or redoing an import to the wire.
#[must_use]
pub fn reversal_to_wire(outcome: UndoOutcome) -> v1::ImportReversal {
    let records = signed(outcome.records());
    let UndoOutcome { import, conversations, memories, relations, revisions, cancelled: _ } = outcome;
    v1::ImportReversal {
        receipt: Some(import_to_wire(import)),
        conversations: Some(effect_to_wire(conversations)),
        memories: Some(effect_to_wire(memories)),
        relations: Some(effect_to_wire(relations)),
        records,
        revisions: revisions.map(revisions_to_wire),
    }
}

/// Converts the job of an import to an operation. When it has ended, receipts are complete as far as they fit.
#[must_use]
pub fn job_to_wire(job: JobView) -> v1::Operation {
    let budget = if job.phase == Phase::Ended { PAGE_BYTES } else { 0 };
    job_to_wire_within(job, budget)
}

/// Does the same as [`job_to_wire`], with receipts without skips and warnings.
#[must_use]
pub fn job_summary_to_wire(job: JobView) -> v1::Operation {
    job_to_wire_within(job, 0)
}

fn job_to_wire_within(job: JobView, mut budget: usize) -> v1::Operation {
    let JobView { id, path, phase, created_at, finished_at, done, total, imports } = job;
    let state = job_state(phase, &imports);
    let records = imports
        .iter()
        .map(|import| import.conversations.found + import.messages.found + import.memories.found);
    let progress = v1::OperationProgress {
        phase: phase_to_wire(phase).into(),
        bytes_done: signed(done),
        bytes_total: (total > 0).then_some(signed(total)),
        records_done: signed(records.sum::<u64>()),
        records_total: None,
    };
    let imports = imports.into_iter().map(|import| import_to_wire_within(import, &mut budget)).collect();
    let result = v1::ImportResult { path: path.to_string_lossy().into_owned(), imports };
    v1::Operation {
        id: id.to_string(),
        kind: v1::OperationKind::Import.into(),
        state: state.into(),
        progress: Some(progress),
        created_at: Some(time_to_wire(created_at)),
        finished_at: finished_at.map(time_to_wire),
        error: None,
        result: Some(v1::operation::Result::Imports(result)),
    }
}

fn import_to_wire_within(record: ImportRecord, budget: &mut usize) -> v1::Import {
    if *budget == 0 {
        return import_summary_to_wire(record);
    }
    let complete = import_to_wire(record.clone());
    match budget.checked_sub(complete.encoded_len()) {
        Some(remaining) => {
            *budget = remaining;
            complete
        }
        None => import_summary_to_wire(record),
    }
}

fn job_state(phase: Phase, imports: &[ImportRecord]) -> v1::OperationState {
    let any = |status| imports.iter().any(|import| import.status == status);
    match phase {
        Phase::Waiting => v1::OperationState::Queued,
        Phase::Looking | Phase::Hashing | Phase::Reading | Phase::Settling => v1::OperationState::Running,
        // Cancelled while it was queued, so it never had an import.
        Phase::Ended if imports.is_empty() || any(ImportStatus::Cancelled) => v1::OperationState::Cancelled,
        Phase::Ended if any(ImportStatus::Failed) => v1::OperationState::Failed,
        Phase::Ended => v1::OperationState::Succeeded,
    }
}

fn phase_to_wire(phase: Phase) -> v1::OperationPhase {
    match phase {
        Phase::Waiting | Phase::Ended => v1::OperationPhase::Unspecified,
        Phase::Looking => v1::OperationPhase::Detecting,
        Phase::Hashing => v1::OperationPhase::Hashing,
        Phase::Reading => v1::OperationPhase::Reading,
        Phase::Settling => v1::OperationPhase::Deriving,
    }
}

#[cfg(test)]
mod tests;
