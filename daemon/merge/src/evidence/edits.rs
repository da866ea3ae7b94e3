//! The user's own edits of memories: the fourth kind of evidence, which takes precedence over exports.
//!
//! Each edit consists of one or more steps, and every step is kept. The result follows from all of them, whatever was
//! imported before or after: for each field the latest step counts, and fields without a step follow the other evidence
//! as before. A text that the user wrote keeps the status that it had at that time, so that no later export replaces
//! it. An edit that was undone no longer counts.
//!
//! Stores that exchange their evidence have the steps of several authors, whose clocks may differ by months. Which step
//! is later therefore follows from what the author had seen ([`crate::causality`], [`order`]), not from the times: each
//! field is a multi-value register, in which a value stays until a step that counts and has seen it sets the field
//! anew. If several values are left, a fixed rule chooses which one is shown or combines them ([`shown`]), and
//! [`UserEdits::conflicts`] lists them all. All of this depends only on the set of steps, so stores with the same steps
//! show the same memories.
//!
//! **Invariant:** steps without dots, which are those of a store that never took part in a synchronisation, have one
//! order, that of their times, and are stored as ever (`a_step_without_a_dot_is_stored_as_before`).

mod conflicts;
mod effective;
mod fields;
mod order;
mod overlay;
mod register;
mod shown;

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{memory::Memory, relation::Relation};
use serde::{Deserialize, Serialize};

use super::StoredEvidence;
use crate::{
    body::{Digest16, digest},
    causality::Causality,
};
use effective::EditGraph;
use order::{OrderedStep, ordered, surviving};
use register::EditedMemory;

pub use conflicts::{ConflictingEdit, ConflictingValue, FieldConflict};
pub use fields::{MemoryField, apply_fields, edited_fields};
pub(super) use overlay::{contradicts_user, overlay};

/// The beginning of the stored form; other evidence begins differently.
const STORED_PREFIX: &[u8] = br#"{"word":"#;

/// One step of an edit by the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditStep {
    /// The edit that it is part of, a UUID.
    #[serde(rename = "word")]
    pub edit_id: String,
    /// Microseconds; later than any earlier step on the same memory in the same store.
    pub at: i64,
    /// What the step does.
    #[serde(rename = "deed")]
    pub action: EditAction,
    /// What its author had seen.
    #[serde(default, skip_serializing_if = "Causality::is_unrecorded")]
    pub causality: Causality,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditAction {
    /// States a memory.
    #[serde(rename = "add")]
    AddMemory(Box<StoredEvidence>),
    /// Sets fields of a memory.
    #[serde(rename = "set")]
    Patch(Box<MemoryPatch>),
    /// Adds a relation.
    #[serde(rename = "draw")]
    AddRelation(Relation),
    /// Withdraws the relation with this id.
    #[serde(rename = "withdraw")]
    WithdrawRelation(String),
    /// Undoes an edit.
    Undo(String),
}

/// New values for fields of a memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryPatch {
    /// The fields that are set.
    pub fields: BTreeSet<MemoryField>,
    /// The memory with these fields set. It is complete if its content is among them; otherwise fields that are not
    /// needed are left out.
    pub to: Memory,
    /// Whether this reverses a retraction of the memory.
    #[serde(default, rename = "lifts", skip_serializing_if = "std::ops::Not::not")]
    pub reverses_retraction: bool,
}

impl EditStep {
    /// Creates a step without a dot.
    #[must_use]
    pub fn new(edit_id: String, at: i64, action: EditAction) -> Self {
        Self { edit_id, at, action, causality: Causality::Unnumbered }
    }

