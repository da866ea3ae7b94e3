//! An engine that stores small entries together, because sled uses about 300 bytes of memory for each page of at most 16 keys,
//! whether the page is read or not.
//!
//! Entries of most kinds are stored in leaves. A leaf is one value of the engine below and contains the entries from its own key
//! up to the key of the next leaf of its kind. The key of the first leaf of a kind is the kind's byte. **Invariant:** an entry
//! moves only when its leaf is split, and then into a leaf with a greater key that is written in the same batch. So a reader that
//! goes from leaf to leaf during concurrent writes misses no entry that remains, and an entry that it meets a second time was
//! returned before. Held by `tests::leaves`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Changes, Engine, EngineError, Pair,
    leaf::{Leaf, LeafReader, LeafWrite},
    leaf_cache::{LeafCache, UnpackedLeaf},
    leaf_codec::LeafCodec,
    next_key,
};
use crate::{
    codec::{Malformed, hex},
    keys::{self, Id16},
};

/// Maximum size in bytes of a leaf of list entries and similar ones. Each change of an entry rewrites its leaf: with leaves of
/// twice this size, 100,000 memories make a database of 491 MiB instead of 309 MiB.
pub(crate) const SHORT_LEAF_BYTES: usize = 512;
/// Maximum size in bytes, before compression, of a leaf of records, which are longer. A record that is longer still has a leaf of
/// its own.
pub(crate) const LONG_LEAF_BYTES: usize = 4 << 10;
/// The number of entries that a reader assumes per leaf when it needs a certain number of entries.
const ENTRIES_PER_LEAF: usize = 6;
/// Maximum number of leaves that are fetched at once.
const MAX_LEAVES_FETCHED: usize = 32;

#[cfg(test)]
pub(crate) use super::leaf_cache::LEAF_CACHE_BYTES;

/// Stores the small entries of another engine together.
pub(crate) struct LeafEngine {
    inner: Arc<dyn Engine>,
    codec: LeafCodec,
    cache: LeafCache,
    /// Held from the moment a leaf is read in order to be changed until it is written.
    writer: Mutex<()>,
}

impl LeafEngine {
    pub(crate) fn new(inner: Arc<dyn Engine>) -> Result<Self, EngineError> {
        let codec = LeafCodec::new().map_err(|error| EngineError(error.to_string()))?;
        Ok(Self { inner, codec, cache: LeafCache::default(), writer: Mutex::new(()) })
    }

    /// Returns the leaves whose own keys are in a range.
    fn leaves(
        &self,
        from: &[u8],
        until: &[u8],
        limit: usize,
        reverse: bool,
    ) -> Result<Vec<Pair>, EngineError> {
        let mut leaves = self.inner.scan(&escaped(from), &escaped(until), limit, reverse)?;
        for (key, bytes) in &mut leaves {
            *key = unescaped(key);
            *bytes = self.codec.decode(std::mem::take(bytes)).map_err(|error| leaf_error(key, error))?;
        }
        Ok(leaves)
    }

    /// Returns the leaf that a key belongs to.
    fn leaf_of(&self, key: &[u8]) -> Result<Option<UnpackedLeaf>, EngineError> {
        self.cache.find(key).map_or_else(|_| self.read_leaf(key), |leaf| Ok(Some(leaf)))
    }

    /// Returns the leaf as [`LeafEngine::leaf_of`] does, and caches it.
    fn cached_leaf(&self, key: &[u8]) -> Result<Option<UnpackedLeaf>, EngineError> {
        let ticket = match self.cache.find(key) {
            Ok(leaf) => return Ok(Some(leaf)),
            Err(ticket) => ticket,
        };
        let leaf = self.read_leaf(key)?;
        if let Some(leaf) = &leaf {
            self.cache.insert_read(ticket, leaf);
        }
        Ok(leaf)
    }

    /// Reads the leaf that a key belongs to.
    fn read_leaf(&self, key: &[u8]) -> Result<Option<UnpackedLeaf>, EngineError> {
        let Some((leaf, bytes)) = self.leaves(&key[..1], &next_key(key), 1, true)?.pop() else {
            return Ok(None);
        };
        let last = last(&leaf, &bytes).map_err(|error| leaf_error(&leaf, error))?;
        // This is the last leaf that begins at or before `key`, so it covers all keys up to `key`.
        let until = if last.as_slice() < key { key.to_vec() } else { last };
        Ok(Some(UnpackedLeaf { key: leaf, bytes, until }))
    }

