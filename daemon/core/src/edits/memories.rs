//! Adds memories and edits their fields.

use std::collections::BTreeSet;

use satchel_merge::evidence::{EditAction, MemoryField, StoredEvidence, UserEdits, derive, memory_id};
use satchel_pam::{
    ids,
    memory::{ExtractionMethod, Memory, Status},
    record::Claim,
};
use satchel_store::Change;

use super::{
    Draft, EditContext, EditError, EditOutcome, Edits, PLATFORM, SOFTWARE, Transaction, check, draft::ordered,
};
use crate::provenance::{self, ActiveEvidence};

impl Edits {
    /// Adds a memory, or returns the visible one with the same statement.
    ///
    /// # Errors
    /// When a field of the draft is not valid, or the store returns an error.
    pub fn add_memory(&self, call: &EditContext, draft: &Draft) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| act.add(draft).map(drop))
    }

    /// Sets the fields that are given in `draft`. `etag` is that of the version that the caller saw, or empty.
    ///
    /// # Errors
    /// As for [`Edits::add_memory`]; also [`EditError::Changed`].
    pub fn edit_memory(
        &self,
        call: &EditContext,
        id: &str,
        etag: &str,
        draft: &Draft,
    ) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| {
            let shown = act.shown(id, etag)?.memory;
            let (to, fields) = draft.on(&shown)?;
            // Access rules of a retracted memory can still be changed.
            if shown.status == Status::Retracted && fields.iter().any(|field| *field != MemoryField::Access) {
                let problem = format!(
                    "memory {id:?} is retracted, and what is retracted is not changed; take that back first, or add a new one"
                );
                return Err(EditError::state(id, problem));
            }
            if fields.is_empty() {
                act.name(id);
                return Ok(());
            }
            act.set(&shown, fields, &to)
        })
    }
}

/// Returns the memory that a piece of evidence states.
///
/// # Errors
/// A memory that violates PAM's rules.
pub(super) fn new_memory(evidence: &StoredEvidence) -> Result<Memory, EditError> {
    let memory = derive([evidence]).memories.into_values().next();
    let memory = memory.ok_or(EditError::Unencodable { what: "a new memory" })?;
    check(None, &memory)?;
    ordered(&memory)?;
    Ok(memory)
}

impl Transaction<'_> {
    /// Adds a memory unless a visible one makes the same statement; returns its id.
    pub(super) fn add(&mut self, draft: &Draft) -> Result<String, EditError> {
        let item = draft.item()?;
        self.add_evidence(StoredEvidence {
            id: ids::evidence_id(PLATFORM, None, &self.id).to_string(),
            platform: PLATFORM.to_owned(),
            account: None,
            at: self.now,
            conversation: None,
            message: None,
            row: None,
            method: ExtractionMethod::Manual,
            extractor: SOFTWARE.to_owned(),
            claim: Claim::Statement(item),
        })
    }

    /// Adds the memory that a piece of evidence states, unless a visible one makes the same statement; returns its id.
    pub(super) fn add_evidence(&mut self, evidence: StoredEvidence) -> Result<String, EditError> {
        let Claim::Statement(item) = &evidence.claim else {
            return Err(EditError::Unencodable { what: "a new memory" });
        };
        let id = memory_id(item);
        self.name(&id);
        let stored = self.store.memory(&id, None)?;
        let own = provenance::untrusted_signer(self.store, &id)?.is_none();
        if own && stored.as_ref().is_some_and(|record| !record.withdrawn) {
            self.done.existed = true;
            return Ok(id);
        }
        let action = EditAction::AddMemory(Box::new(evidence.clone()));
        if stored.is_some() {
            self.add_again(&id, action)?;
        } else {
            let memory = new_memory(&evidence)?;
            self.record(self.now, action)?;
            self.change(Change::Memory(Box::new(memory)));
        }
        Ok(id)
    }

    /// Adds a memory that was visible before. Other evidence on it may exist, and the relations it had follow from that
    /// evidence again, so everything is derived anew.
    fn add_again(&mut self, id: &str, action: EditAction) -> Result<(), EditError> {
        let mut counted = ActiveEvidence::load(self.store, &provenance::undone_imports(self.store)?)?;
        let before = counted.derive();
        self.record(self.now, action)?;
        counted.edit_steps.extend(self.edit_steps.last().cloned());
        counted.user_edits = UserEdits::of(&counted.edit_steps);
        let after = counted.derive();
        let memory = after.memories.get(id).ok_or(EditError::Unencodable { what: "a new memory" })?;
        check(None, memory)?;
        ordered(memory)?;
        self.apply_difference(&before, after)
    }

    /// Sets the status of a visible memory.
    pub(super) fn set_status(
        &mut self,
        shown: &Memory,
        status: Status,
        successor: Option<String>,
    ) -> Result<(), EditError> {
        let mut to = shown.clone();
        to.status = status;
        to.temporal.superseded_by = successor;
        self.set(shown, BTreeSet::from([MemoryField::Status]), &to)
    }
}
