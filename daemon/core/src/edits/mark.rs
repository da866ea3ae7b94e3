//! The mark in the ledger of a change that is incomplete: all of its evidence is stored, but not everything that follows
//! from it.

use satchel_store::{Change, Origin, Store};
use serde::{Deserialize, Serialize};

use super::EditError;
use crate::derived::{mark_pending, pending_by};

const UNREADABLE: EditError = EditError::Unencodable { what: "the mark of an incomplete change" };

/// The mark of an incomplete change, as stored: which change, and who made it.
#[derive(Serialize, Deserialize)]
pub(super) struct IncompleteEdit {
    pub(super) act: String,
    pub(super) actor: String,
    pub(super) at: i64,
    /// A memory of the first commit. Its history holds the reason, where an erasure can remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<String>,
    /// The reason, as earlier versions of the program stored it here.
    #[serde(default, skip_serializing)]
    pub(super) reason: String,
    /// The mark that this one replaces: an import may be incomplete as well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) before: String,
}

/// Returns two changes: one that marks the change as incomplete (its evidence is stored, but perhaps not everything
/// that follows), and one that marks it as complete. `first` is a memory that is stored together with the evidence.
pub(super) fn marks(
    store: &Store,
    act: &str,
    origin: &Origin,
    first: Option<String>,
) -> Result<[Change; 2], EditError> {
    let Origin { actor, at_micros: at, .. } = origin.clone();
    let before = pending_by(store)?.map(String::from_utf8).transpose();
    let before = before.map_err(|_| UNREADABLE)?.unwrap_or_default();
    let complete = mark_pending(&before);
    let incomplete = IncompleteEdit { act: act.to_owned(), actor, at, first, reason: String::new(), before };
    let text = serde_json::to_string(&incomplete).map_err(|_| EditError::Unencodable { what: "a change" })?;
    Ok([mark_pending(&text), complete])
}

/// Returns the change that the mark names. `None` if there is no mark, or if an import set it; the next import
/// completes that.
pub(super) fn incomplete(store: &Store) -> Result<Option<IncompleteEdit>, EditError> {
    let mark = pending_by(store)?.filter(|mark| mark.starts_with(b"{"));
    let edit = mark.map(|mark| serde_json::from_slice(&mark)).transpose();
    edit.map_err(|_| UNREADABLE)
}