    /// Returns whether the bytes of a stored piece of evidence are a step.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(STORED_PREFIX)
    }

    /// Returns the key of the stored form, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text, a number or a list of these.
    pub fn encode(&self) -> serde_json::Result<(Digest16, Vec<u8>)> {
        let bytes = serde_json::to_vec(self)?;
        Ok((digest(&bytes), bytes))
    }

    /// Returns the memory that the step is about.
    #[must_use]
    pub fn memory(&self) -> Option<String> {
        match &self.action {
            EditAction::AddMemory(evidence) => super::memories_of(&evidence.claim).pop(),
            EditAction::Patch(patch) => Some(patch.to.id.clone()),
            EditAction::AddRelation(_) | EditAction::WithdrawRelation(_) | EditAction::Undo(_) => None,
        }
    }
}

/// The steps of all edits that count, grouped by subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserEdits {
    /// The memories that the user stated.
    pub added: Vec<StoredEvidence>,
    /// By memory.
    patches: BTreeMap<String, EditedMemory>,
    /// By id; `None` if the relation was withdrawn.
    relations: BTreeMap<String, Option<Relation>>,
    /// When an undo last changed a memory, by the memory's id.
    undo_times: BTreeMap<String, i64>,
}

impl UserEdits {
    /// Collects the effect of `steps`, which may be in any order.
    #[must_use]
    pub fn of(steps: &[EditStep]) -> Self {
        let steps = ordered(steps);
        let graph = EditGraph::of(&steps);
        let effective = graph.effective();
        let mut edits = Self::default();
        let mut patching: BTreeMap<&str, Vec<&OrderedStep<'_>>> = BTreeMap::new();
        let mut relating: BTreeMap<&str, Vec<&OrderedStep<'_>>> = BTreeMap::new();
        for ordered in steps.iter().filter(|one| effective.contains(one.step.edit_id.as_str())) {
            match &ordered.step.action {
                EditAction::AddMemory(evidence) => edits.added.push(StoredEvidence::clone(evidence)),
                EditAction::Patch(patch) => patching.entry(&patch.to.id).or_default().push(ordered),
                EditAction::AddRelation(Relation { id, .. }) | EditAction::WithdrawRelation(id) => {
                    relating.entry(id).or_default().push(ordered);
                }
                EditAction::Undo(edit) => edits.record_undo(graph.memories_of(edit), ordered.step.at),
            }
        }
        let edited = patching.into_iter().map(|(id, steps)| (id.to_owned(), EditedMemory::of(&steps)));
        edits.patches = edited.collect();
        let related = relating.into_iter().map(|(id, steps)| (id.to_owned(), shown_relation(&steps)));
        edits.relations = related.collect();
        edits
    }

    fn record_undo(&mut self, memories: BTreeSet<String>, at: i64) {
        for memory in memories {
            let last = self.undo_times.entry(memory).or_insert(at);
            *last = at.max(*last);
        }
    }

    /// Returns the ids of the relations that the user added or withdrew.
    pub fn relations(&self) -> impl Iterator<Item = &String> {
        self.relations.keys()
    }
}

/// Returns the relation as the steps left it, which are in order of time: the newest addition that is left, or `None`
/// if any withdrawal is left. A relation that was withdrawn in one store is thus gone until somebody adds it who knows
/// of that.
fn shown_relation(steps: &[&OrderedStep<'_>]) -> Option<Relation> {
    let added = |ordered: &OrderedStep<'_>| match &ordered.step.action {
        EditAction::AddRelation(relation) => Some(relation.clone()),
        EditAction::AddMemory(_)
        | EditAction::Patch(_)
        | EditAction::WithdrawRelation(_)
        | EditAction::Undo(_) => None,
    };
    let left: Option<Vec<Relation>> = surviving(steps).into_iter().map(added).collect();
    left?.pop()
}

/// Returns the memories that an edit is about. For an undo, these are the memories of the edit that it undid.
#[must_use]
pub fn memories_of_edit(steps: &[&EditStep], edit: &str) -> BTreeSet<String> {
    EditGraph::of(&ordered(steps.iter().copied())).memories_of(edit)
}

/// Returns whether `edit` counts among `steps`.
#[must_use]
pub fn in_effect(steps: &[EditStep], edit: &str) -> bool {
    EditGraph::of(&ordered(steps)).effective().contains(edit)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
