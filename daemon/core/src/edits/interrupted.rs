//! Marks a change that takes several commits, and completes it if a crash interrupted it: all of its evidence is stored,
//! but not everything that follows from it.

use satchel_merge::evidence::UserEdits;
use satchel_store::{Change, Origin, Store};
use serde::{Deserialize, Serialize};

use super::{EditContext, EditError, Transaction, merge::shown_in};
use crate::{
    derived::{mark_pending, pending_by},
    provenance::{self, ActiveEvidence},
};

const UNREADABLE: EditError = EditError::Unencodable { what: "the mark of an incomplete change" };

/// The mark of an incomplete change, as stored: which change, and who made it.
#[derive(Serialize, Deserialize)]
struct IncompleteEdit {
    act: String,
    actor: String,
    at: i64,
    /// A memory of the first commit. Its history holds the reason, where an erasure can remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    /// The reason, as earlier versions of the program stored it here.
    #[serde(default, skip_serializing)]
    reason: String,
    /// Whether it merges edits of other stores, which are several changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    merge: bool,
    /// The mark that this one replaces: an import may be incomplete as well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    before: String,
}

/// Returns two changes: one that marks the change as incomplete (its evidence is stored, but perhaps not everything
/// that follows), and one that marks it as complete. `first` is a memory that is stored together with the evidence; `merge` says that
/// the edits are those of other stores.
pub(super) fn marks(
    store: &Store,
    act: &str,
    origin: &Origin,
    first: Option<String>,
    merge: bool,
) -> Result<[Change; 2], EditError> {
    let Origin { actor, at_micros: at, .. } = origin.clone();
    let before = pending_by(store)?.map(String::from_utf8).transpose();
    let before = before.map_err(|_| UNREADABLE)?.unwrap_or_default();
    let complete = mark_pending(&before);
    let (act, reason) = (act.to_owned(), String::new());
    let incomplete = IncompleteEdit { act, actor, at, first, reason, merge, before };
    let text = serde_json::to_string(&incomplete).map_err(|_| EditError::Unencodable { what: "a change" })?;
    Ok([mark_pending(&text), complete])
}

/// Returns the change that the mark names. `None` if there is no mark, or if an import set it; the next import
/// completes that.
fn incomplete(store: &Store) -> Result<Option<IncompleteEdit>, EditError> {
    let mark = pending_by(store)?.filter(|mark| mark.starts_with(b"{"));
    let edit = mark.map(|mark| serde_json::from_slice(&mark)).transpose();
    edit.map_err(|_| UNREADABLE)
}

/// Completes the interrupted change, if there is one. The caller holds the write lock or has exclusive access.
pub(crate) fn complete_interrupted(store: &Store) -> Result<(), EditError> {
    let Some(edit) = incomplete(store)? else { return Ok(()) };
    let reason = reason_of(store, &edit)?;
    let IncompleteEdit { act, actor, at, before, merge, .. } = edit;
    tracing::info!(change = act, "a change is completed that a stop of the program interrupted");
    let mut counted = ActiveEvidence::load(store, &provenance::undone_imports(store)?)?;
    let after = counted.derive();
    let shown = if merge {
        shown_in(store, &counted.user_edits)?
    } else {
        counted.edit_steps.retain(|step| step.edit_id != act);
        counted.user_edits = UserEdits::of(&counted.edit_steps);
        counted.derive()
    };
    let call = EditContext { actor: actor.clone(), reason: reason.clone(), request: None };
    let mut completing = Transaction::new(store, &call, at);
    completing.apply_difference(&shown, after)?;
    completing.settle(&Origin { import: None, actor, reason, at_micros: at }, mark_pending(&before))
}

/// Returns the reason of the change, as recorded in the history of its first memory; empty if that was erased.
fn reason_of(store: &Store, edit: &IncompleteEdit) -> Result<String, EditError> {
    let Some(id) = &edit.first else { return Ok(edit.reason.clone()) };
    let mut versions = store.memory_versions(id)?.into_iter().map(|version| version.origin);
    let own = versions.find(|origin| origin.at_micros == edit.at && origin.actor == edit.actor);
    Ok(own.map(|origin| origin.reason).unwrap_or_default())
}
