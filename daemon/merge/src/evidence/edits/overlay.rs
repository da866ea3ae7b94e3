//! Applies the user's edits on top of everything that is derived from other evidence.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    memory::{Memory, Status},
    relation::{Relation, RelationType},
};

use super::{
    super::{DerivedMemories, relation::supersedes},
    MemoryField, MemoryPatch, UserEdits,
    fields::{advance_updated_at, copy_field, edited_fields, mark_edited},
};

/// The status that the user gave a memory, and when.
struct StatusOverride {
    at: i64,
    memory: String,
    status: Status,
    successor: Option<String>,
    /// When the user first named this successor.
    since: i64,
}

/// Applies `edits` to `derived`. `retracted` says when PAM documents retracted a memory. A retraction is final unless
/// the user reversed it later.
pub(in crate::evidence) fn overlay(
    derived: &mut DerivedMemories,
    edits: &UserEdits,
    retracted: &BTreeMap<String, i64>,
) {
    let mut overrides = Vec::new();
    for (id, patches) in &edits.patches {
        let base = derived.memories.get(id).cloned().or_else(|| memory_from_patches(patches));
        let Some(mut memory) = base else { continue };
        overrides.extend(apply_patches(&mut memory, patches, retracted.get(id).copied()));
        derived.memories.insert(id.clone(), memory);
    }
    for (id, at) in &edits.undo_times {
        if let Some(memory) = derived.memories.get_mut(id) {
            advance_updated_at(*at, memory);
        }
    }
    let overridden = apply_statuses(derived, overrides);
    derived.relations.retain(|_, relation| !contradicts_user(&derived.memories, &overridden, relation));
    derived.status_overrides = overridden;
    for (id, relation) in &edits.relations {
        derived.relations.remove(id);
        let ends = |relation: &&Relation| {
            [&relation.from, &relation.to].into_iter().all(|end| derived.memories.contains_key(end))
        };
        match relation.as_ref().filter(ends) {
            Some(relation) => {
                derived.relations.insert(id.clone(), relation.clone());
            }
            None => {
                derived.withdrawn_relations.insert(id.clone());
            }
        }
    }
}

/// Returns whether a relation says that a memory superseded another one for which the user decided otherwise.
pub(in crate::evidence) fn contradicts_user(
    memories: &BTreeMap<String, Memory>,
    overridden: &BTreeSet<String>,
    relation: &Relation,
) -> bool {
    let named = || memories.get(&relation.to).and_then(|memory| memory.temporal.superseded_by.as_ref());
    relation.relation_type == RelationType::Supersedes
        && overridden.contains(&relation.to)
        && named() != Some(&relation.from)
}

/// Returns the memory that the user wrote, for the case that no other evidence contains it.
fn memory_from_patches(patches: &[(i64, MemoryPatch)]) -> Option<Memory> {
    let last = patches.iter().rev().find(|(_, patch)| patch.fields.contains(&MemoryField::Content));
    last.map(|(_, patch)| patch.to.clone())
}

/// Sets every field but the status. Returns the status if the user gave one that counts.
fn apply_patches(
    memory: &mut Memory,
    patches: &[(i64, MemoryPatch)],
    retracted: Option<i64>,
) -> Option<StatusOverride> {
    let known = edited_fields(memory);
    let mut status_patch = None;
    for (at, patch) in patches {
        for field in &patch.fields {
            if *field == MemoryField::Status {
                status_patch = Some((*at, patch));
            } else if known.get(field).is_none_or(|known| known <= at) {
                copy_field(*field, &patch.to, memory);
                mark_edited(*field, *at, memory);
            }
        }
        advance_updated_at(*at, memory);
    }
    let (at, patch) = status_patch?;
    let status = patch.to.status;
    if status != Status::Retracted {
        let reversed = patches.iter().filter(|(_, patch)| patch.reverses_retraction).map(|(at, _)| *at).max();
        let stays = retracted.is_some_and(|retracted| reversed.is_none_or(|reversed| retracted > reversed));
        if stays || known.get(&MemoryField::Status).is_some_and(|known| *known > at) {
            return None;
        }
    }
    let successor = patch.to.temporal.superseded_by.clone();
    let names = |patch: &MemoryPatch| {
        patch.fields.contains(&MemoryField::Status) && patch.to.temporal.superseded_by == successor
    };
    let since = patches.iter().find(|(_, patch)| names(patch)).map_or(at, |(since, _)| *since);
    Some(StatusOverride { at, memory: memory.id.clone(), status, successor, since })
}

/// Gives each memory its status, in order of time. A memory whose successor is missing, or whose successors lead back
/// to it, keeps the status from the other evidence. Returns the memories whose status the user gave.
fn apply_statuses(derived: &mut DerivedMemories, mut overrides: Vec<StatusOverride>) -> BTreeSet<String> {
    overrides.sort_by(|one, other| (one.at, &one.memory).cmp(&(other.at, &other.memory)));
    let mut next: BTreeMap<String, String> = derived
        .memories
        .iter()
        .filter_map(|(id, memory)| Some((id.clone(), memory.temporal.superseded_by.clone()?)))
        .collect();
    let before: BTreeMap<String, Option<String>> =
        overrides.iter().map(|one| (one.memory.clone(), next.remove(&one.memory))).collect();
    let mut overridden = BTreeSet::new();
    for StatusOverride { at, memory: id, status, successor, since } in overrides {
        let fits =
            successor.as_ref().filter(|by| derived.memories.contains_key(*by) && !leads_to(&next, by, &id));
        let fits = fits.cloned();
        let Some(memory) = derived.memories.get_mut(&id) else { continue };
        // A superseded memory without a successor had one that was permanently erased.
        if status == Status::Superseded && fits.is_none() && successor.is_some() {
            let before = before.get(&id).cloned().flatten().filter(|by| !leads_to(&next, by, &id));
            if memory.status == Status::Superseded && before.is_none() {
                memory.status = Status::Active;
            }
            memory.temporal.superseded_by.clone_from(&before);
            next.extend(before.map(|by| (id, by)));
            continue;
        }
        memory.status = status;
        memory.temporal.superseded_by.clone_from(&fits);
        mark_edited(MemoryField::Status, at, memory);
        if let Some(by) = fits {
            let relation = supersedes(&by, &id, since);
            if !derived.relations.contains_key(&relation.id) {
                derived.status_relations.insert(relation.id.clone());
                derived.relations.insert(relation.id.clone(), relation);
            }
            next.insert(id.clone(), by);
        }
        overridden.insert(id);
    }
    overridden
}

/// Returns whether following the successors from `from` leads to `to`.
fn leads_to(next: &BTreeMap<String, String>, from: &str, to: &str) -> bool {
    let mut at = Some(from);
    // No path is longer than the number of entries, so the bound also stops at loops.
    for _ in 0..=next.len() {
        match at {
            None => return false,
            Some(id) if id == to => return true,
            Some(id) => at = next.get(id).map(String::as_str),
        }
    }
    false
}
