//! Derives memories from everything that all exports report about them, regardless of the order in which they arrived.
//!
//! There is one memory per (content hash, type, scope). Its state is decided per stream: a statement counts by itself,
//! the newest snapshot of a one-line list replaces the older ones, and a log of edits is replayed. A memory is active
//! if it is present in any stream. Absence from a newer snapshot of a longer list proves nothing, because providers
//! truncate those lists.

mod document;
mod edits;
mod evidence_list;
mod memory;
mod memory_evidence;
mod relation;
mod streams;
mod vector;

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    hash::ContentHash,
    ids,
    memory::{ExtractionMethod, Memory, Status},
    record::{Claim, Edit, Item},
    relation::Relation,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::body::{Digest16, digest};

pub use document::{DocumentEvidence, ExportTime, UNSIGNED, would_change};
pub use edits::{
    EditAction, EditStep, MemoryField, MemoryPatch, Spoken, advance_updated_at, apply_fields, edited_fields,
    in_effect, memories_of_edit,
};
pub use memory_evidence::{MemoryEvidence, MemoryEvidenceSet};
pub use relation::{RelationEvidence, add_relations, may_assert, supersedes};
pub use streams::{Fated, Streams};
pub use vector::{VectorEvidence, VectorIdentity};

/// A piece of evidence as the store keeps it, with keys resolved and times filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredEvidence {
    /// UUIDv5 of the platform, the account, the provider's id and the subject.
    pub id: String,
    /// PAM platform.
    pub platform: String,
    /// The account that was exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Microseconds.
    pub at: i64,
    /// PAM id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// PAM id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// For a conversation that was grouped from rows: the message that the evidence belongs to, because other exports
    /// may move it to another conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// How the memory was extracted.
    pub method: ExtractionMethod,
    /// The importer, `name/x.y.z`.
    pub extractor: String,
    /// The claim.
    pub claim: Claim,
}

/// Everything that is derived from the evidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DerivedMemories {
    /// By id.
    pub memories: BTreeMap<String, Memory>,
    /// By id.
    pub relations: BTreeMap<String, Relation>,
    /// For each memory that only strangers' documents contain: the stranger.
    pub untrusted: BTreeMap<String, String>,
    /// Memories whose status the user set.
    status_overrides: BTreeSet<String>,
    /// Relations that the user withdrew.
    withdrawn_relations: BTreeSet<String>,
    /// Relations that are derived from a status that the user set.
    status_relations: BTreeSet<String>,
}

impl StoredEvidence {
    /// Returns the key of the stored form, which is unique for each report, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text, a number or a list of these.
    pub fn encode(&self) -> serde_json::Result<(Digest16, Vec<u8>)> {
        let bytes = serde_json::to_vec(self)?;
        Ok((digest(&bytes), bytes))
    }
}

/// Returns the id of the memory that `item` describes.
pub fn memory_id(item: &Item) -> String {
    memory_uuid(item).to_string()
}

/// Like [`memory_id`], but returns a UUID.
pub fn memory_uuid(item: &Item) -> Uuid {
    let hash = ContentHash::of(&item.content);
    ids::memory_id(&hash, item.memory_type, item.custom_type.as_deref(), item.scope.as_deref())
}

/// Returns every item that `claim` contains. An item whose content was erased is left out.
pub fn items_of(claim: &Claim) -> Vec<&Item> {
    let mut items: Vec<&Item> = match claim {
        Claim::Statement(item) | Claim::Edit { edit: Edit::Add(item) | Edit::Replace { item, .. }, .. } => {
            vec![item]
        }
        Claim::Snapshot { items, .. } => items.iter().collect(),
        Claim::Edit { edit: Edit::Remove { .. }, .. } => Vec::new(),
    };
    items.retain(|item| !item.content.is_empty());
    items
}

/// Resolves successors: the records of an import name the successor of an item by that item's key; this replaces the
/// key by the id of the memory, which is known only once the whole import was read. A key that the import does not
/// contain is removed.
pub fn name_successors(witness: &mut StoredEvidence, keys: &BTreeMap<String, String>) {
    let items: &mut [Item] = match &mut witness.claim {
        Claim::Statement(item) | Claim::Edit { edit: Edit::Add(item) | Edit::Replace { item, .. }, .. } => {
            std::slice::from_mut(item)
        }
        Claim::Snapshot { items, .. } => items,
        Claim::Edit { edit: Edit::Remove { .. }, .. } => &mut [],
    };
    for item in items {
        item.superseded_by = item.superseded_by.take().and_then(|key| keys.get(&key).cloned());
    }
}

/// Returns the id of every memory in `claim`.
pub fn memories_of(claim: &Claim) -> Vec<String> {
    items_of(claim).into_iter().map(memory_id).collect()
}

/// Returns the memories that superseded those in `claim`.
pub fn successors(claim: &Claim) -> Vec<String> {
    items_of(claim).into_iter().filter_map(|item| item.superseded_by.clone()).collect()
}

/// Returns the subject of `claim`: its list and its memories. Two exports may report the same evidence differently, for
/// example if a conversation was moved into a project in between. Both reports then count, whichever came first.
pub fn subject(claim: &Claim) -> String {
    let stream = match claim {
        Claim::Statement(_) => "statement".to_owned(),
        Claim::Snapshot { series, .. } => format!("snapshot {series}"),
        Claim::Edit { log, edit: Edit::Add(_), .. } => format!("add {log}"),
        Claim::Edit { log, edit: Edit::Replace { line, target, .. }, .. } => {
            format!("replace {log} {line:?} {target:?}")
        }
        Claim::Edit { log, edit: Edit::Remove { line, target }, .. } => {
            format!("remove {log} {line:?} {target:?}")
        }
    };
    let memories = memories_of(claim);
    std::iter::once(stream).chain(memories).collect::<Vec<_>>().join("\n")
}

