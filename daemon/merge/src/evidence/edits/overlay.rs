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
    register::{EditedMemory, PatchStep},
    shown::show_field,
};

/// The status that the user gave a memory, and when.
struct StatusOverride {
    at: i64,
    memory: String,
    /// All values that are left: the one to be shown first.
    values: Vec<StatusValue>,
}

struct StatusValue {
    status: Status,
    successor: Option<String>,
    /// When the user first named this successor.
    since: i64,
}

/// For each memory whose status the user gave, the successors that it has besides the one that it names.
pub(in crate::evidence) type OverriddenStatuses = BTreeMap<String, BTreeSet<String>>;

/// Applies `edits` to `derived`. `retracted` says when PAM documents retracted a memory. A retraction is final unless
/// the user reversed it later.
pub(in crate::evidence) fn overlay(
    derived: &mut DerivedMemories,
    edits: &UserEdits,
    retracted: &BTreeMap<String, i64>,
) {
    let mut overrides = Vec::new();
    for (id, edited) in &edits.patches {
        let base = derived.memories.get(id).cloned().or_else(|| memory_from_edits(edited));
        let Some(mut memory) = base else { continue };
        overrides.extend(apply_patches(&mut memory, edited, retracted.get(id).copied()));
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
    overridden: &OverriddenStatuses,
    relation: &Relation,
) -> bool {
    let named = || memories.get(&relation.to).and_then(|memory| memory.temporal.superseded_by.as_ref());
    relation.relation_type == RelationType::Supersedes
        && overridden.get(&relation.to).is_some_and(|also| !also.contains(&relation.from))
        && named() != Some(&relation.from)
}

/// Returns the memory that the user wrote, for the case that no other evidence contains it.
fn memory_from_edits(edited: &EditedMemory) -> Option<Memory> {
    edited.values(MemoryField::Content).first().map(|step| step.patch.to.clone())
}

/// Sets every field but the status. Returns the status if the user gave one that counts.
fn apply_patches(
    memory: &mut Memory,
    edited: &EditedMemory,
    retracted: Option<i64>,
) -> Option<StatusOverride> {
    let known = edited_fields(memory);
    for field in edited.fields().filter(|field| *field != MemoryField::Status) {
        apply_field(field, edited, known.get(&field).copied(), memory);
    }
    show_valid_period(edited, &known, memory);
    edited.patches.iter().for_each(|step| advance_updated_at(step.at, memory));
    status_override(&memory.id, edited, known.get(&MemoryField::Status).copied(), retracted)
}

/// Shows the values of one field, unless a document says that its author set the field later, at `known`.
fn apply_field(field: MemoryField, edited: &EditedMemory, known: Option<i64>, memory: &mut Memory) {
    let values = edited.values(field);
    let Some(at) = newest(&values).filter(|at| known.is_none_or(|known| known <= *at)) else { return };
    // Values that were replaced leave traces: a content that differed once separates the memory from its vector.
    for step in edited.patches.iter().filter(|step| step.sets(field)) {
        if known.is_none_or(|known| known <= step.at) {
            copy_field(field, &step.patch.to, memory);
        }
    }
    let values: Vec<&Memory> = values.iter().map(|step| &step.patch.to).collect();
    show_field(field, &values, memory);
    mark_edited(field, at, memory);
}

/// Concurrent edits may leave a period that ends before it begins, which PAM forbids. Then the period of the newest of
/// these edits is shown.
fn show_valid_period(edited: &EditedMemory, known: &BTreeMap<MemoryField, i64>, memory: &mut Memory) {
    let times = &mut memory.temporal;
    let inverted = times.valid_from.zip(times.valid_until).is_some_and(|(from, until)| until < from);
    let Some(newest) = edited.newest_of_concurrent_period().filter(|_| inverted) else { return };
    for field in [MemoryField::ValidFrom, MemoryField::ValidUntil] {
        if known.get(&field).is_none_or(|known| *known <= newest.at) {
            copy_field(field, &newest.patch.to, memory);
        }
    }
}

/// Returns the time of the newest of several values. Edits that see them are made later than that.
fn newest(values: &[&PatchStep]) -> Option<i64> {
    values.iter().map(|step| step.at).max()
}

/// Returns the status that the user gave, unless documents say otherwise: they gave a status at `known`, or retracted
/// the memory at `retracted`.
fn status_override(
    memory: &str,
    edited: &EditedMemory,
    known: Option<i64>,
    retracted: Option<i64>,
) -> Option<StatusOverride> {
    let values = edited.values(MemoryField::Status);
    let at = newest(&values)?;
    if values.first()?.patch.to.status != Status::Retracted {
        let reversing = edited.patches.iter().filter(|step| step.patch.reverses_retraction);
        let reversed = reversing.map(|step| step.at).max();
        let stays = retracted.is_some_and(|retracted| reversed.is_none_or(|reversed| retracted > reversed));
        if stays || known.is_some_and(|known| known > at) {
            return None;
        }
    }
    let value = |step: &&PatchStep| {
        let successor = step.patch.to.temporal.superseded_by.clone();
        let since = first_named(edited, successor.as_ref()).unwrap_or(step.at);
        StatusValue { status: step.patch.to.status, successor, since }
    };
    Some(StatusOverride { at, memory: memory.to_owned(), values: values.iter().map(value).collect() })
}

/// Returns when the user first named `successor`.
fn first_named(edited: &EditedMemory, successor: Option<&String>) -> Option<i64> {
    let names = |patch: &MemoryPatch| patch.to.temporal.superseded_by.as_ref() == successor;
    let naming = edited.patches.iter().filter(|step| step.sets(MemoryField::Status) && names(&step.patch));
    naming.map(|step| step.at).min()
}

/// Gives each memory its status, in order of time. If the successor is missing, or its successors lead back to the
/// memory, the next of the values that are left is shown, or else the status from the other evidence. Returns the
/// memories whose status the user gave.
fn apply_statuses(derived: &mut DerivedMemories, mut overrides: Vec<StatusOverride>) -> OverriddenStatuses {
    overrides.sort_by(|one, other| (one.at, &one.memory).cmp(&(other.at, &other.memory)));
    let mut next: BTreeMap<String, String> = derived
        .memories
        .iter()
        .filter_map(|(id, memory)| Some((id.clone(), memory.temporal.superseded_by.clone()?)))
        .collect();
    let before: BTreeMap<String, Option<String>> =
        overrides.iter().map(|one| (one.memory.clone(), next.remove(&one.memory))).collect();
    let mut overridden = Vec::new();
    for StatusOverride { at, memory: id, values } in overrides {
        let known = |by: &String| derived.memories.contains_key(by) && !leads_to(&next, by, &id);
        // A superseded memory without a successor had one that was permanently erased.
        let fits = |value: &&StatusValue| {
            value.status != Status::Superseded || value.successor.as_ref().is_none_or(known)
        };
        let shown = values.iter().find(fits);
        let successor = shown.and_then(|value| value.successor.clone()).filter(known);
        let Some(memory) = derived.memories.get_mut(&id) else { continue };
        let Some(StatusValue { status, since, .. }) = shown else {
            let before = before.get(&id).cloned().flatten().filter(|by| !leads_to(&next, by, &id));
            keep_status(memory, before.as_ref());
            next.extend(before.map(|by| (id, by)));
            continue;
        };
        memory.status = *status;
        memory.temporal.superseded_by.clone_from(&successor);
        mark_edited(MemoryField::Status, at, memory);
        if let Some(by) = successor {
            relate_successor(derived, &by, &id, *since);
            next.insert(id.clone(), by);
        }
        let also = if *status == Status::Superseded { values } else { Vec::new() };
        overridden.push((id, also));
    }
    relate_further_successors(derived, overridden)
}

/// Leaves a memory the status from the other evidence, with the successor that it names, if that is still possible.
fn keep_status(memory: &mut Memory, successor: Option<&String>) {
    if memory.status == Status::Superseded && successor.is_none() {
        memory.status = Status::Active;
    }
    memory.temporal.superseded_by = successor.cloned();
}

/// If stores concurrently replaced a memory by different ones, adds the relations to those that it does not name, too.
/// A successor that the memory itself replaced is left out.
fn relate_further_successors(
    derived: &mut DerivedMemories,
    overridden: Vec<(String, Vec<StatusValue>)>,
) -> OverriddenStatuses {
    let mut further = OverriddenStatuses::new();
    for (id, values) in overridden {
        let mut related = BTreeSet::new();
        for StatusValue { successor, since, .. } in values {
            let fits =
                |by: &String| derived.memories.contains_key(by) && !replaced_by(derived, &further, by, &id);
            let Some(by) = successor.filter(fits) else { continue };
            relate_successor(derived, &by, &id, since);
            related.insert(by);
        }
        further.insert(id, related);
    }
    further
}

/// Adds the relation that follows from a successor that the user named, unless other evidence contains it.
fn relate_successor(derived: &mut DerivedMemories, by: &str, id: &str, since: i64) {
    let relation = supersedes(by, id, since);
    if !derived.relations.contains_key(&relation.id) {
        derived.status_relations.insert(relation.id.clone());
        derived.relations.insert(relation.id.clone(), relation);
    }
}

/// Returns whether following the successors of `from`, those in `further` too, leads to `to`.
fn replaced_by(derived: &DerivedMemories, further: &OverriddenStatuses, from: &str, to: &str) -> bool {
    let (mut visited, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(id) = next.pop() {
        if id == to {
            return true;
        }
        if visited.insert(id) {
            let named = derived.memories.get(id).and_then(|memory| memory.temporal.superseded_by.as_deref());
            next.extend(named.into_iter().chain(further.get(id).into_iter().flatten().map(String::as_str)));
        }
    }
    false
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