    /// Returns the number of bytes of cached leaves.
    #[cfg(test)]
    pub(crate) fn cached_bytes(&self) -> usize {
        self.cache.bytes()
    }

    /// Puts entries into their leaves.
    fn pack(
        &self,
        entries: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
        out: &mut Changes,
    ) -> Result<(), EngineError> {
        let mut open: Option<Leaf> = None;
        for (key, value) in entries {
            let mut leaf = match open.take() {
                Some(leaf) if leaf.covers(&key) => leaf,
                other => self.next_leaf(other, &key, out)?,
            };
            leaf.set(key, value);
            open = Some(leaf);
        }
        open.map_or(Ok(()), |leaf| self.close(leaf, out))
    }

    /// Returns the leaf that a key belongs to. If this is not the open leaf, the open one is written first.
    fn next_leaf(&self, open: Option<Leaf>, key: &[u8], out: &mut Changes) -> Result<Leaf, EngineError> {
        let cached = self.cache.find_for_write(key);
        let found = cached.map_or_else(|| self.read_leaf(key), |leaf| Ok(Some(leaf)))?;
        let leaf_key = found.as_ref().map_or(&key[..1], |leaf| &leaf.key);
        if let Some(leaf) = open {
            if leaf.key() == leaf_key {
                return Ok(leaf);
            }
            self.close(leaf, out)?;
        }
        match found {
            None => Ok(Leaf::empty(key[..1].to_vec())),
            Some(UnpackedLeaf { key, bytes, .. }) => {
                Leaf::read(key.clone(), &bytes).map_err(|error| leaf_error(&key, error))
            }
        }
    }

    fn close(&self, leaf: Leaf, out: &mut Changes) -> Result<(), EngineError> {
        let limit = limit(leaf.key()[0]);
        for leaf in leaf.write(limit) {
            match leaf {
                LeafWrite::Delete(key) => {
                    self.cache.remove(&key);
                    out.delete(escaped(&key));
                }
                LeafWrite::Put(leaf) => {
                    let encoded = self.codec.encode(&leaf.bytes);
                    out.put(escaped(&leaf.key), encoded.map_err(|error| EngineError(error.to_string()))?);
                    self.cache.insert_written(&leaf);
                }
            }
        }
        Ok(())
    }

    fn write(&self, batch: Changes) -> Result<(), EngineError> {
        let (mut changes, mut entries) = (Changes::default(), BTreeMap::new());
        for (key, value) in batch.operations {
            match value {
                value if packed(&key) => drop(entries.insert(key, value)),
                Some(value) => changes.put(key, value),
                None => changes.delete(key),
            }
        }
        self.pack(entries, &mut changes)?;
        self.inner.apply(changes)
    }

    fn forward(&self, from: &[u8], until: &[u8], limit: usize) -> Result<Vec<Pair>, EngineError> {
        let (mut found, mut next) = (Vec::new(), from.to_vec());
        let first = self.leaf_of(from)?;
        let mut leaves = Vec::from_iter(first.map(|leaf| (leaf.key, leaf.bytes)));
        loop {
            for (key, bytes) in &leaves {
                // An entry that a split has moved into the next leaf since then is skipped: it was found in the previous leaf.
                for (entry, value) in within(key, bytes, &next, until, limit - found.len())? {
                    next = next_key(&entry);
                    found.push((entry, value));
                }
            }
            let after = leaves.last().map_or_else(|| from.to_vec(), |(key, _)| next_key(key));
            let count = ((limit - found.len()) / ENTRIES_PER_LEAF).clamp(1, MAX_LEAVES_FETCHED);
            if found.len() < limit && after.as_slice() < until {
                leaves = self.leaves(&after, until, count, false)?;
            } else {
                leaves.clear();
            }
            if leaves.is_empty() {
                return Ok(found);
            }
        }
    }

