//! An engine that keeps small entries together: sled needs some 300 bytes of memory for each page of at most 16 keys, whether
//! anybody reads it or not.
//!
//! Entries of most kinds lie in leaves. A leaf is a value of the engine below, and holds the entries from its own key up to the key
//! of the next leaf of its kind; the first leaf of a kind has the kind's byte for a key. **Invariant:** an entry moves only when its
//! leaf is split, and then into a leaf with a greater key that is written in the same batch. So a reader who goes from leaf to leaf
//! while others write misses nothing that stays, and what he meets again he has met before. Held by `tests::leaves`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Changes, Engine, EngineError, Pair,
    kept::{Kept, Opened},
    leaf::{Entries, Leaf, Written},
    next_key,
    wrap::Wrap,
};
use crate::{
    blob::hex,
    codec::Malformed,
    keys::{self, Id16},
};

/// Most bytes of a leaf of list entries and the like. Each change of an entry writes its leaf anew: at twice the length 100,000
/// memories grow a database of 491 MiB instead of 309.
pub(crate) const SHORT: usize = 512;
/// Most bytes of a leaf of records, which are longer, before it is packed. One that is longer still has a leaf of its own.
pub(crate) const LONG: usize = 4 << 10;
/// How many entries a leaf is taken to have by a reader who wants a number of them.
const USUAL: usize = 6;
/// Most leaves that are fetched at once.
const FETCHED: usize = 32;

#[cfg(test)]
pub(crate) use super::kept::KEPT_BYTES;

/// Keeps the small entries of another engine together.
pub(crate) struct Leaves {
    inner: Arc<dyn Engine>,
    wrap: Wrap,
    kept: Kept,
    /// Held from when a leaf is read to be changed until it is written.
    writer: Mutex<()>,
}

impl Leaves {
    pub(crate) fn new(inner: Arc<dyn Engine>) -> Result<Self, EngineError> {
        let wrap = Wrap::new().map_err(|error| EngineError(error.to_string()))?;
        Ok(Self { inner, wrap, kept: Kept::default(), writer: Mutex::new(()) })
    }

