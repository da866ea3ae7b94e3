//! Completes a change that was interrupted by a crash: all of its evidence is stored, but not everything that follows
//! from it.

use satchel_merge::evidence::Spoken;
use satchel_store::{Origin, Store};

use super::{
    EditContext, EditError, Transaction,
    mark::{IncompleteEdit, incomplete},
};
use crate::{
    derived::mark_pending,
    provenance::{self, ActiveEvidence},
};

/// Completes the interrupted change, if there is one. The caller holds the commit lock or has exclusive access.
pub(crate) fn complete_interrupted(store: &Store) -> Result<(), EditError> {
    let Some(edit) = incomplete(store)? else { return Ok(()) };
    let reason = reason_of(store, &edit)?;
    let IncompleteEdit { act, actor, at, before, .. } = edit;
    tracing::info!(change = act, "a change is completed that a stop of the program interrupted");
    let mut counted = ActiveEvidence::load(store, &provenance::undone_imports(store)?)?;
    let after = counted.derive();
    counted.words.retain(|word| word.edit_id != act);
    counted.spoken = Spoken::of(&counted.words);
    let call = EditContext { actor: actor.clone(), reason: reason.clone(), request: None };
    let mut completing = Transaction::new(store, &call, at);
    completing.apply_difference(&counted.derive(), after)?;
    completing.settle(&Origin { import: None, actor, reason, at_micros: at }, mark_pending(&before))
}

/// Returns the reason of the change, as recorded in the history of its first memory; empty if that was erased.
fn reason_of(store: &Store, edit: &IncompleteEdit) -> Result<String, EditError> {
    let Some(id) = &edit.first else { return Ok(edit.reason.clone()) };
    let mut versions = store.memory_versions(id)?.into_iter().map(|version| version.origin);
    let own = versions.find(|origin| origin.at_micros == edit.at && origin.actor == edit.actor);
    Ok(own.map(|origin| origin.reason).unwrap_or_default())
}
