//! The receipt of one import: every record found is new, updated, unchanged or skipped.
//!
//! **Invariant:** `found = new + updated + unchanged + skipped` for each kind (`receipts_balance` in `tests/`, counted
//! by an independent reader).

use satchel_pam::{
    memory::Status,
    record::{AccountRecord, RecordKind, Skip, Warning},
};
use serde::{Deserialize, Serialize};

/// Skips that the receipt itself lists; `imports issues` lists the others.
pub const LISTED_SKIPS: usize = 1_000;
/// Warnings that the receipt itself lists.
pub const LISTED_WARNINGS: usize = 100;
/// Files of an export that the receipt lists.
pub const LISTED_FILES: usize = 10;

/// Accounts that a receipt lists; an export has one, or a few if several people share it.
pub const LISTED_ACCOUNTS: usize = 100;

/// Differences that the receipt of a dry run lists.
pub const LISTED_DIFFERENCES: usize = 1_000;

/// The effect of a merge on a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The memory is not stored yet.
    New,
    /// The incoming version replaces the stored one.
    Changed,
    /// The stored version stays visible; the incoming one is kept beside it.
    Kept,
}

/// Memories that a receipt lists as those which a stranger's document would have changed.
pub const LISTED_HELD_BACK: usize = 100;

/// The standing under which a PAM document was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentStanding {
    /// It was signed by a key of this data directory, and merged.
    Own,
    /// It was signed by a key that the user trusts, and merged.
    Trusted,
    /// It was not signed by a key that the user trusts: it added what was missing, and changed nothing.
    #[serde(rename = "stranger")]
    Untrusted,
    /// It was merged because the user forced it.
    Forced,
}

/// The changes that a stranger's document would have made, and did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldBack {
    /// Memories that it would have replaced, retracted, or given another score.
    pub memories: u64,
    pub relations: u64,
    pub conversations: u64,
    pub embeddings: u64,
    /// The ids of the first [`LISTED_HELD_BACK`] memories.
    pub listed: Vec<String>,
}

impl HeldBack {
    /// Returns whether it would have changed nothing.
    #[must_use]
    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a memory.
    pub fn memory(&mut self, id: &str) {
        self.memories += 1;
        if self.listed.len() < LISTED_HELD_BACK {
            self.listed.push(id.to_owned());
        }
    }
}

/// A memory as it is stored, and as a document has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The id of the memory.
    pub id: String,
    /// The effect on it.
    pub kind: DifferenceKind,
    /// The stored status and content; `None` if the memory is new.
    pub held: Option<(Status, String)>,
    /// The incoming status and content.
    pub came: (Status, String),
}

/// The account that an export belongs to, as its files name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The provider's id of the account.
    pub id: String,
    /// The user's name at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The state or result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportStatus {
    /// The import is running.
    Running,
    /// All records are stored.
    Completed,
    /// All records are stored, except those listed.
    CompletedWithSkips,
    /// The same bytes were imported before; nothing was done.
    Unchanged,
    /// No importer recognises the files.
    Unrecognized,
    /// The import stopped before its end; some records may be stored, each as a whole.
    Failed,
    /// The user cancelled it; some records may be stored, each as a whole.
    Cancelled,
    /// The import was undone: its records do not count. This status is never stored, only returned by reads; the record
    /// stays as the import left it.
    Undone,
    /// The file is an unfinished download; nothing was done. Never stored.
    Waiting,
}

/// The counts of the records of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub found: u64,
    pub new: u64,
    pub updated: u64,
    pub unchanged: u64,
    pub skipped: u64,
}

impl Counts {
    /// Returns whether there were no such records.
    #[must_use]
    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    /// Counts one record that is left out.
    pub fn leave_out(&mut self) {
        self.found += 1;
        self.skipped += 1;
    }

    /// Returns whether every record found is accounted for.
    pub fn balanced(&self) -> bool {
        self.found == self.new + self.updated + self.unchanged + self.skipped
    }
}

/// Longest name of a machine, in bytes; those of Linux are shorter.
const MAX_MACHINE_BYTES: usize = 256;

