//! Versions of memories that edits of other stores made and that are not shown in the end, so that the history of a memory has them in
//! every store.

use std::collections::BTreeMap;

use satchel_merge::evidence::{DerivedMemories, EditAction, EditStep, MemoryField, apply_fields};
use satchel_pam::memory::Memory;
use satchel_store::{Batch, Change, Origin, Store, StoreError};

use super::{
    authorship::last_change,
    draft::{differing, ordered},
    memories::new_memory,
    transaction::{split, weight},
};

/// Most versions of one memory that one merge adds, and most bytes of all: a short step may change a long memory, and each version of a
/// memory is in a commit of its own. Steps beyond that take effect, and leave no version.
const VERSIONS_OF_MEMORY: usize = 200;
const BYTES: usize = 32 << 20;

/// Returns the commits that write these versions, in their order. After them, each memory that was shown before is again as it was, by the
/// author who made it so: what follows is by the author of the merge.
///
/// # Errors
/// When the store cannot be read.
pub(super) fn batches(
    store: &Store,
    origin: &Origin,
    steps: &[&EditStep],
    (before, after): (&DerivedMemories, &DerivedMemories),
) -> Result<Vec<Batch>, StoreError> {
    let mut layers: Vec<Vec<Change>> = Vec::new();
    let mut again: Vec<Batch> = Vec::new();
    for (id, versions) in replaced(steps, before, after) {
        if let (Some(memory), Some(author)) = (before.memories.get(&id), author_of_shown(store, &id)?) {
            let author = Origin { at_micros: origin.at_micros, ..author };
            let change = Change::Memory(Box::new(memory.clone()));
            match again.iter_mut().find(|batch| batch.origin == author) {
                Some(batch) => batch.changes.push(change),
                None => again.push(Batch { origin: author, changes: vec![change] }),
            }
        }
        for (at, version) in versions.into_iter().enumerate() {
            if layers.len() == at {
                layers.push(Vec::new());
            }
            if let Some(layer) = layers.get_mut(at) {
                layer.push(Change::Memory(Box::new(version)));
            }
        }
    }
    let mut batches: Vec<Batch> = layers.into_iter().flat_map(|layer| split(layer, origin)).collect();
    batches.extend(again.into_iter().flat_map(|batch| split(batch.changes, &batch.origin)));
    Ok(batches)
}

/// Returns who gave a memory the statement that it has now.
fn author_of_shown(store: &Store, id: &str) -> Result<Option<Origin>, StoreError> {
    let versions = store.memory_versions(id)?;
    Ok(last_change(&versions).or(versions.first()).map(|version| version.origin.clone()))
}

/// Returns the versions of memories that each of the steps makes and that are not shown after all of them, the oldest first.
///
/// Access and status are those that are shown in the end: what one store has made private must not be visible in between because another
/// one wanted it otherwise.
fn replaced(
    steps: &[&EditStep],
    before: &DerivedMemories,
    after: &DerivedMemories,
) -> BTreeMap<String, Vec<Memory>> {
    let mut versions: BTreeMap<String, Vec<Memory>> = BTreeMap::new();
    let mut bytes = 0;
    let ids: Vec<Option<String>> = steps.iter().map(|step| step.memory()).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    ids.iter().flatten().for_each(|id| *counts.entry(id).or_default() += 1);
    for (step, id) in steps.iter().zip(&ids) {
        let Some(id) = id else { continue };
        // What is new and not changed further is shown.
        if counts.get(id.as_str()) == Some(&1) && !before.memories.contains_key(id) {
            continue;
        }
        let Some(shown) = after.memories.get(id) else { continue };
        let known = versions.get(id);
        let current = known.and_then(|versions| versions.last()).or_else(|| before.memories.get(id));
        let Some(mut next) = version_of(step, current) else { continue };
        next.access.clone_from(&shown.access);
        next.status = shown.status;
        next.temporal.superseded_by.clone_from(&shown.temporal.superseded_by);
        let is_new = current.is_none_or(|current| !differing(current, &next).is_empty());
        let full = known.is_some_and(|versions| versions.len() >= VERSIONS_OF_MEMORY);
        // The ends of a period that were set in different stores may not fit together.
        if !is_new || full || ordered(&next).is_err() {
            continue;
        }
        let change = Change::Memory(Box::new(next));
        bytes += weight(&change);
        if bytes > BYTES {
            tracing::warn!("so much was edited in other stores that not every value becomes a version here");
            break;
        }
        if let Change::Memory(next) = change {
            versions.entry(id.clone()).or_default().push(*next);
        }
    }
    for (id, versions) in &mut versions {
        let shown = after.memories.get(id);
        versions.pop_if(|last| shown.is_some_and(|shown| differing(shown, last).is_empty()));
    }
    versions.retain(|_, versions| !versions.is_empty());
    versions
}

/// Returns the memory that a step makes of `current`; `None` if it makes none.
fn version_of(step: &EditStep, current: Option<&Memory>) -> Option<Memory> {
    match (&step.action, current) {
        (EditAction::AddMemory(evidence), None) => new_memory(evidence).ok(),
        (EditAction::Patch(patch), Some(current)) => {
            let (mut next, mut fields) = (current.clone(), patch.fields.clone());
            fields.retain(|field| !matches!(field, MemoryField::Access | MemoryField::Status));
            apply_fields(&fields, &patch.to, step.at, &mut next);
            Some(next)
        }
        _ => None,
    }
}
