//! The engine's keys: one byte for the kind, then big-endian integers, which sort like their values.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    change::MAX_ID_BYTES,
    codec::{Put, canonical_uuid},
    ledger::Ledger,
    record::ChangeKind,
};

pub(crate) const META: &[u8] = &[0x01, b'a'];
pub(crate) const CONVERSATION: u8 = 0x10;
pub(crate) const PART: u8 = 0x11;
pub(crate) const OLD_CONVERSATION: u8 = 0x12;
pub(crate) const MEMORY: u8 = 0x20;
pub(crate) const EMBEDDING: u8 = 0x21;
pub(crate) const OLD_MEMORY: u8 = 0x22;
pub(crate) const EVIDENCE: u8 = 0x23;
pub(crate) const RELATION: u8 = 0x30;
pub(crate) const RELATION_FROM: u8 = 0x31;
pub(crate) const RELATION_TO: u8 = 0x32;
pub(crate) const OLD_RELATION: u8 = 0x33;
pub(crate) const INDEX: u8 = 0x40;
pub(crate) const MEMORY_ID: u8 = 0x43;
pub(crate) const CHANGES: u8 = 0x50;
pub(crate) const LEDGER: u8 = 0x60;
pub(crate) const LEDGER_TIME: u8 = 0x61;
pub(crate) const ISSUES: u8 = 0x62;
pub(crate) const PIECE: u8 = 0x63;

/// The fixed-length key of an object.
pub(crate) type Id16 = [u8; 16];

/// Returns the bytes of the UUID if the id is a canonical UUID, otherwise the first 16 bytes of the id's SHA-256.
pub(crate) fn id16(id: &str) -> Id16 {
    canonical_uuid(id).unwrap_or_else(|| first16(Sha256::digest(id)))
}

/// Returns the key of an object's id. Two ids can be made to have the same key on purpose; the store refuses such a pair.
#[must_use]
pub fn record_key(id: &str) -> [u8; 16] {
    id16(id)
}

/// Returns whether the id of a record or message is longer than keys allow.
#[must_use]
pub fn id_too_long(id: &str) -> bool {
    id.len() > MAX_ID_BYTES
}

fn first16(hash: impl AsRef<[u8]>) -> Id16 {
    let mut id = [0; 16];
    id.copy_from_slice(&hash.as_ref()[..16]);
    id
}

/// Encodes a time so that it sorts oldest first.
pub(crate) fn ascending(micros: i64) -> u64 {
    micros.cast_unsigned() ^ (1 << 63)
}

/// Encodes a time so that it sorts newest first.
pub(crate) fn descending(micros: i64) -> u64 {
    !ascending(micros)
}

/// Returns the key `kind id16`.
pub(crate) fn object(kind: u8, id: Id16) -> Vec<u8> {
    let mut key = Vec::with_capacity(17);
    key.put_u8(kind);
    key.extend_from_slice(&id);
    key
}

/// Returns the key `kind id16 revision`.
pub(crate) fn version(kind: u8, id: Id16, revision: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(25);
    key.put_u8(kind);
    key.extend_from_slice(&id);
    key.put_u64(revision);
    key
}

/// Returns the key `11 conversation16 revision part`.
pub(crate) fn part(id: Id16, revision: u64, part: u16) -> Vec<u8> {
    let mut key = version(PART, id, revision);
    key.put_u16(part);
    key
}

/// Returns the key `kind id16 id16`.
pub(crate) fn pair(kind: u8, first: Id16, second: Id16) -> Vec<u8> {
    let mut key = Vec::with_capacity(33);
    key.put_u8(kind);
    key.extend_from_slice(&first);
    key.extend_from_slice(&second);
    key
}

/// Returns the key `50 revision part`.
pub(crate) fn changes(revision: u64, part: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(11);
    key.put_u8(CHANGES);
    key.put_u64(revision);
    key.put_u16(part);
    key
}

/// Returns the key `43 id`, which sorts like the id.
pub(crate) fn memory_id(id: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + id.len());
    key.put_u8(MEMORY_ID);
    key.extend_from_slice(id.as_bytes());
    key
}

/// Returns the key `60 ledger id16`.
pub(crate) fn ledger(ledger: Ledger, id: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(18);
    key.put_u8(LEDGER);
    key.put_u8(ledger.code());
    key.extend_from_slice(&id16(id));
    key
}

/// Returns the key `61 ledger !at id16`.
pub(crate) fn ledger_time(ledger: Ledger, at_micros: i64, id: Id16) -> Vec<u8> {
    let mut key = Vec::with_capacity(26);
    key.put_u8(LEDGER_TIME);
    key.put_u8(ledger.code());
    key.put_u64(descending(at_micros));
    key.extend_from_slice(&id);
    key
}

/// Returns the key `62 import16 page`.
pub(crate) fn issues(import: Uuid, page: u32) -> Vec<u8> {
    let mut key = object(ISSUES, *import.as_bytes());
    key.put_u32(page);
    key
}

/// Returns the key `63` and the first 16 bytes of the digest.
pub(crate) fn piece(digest: &[u8; 32]) -> Vec<u8> {
    [&[PIECE], &digest[..16]].concat()
}

