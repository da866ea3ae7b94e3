//! Calls that can be repeated: the answer to a request id is kept with the change that it made.

use satchel_store::{Change, Ledger, LedgerWrite, Store};
use serde::{Deserialize, Serialize};

use super::{Call, Done, HandError};

/// How long an answer is kept, in microseconds: a day.
const KEPT: i64 = 24 * 3_600 * 1_000_000;
/// Answers that lapsed and go with one call: more than one, so that what a busy day left is worked off.
const DROPPED_AT_ONCE: usize = 16;

/// The name that a client gave a request, and what the request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// A UUID.
    pub id: String,
    /// Digest of method and fields, hex.
    pub body: String,
}

/// As it lies in the ledger.
#[derive(Serialize, Deserialize)]
struct Answer {
    body: String,
    done: Done,
}

/// What the same request was answered, if it was asked within a day.
pub(super) fn answered(store: &Store, call: &Call, now: i64) -> Result<Option<Done>, HandError> {
    let Some(key) = &call.request else { return Ok(None) };
    let Some(entry) = store.ledger_get(Ledger::Request, &key.id)? else { return Ok(None) };
    if entry.at_micros.saturating_add(KEPT) < now {
        return Ok(None);
    }
    let answer: Answer = serde_json::from_slice(&entry.value)
        .map_err(|_| HandError::Unencodable { what: "the answer to a request" })?;
    if answer.body == key.body {
        Ok(Some(answer.done))
    } else {
        Err(HandError::RequestReused(key.id.clone()))
    }
}

/// What keeps the answer, and lets older ones go.
pub(super) fn entries(store: &Store, call: &Call, now: i64, done: &Done) -> Result<Vec<Change>, HandError> {
    let Some(RequestKey { id, body }) = call.request.clone() else { return Ok(Vec::new()) };
    let value = serde_json::to_vec(&Answer { body, done: done.clone() })
        .map_err(|_| HandError::Unencodable { what: "the answer to a request" })?;
    let entry = |id, at_micros, value| {
        Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Request, id, at_micros, value })
    };
    let lapsed = store.ledger_older(Ledger::Request, now.saturating_sub(KEPT), DROPPED_AT_ONCE)?;
    // The same name may have lapsed, and is taken anew.
    let lapsed = lapsed.into_iter().filter(|old| old.id != id);
    let mut entries: Vec<Change> = lapsed.map(|old| entry(old.id, old.at_micros, Vec::new())).collect();
    entries.push(entry(id, now, value));
    Ok(entries)
}