    /// Returns leaves whose own keys are in a range.
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
            *bytes = self.wrap.unwrap(std::mem::take(bytes)).map_err(|error| broken(key, error))?;
        }
        Ok(leaves)
    }

    /// Returns the leaf that a key belongs to.
    fn leaf_of(&self, key: &[u8]) -> Result<Option<Opened>, EngineError> {
        self.kept.find(key).map_or_else(|_| self.read_leaf(key), |leaf| Ok(Some(leaf)))
    }

    /// As [`Leaves::leaf_of`], and keeps it.
    fn kept_leaf_of(&self, key: &[u8]) -> Result<Option<Opened>, EngineError> {
        let ticket = match self.kept.find(key) {
            Ok(leaf) => return Ok(Some(leaf)),
            Err(ticket) => ticket,
        };
        let leaf = self.read_leaf(key)?;
        if let Some(leaf) = &leaf {
            self.kept.keep(ticket, leaf);
        }
        Ok(leaf)
    }

    /// Reads the leaf that a key belongs to.
    fn read_leaf(&self, key: &[u8]) -> Result<Option<Opened>, EngineError> {
        let Some((leaf, bytes)) = self.leaves(&key[..1], &next_key(key), 1, true)?.pop() else {
            return Ok(None);
        };
        let last = last(&leaf, &bytes).map_err(|error| broken(&leaf, error))?;
        // No other leaf begins before the key that was asked for.
        let until = if last.as_slice() < key { key.to_vec() } else { last };
        Ok(Some(Opened { key: leaf, bytes, until }))
    }

    /// Returns the bytes of leaves that are kept.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.bytes()
    }

    /// Brings entries into their leaves.
    fn pack(
        &self,
        entries: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
        out: &mut Changes,
    ) -> Result<(), EngineError> {
        let mut open: Option<Leaf> = None;
        for (key, value) in entries {
            let mut leaf = match open.take() {
                Some(leaf) if leaf.holds(&key) => leaf,
                other => self.next_leaf(other, &key, out)?,
            };
            leaf.set(key, value);
            open = Some(leaf);
        }
        open.map_or(Ok(()), |leaf| self.close(leaf, out))
    }

    /// Returns the leaf of a key, which may be the one that is open; else that one is written.
    fn next_leaf(&self, open: Option<Leaf>, key: &[u8], out: &mut Changes) -> Result<Leaf, EngineError> {
        let kept = self.kept.find_to_write(key);
        let found = kept.map_or_else(|| self.read_leaf(key), |leaf| Ok(Some(leaf)))?;
        let leaf_key = found.as_ref().map_or(&key[..1], |leaf| &leaf.key);
        if let Some(leaf) = open {
            if leaf.key() == leaf_key {
                return Ok(leaf);
            }
            self.close(leaf, out)?;
        }
        match found {
            None => Ok(Leaf::empty(key[..1].to_vec())),
            Some(Opened { key, bytes, .. }) => {
                Leaf::read(key.clone(), &bytes).map_err(|error| broken(&key, error))
            }
        }
    }

    fn close(&self, leaf: Leaf, out: &mut Changes) -> Result<(), EngineError> {
        let limit = limit(leaf.key()[0]);
        for leaf in leaf.write(limit) {
            match leaf {
                Written::Gone(key) => {
                    self.kept.remove(&key);
                    out.delete(escaped(&key));
                }
                Written::Put(leaf) => {
                    let wrapped = self.wrap.wrap(&leaf.bytes);
                    out.put(escaped(&leaf.key), wrapped.map_err(|error| EngineError(error.to_string()))?);
                    self.kept.put(&leaf);
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
                // What a split has put into a leaf of its own since then is passed over: it was met in the leaf before.
                for (entry, value) in within(key, bytes, &next, until, limit - found.len())? {
                    next = next_key(&entry);
                    found.push((entry, value));
                }
            }
            let after = leaves.last().map_or_else(|| from.to_vec(), |(key, _)| next_key(key));
            let count = ((limit - found.len()) / USUAL).clamp(1, FETCHED);
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

/// Returns the key of a leaf as the engine below has it: in the same order, and without two bytes `ff` in a row. Where sled goes
/// backwards it takes `ff ff ff ff` for greater than all that a key can go on with, and else looks a million times and panics.
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
    let broken = |error| broken(leaf, error);
    let mut found = Vec::new();
    let mut entries = Entries::new(leaf, bytes);
    while let Some((entry, content)) = entries.next().map_err(broken)? {
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
    let mut entries = Entries::new(leaf, bytes);
    while let Some((entry, content)) = entries.next()? {
        if entry >= key {
            return Ok((entry == key).then(|| content.to_vec()));
        }
    }
    Ok(None)
}

/// Returns the last key of a leaf.
fn last(leaf: &[u8], bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut entries = Entries::new(leaf, bytes);
    while entries.next()?.is_some() {}
    Ok(entries.into_key())
}

/// Most bytes of a leaf of this kind that has more than one entry.
fn limit(kind: u8) -> usize {
    match kind {
        keys::MEMORY
        | keys::EVIDENCE
        | keys::RELATION
        | keys::CHANGES
        | keys::LEDGER
        | keys::ISSUES
        | keys::PIECE => LONG,
        _ => SHORT,
    }
}

/// Whether an entry lies in a leaf. The record about the whole is alone, and those of conversations are long.
fn packed(key: &[u8]) -> bool {
    let apart = [keys::META[0], keys::CONVERSATION, keys::PART];
    key.first().is_some_and(|kind| !apart.contains(kind))
}

fn broken(leaf: &[u8], error: Malformed) -> EngineError {
    EngineError(format!("the leaf at key {} {error}", hex(leaf)))
}

impl Engine for Leaves {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        if !packed(key) {
            return self.inner.get(key);
        }
        let Some(leaf) = self.kept_leaf_of(key)? else { return Ok(None) };
        entry(&leaf.key, &leaf.bytes, key).map_err(|error| broken(&leaf.key, error))
    }

    /// All keys asked for are of one kind.
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
        self.kept.begin();
        let done = self.write(batch);
        self.kept.end(done.is_ok());
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