/// Returns whether a text may be the name of a machine: receipts quote it.
pub(crate) fn is_machine_name(name: &str) -> bool {
    (1..=MAX_MACHINE_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// The ledger entry of one import; there is one for each export found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportRecord {
    /// The id of this import, a UUID v4.
    pub id: String,
    /// The job that made it.
    pub job: String,
    /// The name of the file or folder.
    pub source: String,
    /// The path of the source.
    pub path: String,
    /// The first [`LISTED_FILES`] of its files, by their names in the source; empty if the source is not a folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The number of files.
    #[serde(default)]
    pub files_found: u64,
    /// The checksum of the source, `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_checksum: Option<String>,
    /// The PAM platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The detected format, such as `chatgpt-importer/2026.07`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importer: Option<String>,
    /// The plugin, as `name/x.y.z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// For an installed plugin: the SHA-256 of its package, 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_sha256: Option<String>,
    /// For an installed plugin that is signed: the key of its author, as multibase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_signer: Option<String>,
    /// The state or result.
    pub status: ImportStatus,
    /// The reason for the status, where one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub conversations: Counts,
    pub messages: Counts,
    pub memories: Counts,
    /// The vectors of memories.
    #[serde(default, skip_serializing_if = "Counts::none")]
    pub embeddings: Counts,
    /// The import that read the same bytes before; it has the further issues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// The name of the machine that made the import, if the store of another one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Attachments whose bytes were stored.
    pub attachments: u64,
    /// The first [`LISTED_SKIPS`] skips.
    pub skipped: Vec<Skip>,
    /// The first [`LISTED_WARNINGS`] warnings.
    pub warnings: Vec<Warning>,
    /// The number of warnings.
    pub warnings_found: u64,
    /// The number of pages of further issues in the ledger.
    pub issue_pages: u32,
    /// The first and the last revision that the import wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<[u64; 2]>,
    /// The size of the export, in bytes.
    pub bytes: u64,
    /// When the import began, in microseconds since the Unix epoch.
    pub started_at: i64,
    /// When the import ended, in microseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<i64>,
    /// The duration, in milliseconds.
    pub elapsed_ms: u64,
    /// Whether this was a dry run, which stores nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// For a dry run over PAM documents: the first [`LISTED_DIFFERENCES`] differences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// The number of differences.
    #[serde(default)]
    pub differences_found: u64,
    /// The accounts of the export, the first [`LISTED_ACCOUNTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<Account>,
    /// The standing of PAM documents; `None` for other formats, or if the import was made before this was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<DocumentStanding>,
    /// The key that is proven to have signed the PAM documents, as multibase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// Whether `signer` signed only a part of the documents; the rest may come from anybody.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly_signed: bool,
    /// The changes that a stranger's document would have made.
    #[serde(default, skip_serializing_if = "HeldBack::none")]
    pub would_change: HeldBack,
    /// The problems that the user waived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<String>,
}

impl ImportRecord {
    /// Counts a skip; returns it if the receipt itself has no room to list it.
    pub fn skip(&mut self, skip: Skip) -> Option<Skip> {
        let counts = match skip.kind {
            RecordKind::Conversation => Some(&mut self.conversations),
            RecordKind::Message => Some(&mut self.messages),
            RecordKind::Memory => Some(&mut self.memories),
            RecordKind::File => None,
        };
        if let Some(counts) = counts {
            counts.leave_out();
        }
        if self.skipped.len() < LISTED_SKIPS {
            self.skipped.push(skip);
            return None;
        }
        Some(skip)
    }

    /// Counts a warning, and lists it if there is room.
    pub fn warn(&mut self, warning: Warning) {
        self.warnings_found += 1;
        if self.warnings.len() < LISTED_WARNINGS {
            self.warnings.push(warning);
        }
    }

    /// Adds an account. Each is listed once; a name that arrives later is filled in.
    pub fn add_account(&mut self, account: AccountRecord) {
        let AccountRecord { id, name, locator } = account;
        if let Some(known) = self.accounts.iter_mut().find(|known| known.id == id) {
            known.name = known.name.take().or(name);
        } else if self.accounts.len() < LISTED_ACCOUNTS {
            self.accounts.push(Account { id, name });
        } else {
            let message =
                format!("the export names more than {LISTED_ACCOUNTS} accounts; this one is not listed");
            self.warn(Warning { locator, message });
        }
    }

    /// Adds the effect of a merge on a memory.
    pub fn differ(&mut self, difference: Difference) {
        self.differences_found += 1;
        if self.differences.len() < LISTED_DIFFERENCES {
            self.differences.push(difference);
        }
    }

    /// Updates this earlier state of the same import to `record`, without copying the items that it already lists.
    pub fn keep_up(&mut self, record: &Self) {
        (self.conversations, self.messages, self.memories) =
            (record.conversations, record.messages, record.memories);
        self.embeddings = record.embeddings;
        (self.attachments, self.revisions) = (record.attachments, record.revisions);
        (self.warnings_found, self.issue_pages) = (record.warnings_found, record.issue_pages);
        self.differences_found = record.differences_found;
        grow(&mut self.skipped, &record.skipped);
        grow(&mut self.warnings, &record.warnings);
        grow(&mut self.differences, &record.differences);
        self.accounts.clone_from(&record.accounts);
        (self.standing, self.would_change) = (record.standing, record.would_change.clone());
        self.signer.clone_from(&record.signer);
        self.partly_signed = record.partly_signed;
        self.forced.clone_from(&record.forced);
    }

    /// Returns whether the import has ended.
    pub fn ended(&self) -> bool {
        self.status != ImportStatus::Running
    }
}

/// Appends the new items of a list that only grows.
fn grow<T: Clone>(list: &mut Vec<T>, now: &[T]) {
    list.extend_from_slice(now.get(list.len()..).unwrap_or_default());
}
