//! JSON documents for the receipts of imports, and for what they skipped.

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
}

impl<'a> Imports<'a> {
    pub(crate) fn new(imports: impl IntoIterator<Item = &'a v1::Import>, more: Option<bool>) -> Self {
        Self { imports: imports.into_iter().map(Import::new).collect(), more }
    }
}

/// `imports show`.
#[derive(Debug, Serialize)]
pub(crate) struct ImportDocument<'a> {
    pub import: Import<'a>,
}

/// The receipt for one export.
#[derive(Debug, Serialize)]
pub(crate) struct Import<'a> {
    pub id: &'a str,
    pub source: &'a str,
    pub source_checksum: Option<&'a str>,
    pub provider: Option<&'a str>,
    pub importer: Option<&'a str>,
    pub status: String,
    pub conversations: Counts,
    pub messages: Counts,
    pub memories: Counts,
    /// Vectors of memories, if the export has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<Counts>,
    /// The first 1,000.
    pub skipped: Vec<Skip<'a>>,
    /// True if `imports issues` has more.
    pub more_skipped: bool,
    pub warnings: Vec<Warning<'a>>,
    pub warnings_total: u64,
    /// The first and the last revision that the import committed.
    pub revisions: Option<[u64; 2]>,
    pub elapsed_ms: u64,
    pub reason: Option<&'a str>,
    pub dry_run: bool,
    pub plugin: Option<&'a str>,
    pub path: &'a str,
    /// The files of the source that make up the export, the first 10; empty if the source is not a folder.
    pub files: &'a [String],
    pub files_total: u64,
    pub bytes: u64,
    pub attachments: u64,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    /// For a dry run over PAM documents; the first 1,000.
    pub differences: Vec<Difference<'a>>,
    pub differences_total: u64,
    /// The accounts that the export belongs to; empty in lists.
    pub accounts: Vec<Account<'a>>,
    /// For PAM documents: `own`, `trusted`, `stranger` or `forced`.
    pub standing: Option<String>,
    /// For PAM documents: the key that signed them; null if they are unsigned or do not verify.
    pub signer: Option<&'a str>,
    /// For PAM documents: true if `signer` signed only some of them.
    pub partly_signed: bool,
    /// What documents of an untrusted signer would have changed but did not; null if nothing.
    pub would_change: Option<HeldBack<'a>>,
    /// The problems of documents that were merged with `--force`.
    pub forced: &'a [String],
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

/// A memory that would change.
#[derive(Debug, Serialize)]
pub(crate) struct Difference<'a> {
    pub id: &'a str,
    /// `new`, `changed`, or `kept` if the stored version stays.
    pub kind: String,
    pub held_status: Option<String>,
    pub held_content: Option<&'a str>,
    pub status: String,
    pub content: &'a str,
}

impl<'a> Difference<'a> {
    fn new(difference: &'a v1::MemoryDifference) -> Self {
        Self {
            id: &difference.id,
            kind: labels::difference_kind(difference.kind),
            held_status: (difference.held_status != 0).then(|| labels::memory_status(difference.held_status)),
            held_content: non_empty(&difference.held_content),
            status: labels::memory_status(difference.status),
            content: &difference.content,
        }
    }
}

impl<'a> Import<'a> {
    pub(crate) fn new(import: &'a v1::Import) -> Self {
        let counts = |counts: Option<&v1::RecordCounts>| Counts::new(counts.copied().unwrap_or_default());
        Self {
            id: &import.id,
            source: &import.source,
            source_checksum: non_empty(&import.source_checksum),
            provider: non_empty(&import.platform),
            importer: non_empty(&import.format),
            status: labels::import_status(import.status),
            conversations: counts(import.conversations.as_ref()),
            messages: counts(import.messages.as_ref()),
            memories: counts(import.memories.as_ref()),
            embeddings: import.embeddings.map(Counts::new),
            skipped: import.skipped.iter().map(Skip::new).collect(),
            more_skipped: import.more_skipped,
            warnings: import.warnings.iter().map(Warning::new).collect(),
            warnings_total: unsigned(import.warnings_total),
            revisions: import.revisions.as_ref().map(|range| [range.first, range.last].map(unsigned)),
            elapsed_ms: millis(import.elapsed.as_ref()),
            reason: non_empty(&import.reason),
            dry_run: import.dry_run,
            plugin: non_empty(&import.plugin),
            files: &import.files,
            files_total: unsigned(import.files_total),
            path: &import.path,
            bytes: unsigned(import.bytes),
            attachments: unsigned(import.attachments),
            started_at: timestamp(import.started_at.as_ref()),
            finished_at: timestamp(import.finished_at.as_ref()),
            differences: import.differences.iter().map(Difference::new).collect(),
            differences_total: unsigned(import.differences_total),
            accounts: import.accounts.iter().map(Account::new).collect(),
            standing: (import.standing != 0).then(|| labels::document_standing(import.standing)),
            signer: non_empty(&import.signer),
            partly_signed: import.partly_signed,
            would_change: import.would_change.as_ref().map(HeldBack::new),
            forced: &import.forced,
        }
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
