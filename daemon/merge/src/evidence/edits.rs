//! The user's own edits of memories: the fourth kind of evidence, which takes precedence over exports.
//!
//! Each edit consists of one or more steps, and every step is kept. The result follows from all of them, whatever was
//! imported before or after: for each field the latest step counts, and fields without a step follow the other evidence
//! as before. A text that the user wrote keeps the status that it had at that time, so that no later export replaces
//! it. An edit that was undone no longer counts.

mod fields;
mod overlay;

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{memory::Memory, relation::Relation};
use serde::{Deserialize, Serialize};

use super::StoredEvidence;
use crate::body::{Digest16, digest};

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
    /// Microseconds; later than any earlier step on the same memory.
    pub at: i64,
    /// What the step does.
    #[serde(rename = "deed")]
    pub action: EditAction,
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
    /// By memory, in order of time.
    patches: BTreeMap<String, Vec<(i64, MemoryPatch)>>,
    /// By id; `None` if the relation was withdrawn.
    relations: BTreeMap<String, Option<Relation>>,
    /// When an undo last changed a memory, by the memory's id.
    undo_times: BTreeMap<String, i64>,
}

impl UserEdits {
    /// Collects the effect of `steps`, which may be in any order.
    #[must_use]
    pub fn of(steps: &[EditStep]) -> Self {
        let mut steps: Vec<(&EditStep, String)> =
            steps.iter().map(|step| (step, serde_json::to_string(step).unwrap_or_default())).collect();
        steps.sort_by(|(one, text), (other, other_text)| (one.at, text).cmp(&(other.at, other_text)));
        steps.dedup_by(|(_, one), (_, other)| one == other);
        let steps: Vec<&EditStep> = steps.into_iter().map(|(step, _)| step).collect();
        let effective = effective_edits(&steps);
        let memories = memories_by_edit(&steps);
        let mut edits = Self::default();
        for step in steps.iter().filter(|step| effective.contains(step.edit_id.as_str())) {
            match &step.action {
                EditAction::AddMemory(evidence) => edits.added.push(StoredEvidence::clone(evidence)),
                EditAction::Patch(patch) => {
                    let patches = edits.patches.entry(patch.to.id.clone()).or_default();
                    patches.push((step.at, MemoryPatch::clone(patch)));
                }
                EditAction::AddRelation(relation) => {
                    edits.relations.insert(relation.id.clone(), Some(relation.clone()));
                }
                EditAction::WithdrawRelation(id) => {
                    edits.relations.insert(id.clone(), None);
                }
                EditAction::Undo(edit) => {
                    for memory in memories.get(edit.as_str()).into_iter().flatten() {
                        let at = edits.undo_times.entry(memory.clone()).or_insert(step.at);
                        *at = step.at.max(*at);
                    }
                }
            }
        }
        edits
    }

    /// Returns the ids of the relations that the user added or withdrew.
    pub fn relations(&self) -> impl Iterator<Item = &String> {
        self.relations.keys()
    }
}

/// Returns the edits that count: those that were not undone by another edit that counts.
fn effective_edits<'a>(steps: &[&'a EditStep]) -> BTreeSet<&'a str> {
    let mut undoing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for step in steps {
        if let EditAction::Undo(edit) = &step.action {
            undoing.entry(edit).or_default().push(&step.edit_id);
        }
    }
    // An undo is always later than the edit that it undoes, so the latest edit is decided first.
    let mut effective = BTreeSet::new();
    let mut decided = BTreeSet::new();
    for step in steps.iter().rev().filter(|step| decided.insert(step.edit_id.as_str())) {
        let undone = undoing.get(step.edit_id.as_str());
        if undone.is_none_or(|by| by.iter().all(|edit| !effective.contains(edit))) {
            effective.insert(step.edit_id.as_str());
        }
    }
    effective
}

/// Returns the memories that an edit is about. For an undo, these are the memories of the edit that it undid.
#[must_use]
pub fn memories_of_edit(steps: &[&EditStep], edit: &str) -> BTreeSet<String> {
    let mut sorted = steps.to_vec();
    sorted.sort_by_key(|step| step.at);
    memories_by_edit(&sorted).remove(edit).unwrap_or_default()
}

/// Returns the memories that each edit is about. An undo is always later than the edit that it undoes, so one pass over
/// the steps in order of time finds all of them.
fn memories_by_edit<'a>(steps: &[&'a EditStep]) -> BTreeMap<&'a str, BTreeSet<String>> {
    let mut by_edit: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for step in steps {
        let memories = match &step.action {
            EditAction::Undo(edit) => by_edit.get(edit.as_str()).cloned().unwrap_or_default(),
            _ => step.memory().into_iter().collect(),
        };
        by_edit.entry(&step.edit_id).or_default().extend(memories);
    }
    by_edit
}

/// Returns whether `edit` counts among `steps`.
#[must_use]
pub fn in_effect(steps: &[EditStep], edit: &str) -> bool {
    let mut sorted: Vec<&EditStep> = steps.iter().collect();
    sorted.sort_by_key(|step| step.at);
    effective_edits(&sorted).contains(edit)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
