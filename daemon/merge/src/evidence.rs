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
    ConflictingEdit, ConflictingValue, EditAction, EditStep, FieldConflict, MemoryField, MemoryPatch,
    UserEdits, apply_fields, edited_fields, in_effect, memories_of_edit,
};
pub use memory_evidence::{MemoryEvidence, MemoryEvidenceSet};
pub use relation::{RelationEvidence, add_relations, may_assert, supersedes};
pub use streams::{ListedMemory, StreamName, Streams};
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
    /// Memories whose status the user set, each with the successors that it has besides the one that it names.
    status_overrides: BTreeMap<String, BTreeSet<String>>,
    /// Relations that the user withdrew.
    withdrawn_relations: BTreeSet<String>,
    /// Relations that are derived from a status that the user set.
    status_relations: BTreeSet<String>,
}

impl DerivedMemories {
    /// Keeps the memories for which `keeps` returns true, and the relations between them.
    pub fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        self.memories.retain(|id, _| keeps(id));
        self.relations.retain(|_, relation| keeps(&relation.from) && keeps(&relation.to));
        self.untrusted.retain(|id, _| keeps(id));
    }
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
pub(crate) fn memory_uuid(item: &Item) -> Uuid {
    let hash = ContentHash::of(&item.content);
    ids::memory_id(&hash, item.memory_type, item.custom_type.as_deref(), item.scope.as_deref())
}

/// Returns every item that `claim` contains. An item whose content was erased is left out.
pub fn items_of(claim: &Claim) -> Vec<&Item> {
    all_items(claim).iter().filter(|item| !item.content.is_empty()).collect()
}

fn all_items(claim: &Claim) -> &[Item] {
    match claim {
        Claim::Statement(item) | Claim::Edit { edit: Edit::Add(item) | Edit::Replace { item, .. }, .. } => {
            std::slice::from_ref(item)
        }
        Claim::Snapshot { items, .. } => items,
        Claim::Edit { edit: Edit::Remove { .. }, .. } => &[],
    }
}

/// Resolves successors: the records of an import name the successor of an item by that item's key; this replaces the
/// key by the id of the memory, which is known only once the whole import was read. A key that the import does not
/// contain is removed.
pub fn name_successors(evidence: &mut StoredEvidence, keys: &BTreeMap<String, String>) {
    let items: &mut [Item] = match &mut evidence.claim {
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
    let rank = |evidence: &StoredEvidence| {
        let text = serde_json::to_string(evidence).unwrap_or_default();
        (version(&evidence.extractor), evidence.at, text.len(), text)
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
    edits: &UserEdits,
    stop: &dyn Fn() -> bool,
) -> Option<DerivedMemories> {
    let all: Vec<&StoredEvidence> = all.into_iter().collect();
    let derived = derive_from_exports(all.into_iter().chain(&edits.added), stop)?;
    if stop() { None } else { Some(apply_documents_and_edits(derived, documents, edits)) }
}

/// Combines what is derived from exports with documents and the user's edits.
fn apply_documents_and_edits<'d>(
    mut derived: DerivedMemories,
    documents: impl IntoIterator<Item = &'d DocumentEvidence>,
    edits: &UserEdits,
) -> DerivedMemories {
    let retracted = document::add(&mut derived, documents);
    edits::overlay(&mut derived, edits, &retracted);
    derived
}

/// Like [`derive_until`], without a way to stop.
#[cfg(test)]
pub(crate) fn derive_with<'a, 'd>(
    all: impl IntoIterator<Item = &'a StoredEvidence>,
    documents: impl IntoIterator<Item = &'d DocumentEvidence>,
    edits: &UserEdits,
) -> DerivedMemories {
    derive_until(all, documents, edits, &|| false).unwrap_or_default()
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
    let mut items = Vec::new();
    for evidence in all {
        if !streams.add(evidence, evidence)
            && let Some(item) = item_at(&evidence.claim, 0)
        {
            items.push(EvidenceItem { memory: memory_uuid(item), evidence, item, state: own_state(item) });
        }
    }
    let states = streams.states(|_| true, stop)?;
    let states = states.into_iter();
    items.extend(states.filter_map(|ListedMemory { location: evidence, item, memory, state, .. }| {
        let item = item_at(&evidence.claim, usize::try_from(item).ok()?)?;
        Some(EvidenceItem { memory, evidence, item, state })
    }));
    let known: BTreeSet<Uuid> = items.iter().map(|item| item.memory).collect();
    memory::combine(items, &|memory| known.contains(memory), stop)
}

/// What one piece of evidence says about one memory, and the state of the memory in its list.
#[derive(Clone, Copy)]
struct EvidenceItem<'a> {
    memory: Uuid,
    evidence: &'a StoredEvidence,
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
pub(crate) fn own_state(item: &Item) -> MemoryState {
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
    all_items(claim).get(place).filter(|item| !item.content.is_empty())
}

#[cfg(test)]
mod tests;
