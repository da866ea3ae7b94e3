//! Which import said what: what is shown is a function of all that was said by imports that were not undone.
//!
//! The store keeps what is shown. Beside it, in the ledger, stands for each conversation everything that was said of it (a
//! [`Part`], one for all imports that said the same), and for each import the keys of the parts and of the evidence that it
//! brought. So an import can be taken back, and come again, whatever was imported before and after it; and one that says what
//! another has said costs sixteen bytes for each conversation.

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

/// Where entries of conversations stand in the ledger's list: before all else, so that walking them reads nothing else.
const FIRST: i64 = 1;
/// Where the rest stands.
const REST: i64 = 0;
/// Rows that are read at once.
const PAGE: usize = 500;

/// Why the lineage of something is not known.
#[derive(Debug, thiserror::Error)]
pub enum LineageError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unreadable { what: &'static str },
    /// The disk.
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

/// Everything that imports said of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    #[serde(default, rename = "p")]
    pub parts: Vec<Part>,
    /// Of rows without a conversation's id: every conversation that they ever came to.
    #[serde(default, rename = "s", skip_serializing_if = "BTreeSet::is_empty")]
    pub shown: BTreeSet<String>,
    /// Whose title the only conversation of rows has; none: it came to several, or all that was said has to be looked at.
    #[serde(default, rename = "t", skip_serializing_if = "Option::is_none")]
    pub titled: Option<Titled>,
    /// The family of which it has become part.
    #[serde(default, rename = "m", skip_serializing_if = "Option::is_none")]
    pub moved: Option<String>,
}

/// What one or more imports said of a conversation, word for word the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Of all that was said, 32 hex digits; none: it was not imported, and always counts.
    #[serde(rename = "d")]
    pub digest: String,
    /// The version of the conversation that is this and nothing else; none: it is kept apart, see [`Kept`].
    #[serde(default, rename = "v", skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The conversation whose versions are meant, where that is not the one whose lineage this is.
    #[serde(default, rename = "h", skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// The stranger whose document said it: a key, or that nobody signed. None: the person's own, or of somebody whom they trust.
    #[serde(default, rename = "f", skip_serializing_if = "Option::is_none")]
    pub stranger: Option<String>,
}

impl Part {
    /// The key under which imports bring it.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        said::key(&self.digest)
    }

    /// Whether it is part of what is shown when the parts in `left_out` do not count.
    #[must_use]
    pub fn counts(&self, left_out: &BTreeSet<Key>) -> bool {
        self.key().is_none_or(|key| !left_out.contains(&key))
    }
}

impl Family {
    /// What is known of the conversation `id`. One that stands without lineage was not imported.
    ///
    /// # Errors
    /// When the ledger does not read.
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

    /// Whether anything that was said does not count.
    #[must_use]
    pub fn has_left_out(&self, left_out: &BTreeSet<Key>) -> bool {
        self.parts.iter().any(|part| !part.counts(left_out))
    }

    /// The parts that the shown conversation is built from, without those in `left_out`; `own`: a report that is no stranger's is
    /// being added. A stranger's part counts only where there is no other, whoever came first.
    pub fn counting<'a>(&'a self, left_out: &'a BTreeSet<Key>, own: bool) -> impl Iterator<Item = &'a Part> {
        let counts = |part: &&Part| part.counts(left_out);
        let own = own || self.parts.iter().filter(counts).any(|part| part.stranger.is_none());
        self.parts.iter().filter(counts).filter(move |part| !own || part.stranger.is_none())
    }

    /// Whether a word that is no stranger's takes the place of what is shown, which is.
    #[must_use]
    pub fn is_outdone_by(&self, stranger: Option<&str>, left_out: &BTreeSet<Key>) -> bool {
        stranger.is_none() && self.counting(left_out, false).any(|part| part.stranger.is_some())
    }

    /// Whether what is shown is another's word too than that of `stranger`.
    #[must_use]
    pub fn is_of_another(&self, left_out: &BTreeSet<Key>, stranger: Option<&str>) -> bool {
        self.parts.iter().any(|part| part.counts(left_out) && part.stranger.as_deref() != stranger)
    }

    /// Whether one of `keys` is of what was said.
    #[must_use]
    pub fn has_one_of(&self, keys: &BTreeSet<Key>) -> bool {
        self.parts.iter().any(|part| part.key().is_some_and(|key| keys.contains(&key)))
    }

    /// The entries of the ledger in which what was said of it is kept apart.
    pub fn kept(&self) -> impl Iterator<Item = String> {
        self.parts.iter().filter(|part| part.version.is_none()).map(|part| said::name(&part.digest))
    }

    /// As [`Family::kept`], of one as it lies in the ledger.
    #[must_use]
    pub fn kept_in(bytes: &[u8]) -> Vec<String> {
        Self::decode(bytes).map(|family| family.kept().collect()).unwrap_or_default()
    }

    /// What stores it as the lineage of the conversation `id`.
    ///
    /// # Errors
    /// None in practice.
    pub fn change(&self, id: &str) -> Result<Change, LineageError> {
        let value = encode(self, "the lineage of a conversation")?;
        Ok(put(id.to_owned(), FIRST, value))
    }

    /// A page of the ids of all conversations with a lineage, and that.
    ///
    /// # Errors
    /// When the ledger does not read.
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

/// What became of an import after it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoRecord {
    /// The import.
    pub import: Uuid,
    /// Whether what it said counts no more. The first thing that an undo writes, so that a run that dies is known.
    pub undone: bool,
    /// Whether what is shown follows.
    pub done: bool,
    /// Microseconds since the Unix epoch.
    pub at: i64,
    /// When a later start of the program completed it, because the one that began it stopped in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<i64>,
    /// First and last revision that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<[u64; 2]>,
}

impl UndoRecord {
    /// That of `import`, if it ever was undone.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub fn of(store: &Store, import: Uuid) -> Result<Option<Self>, LineageError> {
        let entry = store.ledger_get(Ledger::Undo, &import.to_string())?;
        entry.map(|entry| decode(&entry.value, "the record of an undo")).transpose()
    }

    /// Writes it. Durable when this returns.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn put(&self, store: &Store) -> Result<(), LineageError> {
        let value = encode(self, "the record of an undo")?;
        let (ledger, id, at_micros) = (Ledger::Undo, self.import.to_string(), self.at);
        Ok(store.put_ledger(LedgerWrite::Entry { ledger, id, at_micros, value }, Durability::Now)?)
    }
}

/// Undos, and ways back, that were begun and have not ended.
///
/// # Errors
/// When the ledger does not read.
pub fn unfinished(store: &Store) -> Result<Vec<UndoRecord>, LineageError> {
    let mut unfinished = Vec::new();
    each_undo(store, |record| unfinished.extend((!record.done).then_some(record)))?;
    Ok(unfinished)
}

/// All imports that are undone, or about to be.
///
/// # Errors
/// When the ledger does not read.
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
