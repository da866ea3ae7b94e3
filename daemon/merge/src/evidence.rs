//! Derives memories from everything that all exports say about them, whatever the order in which they arrived.
//!
//! A memory is one per (content hash, type, scope). What stands is decided per stream: a statement stands by itself, the
//! newest snapshot of a one-line list replaces the older ones, a log of edits is replayed. A memory is active if any stream
//! holds it; absence from a newer snapshot of a longer list proves nothing, as providers cut those lists.

mod document;
mod edge;
mod memory;
mod saying;
mod sightings;
mod streams;
mod vector;
mod word;

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

pub use document::{Document, Exported, UNSIGNED, would_change};
pub use edge::{Edge, add_edges, may_say, supersedes};
pub use saying::{Saying, Sayings};
pub use streams::{Fated, Streams};
pub use vector::{Named, Vector};
pub use word::{Deed, Field, Setting, Spoken, Word, counts, impress, marks, memories_of_act, stamp};

/// A piece of evidence as the store keeps it: keys resolved, times filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Witness {
    /// UUIDv5 of platform, account, the provider's id and what it speaks of.
    pub id: String,
    /// PAM platform.
    pub platform: String,
    /// Whose export it was.
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
    /// Of a conversation that was grouped from rows: the message that it goes with, as other exports may move it to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// How the memory came about.
    pub method: ExtractionMethod,
    /// The importer, `name/x.y.z`.
    pub extractor: String,
    /// What it says.
    pub claim: Claim,
}

/// Everything that follows from the evidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived {
    /// By id.
    pub memories: BTreeMap<String, Memory>,
    /// By id.
    pub relations: BTreeMap<String, Relation>,
    /// Of the memories that only strangers' documents speak of: which stranger's.
    pub foreign: BTreeMap<String, String>,
    /// Memories whose status the person gave.
    ruled: BTreeSet<String>,
    /// Relations that the person took back.
    withdrawn: BTreeSet<String>,
    /// Relations that follow from a status that the person gave.
    followed: BTreeSet<String>,
}

impl Witness {
    /// The key of its stored form, one for each report, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text, a number or a list of such.
    pub fn encode(&self) -> serde_json::Result<(Digest16, Vec<u8>)> {
        let bytes = serde_json::to_vec(self)?;
        Ok((digest(&bytes), bytes))
    }
}

/// The id of the memory that `item` speaks of.
pub fn memory_id(item: &Item) -> String {
    memory_uuid(item).to_string()
}

/// As [`memory_id`].
pub fn memory_uuid(item: &Item) -> Uuid {
    let hash = ContentHash::of(&item.content);
    ids::memory_id(&hash, item.memory_type, item.custom_type.as_deref(), item.scope.as_deref())
}

/// Every item that `claim` names; one whose content was erased names nothing.
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

