//! Records which import reported what. The visible state is a function of everything reported by imports that were not
//! undone.
//!
//! The store holds the visible state. In addition, the ledger holds, for each conversation, everything that was
//! reported about it (as [`Part`]s, one for all imports that reported the same), and for each import the keys of the
//! parts and of the evidence that it brought. This makes it possible to undo an import, and to redo it, regardless of
//! what was imported before and after it. An import that repeats the report of another one costs sixteen bytes for each
//! conversation.

mod digests;
mod evidence;
mod foreign;
mod pages;
mod purged;
mod reading;
mod rows;
mod said;
mod sift;
pub mod vectors;

use std::collections::BTreeSet;

use satchel_store::{
    Change, ConversationRecord, Cursor, Durability, Ledger, LedgerWrite, Page, Store, StoreError,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use satchel_merge::groups::Titled;
use satchel_seal::PackedError;

pub use digests::Digests;
pub use evidence::{Counted, Report, moved, replay, replay_until};
pub use foreign::{note_stranger, stranger_of};
pub use pages::{Brought, Key, Pages, brought, left_out, newest};
pub use purged::{PurgeRecord, Purged};
pub use reading::Reading;
pub use rows::{Clan, Places, family_of_row};
pub use said::{Kept, Said, shown};
pub use satchel_seal::Packed;
pub use sift::{Sifted, Sifter, Slice};

/// Position of the conversation entries in the ledger: before all others, so that iterating over them reads nothing
/// else.
const FIRST: i64 = 1;
/// Position of all other entries.
const REST: i64 = 0;
/// Rows per page.
const PAGE: usize = 500;

/// The reason why lineage cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LineageError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug in this program.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unreadable { what: &'static str },
    /// The temporary file failed.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[from] std::io::Error),
}

impl From<PackedError> for LineageError {
    fn from(error: PackedError) -> Self {
        match error {
            PackedError::Unreadable => Self::Unreadable { what: "what an import holds until its end" },
            PackedError::Temporary(error) => Self::Temporary(error),
        }
    }
}

/// The imports that are undone.
pub type Undone = BTreeSet<Uuid>;

/// Everything that imports reported about one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    #[serde(default, rename = "p")]
    pub parts: Vec<Part>,
    /// For rows without a conversation id: every conversation that they were ever shown in.
    #[serde(default, rename = "s", skip_serializing_if = "BTreeSet::is_empty")]
    pub shown: BTreeSet<String>,
    /// The source of the title, if the rows are shown in exactly one conversation. `None` if there are several, or if
    /// all reports have to be considered.
    #[serde(default, rename = "t", skip_serializing_if = "Option::is_none")]
    pub titled: Option<Titled>,
    /// The family that this one was merged into.
    #[serde(default, rename = "m", skip_serializing_if = "Option::is_none")]
    pub moved: Option<String>,
}

/// The report of one or more imports about a conversation, identical word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Digest of the whole report, 32 hex digits. Empty if the conversation was not imported; such a part always
    /// counts.
    #[serde(rename = "d")]
    pub digest: String,
    /// The version of the conversation that consists of exactly this report. `None` if the report is stored separately,
    /// see [`Kept`].
    #[serde(default, rename = "v", skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The conversation that `version` refers to, if it is not the one that this lineage belongs to.
    #[serde(default, rename = "h", skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// The stranger whose document reported it: a key, or the marker for an unsigned document. `None` if it comes from
    /// the user, or from somebody whom the user trusts.
    #[serde(default, rename = "f", skip_serializing_if = "Option::is_none")]
    pub stranger: Option<String>,
}

impl Part {
    /// Returns the key under which imports list this part.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        said::key(&self.digest)
    }

    /// Returns whether the part contributes to the visible state when the parts in `left_out` do not count.
    #[must_use]
    pub fn counts(&self, left_out: &BTreeSet<Key>) -> bool {
        self.key().is_none_or(|key| !left_out.contains(&key))
    }
}

