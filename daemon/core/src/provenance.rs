//! Records which import reported what. The visible state is a function of everything reported by imports that were not
//! undone.
//!
//! The store holds the visible state. In addition, the ledger holds, for each conversation, everything that was
//! reported about it (as [`Contribution`]s, one for all imports that reported the same), and for each import the keys of the
//! contributions and of the evidence that it brought. This makes it possible to undo an import, and to redo it, regardless of
//! what was imported before and after it. An import that repeats the report of another one costs sixteen bytes for each
//! conversation.

mod assigned_dots;
mod contribution;
mod evidence;
mod evidence_index;
mod grouping;
mod key_pages;
mod moved_steps;
mod purged;
mod reader;
mod recorder;
mod revoked;
mod row_groups;
mod source_digests;
mod untrusted;
pub mod vectors;

use std::collections::BTreeSet;

use satchel_store::{
    Change, ConversationRecord, Cursor, Durability, Ledger, LedgerWrite, Page, Store, StoreError,
    erased_conversation,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use satchel_merge::groups::TitleKey;
use satchel_seal::PackedMapError;

use crate::each_row;

pub use assigned_dots::AssignedDots;
pub(crate) use assigned_dots::DotPages;
pub use contribution::{ContributionSkeleton, StoredContribution, shown};
pub use evidence::{ActiveEvidence, EvidenceItem, derive_located, derive_located_until, with_conversation};
pub use evidence_index::{DerivedChange, EvidenceIndex, derive_both};
pub use grouping::{EvidenceCollector, EvidenceSlice, GroupedEvidence};
pub(crate) use key_pages::put_merging;
pub use key_pages::{
    ContributionKind, EvidenceKey, KeyPages, contributed_keys, excluded_keys, newest_imports, without_keys,
};
pub use moved_steps::MovedSteps;
pub use purged::{PurgeRecord, PurgedData};
pub use reader::ContributionReader;
pub(crate) use reader::version_as_report;
pub use recorder::{recorder, recorder_change};
pub use revoked::RevokedData;
pub use row_groups::{RowGroup, RowLocations, resolve, row_provenance};
pub use satchel_seal::PackedMap;
pub use source_digests::SourceDigests;
pub use untrusted::{record_untrusted_signer, untrusted_signer};

/// Position of the conversation entries in the ledger: before all others, so that iterating over them reads nothing
/// else.
const CONVERSATION_ENTRIES: i64 = 1;
/// Position of all other entries.
const OTHER_ENTRIES: i64 = 0;
/// Rows per page.
const PAGE: usize = 500;

/// The reason why provenance cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
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

impl From<PackedMapError> for ProvenanceError {
    fn from(error: PackedMapError) -> Self {
        match error {
            PackedMapError::Unreadable => Self::Unreadable { what: "what an import holds until its end" },
            PackedMapError::Temporary(error) => Self::Temporary(error),
        }
    }
}

/// The imports that are undone.
pub type UndoneImports = BTreeSet<Uuid>;

/// Everything that imports reported about one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationProvenance {
    #[serde(default, rename = "p")]
    pub contributions: Vec<Contribution>,
    /// For rows without a conversation id: every conversation that they were ever shown in.
    #[serde(default, rename = "s", skip_serializing_if = "BTreeSet::is_empty")]
    pub shown: BTreeSet<String>,
    /// The source of the title, if the rows are shown in exactly one conversation. `None` if there are several, or if
    /// all reports have to be considered.
    #[serde(default, rename = "t", skip_serializing_if = "Option::is_none")]
    pub title_source: Option<TitleKey>,
    /// The entry that this one was merged into.
    #[serde(default, rename = "m", skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
}

/// The report of one or more imports about a conversation, identical word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// Digest of the whole report, 32 hex digits. Empty if the conversation was not imported; such a contribution always
    /// counts.
    #[serde(rename = "d")]
    pub digest: String,
    /// The version of the conversation that consists of exactly this report. `None` if the report is stored separately,
    /// see [`StoredContribution`].
    #[serde(default, rename = "v", skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The conversation that `version` refers to, if it is not the one that this entry belongs to.
    #[serde(default, rename = "h", skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The untrusted signer whose document reported it: a key, or the marker for an unsigned document. `None` if it comes from
    /// the user, or from somebody whom the user trusts.
    #[serde(default, rename = "f", skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
}

