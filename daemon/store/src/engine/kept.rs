//! Leaves that were read or written a moment ago, open and unpacked: an import asks whether an entry is there, puts it, and soon
//! one beside it.
//!
//! **Invariant:** whoever finds a leaf here finds what the engine holds. While somebody writes nobody else finds anything, and what a
//! reader has read meanwhile is not kept; after a write that failed nothing is. Held by `tests::kept`.

use std::{
    collections::BTreeMap,
    ops::{Bound, Range},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Most bytes of leaves that are kept, younger and older ones in two halves: what a batch reads before it writes it, and the leaves
/// that each batch changes.
/// At four times as many an import takes half a percent fewer instructions.
pub(crate) const KEPT_BYTES: usize = 2 << 20;
const HALF: usize = KEPT_BYTES / 2;
/// A longer leaf would drive out too many others.
const LONGEST: usize = KEPT_BYTES / 64;
/// Bytes that a leaf takes beside its own and its keys, about.
const BESIDE: usize = 160;

/// A leaf, unpacked.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) key: Vec<u8>,
    pub(super) bytes: Vec<u8>,
    /// Up to this key, and with it, all belongs to this leaf for certain.
    pub(super) until: Vec<u8>,
}

impl Opened {
    fn cost(&self) -> usize {
        self.key.len() + self.until.len() + self.bytes.len() + BESIDE
    }
}

/// The leaves that are kept.
#[derive(Default)]
pub(super) struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    young: Half,
    /// Goes as a whole when `young` is full; a leaf that is asked for again before that becomes young.
    old: Half,
    /// Raised by each write.
    writes: u64,
    /// Somebody writes: some leaves are here that the engine does not have yet.
    under_way: bool,
}

/// Before a leaf is read: when that was.
#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

impl Kept {
    /// Returns the leaf of a key, or what is needed to keep it once it is read.
    pub(super) fn find(&self, key: &[u8]) -> Result<Opened, Ticket> {
        let mut state = self.state();
        let ticket = Ticket(state.writes);
        if state.under_way { Err(ticket) } else { state.find(key).ok_or(ticket) }
    }

    /// Keeps a leaf that was read since the ticket was given, unless somebody has written since then.
    pub(super) fn keep(&self, ticket: Ticket, leaf: &Opened) {
        let mut state = self.state();
        if ticket.0 == state.writes && !state.under_way {
            state.keep(leaf);
        }
    }

    /// One writer begins.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        if state.under_way {
            // The writer before this one panicked.
            state.forget();
        }
        state.writes += 1;
        state.under_way = true;
    }

    /// Returns the leaf of a key to the one who writes.
    pub(super) fn find_to_write(&self, key: &[u8]) -> Option<Opened> {
        self.state().find(key)
    }

    /// Takes a leaf that is going to be written.
    pub(super) fn put(&self, leaf: &Opened) {
        self.state().keep(leaf);
    }

    /// Forgets a leaf that is going to be deleted.
    pub(super) fn remove(&self, leaf: &[u8]) {
        self.state().remove(leaf);
    }

    /// The writer is done. After a failure nobody knows what the engine holds.
    pub(super) fn end(&self, written: bool) {
        let mut state = self.state();
        if !written {
            state.forget();
        }
        state.writes += 1;
        state.under_way = false;
    }

    /// All that it guards holds together after each step, so a panic leaves nothing half done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let state = self.state();
        [&state.young, &state.old].map(|half| half.taken).iter().sum()
    }
}

impl State {
    fn find(&mut self, key: &[u8]) -> Option<Opened> {
        if let Some(leaf) = self.young.find(key) {
            return Some(leaf);
        }
        let leaf = self.old.find(key)?;
        self.keep(&leaf);
        Some(leaf)
    }

    fn keep(&mut self, leaf: &Opened) {
        self.remove(&leaf.key);
        let cost = leaf.cost();
        if cost > LONGEST {
            return;
        }
        if self.young.taken + cost > HALF {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.put(leaf);
    }

    fn remove(&mut self, leaf: &[u8]) {
        self.young.leaves.remove(leaf);
        self.old.leaves.remove(leaf);
    }

    fn forget(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

/// Leaves one after the other in one piece of memory, which is used again: as an allocation each, short-lived ones between them,
/// they keep several times as much of it.
#[derive(Default)]
struct Half {
    leaves: BTreeMap<Vec<u8>, Slot>,
    bytes: Vec<u8>,
    /// With those that were removed: their room is free again when the half is cleared.
    taken: usize,
}

/// Where the bytes of a leaf lie, and its last key.
struct Slot {
    bytes: Range<usize>,
    until: Range<usize>,
}

impl Half {
    fn find(&self, key: &[u8]) -> Option<Opened> {
        let (leaf, slot) =
            self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        let until = &self.bytes[slot.until.clone()];
        (key <= until).then(|| Opened {
            key: leaf.clone(),
            bytes: self.bytes[slot.bytes.clone()].to_vec(),
            until: until.to_vec(),
        })
    }

    /// There is room for it.
    fn put(&mut self, leaf: &Opened) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(HALF);
        }
        self.taken += leaf.cost();
        let bytes = self.append(&leaf.bytes);
        let until = self.append(&leaf.until);
        self.leaves.insert(leaf.key.clone(), Slot { bytes, until });
    }

    fn append(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn clear(&mut self) {
        self.leaves.clear();
        self.bytes.clear();
        self.taken = 0;
    }
}
