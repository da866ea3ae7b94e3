//! A leaf: neighbouring entries in one value, where each key is stored without the prefix that it shares with the key before it.

use super::{Pair, leaf_cache::UnpackedLeaf};
use crate::{
    codec::{ByteReader, Malformed, Put},
    value::PLAIN,
};

/// Maximum length of a key in bytes; real keys are much shorter.
const MAX_KEY_BYTES: usize = 4 << 10;
/// Approximate overhead of an entry in bytes, besides key and value: three lengths.
const ENTRY_OVERHEAD: usize = 4;

/// Reads the entries of a leaf one by one.
pub(super) struct LeafReader<'a> {
    take: ByteReader<'a>,
    key: Vec<u8>,
    begun: bool,
}

impl<'a> LeafReader<'a> {
    /// Begins to read a leaf. `key` is the key of the leaf itself.
    pub(super) fn new(key: &[u8], leaf: &'a [u8]) -> Self {
        Self { take: ByteReader(leaf), key: key.to_vec(), begun: false }
    }

    /// Returns the next key, borrowed until the following call, and its value.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], EntryValue<'a>)>, Malformed> {
        let take = &mut self.take;
        if take.0.is_empty() {
            return Ok(None);
        }
        let shared = take.size()?;
        let own = take.bytes()?;
        if shared > self.key.len() {
            return Err(Malformed("has a key that shares more than there is"));
        }
        let rises = own > &self.key[shared..] || !self.begun && own == &self.key[shared..];
        if !rises || shared + own.len() > MAX_KEY_BYTES {
            return Err(Malformed("has keys that do not rise"));
        }
        self.begun = true;
        self.key.truncate(shared);
        self.key.extend_from_slice(own);
        let length = take.size()?;
        Ok(Some((&self.key, EntryValue { enveloped: length & 1 == 1, bytes: take.raw(length >> 1)? })))
    }
}

impl LeafReader<'_> {
    /// Returns the key that was read last or, before any entry was read, the key of the leaf itself.
    pub(super) fn into_key(self) -> Vec<u8> {
        self.key
    }
}

/// The value of an entry. Nearly all values have the envelope of a plain value, which is not stored.
#[derive(Clone, Copy)]
pub(super) struct EntryValue<'a> {
    enveloped: bool,
    bytes: &'a [u8],
}

impl EntryValue<'_> {
    pub(super) fn to_vec(self) -> Vec<u8> {
        if self.enveloped { [PLAIN.as_slice(), self.bytes].concat() } else { self.bytes.to_vec() }
    }
}

/// The result of changing a leaf.
pub(super) enum LeafWrite {
    Put(UnpackedLeaf),
    Delete(Vec<u8>),
}

/// A leaf that is being changed.
pub(super) struct Leaf {
    key: Vec<u8>,
    entries: Vec<Pair>,
    /// The first and last key that it has in the engine; `None` if the leaf does not exist there.
    stored_range: Option<(Vec<u8>, Vec<u8>)>,
    changed: bool,
    /// Whether a key was inserted before its first one, or between others.
    inserted_low: bool,
    /// Whether a key was inserted after its last one, or between others.
    inserted_high: bool,
}

impl Leaf {
    /// Returns a leaf that does not exist in the engine yet.
    pub(super) fn empty(key: Vec<u8>) -> Self {
        Self {
            key,
            entries: Vec::new(),
            stored_range: None,
            changed: false,
            inserted_low: false,
            inserted_high: false,
        }
    }

    pub(super) fn read(key: Vec<u8>, leaf: &[u8]) -> Result<Self, Malformed> {
        let mut entries = Vec::new();
        let mut reader = LeafReader::new(&key, leaf);
        while let Some((key, content)) = reader.next()? {
            entries.push((key.to_vec(), content.to_vec()));
        }
        let stored_range =
            entries.first().zip(entries.last()).map(|(first, last)| (first.0.clone(), last.0.clone()));
        Ok(Self { entries, stored_range, ..Self::empty(key) })
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns whether a key certainly belongs to this leaf. A key after the last one may belong to the next leaf, since only
    /// that leaf's key shows where this one ends.
    pub(super) fn covers(&self, key: &[u8]) -> bool {
        key >= self.key.as_slice()
            && self.stored_range.as_ref().is_some_and(|(_, last)| key <= last.as_slice())
    }

    /// Puts an entry, or removes it.
    pub(super) fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let found = self.entries.binary_search_by(|(entry, _)| entry.as_slice().cmp(&key));
        match (found, value) {
            (Ok(at), Some(value)) => {
                self.changed |= self.entries[at].1 != value;
                self.entries[at].1 = value;
            }
            (Ok(at), None) => {
                self.entries.remove(at);
                self.changed = true;
            }
            (Err(at), Some(value)) => {
                if let Some((first, last)) = &self.stored_range {
                    self.inserted_low |= key < *last;
                    self.inserted_high |= key > *first;
                }
                self.entries.insert(at, (key, value));
                self.changed = true;
            }
            (Err(_), None) => {}
        }
    }