impl Contribution {
    /// Returns the key under which imports list this contribution.
    #[must_use]
    pub fn key(&self) -> Option<EvidenceKey> {
        contribution::parse_key(&self.digest)
    }

    /// Returns whether the contribution is part of the visible state when those in `excluded` are not.
    #[must_use]
    pub fn is_included(&self, excluded: &BTreeSet<EvidenceKey>) -> bool {
        self.key().is_none_or(|key| !excluded.contains(&key))
    }
}

impl ConversationProvenance {
    /// Returns what is known about the conversation `id`. A stored conversation without provenance was not imported.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn load(
        store: &Store,
        id: &str,
        stored: Option<&ConversationRecord>,
    ) -> Result<Self, ProvenanceError> {
        if let Some(entry) = store.ledger_get(Ledger::Provenance, id)? {
            return Self::decode(&entry.value);
        }
        // What is left of one that a peer has taken back is no report about it.
        let stored = stored.filter(|stored| !erased_conversation(&stored.header));
        Ok(stored.map(Self::not_imported).unwrap_or_default())
    }

    fn not_imported(stored: &ConversationRecord) -> Self {
        let contribution = Contribution {
            digest: String::new(),
            version: Some(stored.version),
            conversation: None,
            untrusted: None,
        };
        Self { contributions: vec![contribution], ..Self::default() }
    }

    /// Returns whether some report does not count.
    #[must_use]
    pub fn has_excluded(&self, excluded: &BTreeSet<EvidenceKey>) -> bool {
        self.contributions.iter().any(|contribution| !contribution.is_included(excluded))
    }

    /// Returns the contributions that the visible conversation is built from, without those in `excluded`. `trusted_added`
    /// is true if a report from the user, or from a trusted signer, is being added. A contribution of an untrusted signer
    /// is included only if there is no other, regardless of their order.
    pub fn included<'a>(
        &'a self,
        excluded: &'a BTreeSet<EvidenceKey>,
        trusted_added: bool,
    ) -> impl Iterator<Item = &'a Contribution> {
        let counts = |contribution: &&Contribution| contribution.is_included(excluded);
        let trusted = trusted_added
            || self.contributions.iter().filter(counts).any(|contribution| contribution.untrusted.is_none());
        self.contributions
            .iter()
            .filter(counts)
            .filter(move |contribution| !trusted || contribution.untrusted.is_none())
    }

    /// Returns whether a report that comes from the user or a trusted signer replaces the visible state, which comes from an
    /// untrusted one.
    #[must_use]
    pub fn is_superseded_by(&self, signer: Option<&str>, excluded: &BTreeSet<EvidenceKey>) -> bool {
        signer.is_none()
            && self.included(excluded, false).any(|contribution| contribution.untrusted.is_some())
    }

    /// Returns whether the visible state includes a report by somebody other than `signer`.
    #[must_use]
    pub fn has_other_signer(&self, excluded: &BTreeSet<EvidenceKey>, signer: Option<&str>) -> bool {
        self.contributions.iter().any(|contribution| {
            contribution.is_included(excluded) && contribution.untrusted.as_deref() != signer
        })
    }

    /// Returns whether one of `keys` belongs to a report about this conversation.
    #[must_use]
    pub fn contains_any(&self, keys: &BTreeSet<EvidenceKey>) -> bool {
        self.contributions
            .iter()
            .any(|contribution| contribution.key().is_some_and(|key| keys.contains(&key)))
    }

    /// Returns the names of the ledger entries that hold the separately stored reports.
    pub fn stored_entry_ids(&self) -> impl Iterator<Item = String> {
        self.contributions
            .iter()
            .filter(|contribution| contribution.version.is_none())
            .map(|contribution| contribution::entry_id(&contribution.digest))
    }

    /// Returns the same as [`ConversationProvenance::stored_entry_ids`], for the encoded form of a ledger entry.
    #[must_use]
    pub fn stored_entry_ids_in(bytes: &[u8]) -> Vec<String> {
        Self::decode(bytes).map(|provenance| provenance.stored_entry_ids().collect()).unwrap_or_default()
    }

    /// Returns the change that stores this as the provenance of the conversation `id`.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_change(&self, id: &str) -> Result<Change, ProvenanceError> {
        let value = encode(self, "the provenance of a conversation")?;
        Ok(put(id.to_owned(), CONVERSATION_ENTRIES, value))
    }

    /// Returns a page of all conversations that have provenance, with their ids.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn page(store: &Store, after: Option<&Cursor>) -> Result<Page<(String, Self)>, ProvenanceError> {
        let page = store.ledger_list(Ledger::Provenance, after, PAGE)?;
        let rest = page.items.iter().position(|entry| entry.at_micros != CONVERSATION_ENTRIES);
        let mut items = Vec::new();
        for entry in page.items.iter().take(rest.unwrap_or(page.items.len())) {
            items.push((entry.id.clone(), Self::decode(&entry.value)?));
        }
        Ok(Page { items, next: page.next.filter(|_| rest.is_none()) })
    }

    fn decode(bytes: &[u8]) -> Result<Self, ProvenanceError> {
        decode(bytes, "the provenance of a conversation")
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
    pub fn load(store: &Store, import: Uuid) -> Result<Option<Self>, ProvenanceError> {
        let entry = store.ledger_get(Ledger::Undo, &import.to_string())?;
        entry.map(|entry| decode(&entry.value, "the record of an undo")).transpose()
    }

    /// Writes the record. Durable when this returns.
    ///
    /// # Errors
    /// The store refuses the write.
    pub fn put(&self, store: &Store) -> Result<(), ProvenanceError> {
        Ok(store.put_ledger(self.to_entry()?, Durability::Now)?)
    }

    /// Returns the change that writes the record.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_change(&self) -> Result<Change, ProvenanceError> {
        self.to_entry().map(Change::Ledger)
    }

    fn to_entry(&self) -> Result<LedgerWrite, ProvenanceError> {
        let value = encode(self, "the record of an undo")?;
        let (ledger, id, at_micros) = (Ledger::Undo, self.import.to_string(), self.at);
        Ok(LedgerWrite::Entry { ledger, id, at_micros, value })
    }
}

