//! Idempotent calls: the answer to a request id is stored together with the change it made.

use satchel_store::{Change, Ledger, LedgerWrite, Store};
use serde::{Deserialize, Serialize};

use super::{EditContext, EditError, EditOutcome};

/// Retention of an answer, in microseconds: one day.
const KEPT: i64 = 24 * 3_600 * 1_000_000;
/// Expired answers that are deleted with each call: more than one, so that a backlog shrinks.
const DROPPED_AT_ONCE: usize = 16;

/// The id that a client gave a request, and a digest of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// A UUID.
    pub id: String,
    /// Digest of the method and its fields, in hex.
    pub body: String,
}

/// An answer as stored in the ledger.
#[derive(Serialize, Deserialize)]
struct Answer {
    body: String,
    done: EditOutcome,
}

/// Returns the stored answer to the same request, if it was made within the last day.
pub(super) fn answered(
    store: &Store,
    call: &EditContext,
    now: i64,
) -> Result<Option<EditOutcome>, EditError> {
    let Some(key) = &call.request else { return Ok(None) };
    let Some(entry) = store.ledger_get(Ledger::Request, &key.id)? else { return Ok(None) };
    if entry.at_micros.saturating_add(KEPT) < now {
        return Ok(None);
    }
    let answer: Answer = serde_json::from_slice(&entry.value)
        .map_err(|_| EditError::Unencodable { what: "the answer to a request" })?;
    if answer.body == key.body {
        Ok(Some(answer.done))
    } else {
        Err(EditError::RequestReused(key.id.clone()))
    }
}

/// Returns the changes that store the answer and delete expired ones.
pub(super) fn entries(
    store: &Store,
    call: &EditContext,
    now: i64,
    done: &EditOutcome,
) -> Result<Vec<Change>, EditError> {
    let Some(RequestKey { id, body }) = call.request.clone() else { return Ok(Vec::new()) };
    let value = serde_json::to_vec(&Answer { body, done: done.clone() })
        .map_err(|_| EditError::Unencodable { what: "the answer to a request" })?;
    let entry = |id, at_micros, value| {
        Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Request, id, at_micros, value })
    };
    let lapsed = store.ledger_older(Ledger::Request, now.saturating_sub(KEPT), DROPPED_AT_ONCE)?;
    // If the same id has expired, it is reused, so it must not be deleted.
    let lapsed = lapsed.into_iter().filter(|old| old.id != id);
    let mut entries: Vec<Change> = lapsed.map(|old| entry(old.id, old.at_micros, Vec::new())).collect();
    entries.push(entry(id, now, value));
    Ok(entries)
}