impl Family {
    /// Returns what is known about the conversation `id`. A stored conversation without lineage was not imported.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn of(store: &Store, id: &str, stored: Option<&ConversationRecord>) -> Result<Self, LineageError> {
        match store.ledger_get(Ledger::Lineage, id)? {
            Some(entry) => Self::decode(&entry.value),
            None => Ok(stored.map(Self::unknown).unwrap_or_default()),
        }
    }

    fn unknown(stored: &ConversationRecord) -> Self {
        let part = Part { digest: String::new(), version: Some(stored.version), home: None, stranger: None };
        Self { parts: vec![part], ..Self::default() }
    }

    /// Returns whether some report does not count.
    #[must_use]
    pub fn has_left_out(&self, left_out: &BTreeSet<Key>) -> bool {
        self.parts.iter().any(|part| !part.counts(left_out))
    }

    /// Returns the parts that the visible conversation is built from, without those in `left_out`. `own` is true if a
    /// report that does not come from a stranger is being added. A stranger's part counts only if there is no other
    /// part, regardless of their order.
    pub fn counting<'a>(&'a self, left_out: &'a BTreeSet<Key>, own: bool) -> impl Iterator<Item = &'a Part> {
        let counts = |part: &&Part| part.counts(left_out);
        let own = own || self.parts.iter().filter(counts).any(|part| part.stranger.is_none());
        self.parts.iter().filter(counts).filter(move |part| !own || part.stranger.is_none())
    }

    /// Returns whether a report that does not come from a stranger replaces the visible state, which comes from one.
    #[must_use]
    pub fn is_outdone_by(&self, stranger: Option<&str>, left_out: &BTreeSet<Key>) -> bool {
        stranger.is_none() && self.counting(left_out, false).any(|part| part.stranger.is_some())
    }

    /// Returns whether the visible state includes a report by somebody other than `stranger`.
    #[must_use]
    pub fn is_of_another(&self, left_out: &BTreeSet<Key>, stranger: Option<&str>) -> bool {
        self.parts.iter().any(|part| part.counts(left_out) && part.stranger.as_deref() != stranger)
    }

    /// Returns whether one of `keys` belongs to a report of this family.
    #[must_use]
    pub fn has_one_of(&self, keys: &BTreeSet<Key>) -> bool {
        self.parts.iter().any(|part| part.key().is_some_and(|key| keys.contains(&key)))
    }

    /// Returns the names of the ledger entries that hold the separately stored reports.
    pub fn kept(&self) -> impl Iterator<Item = String> {
        self.parts.iter().filter(|part| part.version.is_none()).map(|part| said::name(&part.digest))
    }

    /// Returns the same as [`Family::kept`], for the encoded form of a ledger entry.
    #[must_use]
    pub fn kept_in(bytes: &[u8]) -> Vec<String> {
        Self::decode(bytes).map(|family| family.kept().collect()).unwrap_or_default()
    }

    /// Returns the change that stores this as the lineage of the conversation `id`.
    ///
    /// # Errors
    /// None in practice.
    pub fn change(&self, id: &str) -> Result<Change, LineageError> {
        let value = encode(self, "the lineage of a conversation")?;
        Ok(put(id.to_owned(), FIRST, value))
    }

    /// Returns a page of all conversations that have a lineage, with their ids.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn page(store: &Store, after: Option<&Cursor>) -> Result<Page<(String, Self)>, LineageError> {
        let page = store.ledger_list(Ledger::Lineage, after, PAGE)?;
        let rest = page.items.iter().position(|entry| entry.at_micros != FIRST);
        let mut items = Vec::new();
        for entry in page.items.iter().take(rest.unwrap_or(page.items.len())) {
            items.push((entry.id.clone(), Self::decode(&entry.value)?));
        }
        Ok(Page { items, next: page.next.filter(|_| rest.is_none()) })
    }

    fn decode(bytes: &[u8]) -> Result<Self, LineageError> {
        decode(bytes, "the lineage of a conversation")
    }
}

/// The record of an undo or redo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoRecord {
    /// The import.
    pub import: Uuid,
    /// Whether the import's reports no longer count. An undo writes this first, so that an interrupted run is detected.
    pub undone: bool,
    /// Whether the visible state has been updated accordingly.
    pub done: bool,
    /// Microseconds since the Unix epoch.
    pub at: i64,
    /// When a later start of the program completed it, because the run that began it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<i64>,
    /// First and last revision that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<[u64; 2]>,
}

impl UndoRecord {
    /// Returns the record of `import`, if it was ever undone.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn of(store: &Store, import: Uuid) -> Result<Option<Self>, LineageError> {
        let entry = store.ledger_get(Ledger::Undo, &import.to_string())?;
        entry.map(|entry| decode(&entry.value, "the record of an undo")).transpose()
    }

    /// Writes the record. Durable when this returns.
    ///
    /// # Errors
    /// The store refuses the write.
    pub fn put(&self, store: &Store) -> Result<(), LineageError> {
        let value = encode(self, "the record of an undo")?;
        let (ledger, id, at_micros) = (Ledger::Undo, self.import.to_string(), self.at);
        Ok(store.put_ledger(LedgerWrite::Entry { ledger, id, at_micros, value }, Durability::Now)?)
    }
}

/// Returns the undos and redos that were started but not completed.
///
/// # Errors
/// The ledger cannot be read.
pub fn unfinished(store: &Store) -> Result<Vec<UndoRecord>, LineageError> {
    let mut unfinished = Vec::new();
    each_undo(store, |record| unfinished.extend((!record.done).then_some(record)))?;
    Ok(unfinished)
}

/// Returns all imports that are undone, or are being undone.
///
/// # Errors
/// The ledger cannot be read.
pub fn undone(store: &Store) -> Result<Undone, LineageError> {
    let mut undone = Undone::new();
    each_undo(store, |record| undone.extend(record.undone.then_some(record.import)))?;
    Ok(undone)
}

fn each_undo(store: &Store, mut each: impl FnMut(UndoRecord)) -> Result<(), LineageError> {
    let mut after = None;
    loop {
        let page = store.ledger_list(Ledger::Undo, after.as_ref(), PAGE)?;
        for entry in &page.items {
            each(decode(&entry.value, "the record of an undo")?);
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn put(id: String, at_micros: i64, value: Vec<u8>) -> Change {
    Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Lineage, id, at_micros, value })
}

fn encode(value: &impl Serialize, what: &'static str) -> Result<Vec<u8>, LineageError> {
    serde_json::to_vec(value).map_err(|_| LineageError::Unreadable { what })
}

fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &'static str) -> Result<T, LineageError> {
    serde_json::from_slice(bytes).map_err(|_| LineageError::Unreadable { what })
}
