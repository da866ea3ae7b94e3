//! Undoes a change by hand, or restores the fields of an earlier version of a memory.

use satchel_merge::evidence::{
    DerivedMemories, EditAction, EditStep, UserEdits, in_effect, memories_of_edit,
};
use satchel_pam::memory::{Memory, Status};
use satchel_store::Change;

use super::{EditContext, EditError, EditOutcome, Edits, Transaction, draft::differing};
use crate::{
    derived::withdrawals,
    provenance::{self, ActiveEvidence},
};

impl Edits {
    /// Restores an earlier version of a memory. This is no transition of PAM §7: a retracted memory may become active
    /// again.
    ///
    /// # Errors
    /// [`EditError::NoVersion`], a version that is no longer valid, or an error of the store.
    pub fn restore_memory_version(
        &self,
        call: &EditContext,
        id: &str,
        version: u32,
    ) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| {
            let shown = act.shown(id, "")?.memory;
            let versions = act.store.memory_versions(id)?;
            let old = versions.into_iter().find(|record| record.version == version);
            let old = old.ok_or_else(|| EditError::NoVersion { id: id.to_owned(), version })?;
            if old.withdrawn {
                let problem = format!("version {version} of memory {id:?} is one that was not shown");
                return Err(EditError::state(id, problem));
            }
            act.restore(&shown, old.memory)
        })
    }

    /// Undoes a change: what is shown becomes what it would be without that change. An undo is itself a change, and can
    /// be undone.
    ///
    /// # Errors
    /// [`EditError::NoChange`], a change that is already undone, or an error of the store.
    pub fn undo_change(&self, call: &EditContext, act_id: &str) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| {
            let counted = ActiveEvidence::load(act.store, &provenance::undone_imports(act.store)?)?;
            act.undo(counted, act_id)
        })
    }

    /// Undoes the last change of a memory that was not undone yet.
    ///
    /// # Errors
    /// When there is no such memory or no such change, or when the change affected several memories, so that it has to
    /// be named by its id.
    pub fn undo_last_change(&self, call: &EditContext, id: &str) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| {
            let counted = ActiveEvidence::load(act.store, &provenance::undone_imports(act.store)?)?;
            let all: Vec<&EditStep> = counted.edit_steps.iter().collect();
            let mut own: Vec<&EditStep> =
                all.iter().copied().filter(|step| step.memory().as_deref() == Some(id)).collect();
            own.sort_by_key(|step| std::cmp::Reverse(step.at));
            let last = own.into_iter().find(|step| in_effect(&counted.edit_steps, &step.edit_id));
            let Some(last) = last.map(|step| step.edit_id.clone()) else {
                if act.store.memory(id, None)?.is_none() {
                    return Err(EditError::NoMemory(id.to_owned()));
                }
                let problem = format!(
                    "memory {id:?} has no change by hand; give it back what an earlier version said instead"
                );
                return Err(EditError::state(id, problem));
            };
            let changed = all
                .iter()
                .filter(|step| step.edit_id == last && matches!(step.action, EditAction::Patch(_)))
                .count();
            if changed > 1 {
                let problem = format!(
                    "the last change of memory {id:?} changed {changed} memories at once; take all of them back by the change's own id, {last}, or give this one an earlier version back"
                );
                return Err(EditError::state(id, problem));
            }
            act.undo(counted, &last)
        })
    }
}

impl Transaction<'_> {
    fn restore(&mut self, shown: &Memory, old: Memory) -> Result<(), EditError> {
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
                return Err(EditError::state(&shown.id, problem));
            }
        }
        // A memory read from an earlier version of a document, or by an import, may have an unknown successor.
        if old.status == Status::Superseded && old.temporal.superseded_by.is_none() {
            let problem =
                format!("in that version memory {:?} was replaced, and by what is not known", shown.id);
            return Err(EditError::state(&shown.id, problem));
        }
        self.set(shown, fields, &old)
    }

    fn undo(&mut self, mut counted: ActiveEvidence, act: &str) -> Result<(), EditError> {
        let all: Vec<&EditStep> = counted.edit_steps.iter().collect();
        if !all.iter().any(|step| step.edit_id == act) {
            return Err(EditError::NoChange(act.to_owned()));
        }
        if !in_effect(&counted.edit_steps, act) {
            return Err(EditError::state(act, format!("change {act} is undone already")));
        }
        let about = memories_of_edit(&all, act);
        let last = all.iter().map(|step| step.at).max().unwrap_or(self.now);
        let at = self.now.max(last.saturating_add(1));
        let before = counted.derive();
        self.record(at, EditAction::Undo(act.to_owned()))?;
        counted.edit_steps.extend(self.edit_steps.last().cloned());
        counted.user_edits = UserEdits::of(&counted.edit_steps);
        let after = counted.derive();
        about.iter().for_each(|id| self.name(id));
        self.apply_difference(&before, after)
    }

    /// Writes what differs between `before` and `after`.
    pub(super) fn apply_difference(
        &mut self,
        before: &DerivedMemories,
        after: DerivedMemories,
    ) -> Result<(), EditError> {
        for change in withdrawals(self.store, before, &after)? {
            self.change(change);
        }
        let foreign = before.untrusted.keys().chain(after.untrusted.keys());
        for id in foreign.filter(|id| before.untrusted.get(*id) != after.untrusted.get(*id)) {
            if let Some(note) = provenance::record_untrusted_signer(self.store, id, after.untrusted.get(id))?
            {
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