    /// Returns the leaf to write, in pieces if it has grown longer than `limit`, or its deletion; nothing if it is unchanged.
    ///
    /// The first piece keeps the key, so that the pieces together cover the same keys as the leaf did. If keys were inserted at
    /// one end only, more are likely to follow there, so the piece at that end gets the free space.
    pub(super) fn write(self, limit: usize) -> Vec<LeafWrite> {
        let Self { key, entries, stored_range, changed, inserted_low, inserted_high } = self;
        if !changed {
            return Vec::new();
        }
        if entries.is_empty() {
            return stored_range.map(|_| LeafWrite::Delete(key)).into_iter().collect();
        }
        let sizes = sizes(&key, &entries);
        let ends = match (inserted_low, inserted_high) {
            (true, true) => even(&sizes, limit),
            (true, false) => from_the_end(&sizes, limit),
            (false, _) => from_the_start(&sizes, limit),
        };
        let (mut pieces, mut start) = (Vec::with_capacity(ends.len()), 0);
        for end in ends {
            let piece = &entries[start..end];
            let first = if start == 0 { key.clone() } else { piece[0].0.clone() };
            let bytes = encode(&first, piece, sizes[start..end].iter().sum());
            let until = piece[piece.len() - 1].0.clone();
            pieces.push(LeafWrite::Put(UnpackedLeaf { key: first, bytes, until }));
            start = end;
        }
        pieces
    }
}

/// Encodes entries; `size` is the approximate length of the result in bytes.
fn encode(key: &[u8], entries: &[Pair], size: usize) -> Vec<u8> {
    let (mut out, mut before) = (Vec::with_capacity(size), key);
    for (key, value) in entries {
        let shared = shared(before, key);
        out.put_varint(shared as u64);
        out.put_bytes(&key[shared..]);
        let bare = value.strip_prefix(PLAIN.as_slice());
        let bytes = bare.unwrap_or(value);
        out.put_varint((bytes.len() as u64) << 1 | u64::from(bare.is_some()));
        out.extend_from_slice(bytes);
        before = key;
    }
    out
}

/// Returns approximately how many bytes each entry takes.
fn sizes(key: &[u8], entries: &[Pair]) -> Vec<usize> {
    let mut before = key;
    let mut sizes = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        sizes.push(key.len() - shared(before, key) + value.len() + ENTRY_OVERHEAD);
        before = key;
    }
    sizes
}

/// Returns the length of the prefix that two keys share.
fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns the ends of pieces that are as full as possible, except the last one.
fn from_the_start(sizes: &[usize], limit: usize) -> Vec<usize> {
    cut(sizes, limit, limit)
}

/// Returns the ends of pieces that are as full as possible, except the first one.
fn from_the_end(sizes: &[usize], limit: usize) -> Vec<usize> {
    let reversed: Vec<usize> = sizes.iter().rev().copied().collect();
    let mut ends = cut(&reversed, limit, limit);
    ends.pop();
    // An end in the reversed order is the beginning of a piece, and the end of the piece before it.
    let mut ends: Vec<usize> = ends.into_iter().rev().map(|end| sizes.len() - end).collect();
    ends.push(sizes.len());
    ends
}

/// Returns the ends of pieces that are about equally full, with free space in each.
fn even(sizes: &[usize], limit: usize) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    if total <= limit {
        return vec![sizes.len()];
    }
    let pieces = total.div_ceil(limit * 3 / 4).max(2);
    cut(sizes, limit, total / pieces)
}

/// Returns the ends of pieces that are closed once they have `enough` bytes, and before they exceed `limit`. Each piece has at
/// least one entry.
fn cut(sizes: &[usize], limit: usize, enough: usize) -> Vec<usize> {
    let (mut ends, mut sum) = (Vec::new(), 0);
    for (at, size) in sizes.iter().enumerate() {
        if sum > 0 && (sum >= enough || sum + size > limit) {
            ends.push(at);
            sum = 0;
        }
        sum += size;
    }
    ends.push(sizes.len());
    ends
}
