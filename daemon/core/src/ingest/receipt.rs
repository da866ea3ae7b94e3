//! The account of one import: every record found is new, updated, unchanged or skipped.
//!
//! **Invariant:** `found = new + updated + unchanged + skipped` for each kind (`receipts_balance` in `tests/`, counted by an
//! independent reader).

use satchel_pam::{
    memory::Status,
    record::{AccountRecord, RecordKind, Skip, Warning},
};
use serde::{Deserialize, Serialize};

/// Skips that stand in the receipt itself; the rest is listed by `imports issues`.
pub const LISTED_SKIPS: usize = 1_000;
/// Warnings that stand in the receipt itself.
pub const LISTED_WARNINGS: usize = 100;
/// Files of an export that are named.
pub const LISTED_FILES: usize = 10;

/// Accounts that stand in a receipt; an export is of one, or of a few people who share it.
pub const LISTED_ACCOUNTS: usize = 100;

/// Differences that stand in the receipt of a dry run.
pub const LISTED_DIFFERENCES: usize = 1_000;

/// What a merge does to a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// It is not held yet.
    New,
    /// It takes the place of the version that is held.
    Changed,
    /// The version that is held stays; the one that came is kept beside it.
    Kept,
}

/// Memories that a receipt names which a stranger's document would have changed.
pub const LISTED_HELD_BACK: usize = 100;

/// By what right a PAM document was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A key of this data directory signed it: it was merged.
    Own,
    /// A key signed it that the person trusts: it was merged.
    Trusted,
    /// Nobody signed it whom the person trusts: it added what was not here, and changed nothing.
    Stranger,
    /// It was merged because the person insisted.
    Forced,
}

/// What a stranger's document would have changed, and did not.
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
    /// Whether it would have changed nothing.
    #[must_use]
    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    /// Notes a memory.
    pub fn memory(&mut self, id: &str) {
        self.memories += 1;
        if self.listed.len() < LISTED_HELD_BACK {
            self.listed.push(id.to_owned());
        }
    }
}

/// One memory as it is held, and as it would be or came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The memory.
    pub id: String,
    /// What becomes of it.
    pub kind: DifferenceKind,
    /// Status and content as held; none if it is new.
    pub held: Option<(Status, String)>,
    /// Status and content as it came.
    pub came: (Status, String),
}

/// Whose export it is, as its files say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The provider's id.
    pub id: String,
    /// What the person is called there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How an import ended, or where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportStatus {
    /// Records arrive.
    Running,
    /// All records are stored.
    Completed,
    /// All but those listed are stored.
    CompletedWithSkips,
    /// These bytes were imported before; nothing was done.
    Unchanged,
    /// No importer knows the files.
    Unrecognized,
    /// It broke off; whole records may be stored.
    Failed,
    /// The person stopped it; whole records may be stored.
    Cancelled,
    /// It was undone: what it brought does not count. Only read, never stored: the record stays as the import left it.
    Undone,
    /// A download that has not ended; nothing was done. Never stored.
    Waiting,
}

/// Records of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub found: u64,
    pub new: u64,
    pub updated: u64,
    pub unchanged: u64,
    pub skipped: u64,
}

impl Counts {
    /// Whether there were no such records.
    #[must_use]
    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    /// Takes one into account that is left out.
    pub fn leave_out(&mut self) {
        self.found += 1;
        self.skipped += 1;
    }

    /// Whether every record found is accounted for.
    pub fn balanced(&self) -> bool {
        self.found == self.new + self.updated + self.unchanged + self.skipped
    }
}

/// What the ledger keeps of one import; one for each export found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportRecord {
    /// UUID v4 of this import.
    pub id: String,
    /// The job that found it.
    pub job: String,
    /// Name of the file or folder.
    pub source: String,
    /// Where it lay.
    pub path: String,
    /// The first [`LISTED_FILES`] of its files, by their names in the source; none where that is no folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How many files it has.
    #[serde(default)]
    pub files_found: u64,
    /// `sha256:…` of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_checksum: Option<String>,
    /// PAM platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The format that was found, such as `chatgpt-importer/2026.07`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importer: Option<String>,
    /// The plugin, `name/x.y.z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// How it ended.
    pub status: ImportStatus,
    /// Why it ended so, where that needs saying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub conversations: Counts,
    pub messages: Counts,
    pub memories: Counts,
    /// Vectors of memories.
    #[serde(default, skip_serializing_if = "Counts::none")]
    pub embeddings: Counts,
    /// The import that read the same bytes before, which has the further issues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// Attachments whose bytes were stored.
    pub attachments: u64,
    /// The first [`LISTED_SKIPS`].
    pub skipped: Vec<Skip>,
    /// The first [`LISTED_WARNINGS`].
    pub warnings: Vec<Warning>,
    /// How many warnings there were.
    pub warnings_found: u64,
    /// Pages of further issues in the ledger.
    pub issue_pages: u32,
    /// First and last revision that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<[u64; 2]>,
    /// Bytes of the export.
    pub bytes: u64,
    /// Microseconds since the Unix epoch.
    pub started_at: i64,
    /// Microseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<i64>,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Whether nothing was to be stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Of a dry run over PAM documents: the first [`LISTED_DIFFERENCES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// How many there were.
    #[serde(default)]
    pub differences_found: u64,
    /// The owner's data of the import, the first [`LISTED_ACCOUNTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<Account>,
    /// By what right it was taken; none: it is of no PAM documents, or was read before that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The key that proves to have signed it, multibase; of PAM documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// `signer` signed only some of it: the rest may be anybody's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly_signed: bool,
    /// What a stranger's document would have changed.
    #[serde(default, skip_serializing_if = "HeldBack::none")]
    pub would_change: HeldBack,
    /// What was wrong with it when the person insisted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<String>,
}

impl ImportRecord {
    /// Takes a skip into account; false if the receipt itself has no room to list it.
    pub fn skip(&mut self, skip: Skip) -> Option<Skip> {
        let counts = match skip.kind {
            RecordKind::Conversation => Some(&mut self.conversations),
            RecordKind::Message => Some(&mut self.messages),
            RecordKind::Memory => Some(&mut self.memories),
            RecordKind::File => None,
        };
        if let Some(counts) = counts {
            counts.found += 1;
            counts.skipped += 1;
        }
        if self.skipped.len() < LISTED_SKIPS {
            self.skipped.push(skip);
            return None;
        }
        Some(skip)
    }

    /// Takes a warning into account.
    pub fn warn(&mut self, warning: Warning) {
        self.warnings_found += 1;
        if self.warnings.len() < LISTED_WARNINGS {
            self.warnings.push(warning);
        }
    }

    /// Notes whose export it is, each account once; a name that comes later is added.
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

    /// Notes what would become of a memory.
    pub fn differ(&mut self, difference: Difference) {
        self.differences_found += 1;
        if self.differences.len() < LISTED_DIFFERENCES {
            self.differences.push(difference);
        }
    }

    /// Brings this earlier state of the same import up to `record`; what it lists already is not copied again.
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

    /// Whether it is over.
    pub fn ended(&self) -> bool {
        self.status != ImportStatus::Running
    }
}

/// Lists only grow.
fn grow<T: Clone>(list: &mut Vec<T>, now: &[T]) {
    list.extend_from_slice(now.get(list.len()..).unwrap_or_default());
}
