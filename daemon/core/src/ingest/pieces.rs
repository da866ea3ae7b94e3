//! The cache of pieces of a source, so that importing a newer export costs only as much as what is new in it.
//!
//! **Invariant:** an import that uses cached pieces ends in the same state and with the same receipt as one that reads
//! all of them (`newer_exports` in `tests/`).

use std::sync::Arc;

use satchel_host::{MemoEntry, PieceMemo};
use satchel_store::{Change, LedgerWrite, Store};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::IngestError;
use crate::provenance::{self, EvidenceKey, PackedMap, ProvenanceError, UndoneImports};

/// Bytes of the length prefix of a note.
const LENGTH: usize = 4;
/// Pieces per commit when pieces with evidence are cached at the end.
const LATE_PIECES: usize = 400;

/// The result of reading a piece.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PieceResult {
    /// The import that read the piece. It is stored before the JSON, so that a look-up need not parse that.
    #[serde(skip)]
    pub(super) import: Uuid,
    /// The lineage keys of its conversations, one for each.
    #[serde(rename = "said", with = "hex_keys")]
    pub(super) contributions: Vec<EvidenceKey>,
    /// The number of messages in them.
    pub(super) messages: u64,
    /// The number of attachments whose bytes were stored.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) attachments: u64,
    /// The keys of its evidence.
    #[serde(default, with = "hex_keys", skip_serializing_if = "Vec::is_empty")]
    pub(super) evidence: Vec<EvidenceKey>,
    /// The ids of the memories that the evidence concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) memories: Vec<String>,
    /// Its newest time, in microseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) newest: Option<i64>,
}

/// Serialises keys as one string of hex digits.
mod hex_keys {
    use std::fmt::Write as _;

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::provenance::EvidenceKey;

