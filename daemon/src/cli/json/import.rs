//! JSON documents for the receipts of imports, and for what they skipped.

use std::path::PathBuf;

use satchel_proto::{
    integers::{millis, unsigned},
    v1,
};
use serde::Serialize;

use super::{non_empty, timestamp};
use crate::cli::labels;

/// `import` and `imports list`.
#[derive(Debug, Serialize)]
pub(crate) struct Imports<'a> {
    pub imports: Vec<Import<'a>>,
    /// True if there are more than `--limit`; only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
    /// Paths of earlier imports that no longer exist; only for `imports again`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<Vec<String>>,
}

impl<'a> Imports<'a> {
    pub(crate) fn new(imports: impl IntoIterator<Item = &'a v1::Import>, more: Option<bool>) -> Self {
        Self { imports: imports.into_iter().map(Import::new).collect(), more, gone: None }
    }

    /// Adds the paths that no longer exist.
    pub(crate) fn with_gone(self, gone: &[PathBuf]) -> Self {
        Self { gone: Some(gone.iter().map(|path| path.to_string_lossy().into_owned()).collect()), ..self }
    }
}

/// `imports show`.
#[derive(Debug, Serialize)]
pub(crate) struct ImportDocument<'a> {
    pub import: Import<'a>,
}

document! {
    /// The receipt for one export.
    Import<'a> from import: v1::Import {
        id: &'a str = &import.id,
        source: &'a str = &import.source,
        source_checksum: Option<&'a str> = non_empty(&import.source_checksum),
        provider: Option<&'a str> = non_empty(&import.platform),
        importer: Option<&'a str> = non_empty(&import.format),
        status: String = labels::import_status(import.status),
        conversations: Counts = Counts::or_zero(import.conversations.as_ref()),
        messages: Counts = Counts::or_zero(import.messages.as_ref()),
        memories: Counts = Counts::or_zero(import.memories.as_ref()),
        /// Vectors of memories, if the export has any.
        #[serde(skip_serializing_if = "Option::is_none")]
        embeddings: Option<Counts> = import.embeddings.map(Counts::new),
        /// The first 1,000.
        skipped: Vec<Skip<'a>> = import.skipped.iter().map(Skip::new).collect(),
        /// True if `imports issues` has more.
        more_skipped: bool = import.more_skipped,
        warnings: Vec<Warning<'a>> = import.warnings.iter().map(Warning::new).collect(),
        warnings_total: u64 = unsigned(import.warnings_total),
        /// The first and the last revision that the import committed.
        revisions: Option<[u64; 2]> =
            import.revisions.as_ref().map(|range| [range.first, range.last].map(unsigned)),
        elapsed_ms: u64 = millis(import.elapsed.as_ref()),
        reason: Option<&'a str> = non_empty(&import.reason),
        dry_run: bool = import.dry_run,
        plugin: Option<&'a str> = non_empty(&import.plugin),
        /// For an installed importer: the key of its author; null if nobody signed it.
        plugin_signer: Option<&'a str> = non_empty(&import.plugin_signer),
        /// True if the importer was installed, and nobody signed it.
        plugin_unsigned: bool = import.plugin_unsigned,
        /// For an installed importer: SHA-256 of its package.
        plugin_sha256: Option<&'a str> = non_empty(&import.plugin_sha256),
        path: &'a str = &import.path,
        /// The files of the source that make up the export, the first 10; empty if the source is not a folder.
        files: &'a [String] = &import.files,
        files_total: u64 = unsigned(import.files_total),
        bytes: u64 = unsigned(import.bytes),
        attachments: u64 = unsigned(import.attachments),
        started_at: Option<String> = timestamp(import.started_at.as_ref()),
        finished_at: Option<String> = timestamp(import.finished_at.as_ref()),
        /// For a dry run over PAM documents; the first 1,000.
        differences: Vec<Difference<'a>> = import.differences.iter().map(Difference::new).collect(),
        differences_total: u64 = unsigned(import.differences_total),
        /// The accounts that the export belongs to; empty in lists.
        accounts: Vec<Account<'a>> = import.accounts.iter().map(Account::new).collect(),
        /// For PAM documents: `own`, `trusted`, `stranger` or `forced`.
        standing: Option<String> = (import.standing != 0).then(|| labels::document_standing(import.standing)),
        /// For PAM documents: the key that signed them; null if they are unsigned or do not verify.
        signer: Option<&'a str> = non_empty(&import.signer),
        /// For PAM documents: true if `signer` signed only some of them.
        partly_signed: bool = import.partly_signed,
        /// What documents of an untrusted signer would have changed but did not; null if nothing.
        would_change: Option<HeldBack<'a>> = import.would_change.as_ref().map(HeldBack::new),
        /// The problems of documents that were merged with `--force`.
        forced: &'a [String] = &import.forced,
        /// The machine that read the export; null if this one did.
        machine: Option<&'a str> = non_empty(&import.machine),
    }
}