    fn backward(&self, from: &[u8], until: &[u8], limit: usize) -> Result<Vec<Pair>, EngineError> {
        let (mut found, mut end) = (Vec::new(), until.to_vec());
        while found.len() < limit && from < end.as_slice() {
            let Some((key, bytes)) = self.leaves(&from[..1], &end, 1, true)?.pop() else { break };
            let entries = within(&key, &bytes, from, &end, usize::MAX)?;
            let room = limit - found.len();
            found.extend(entries.into_iter().rev().take(room));
            end = key;
        }
        Ok(found)
    }
}

/// Returns the key under which the engine below stores a leaf. Escaped keys sort in the same order and never contain two bytes
/// `ff` in a row. In a backward scan sled assumes that `ff ff ff ff` is greater than any continuation of a key; otherwise it
/// retries a million times and panics.
fn escaped(key: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(key.len() + 4);
    for byte in key {
        escaped.push(*byte);
        if *byte == 0xff {
            escaped.push(0);
        }
    }
    escaped
}

pub(crate) fn unescaped(key: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(key.len());
    let mut bytes = key.iter();
    while let Some(byte) = bytes.next() {
        plain.push(*byte);
        if *byte == 0xff {
            bytes.next();
        }
    }
    plain
}

/// Returns up to `limit` entries of a leaf with `from ≤ key < until`.
fn within(
    leaf: &[u8],
    bytes: &[u8],
    from: &[u8],
    until: &[u8],
    limit: usize,
) -> Result<Vec<Pair>, EngineError> {
    let leaf_error = |error| leaf_error(leaf, error);
    let mut found = Vec::new();
    let mut entries = LeafReader::new(leaf, bytes);
    while let Some((entry, content)) = entries.next().map_err(leaf_error)? {
        if found.len() == limit || entry >= until {
            break;
        }
        if entry >= from {
            found.push((entry.to_vec(), content.to_vec()));
        }
    }
    Ok(found)
}

/// Returns the value of an entry.
fn entry(leaf: &[u8], bytes: &[u8], key: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    let mut entries = LeafReader::new(leaf, bytes);
    while let Some((entry, content)) = entries.next()? {
        if entry >= key {
            return Ok((entry == key).then(|| content.to_vec()));
        }
    }
    Ok(None)
}

/// Returns the last key of a leaf.
fn last(leaf: &[u8], bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut entries = LeafReader::new(leaf, bytes);
    while entries.next()?.is_some() {}
    Ok(entries.into_key())
}

/// Returns the maximum size in bytes of a leaf of this kind that has more than one entry.
fn limit(kind: u8) -> usize {
    match kind {
        keys::MEMORY
        | keys::EVIDENCE
        | keys::RELATION
        | keys::CHANGES
        | keys::LEDGER
        | keys::ISSUES
        | keys::PIECE => LONG_LEAF_BYTES,
        _ => SHORT_LEAF_BYTES,
    }
}

/// Returns whether an entry is stored in a leaf. The meta record is stored alone, and the records and parts of conversations are
/// long.
fn packed(key: &[u8]) -> bool {
    let stored_alone = [keys::META[0], keys::CONVERSATION, keys::PART];
    key.first().is_some_and(|kind| !stored_alone.contains(kind))
}

fn leaf_error(leaf: &[u8], error: Malformed) -> EngineError {
    EngineError(format!("the leaf at key {} {error}", hex(leaf)))
}

impl Engine for LeafEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        if !packed(key) {
            return self.inner.get(key);
        }
        let Some(leaf) = self.cached_leaf(key)? else { return Ok(None) };
        entry(&leaf.key, &leaf.bytes, key).map_err(|error| leaf_error(&leaf.key, error))
    }

    /// Scans a range. All keys of the range must be of one kind.
    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        if !packed(from) {
            return self.inner.scan(from, until, limit, reverse);
        }
        if keys::after_prefix(&from[..1]).as_slice() < until {
            return Err(EngineError("a scan over keys of more than one kind is asked for".to_owned()));
        }
        if reverse { self.backward(from, until, limit) } else { self.forward(from, until, limit) }
    }

    fn apply(&self, batch: Changes) -> Result<(), EngineError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.cache.begin();
        let done = self.write(batch);
        self.cache.end(done.is_ok());
        done
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.inner.flush()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn blind(&self, name: &str) -> Id16 {
        self.inner.blind(name)
    }
}
