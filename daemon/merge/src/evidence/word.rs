//! The user's own edits of memories: the fourth kind of evidence, which takes precedence over exports.
//!
//! Each edit is an act of one or more words, and every word is kept. The result follows from all of them, whatever was
//! imported before or after: for each field the latest word counts, and fields without a word follow the other evidence
//! as before. A text that the user wrote keeps the status that it had at that time, so that no later export replaces
//! it. An act that was undone no longer counts.

mod impress;
mod overlay;

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{memory::Memory, relation::Relation};
use serde::{Deserialize, Serialize};

use super::Witness;
use crate::body::{Digest16, digest};

pub use impress::{Field, impress, marks, stamp};
pub(super) use overlay::{denied, overlay};

/// The beginning of the stored form; a [`Witness`] begins differently.
const START: &[u8] = br#"{"word":"#;

/// One step of an edit by the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// The act that it is part of, a UUID.
    #[serde(rename = "word")]
    pub act: String,
    /// Microseconds; later than any earlier word on the same memory.
    pub at: i64,
    /// What the step does.
    pub deed: Deed,
}

/// The action of a word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// States a memory.
    Add(Box<Witness>),
    /// Sets fields of a memory.
    Set(Box<Setting>),
    /// Adds a relation.
    Draw(Relation),
    /// Withdraws the relation with this id.
    Withdraw(String),
    /// Undoes an act.
    Undo(String),
}

/// New values for fields of a memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The fields that are set.
    pub fields: BTreeSet<Field>,
    /// The memory with these fields set. It is complete if its content is among them; otherwise fields that are not
    /// needed are left out.
    pub to: Memory,
    /// Whether this reverses a retraction of the memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lifts: bool,
}

impl Word {
    /// Returns whether the bytes of a stored piece of evidence are a word.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(START)
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
        match &self.deed {
            Deed::Add(witness) => super::memories_of(&witness.claim).pop(),
            Deed::Set(setting) => Some(setting.to.id.clone()),
            Deed::Draw(_) | Deed::Withdraw(_) | Deed::Undo(_) => None,
        }
    }
}

/// All words that count, grouped by subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spoken {
    /// The memories that the user stated.
    pub added: Vec<Witness>,
    /// By memory, in order of time.
    settings: BTreeMap<String, Vec<(i64, Setting)>>,
    /// By id; `None` if the relation was withdrawn.
    relations: BTreeMap<String, Option<Relation>>,
    /// When an undo last changed a memory, by the memory's id.
    touched: BTreeMap<String, i64>,
}

impl Spoken {
    /// Collects the effect of `words`, which may be in any order.
    #[must_use]
    pub fn of(words: &[Word]) -> Self {
        let mut words: Vec<(&Word, String)> =
            words.iter().map(|word| (word, serde_json::to_string(word).unwrap_or_default())).collect();
        words.sort_by(|(one, said), (other, also)| (one.at, said).cmp(&(other.at, also)));
        words.dedup_by(|(_, one), (_, other)| one == other);
        let words: Vec<&Word> = words.into_iter().map(|(word, _)| word).collect();
        let counting = counting(&words);
        let about = about(&words);
        let mut spoken = Self::default();
        for word in words.iter().filter(|word| counting.contains(word.act.as_str())) {
            match &word.deed {
                Deed::Add(witness) => spoken.added.push(Witness::clone(witness)),
                Deed::Set(setting) => {
                    let settings = spoken.settings.entry(setting.to.id.clone()).or_default();
                    settings.push((word.at, Setting::clone(setting)));
                }
                Deed::Draw(relation) => {
                    spoken.relations.insert(relation.id.clone(), Some(relation.clone()));
                }
                Deed::Withdraw(id) => {
                    spoken.relations.insert(id.clone(), None);
                }
                Deed::Undo(act) => {
                    for memory in about.get(act.as_str()).into_iter().flatten() {
                        let at = spoken.touched.entry(memory.clone()).or_insert(word.at);
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
fn counting<'a>(words: &[&'a Word]) -> BTreeSet<&'a str> {
    let mut undoing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for word in words {
        if let Deed::Undo(act) = &word.deed {
            undoing.entry(act).or_default().push(&word.act);
        }
    }
    // An undo is always later than the act that it undoes, so the latest act is decided first.
    let mut counting = BTreeSet::new();
    let mut decided = BTreeSet::new();
    for word in words.iter().rev().filter(|word| decided.insert(word.act.as_str())) {
        let undone = undoing.get(word.act.as_str());
        if undone.is_none_or(|by| by.iter().all(|act| !counting.contains(act))) {
            counting.insert(word.act.as_str());
        }
    }
    counting
}

/// Returns the memories that an act is about. For an undo, these are the memories of the act that it undid.
#[must_use]
pub fn memories_of_act(words: &[&Word], act: &str) -> BTreeSet<String> {
    let mut sorted = words.to_vec();
    sorted.sort_by_key(|word| word.at);
    about(&sorted).remove(act).unwrap_or_default()
}

/// Returns the memories that each act is about. An undo is always later than the act that it undoes, so one pass over
/// the words in order of time finds all of them.
fn about<'a>(words: &[&'a Word]) -> BTreeMap<&'a str, BTreeSet<String>> {
    let mut about: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for word in words {
        let memories = match &word.deed {
            Deed::Undo(act) => about.get(act.as_str()).cloned().unwrap_or_default(),
            _ => word.memory().into_iter().collect(),
        };
        about.entry(&word.act).or_default().extend(memories);
    }
    about
}

/// Returns whether `act` counts among `words`.
#[must_use]
pub fn counts(words: &[Word], act: &str) -> bool {
    let mut sorted: Vec<&Word> = words.iter().collect();
    sorted.sort_by_key(|word| word.at);
    counting(&sorted).contains(act)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