/// Returns the undos and redos that were started but not completed.
///
/// # Errors
/// The ledger cannot be read.
pub fn unfinished_undos(store: &Store) -> Result<Vec<UndoRecord>, ProvenanceError> {
    let mut unfinished = Vec::new();
    each_undo(store, |record| unfinished.extend((!record.done).then_some(record)))?;
    Ok(unfinished)
}

/// Returns all imports that are undone, or are being undone.
///
/// # Errors
/// The ledger cannot be read.
pub fn undone_imports(store: &Store) -> Result<UndoneImports, ProvenanceError> {
    let mut undone = UndoneImports::new();
    each_undo(store, |record| undone.extend(record.undone.then_some(record.import)))?;
    Ok(undone)
}

/// Calls `each` with the record of each import that was ever undone.
pub(crate) fn each_undo(store: &Store, mut each: impl FnMut(UndoRecord)) -> Result<(), ProvenanceError> {
    let page = |after: Option<&Cursor>| Ok(store.ledger_list(Ledger::Undo, after, PAGE)?);
    each_row(page, |entry| {
        each(decode(&entry.value, "the record of an undo")?);
        Ok(())
    })
}

/// Returns whether a conversation cannot have this id, because its entry would be one of another kind.
#[must_use]
pub fn is_reserved(id: &str) -> bool {
    const KINDS: [&str; 8] =
        ["evidence ", "parts ", "recorder ", "row ", "rows ", "said ", "stranger ", vectors::ID_PREFIX];
    KINDS.iter().any(|kind| id.starts_with(kind))
}

fn put(id: String, at_micros: i64, value: Vec<u8>) -> Change {
    Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Provenance, id, at_micros, value })
}

fn encode(value: &impl Serialize, what: &'static str) -> Result<Vec<u8>, ProvenanceError> {
    serde_json::to_vec(value).map_err(|_| ProvenanceError::Unreadable { what })
}

fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &'static str) -> Result<T, ProvenanceError> {
    serde_json::from_slice(bytes).map_err(|_| ProvenanceError::Unreadable { what })
}
