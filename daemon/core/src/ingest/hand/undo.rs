//! Undoes a change by hand, or restores the fields of an earlier version of a memory.

use satchel_merge::evidence::{Deed, Derived, Spoken, Word, counts, memories_of_act};
use satchel_pam::memory::{Memory, Status};
use satchel_store::Change;

use super::{Act, Call, Done, HandError, Imports, draft::differing};
use crate::{
    ingest::memories::gone::gone,
    lineage::{self, Counted},
};

impl Imports {
    /// Restores an earlier version of a memory. This is no transition of PAM §7: a retracted memory may become active
    /// again.
    ///
    /// # Errors
    /// [`HandError::NoVersion`], a version that is no longer valid, or an error of the store.
    pub fn restore_memory_version(&self, call: &Call, id: &str, version: u32) -> Result<Done, HandError> {
        self.0.by_hand(call, |act| {
            let shown = act.shown(id, "")?.memory;
            let versions = act.store.memory_versions(id)?;
            let old = versions.into_iter().find(|record| record.version == version);
            let old = old.ok_or_else(|| HandError::NoVersion { id: id.to_owned(), version })?;
            if old.withdrawn {
                let problem = format!("version {version} of memory {id:?} is one that was not shown");
                return Err(HandError::state(id, problem));
            }
            act.restore(&shown, old.memory)
        })
    }

    /// Undoes a change: what is shown becomes what it would be without that change. An undo is itself a change, and can
    /// be undone.
    ///
    /// # Errors
    /// [`HandError::NoChange`], a change that is already undone, or an error of the store.
    pub fn undo_change(&self, call: &Call, act_id: &str) -> Result<Done, HandError> {
        self.0.by_hand(call, |act| {
            let counted = Counted::of(act.store, &lineage::undone(act.store)?)?;
            act.undo(counted, act_id)
        })
    }

    /// Undoes the last change of a memory that was not undone yet.
    ///
    /// # Errors
    /// When there is no such memory or no such change, or when the change affected several memories, so that it has to
    /// be named by its id.
    pub fn undo_last_change(&self, call: &Call, id: &str) -> Result<Done, HandError> {
        self.0.by_hand(call, |act| {
            let counted = Counted::of(act.store, &lineage::undone(act.store)?)?;
            let all: Vec<&Word> = counted.words.iter().collect();
            let mut own: Vec<&Word> =
                all.iter().copied().filter(|word| word.memory().as_deref() == Some(id)).collect();
            own.sort_by_key(|word| std::cmp::Reverse(word.at));
            let last = own.into_iter().find(|word| counts(&counted.words, &word.act));
            let Some(last) = last.map(|word| word.act.clone()) else {
                if act.store.memory(id, None)?.is_none() {
                    return Err(HandError::NoMemory(id.to_owned()));
                }
                let problem = format!(
                    "memory {id:?} has no change by hand; give it back what an earlier version said instead"
                );
                return Err(HandError::state(id, problem));
            };
            let changed = all
                .iter()
                .filter(|word| word.act == last && matches!(word.deed, Deed::Set(_)))
                .count();
            if changed > 1 {
                let problem = format!(
                    "the last change of memory {id:?} changed {changed} memories at once; take all of them back by the change's own id, {last}, or give this one an earlier version back"
                );
                return Err(HandError::state(id, problem));
            }
            act.undo(counted, &last)
        })
    }
}

impl Act<'_> {
    fn restore(&mut self, shown: &Memory, old: Memory) -> Result<(), HandError> {
        let fields = differing(shown, &old);
        if fields.is_empty() {
            self.name(&shown.id);
            return Ok(());
        }
        if let Some(by) = old.temporal.superseded_by.as_deref().filter(|_| old.status != shown.status) {
            let there = self.store.memory(by, None)?.is_some_and(|record| !record.withdrawn);
            if !there || self.leads(by, &shown.id)? {
                let problem = format!(
                    "in that version memory {:?} was replaced by {by:?}, which does not stand before it any more",
                    shown.id
                );
                return Err(HandError::state(&shown.id, problem));
            }
        }
        // A memory read from an earlier version of a document, or by an import, may have an unknown successor.
        if old.status == Status::Superseded && old.temporal.superseded_by.is_none() {
            let problem =
                format!("in that version memory {:?} was replaced, and by what is not known", shown.id);
            return Err(HandError::state(&shown.id, problem));
        }
        self.set(shown, fields, &old)
    }

    fn undo(&mut self, mut counted: Counted, act: &str) -> Result<(), HandError> {
        let all: Vec<&Word> = counted.words.iter().collect();
        if !all.iter().any(|word| word.act == act) {
            return Err(HandError::NoChange(act.to_owned()));
        }
        if !counts(&counted.words, act) {
            return Err(HandError::state(act, format!("change {act} is undone already")));
        }
        let about = memories_of_act(&all, act);
        let last = all.iter().map(|word| word.at).max().unwrap_or(self.now);
        let at = self.now.max(last.saturating_add(1));
        let before = counted.derive();
        self.say(at, Deed::Undo(act.to_owned()));
        let word = Word { act: self.id.clone(), at, deed: Deed::Undo(act.to_owned()) };
        counted.words.push(word);
        counted.spoken = Spoken::of(&counted.words);
        let after = counted.derive();
        about.iter().for_each(|id| self.name(id));
        self.turn(&before, after)
    }

    /// Writes what differs between `before` and `after`.
    pub(super) fn turn(&mut self, before: &Derived, after: Derived) -> Result<(), HandError> {
        for change in gone(self.store, before, &after)? {
            self.change(change);
        }
        let foreign = before.foreign.keys().chain(after.foreign.keys());
        for id in foreign.filter(|id| before.foreign.get(*id) != after.foreign.get(*id)) {
            if let Some(note) = lineage::note_stranger(self.store, id, after.foreign.get(id))? {
                self.change(note);
            }
        }
        for (id, memory) in after.memories {
            if before.memories.get(&id) != Some(&memory) {
                self.change(Change::Memory(Box::new(memory)));
            }
        }
        for (id, relation) in after.relations {
            if before.relations.get(&id) != Some(&relation) {
                self.change(Change::Relation(relation));
            }
        }
        Ok(())
    }
}
