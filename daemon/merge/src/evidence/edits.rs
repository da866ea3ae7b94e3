//! The user's own edits of memories: the fourth kind of evidence, which takes precedence over exports.
//!
//! Each edit is an act of one or more words, and every word is kept. The result follows from all of them, whatever was
//! imported before or after: for each field the latest word counts, and fields without a word follow the other evidence
//! as before. A text that the user wrote keeps the status that it had at that time, so that no later export replaces
//! it. An act that was undone no longer counts.

mod fields;
mod overlay;

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{memory::Memory, relation::Relation};
use serde::{Deserialize, Serialize};

use super::StoredEvidence;
use crate::body::{Digest16, digest};

pub use fields::{MemoryField, advance_updated_at, apply_fields, edited_fields};
pub(super) use overlay::{contradicts_user, overlay};

/// The beginning of the stored form; a [`Witness`] begins differently.
const STORED_PREFIX: &[u8] = br#"{"word":"#;

/// One step of an edit by the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditStep {
    /// The act that it is part of, a UUID.
    #[serde(rename = "word")]
    pub edit_id: String,
    /// Microseconds; later than any earlier word on the same memory.
    pub at: i64,
    /// What the step does.
    #[serde(rename = "deed")]
    pub action: EditAction,
}

/// The action of a word.
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
    /// Undoes an act.
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
    /// Returns whether the bytes of a stored piece of evidence are a word.
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

    /// Returns the memory that the word is about.
    #[must_use]
    pub fn memory(&self) -> Option<String> {
        match &self.action {
            EditAction::AddMemory(witness) => super::memories_of(&witness.claim).pop(),
            EditAction::Patch(setting) => Some(setting.to.id.clone()),
            EditAction::AddRelation(_) | EditAction::WithdrawRelation(_) | EditAction::Undo(_) => None,
        }
    }
}

/// All words that count, grouped by subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spoken {
    /// The memories that the user stated.
    pub added: Vec<StoredEvidence>,
    /// By memory, in order of time.
    patches: BTreeMap<String, Vec<(i64, MemoryPatch)>>,
    /// By id; `None` if the relation was withdrawn.
    relations: BTreeMap<String, Option<Relation>>,
    /// When an undo last changed a memory, by the memory's id.
    undo_times: BTreeMap<String, i64>,
}

impl Spoken {
    /// Collects the effect of `words`, which may be in any order.
    #[must_use]
    pub fn of(words: &[EditStep]) -> Self {
        let mut words: Vec<(&EditStep, String)> =
            words.iter().map(|word| (word, serde_json::to_string(word).unwrap_or_default())).collect();
        words.sort_by(|(one, said), (other, also)| (one.at, said).cmp(&(other.at, also)));
        words.dedup_by(|(_, one), (_, other)| one == other);
        let words: Vec<&EditStep> = words.into_iter().map(|(word, _)| word).collect();
        let counting = effective_edits(&words);
        let about = memories_by_edit(&words);
        let mut spoken = Self::default();
        for word in words.iter().filter(|word| counting.contains(word.edit_id.as_str())) {
            match &word.action {
                EditAction::AddMemory(witness) => spoken.added.push(StoredEvidence::clone(witness)),
                EditAction::Patch(setting) => {
                    let settings = spoken.patches.entry(setting.to.id.clone()).or_default();
                    settings.push((word.at, MemoryPatch::clone(setting)));
                }
                EditAction::AddRelation(relation) => {
                    spoken.relations.insert(relation.id.clone(), Some(relation.clone()));
                }
                EditAction::WithdrawRelation(id) => {
                    spoken.relations.insert(id.clone(), None);
                }
                EditAction::Undo(act) => {
                    for memory in about.get(act.as_str()).into_iter().flatten() {
                        let at = spoken.undo_times.entry(memory.clone()).or_insert(word.at);
                        *at = word.at.max(*at);
                    }
                }
            }
        }
        spoken
    }
}

impl Spoken {
    /// Returns the ids of the relations that the user added or withdrew.
    pub fn relations(&self) -> impl Iterator<Item = &String> {
        self.relations.keys()
    }
}

/// Returns the acts that count: those that were not undone by another act that counts.
fn effective_edits<'a>(words: &[&'a EditStep]) -> BTreeSet<&'a str> {
    let mut undoing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for word in words {
        if let EditAction::Undo(act) = &word.action {
            undoing.entry(act).or_default().push(&word.edit_id);
        }
    }
    // An undo is always later than the act that it undoes, so the latest act is decided first.
    let mut counting = BTreeSet::new();
    let mut decided = BTreeSet::new();
    for word in words.iter().rev().filter(|word| decided.insert(word.edit_id.as_str())) {
        let undone = undoing.get(word.edit_id.as_str());
        if undone.is_none_or(|by| by.iter().all(|act| !counting.contains(act))) {
            counting.insert(word.edit_id.as_str());
        }
    }
    counting
}

/// Returns the memories that an act is about. For an undo, these are the memories of the act that it undid.
#[must_use]
pub fn memories_of_edit(words: &[&EditStep], act: &str) -> BTreeSet<String> {
    let mut sorted = words.to_vec();
    sorted.sort_by_key(|word| word.at);
    memories_by_edit(&sorted).remove(act).unwrap_or_default()
}

/// Returns the memories that each act is about. An undo is always later than the act that it undoes, so one pass over
/// the words in order of time finds all of them.
fn memories_by_edit<'a>(words: &[&'a EditStep]) -> BTreeMap<&'a str, BTreeSet<String>> {
    let mut about: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for word in words {
        let memories = match &word.action {
            EditAction::Undo(act) => about.get(act.as_str()).cloned().unwrap_or_default(),
            _ => word.memory().into_iter().collect(),
        };
        about.entry(&word.edit_id).or_default().extend(memories);
    }
    about
}

/// Returns whether `act` counts among `words`.
#[must_use]
pub fn in_effect(words: &[EditStep], act: &str) -> bool {
    let mut sorted: Vec<&EditStep> = words.iter().collect();
    sorted.sort_by_key(|word| word.at);
    effective_edits(&sorted).contains(act)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