/// Returns whether `one` takes precedence over `other`, which has the same id, regardless of which came first. The
/// report of the newer importer wins, then the later report, then the longer one.
pub fn takes_precedence(one: &StoredEvidence, other: &StoredEvidence) -> bool {
    let rank = |witness: &StoredEvidence| {
        let said = serde_json::to_string(witness).unwrap_or_default();
        (version(&witness.extractor), witness.at, said.len(), said)
    };
    one != other && rank(one) > rank(other)
}

/// Returns the numbers of `name/x.y.z`.
fn version(extractor: &str) -> Vec<u64> {
    let numbers = extractor.rsplit('/').next().unwrap_or_default();
    numbers.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}

/// Derives everything from all evidence: the exports, the memories in PAM documents, and the user's own edits. Returns
/// `None` if `stop` returns true on the way; it is called for every memory.
pub fn derive_until<'a, 'd>(
    all: impl IntoIterator<Item = &'a StoredEvidence>,
    documents: impl IntoIterator<Item = &'d DocumentEvidence>,
    spoken: &Spoken,
    stop: &dyn Fn() -> bool,
) -> Option<DerivedMemories> {
    let all: Vec<&StoredEvidence> = all.into_iter().collect();
    let derived = derive_from_exports(all.into_iter().chain(&spoken.added), stop)?;
    if stop() { None } else { Some(apply_documents_and_edits(derived, documents, spoken)) }
}

/// Combines what is derived from exports with documents and the user's edits.
fn apply_documents_and_edits<'d>(
    mut derived: DerivedMemories,
    documents: impl IntoIterator<Item = &'d DocumentEvidence>,
    spoken: &Spoken,
) -> DerivedMemories {
    let retracted = document::add(&mut derived, documents);
    edits::overlay(&mut derived, spoken, &retracted);
    derived
}

/// Like [`derive_until`], without a way to stop.
#[cfg(test)]
pub fn derive_with<'a, 'd>(
    all: impl IntoIterator<Item = &'a StoredEvidence>,
    documents: impl IntoIterator<Item = &'d DocumentEvidence>,
    spoken: &Spoken,
) -> DerivedMemories {
    derive_until(all, documents, spoken, &|| false).unwrap_or_default()
}

/// Derives everything from exports alone.
pub fn derive<'a>(all: impl IntoIterator<Item = &'a StoredEvidence>) -> DerivedMemories {
    derive_from_exports(all, &|| false).unwrap_or_default()
}

fn derive_from_exports<'a>(
    all: impl IntoIterator<Item = &'a StoredEvidence>,
    stop: &dyn Fn() -> bool,
) -> Option<DerivedMemories> {
    let mut streams = Streams::default();
    let mut says = Vec::new();
    for witness in all {
        if !streams.add(witness, witness)
            && let Some(item) = item_at(&witness.claim, 0)
        {
            says.push(EvidenceItem { memory: memory_uuid(item), witness, item, state: own_state(item) });
        }
    }
    let fates = streams.fates(|_| true, stop)?;
    let fates = fates.into_iter();
    says.extend(fates.filter_map(|Fated { of: witness, item, memory, state: fate, .. }| {
        let item = item_at(&witness.claim, usize::try_from(item).ok()?)?;
        Some(EvidenceItem { memory, witness, item, state: fate })
    }));
    let known: BTreeSet<Uuid> = says.iter().map(|said| said.memory).collect();
    memory::combine(says, &|memory| known.contains(memory), stop)
}

/// What one piece of evidence says about one memory, and the state of the memory in its list.
#[derive(Clone, Copy)]
struct EvidenceItem<'a> {
    memory: Uuid,
    witness: &'a StoredEvidence,
    item: &'a Item,
    state: MemoryState,
}

/// The state of a memory in one list, or by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryState {
    /// The memory counts.
    Present,
    /// The provider gives it this status.
    Stated(Status),
    /// Another memory replaced it.
    Replaced {
        /// The replacement, if known.
        by: Option<Uuid>,
        /// Microseconds.
        at: i64,
    },
    /// The memory was removed.
    Removed {
        /// Microseconds.
        at: i64,
    },
}

/// Returns the state that an item gives for itself.
pub fn own_state(item: &Item) -> MemoryState {
    match item.status {
        None | Some(Status::Active) => MemoryState::Present,
        Some(Status::Superseded) => {
            let by = item.superseded_by.as_ref().and_then(|by| Uuid::parse_str(by).ok());
            MemoryState::Replaced { by, at: item.updated_at.unwrap_or(0) }
        }
        Some(status) => MemoryState::Stated(status),
    }
}

/// Returns the item of `claim` at `place`, or `None` if there is none or its content was erased.
pub fn item_at(claim: &Claim, place: usize) -> Option<&Item> {
    let item = match claim {
        Claim::Statement(item) | Claim::Edit { edit: Edit::Add(item) | Edit::Replace { item, .. }, .. } => {
            (place == 0).then_some(item)
        }
        Claim::Snapshot { items, .. } => items.get(place),
        Claim::Edit { edit: Edit::Remove { .. }, .. } => None,
    };
    item.filter(|item| !item.content.is_empty())
}

#[cfg(test)]
mod tests;