/// The list that an index entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Conversations,
    MemoriesUpdated,
    MemoriesCreated,
    MemoriesTagged(Id16),
    MemoriesOf(Id16),
    MemoriesHashed(Id16),
}

impl List {
    /// Returns the prefix `40 kind list [selector]` of all entries of the list.
    pub(crate) fn prefix(self) -> Vec<u8> {
        let (kind, list, selector) = match self {
            Self::Conversations => (kind_code(ChangeKind::Conversation), b'u', None),
            Self::MemoriesUpdated => (kind_code(ChangeKind::Memory), b'u', None),
            Self::MemoriesCreated => (kind_code(ChangeKind::Memory), b'c', None),
            Self::MemoriesTagged(tag) => (kind_code(ChangeKind::Memory), b't', Some(tag)),
            Self::MemoriesOf(conversation) => (kind_code(ChangeKind::Memory), b'v', Some(conversation)),
            Self::MemoriesHashed(hash) => (kind_code(ChangeKind::Memory), b'h', Some(hash)),
        };
        let mut key = Vec::with_capacity(51);
        key.extend_from_slice(&[INDEX, kind, list]);
        key.extend_from_slice(selector.as_ref().map_or(&[], <[u8; 16]>::as_slice));
        key
    }

    /// Encodes a time as the list sorts it.
    pub(crate) fn sort(self, micros: i64) -> u64 {
        if self == Self::MemoriesCreated { ascending(micros) } else { descending(micros) }
    }

    /// Returns the key `prefix sort id16 revision`.
    pub(crate) fn entry(self, sort: u64, id: Id16, revision: u64) -> Vec<u8> {
        let mut key = self.prefix();
        key.put_u64(sort);
        key.extend_from_slice(&id);
        key.put_u64(revision);
        key
    }
}

/// Returns the id16 and the revision at the end of an index entry's key.
pub(crate) fn entry_tail(key: &[u8]) -> Option<(Id16, u64)> {
    let (rest, revision) = key.split_last_chunk::<8>()?;
    let (_, id) = rest.split_last_chunk::<16>()?;
    Some((*id, u64::from_be_bytes(*revision)))
}

/// Returns the last 16 bytes of a key.
pub(crate) fn last16(key: &[u8]) -> Option<Id16> {
    key.last_chunk::<16>().copied()
}

pub(crate) fn kind_code(kind: ChangeKind) -> u8 {
    match kind {
        ChangeKind::Conversation => 1,
        ChangeKind::Memory => 2,
        ChangeKind::Relation => 3,
        ChangeKind::Embedding => 4,
    }
}

pub(crate) fn kind_from_code(code: u8) -> Option<ChangeKind> {
    [ChangeKind::Conversation, ChangeKind::Memory, ChangeKind::Relation, ChangeKind::Embedding]
        .into_iter()
        .find(|kind| kind_code(*kind) == code)
}

/// Returns the first key after all keys that begin with `prefix`. Prefixes never consist of 0xff bytes only.
pub(crate) fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_sort_like_their_values(a in any::<(i64, u128, u64)>(), b in any::<(i64, u128, u64)>()) {
            let id = |n: u128| n.to_be_bytes();
            let created = |v: (i64, u128, u64)| List::MemoriesCreated.entry(ascending(v.0), id(v.1), v.2);
            prop_assert_eq!(created(a).cmp(&created(b)), a.cmp(&b));
            let updated = |v: (i64, u128, u64)| List::MemoriesUpdated.entry(descending(v.0), id(v.1), v.2);
            let newest_first = (std::cmp::Reverse(a.0), a.1, a.2).cmp(&(std::cmp::Reverse(b.0), b.1, b.2));
            prop_assert_eq!(updated(a).cmp(&updated(b)), newest_first);
            prop_assert_eq!(version(OLD_MEMORY, id(a.1), a.2).cmp(&version(OLD_MEMORY, id(b.1), b.2)), (a.1, a.2).cmp(&(b.1, b.2)));
            let log = |v: (i64, u128, u64)| changes(v.2, v.1.to_be_bytes()[15].into());
            prop_assert_eq!(log(a).cmp(&log(b)), (a.2, a.1.to_be_bytes()[15]).cmp(&(b.2, b.1.to_be_bytes()[15])));
            prop_assert_eq!(entry_tail(&created(a)), Some((id(a.1), a.2)));
        }

        #[test]
        fn id_keys_sort_like_the_ids(a in "[ -~é😀]{0,12}", b in "[ -~é😀]{0,12}", c in any::<u128>(), d in any::<u128>()) {
            prop_assert_eq!(memory_id(&a).cmp(&memory_id(&b)), a.cmp(&b));
            let (c, d) = (Uuid::from_u128(c).to_string(), Uuid::from_u128(d).to_string());
            prop_assert_eq!(object(MEMORY, id16(&c)).cmp(&object(MEMORY, id16(&d))), c.cmp(&d));
        }

        #[test]
        fn keys_with_a_prefix_are_below_its_end(prefix in prop::collection::vec(any::<u8>(), 1..8), tail in prop::collection::vec(any::<u8>(), 0..8)) {
            prop_assume!(prefix.iter().any(|byte| *byte != 0xff));
            let end = after_prefix(&prefix);
            let mut key = prefix.clone();
            key.extend(tail);
            prop_assert!(prefix < end && key < end);
        }
    }
}
