//! Completes a change that was interrupted by a crash: all of its evidence is stored, but not everything that follows
//! from it.

use satchel_merge::evidence::Spoken;
use satchel_store::{Change, Origin, Store};
use serde::{Deserialize, Serialize};

use super::{Act, Call, HandError, Inner};
use crate::{
    ingest::memories::known,
    lineage::{self, Counted},
};

const UNREADABLE: HandError = HandError::Unencodable { what: "what is owed of a change" };

/// The mark of an incomplete change, as stored: which change, and who made it.
#[derive(Serialize, Deserialize)]
struct Owed {
    act: String,
    actor: String,
    at: i64,
    /// A memory of the first commit. Its history holds the reason, where an erasure can remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    /// The reason, as earlier versions of the program stored it here.
    #[serde(default, skip_serializing)]
    reason: String,
    /// The mark that this one replaces: an import may be incomplete as well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    before: String,
}

/// Returns two changes: one that marks the change as incomplete (its evidence is stored, but perhaps not everything
/// that follows), and one that marks it as complete. `first` is a memory that is stored together with the evidence.
pub(super) fn marks(
    store: &Store,
    act: &str,
    origin: &Origin,
    first: Option<String>,
) -> Result<[Change; 2], HandError> {
    let Origin { actor, at_micros: at, .. } = origin.clone();
    let before = known::by(store)?.map(String::from_utf8).transpose();
    let before = before.map_err(|_| UNREADABLE)?.unwrap_or_default();
    let settled = known::mark(&before);
    let owed = Owed { act: act.to_owned(), actor, at, first, reason: String::new(), before };
    let text = serde_json::to_string(&owed).map_err(|_| HandError::Unencodable { what: "a change" })?;
    Ok([known::mark(&text), settled])
}

impl Inner {
    /// Completes the interrupted change, if there is one. The caller ensures that nobody else writes.
    pub(in crate::ingest) fn complete_by_hand(&self) -> Result<(), HandError> {
        complete(&self.store)
    }
}

/// Completes the interrupted change, if there is one. The caller holds the commit lock or has exclusive access.
pub(in crate::ingest) fn complete(store: &Store) -> Result<(), HandError> {
    let Some(owed) = owed(store)? else { return Ok(()) };
    let reason = why(store, &owed)?;
    let Owed { act, actor, at, before, .. } = owed;
    tracing::info!(change = act, "a change is completed that a stop of the program interrupted");
    let mut counted = Counted::of(store, &lineage::undone(store)?)?;
    let after = counted.derive();
    counted.words.retain(|word| word.act != act);
    counted.spoken = Spoken::of(&counted.words);
    let call = Call { actor: actor.clone(), reason: reason.clone(), request: None };
    let mut completing = Act::new(store, &call, at);
    completing.turn(&counted.derive(), after)?;
    completing.settle(&Origin { import: None, actor, reason, at_micros: at }, known::mark(&before))
}

/// Returns the reason of the change, as recorded in the history of its first memory; empty if that was erased.
fn why(store: &Store, owed: &Owed) -> Result<String, HandError> {
    let Some(id) = &owed.first else { return Ok(owed.reason.clone()) };
    let mut versions = store.memory_versions(id)?.into_iter().map(|version| version.origin);
    let own = versions.find(|origin| origin.at_micros == owed.at && origin.actor == owed.actor);
    Ok(own.map(|origin| origin.reason).unwrap_or_default())
}

/// Returns the change that the mark names. `None` if there is no mark, or if an import set it; the next import
/// completes that.
fn owed(store: &Store) -> Result<Option<Owed>, HandError> {
    let mark = known::by(store)?.filter(|mark| mark.starts_with(b"{"));
    let owed = mark.map(|mark| serde_json::from_slice(&mark)).transpose();
    owed.map_err(|_| UNREADABLE)
}
