//! What is remembered of the pieces of a source, so that a newer export costs what is new in it.
//!
//! **Invariant:** an import that recalls pieces ends in the state and with the receipt of one that reads them all
//! (`newer_exports` in `tests/`).

use std::sync::Arc;

use satchel_host::{Memo, Remembered};
use satchel_store::{Change, LedgerWrite, Store};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Bytes of the length of a note.
const LENGTH: usize = 4;

/// What came of a piece.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Account {
    /// The import that read it.
    pub(super) import: Uuid,
    /// Its conversations, by our ids.
    pub(super) conversations: Vec<String>,
    /// Messages in them.
    pub(super) messages: u64,
    /// Attachments whose bytes were stored.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) attachments: u64,
    /// Pieces of evidence.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) evidence: u64,
    /// Memories that the evidence speaks of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) memories: Vec<String>,
    /// Its newest time, microseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) newest: Option<i64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Account {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// A piece to be remembered.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) digest: [u8; 32],
    pub(super) note: Vec<u8>,
    pub(super) account: Account,
}

impl Known {
    /// What stores it: the note with its length before it, then the account.
    pub(super) fn change(&self) -> serde_json::Result<Change> {
        let length = u32::try_from(self.note.len()).unwrap_or(u32::MAX).to_be_bytes();
        let account = serde_json::to_vec(&self.account)?;
        let value = [length.as_slice(), &self.note, &account].concat();
        Ok(Change::Ledger(LedgerWrite::Piece { digest: self.digest, value }))
    }
}

/// The pieces that a store knows.
pub(super) fn of(store: Store) -> Arc<dyn Memo> {
    Arc::new(Stored(store))
}

struct Stored(Store);

impl Memo for Stored {
    fn recall(&self, digest: &[u8; 32]) -> Option<Remembered> {
        let value = self.0.piece(digest).unwrap_or_else(|error| {
            // What cannot be recalled is read.
            tracing::warn!(error = crate::chain(&error), "a known piece cannot be looked up");
            None
        });
        split(&value?)
    }
}

fn split(value: &[u8]) -> Option<Remembered> {
    let (length, rest) = value.split_at_checked(LENGTH)?;
    let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
    let (note, account) = rest.split_at_checked(length)?;
    Account::read(account)?;
    Some(Remembered { note: note.to_vec(), account: account.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(known: &Known) -> Option<Vec<u8>> {
        match known.change() {
            Ok(Change::Ledger(LedgerWrite::Piece { value, .. })) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn note_and_account_come_back() {
        let account = Account { messages: 3, conversations: vec!["c".into()], ..Account::default() };
        let known = Known { digest: [1; 32], note: b"note".to_vec(), account: account.clone() };
        let read = value(&known).and_then(|value| split(&value));
        assert_eq!(read.as_ref().map(|read| read.note.as_slice()), Some(b"note".as_slice()));
        assert_eq!(read.and_then(|read| Account::read(&read.account)), Some(account));
    }

    #[test]
    fn what_does_not_read_is_not_known() {
        for bad in [&b""[..], b"\0\0\0\x09note", b"\0\0\0\x01n{}", b"\xff\xff\xff\xff"] {
            assert_eq!(split(bad), None);
        }
    }
}