    pub(super) fn serialize<S: Serializer>(keys: &[EvidenceKey], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(keys.len() * 32);
        for key in keys {
            write!(text, "{:032x}", u128::from_be_bytes(*key)).map_err(serde::ser::Error::custom)?;
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<EvidenceKey>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (keys, rest) = text.as_bytes().as_chunks::<32>();
        let one = |digits: &[u8; 32]| {
            let digits = std::str::from_utf8(digits).ok()?;
            u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
        };
        let keys: Option<Vec<EvidenceKey>> = keys.iter().map(one).collect();
        keys.filter(|_| rest.is_empty()).ok_or_else(|| D::Error::custom("is no list of keys"))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl PieceResult {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (import, text) = bytes.split_first_chunk()?;
        let account: Self = serde_json::from_slice(text).ok()?;
        Some(Self { import: Uuid::from_bytes(*import), ..account })
    }
}

/// A piece to be cached.
#[derive(Clone, Debug)]
pub(super) struct PieceToCache {
    pub(super) digest: [u8; 32],
    pub(super) note: Vec<u8>,
    pub(super) account: PieceResult,
}

impl PieceToCache {
    /// Returns the stored form: the length of the note, the note, the id of the import, and the account as JSON.
    pub(super) fn value(&self) -> serde_json::Result<Vec<u8>> {
        let length = u32::try_from(self.note.len()).unwrap_or(u32::MAX).to_be_bytes();
        let account = serde_json::to_vec(&self.account)?;
        let import = self.account.import.as_bytes();
        Ok([length.as_slice(), &self.note, import, &account].concat())
    }
}

/// Returns the change that stores the [`Known::value`] of the piece with this digest.
fn change(digest: [u8; 32], value: Vec<u8>) -> Change {
    Change::Ledger(LedgerWrite::Piece { digest, value })
}

/// The pieces that an import reads, until they are cached.
#[derive(Default)]
pub(super) struct PieceCache {
    /// The keys of what the current piece brought; `None` if no piece is being read, or if it is not cached.
    current: Option<PieceKeys>,
    /// Pieces with evidence, which are cached once their evidence is stored.
    late: PackedMap,
}

#[derive(Default)]
struct PieceKeys {
    parts: Vec<EvidenceKey>,
    evidence: Vec<EvidenceKey>,
}

impl PieceCache {
    /// Begins a piece.
    pub(super) fn begin(&mut self) {
        self.current = Some(PieceKeys::default());
    }

    /// Does not cache the current piece.
    pub(super) fn abandon(&mut self) {
        self.current = None;
    }

    /// Notes that the current piece brought a part of a conversation.
    pub(super) fn add_part(&mut self, key: EvidenceKey) {
        if let Some(current) = &mut self.current {
            current.parts.push(key);
        }
    }

    /// Notes that the current piece brought evidence.
    pub(super) fn add_evidence(&mut self, key: EvidenceKey) {
        if let Some(current) = &mut self.current {
            current.evidence.push(key);
        }
    }

    /// Ends the current piece, which `import` read. Returns the change that caches it, and its approximate bytes; a
    /// piece with evidence waits for [`PieceCache::commit_late`].
    pub(super) fn end(
        &mut self,
        mut piece: PieceToCache,
        import: Uuid,
    ) -> Result<Option<(Change, usize)>, IngestError> {
        let Some(PieceKeys { parts, evidence }) = self.current.take() else { return Ok(None) };
        piece.account = PieceResult { import, contributions: parts, evidence, ..piece.account };
        let value = piece.value().map_err(|_| IngestError::Unencodable { what: "the account of a piece" })?;
        if piece.account.evidence.is_empty() {
            return Ok(Some((change(piece.digest, value), piece.note.len())));
        }
        let mut key = EvidenceKey::default();
        key.copy_from_slice(&piece.digest[..16]);
        self.late.insert(key, &[piece.digest.as_slice(), &value].concat())?;
        Ok(None)
    }

    /// Passes the changes that cache the pieces with evidence to `commit`, in batches.
    pub(super) fn commit_late(
        &mut self,
        mut commit: impl FnMut(Vec<Change>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut batch = Vec::new();
        std::mem::take(&mut self.late).for_each(|_, piece| {
            if let Some((digest, value)) = piece.split_first_chunk::<32>() {
                batch.push(change(*digest, value.to_vec()));
            }
            if batch.len() == LATE_PIECES { commit(std::mem::take(&mut batch)) } else { Ok(()) }
        })?;
        if batch.is_empty() { Ok(()) } else { commit(batch) }
    }
}

/// Returns the cache of a store. Pieces read by an import that was undone since are not returned, so they are read
/// again.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn of(store: Store) -> Result<Arc<dyn PieceMemo>, ProvenanceError> {
    let undone = provenance::undone_imports(&store)?;
    Ok(Arc::new(Stored { store, undone }))
}

struct Stored {
    store: Store,
    undone: UndoneImports,
}

impl PieceMemo for Stored {
    fn recall(&self, digest: &[u8; 32]) -> Option<MemoEntry> {
        let value = self.store.piece(digest).unwrap_or_else(|error| {
            // A piece that cannot be looked up is read again.
            tracing::warn!(error = satchel_source::chain(&error), "a known piece cannot be looked up");
            None
        });
        split(&value?).filter(|(import, _)| !self.undone.contains(import)).map(|found| found.1)
    }
}

/// Splits a stored value into the import that read the piece, and what is cached of it.
fn split(value: &[u8]) -> Option<(Uuid, MemoEntry)> {
    let (length, rest) = value.split_at_checked(LENGTH)?;
    let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
    let (note, account) = rest.split_at_checked(length)?;
    let import = Uuid::from_bytes(*account.first_chunk()?);
    Some((import, MemoEntry { note: note.to_vec(), result: account.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_and_account_come_back() {
        let (contributions, evidence) = (vec![[7; 16]], vec![[0; 16], [255; 16]]);
        let account = PieceResult {
            import: Uuid::from_u128(5),
            messages: 3,
            contributions,
            evidence,
            ..PieceResult::default()
        };
        let known = PieceToCache { digest: [1; 32], note: b"note".to_vec(), account: account.clone() };
        let read = known.value().ok().and_then(|value| split(&value));
        assert_eq!(
            read.as_ref().map(|read| (read.0, read.1.note.as_slice())),
            Some((account.import, &b"note"[..]))
        );
        assert_eq!(read.and_then(|read| PieceResult::read(&read.1.result)), Some(account));
    }

    #[test]
    fn malformed_cache_entries_are_ignored() {
        for bad in [&b""[..], b"\0\0\0\x09note", b"\0\0\0\x01n{}", b"\xff\xff\xff\xff"] {
            assert_eq!(split(bad), None);
        }
    }
}
