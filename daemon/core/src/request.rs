//! Idempotent calls: the answer to a request id is stored together with the change it made.

use satchel_store::{Change, Ledger, LedgerWrite, Store, StoreError};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

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

/// The reason why a request has no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request id was already used for a different request.
    #[error("request id {0:?} was used for another request; take a fresh one")]
    Reused(String),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug in Satchel.
    #[error("the answer to a request cannot be encoded or read back; please report this")]
    Unencodable,
}

/// An answer as stored in the ledger.
#[derive(Serialize)]
struct Answer<'a, T> {
    body: &'a str,
    done: &'a T,
}

/// An answer as read from the ledger. Its result is read last, because another method may have stored another type.
#[derive(Deserialize)]
struct StoredAnswer {
    body: String,
    done: Box<RawValue>,
}

/// Returns the stored answer to the same request, if it was made within the last day.
pub(crate) fn answered<T: DeserializeOwned>(
    store: &Store,
    key: Option<&RequestKey>,
    now: i64,
) -> Result<Option<T>, RequestError> {
    let Some(key) = key else { return Ok(None) };
    let Some(entry) = store.ledger_get(Ledger::Request, &key.id)? else { return Ok(None) };
    if entry.at_micros.saturating_add(KEPT) < now {
        return Ok(None);
    }
    let StoredAnswer { body, done } =
        serde_json::from_slice(&entry.value).map_err(|_| RequestError::Unencodable)?;
    if body != key.body {
        return Err(RequestError::Reused(key.id.clone()));
    }
    serde_json::from_str(done.get()).map(Some).map_err(|_| RequestError::Unencodable)
}

/// Returns the changes that store the answer and delete expired ones.
pub(crate) fn entries<T: Serialize>(
    store: &Store,
    key: Option<&RequestKey>,
    now: i64,
    done: &T,
) -> Result<Vec<Change>, RequestError> {
    let Some(RequestKey { id, body }) = key else { return Ok(Vec::new()) };
    let value = serde_json::to_vec(&Answer { body, done }).map_err(|_| RequestError::Unencodable)?;
    let entry = |id, at_micros, value| {
        Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Request, id, at_micros, value })
    };
    let lapsed = store.ledger_older(Ledger::Request, now.saturating_sub(KEPT), DROPPED_AT_ONCE)?;
    // If the same id has expired, it is reused, so it must not be deleted.
    let lapsed = lapsed.into_iter().filter(|old| old.id != *id);
    let mut entries: Vec<Change> = lapsed.map(|old| entry(old.id, old.at_micros, Vec::new())).collect();
    entries.push(entry(id.clone(), now, value));
    Ok(entries)
}