/// A run names the successor of an item by that item's key; here it becomes the memory of it, as the whole run knows them.
/// A key that the run does not hold names nothing.
pub fn name_successors(witness: &mut Witness, keys: &BTreeMap<String, String>) {
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

/// Every memory that `claim` speaks of.
pub fn memories_of(claim: &Claim) -> Vec<String> {
    items_of(claim).into_iter().map(memory_id).collect()
}

/// The memories that took the place of those which `claim` speaks of.
pub fn successors(claim: &Claim) -> Vec<String> {
    items_of(claim).into_iter().filter_map(|item| item.superseded_by.clone()).collect()
}

/// What `claim` is about: its list, and the memories that it speaks of. Two exports may tell of one place differently, as when
/// a conversation was moved into a project in between; both stand then, whichever came first.
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

/// Whether `one` counts before `other`, which has the same id, whichever came first: the report of the newer importer, then
/// the later one, then the one that says more.
pub fn outranks(one: &Witness, other: &Witness) -> bool {
    let rank = |witness: &Witness| {
        let said = serde_json::to_string(witness).unwrap_or_default();
        (version(&witness.extractor), witness.at, said.len(), said)
    };
    one != other && rank(one) > rank(other)
}

/// The numbers of `name/x.y.z`.
fn version(extractor: &str) -> Vec<u64> {
    let numbers = extractor.rsplit('/').next().unwrap_or_default();
    numbers.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}

/// Replays all evidence: what exports say, the memories that PAM documents brought, and what the person says themselves; none if
/// `stop`, which is asked for every memory, says so on the way.
pub fn derive_until<'a, 'd>(
    all: impl IntoIterator<Item = &'a Witness>,
    documents: impl IntoIterator<Item = &'d Document>,
    spoken: &Spoken,
    stop: &dyn Fn() -> bool,
) -> Option<Derived> {
    let all: Vec<&Witness> = all.into_iter().collect();
    let derived = said(all.into_iter().chain(&spoken.added), stop)?;
    if stop() { None } else { Some(united(derived, documents, spoken)) }
}

/// What follows from exports, with what documents and the person say.
fn united<'d>(
    mut derived: Derived,
    documents: impl IntoIterator<Item = &'d Document>,
    spoken: &Spoken,
) -> Derived {
    let retracted = document::add(&mut derived, documents);
    word::overlay(&mut derived, spoken, &retracted);
    derived
}

/// As [`derive_until`], to its end.
#[cfg(test)]
pub fn derive_with<'a, 'd>(
    all: impl IntoIterator<Item = &'a Witness>,
    documents: impl IntoIterator<Item = &'d Document>,
    spoken: &Spoken,
) -> Derived {
    derive_until(all, documents, spoken, &|| false).unwrap_or_default()
}

/// Replays what exports say.
pub fn derive<'a>(all: impl IntoIterator<Item = &'a Witness>) -> Derived {
    said(all, &|| false).unwrap_or_default()
}

fn said<'a>(all: impl IntoIterator<Item = &'a Witness>, stop: &dyn Fn() -> bool) -> Option<Derived> {
    let mut streams = Streams::default();
    let mut says = Vec::new();
    for witness in all {
        if !streams.take(witness, witness)
            && let Some(item) = nth(&witness.claim, 0)
        {
            says.push(Said { memory: memory_uuid(item), witness, item, fate: stated(item) });
        }
    }
    let fates = streams.fates(|_| true, stop)?;
    let fates = fates.into_iter();
    says.extend(fates.filter_map(|Fated { of: witness, item, memory, fate, .. }| {
        let item = nth(&witness.claim, usize::try_from(item).ok()?)?;
        Some(Said { memory, witness, item, fate })
    }));
    let known: BTreeSet<Uuid> = says.iter().map(|said| said.memory).collect();
    memory::combine(says, &|memory| known.contains(memory), stop)
}

/// What one piece of evidence says of one memory, and what became of it in its list.
#[derive(Clone, Copy)]
struct Said<'a> {
    memory: Uuid,
    witness: &'a Witness,
    item: &'a Item,
    fate: Fate,
}

/// The state of a memory in one list, or by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It counts.
    Stands,
    /// The provider gives it this status.
    Stated(Status),
    /// Another took its place.
    Replaced {
        /// Which.
        by: Option<Uuid>,
        /// Microseconds.
        at: i64,
    },
    /// It was taken out.
    Removed {
        /// Microseconds.
        at: i64,
    },
}

/// What an item says of itself.
pub fn stated(item: &Item) -> Fate {
    match item.status {
        None | Some(Status::Active) => Fate::Stands,
        Some(Status::Superseded) => {
            let by = item.superseded_by.as_ref().and_then(|by| Uuid::parse_str(by).ok());
            Fate::Replaced { by, at: item.updated_at.unwrap_or(0) }
        }
        Some(status) => Fate::Stated(status),
    }
}

/// The item of `claim` at `place`; none: there is none, or its content was erased.
pub fn nth(claim: &Claim, place: usize) -> Option<&Item> {
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