/// Records that documents of an untrusted signer would have changed.
#[derive(Debug, Serialize)]
pub(crate) struct HeldBack<'a> {
    pub memories: u64,
    pub relations: u64,
    pub conversations: u64,
    pub embeddings: u64,
    /// The first 100.
    pub memory_ids: &'a [String],
}

impl<'a> HeldBack<'a> {
    fn new(held: &'a v1::HeldBack) -> Self {
        let v1::HeldBack { memories, relations, conversations, embeddings, memory_ids } = held;
        Self {
            memories: unsigned(*memories),
            relations: unsigned(*relations),
            conversations: unsigned(*conversations),
            embeddings: unsigned(*embeddings),
            memory_ids,
        }
    }
}

/// An account at the provider.
#[derive(Debug, Serialize)]
pub(crate) struct Account<'a> {
    pub id: &'a str,
    pub name: Option<&'a str>,
}

impl<'a> Account<'a> {
    fn new(account: &'a v1::ImportAccount) -> Self {
        Self { id: &account.id, name: account.name.as_deref() }
    }
}

document! {
    /// A memory that would change.
    Difference<'a> from difference: v1::MemoryDifference {
        id: &'a str = &difference.id,
        /// `new`, `changed`, or `kept` if the stored version stays.
        kind: String = labels::difference_kind(difference.kind),
        held_status: Option<String> =
            (difference.held_status != 0).then(|| labels::memory_status(difference.held_status)),
        held_content: Option<&'a str> = non_empty(&difference.held_content),
        status: String = labels::memory_status(difference.status),
        content: &'a str = &difference.content,
    }
}

/// The counts for one kind of record: found = new + updated + unchanged + skipped.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Counts {
    pub found: u64,
    pub new: u64,
    pub updated: u64,
    pub unchanged: u64,
    pub skipped: u64,
}

impl Counts {
    fn or_zero(counts: Option<&v1::RecordCounts>) -> Self {
        Self::new(counts.copied().unwrap_or_default())
    }

    fn new(counts: v1::RecordCounts) -> Self {
        let v1::RecordCounts { found, new, updated, unchanged, skipped } = counts;
        Self {
            found: unsigned(found),
            new: unsigned(new),
            updated: unsigned(updated),
            unchanged: unsigned(unchanged),
            skipped: unsigned(skipped),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Skip<'a> {
    pub kind: String,
    pub locator: &'a str,
    pub reason: &'a str,
}

impl<'a> Skip<'a> {
    fn new(issue: &'a v1::ImportIssue) -> Self {
        Self { kind: labels::record_kind(issue.record), locator: &issue.locator, reason: &issue.message }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Warning<'a> {
    pub locator: &'a str,
    pub message: &'a str,
}

impl<'a> Warning<'a> {
    fn new(issue: &'a v1::ImportIssue) -> Self {
        Self { locator: &issue.locator, message: &issue.message }
    }
}

/// `imports issues`.
#[derive(Debug, Serialize)]
pub(crate) struct Issues<'a> {
    pub id: &'a str,
    pub issues: Vec<Issue<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
}

impl<'a> Issues<'a> {
    pub(crate) fn new(id: &'a str, issues: &'a [v1::ImportIssue], more: bool) -> Self {
        Self { id, issues: issues.iter().map(Issue::new).collect(), more }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Issue<'a> {
    /// `skip` or `warning`.
    pub issue: String,
    /// The kind of record that was skipped; null for a warning.
    pub kind: Option<String>,
    pub locator: &'a str,
    pub message: &'a str,
}

impl<'a> Issue<'a> {
    fn new(issue: &'a v1::ImportIssue) -> Self {
        let v1::ImportIssue { kind, record, locator, message } = issue;
        let skip = *kind == i32::from(v1::IssueKind::Skip);
        Self {
            issue: labels::issue_kind(*kind),
            kind: skip.then(|| labels::record_kind(*record)),
            locator,
            message,
        }
    }
}

/// `imports cancel`.
#[derive(Debug, Serialize)]
pub(crate) struct Cancelled<'a> {
    pub job_id: &'a str,
    pub state: String,
}

/// `imports undo` and `imports redo`.
#[derive(Debug, Serialize)]
pub(crate) struct ReversedImport<'a> {
    pub import: Import<'a>,
    pub conversations: Effect,
    pub memories: Effect,
    pub relations: Effect,
    /// Number of all records that changed, or would change.
    pub records: u64,
    /// The first and the last revision that it wrote.
    pub revisions: Option<[u64; 2]>,
    pub dry_run: bool,
}

/// How the records of one kind change.
#[derive(Debug, Serialize)]
pub(crate) struct Effect {
    withdrawn: u64,
    restored: u64,
    changed: u64,
}

impl Effect {
    pub(crate) fn new(effect: Option<&v1::RecordEffect>) -> Self {
        let v1::RecordEffect { withdrawn, restored, changed } = effect.copied().unwrap_or_default();
        Self { withdrawn: unsigned(withdrawn), restored: unsigned(restored), changed: unsigned(changed) }
    }
}
