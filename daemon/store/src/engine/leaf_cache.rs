//! A cache of unpacked leaves that were read or written recently. It helps imports, which look for an entry, put it, and soon put
//! one beside it.
//!
//! **Invariant:** a leaf that is found in the cache is the one that the engine holds. During a write only the writer finds leaves
//! here, and a leaf that a reader has read meanwhile is not cached. A failed write empties the cache. Held by `tests::leaf_cache`.

use std::{
    collections::BTreeMap,
    ops::{Bound, Range},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Maximum number of bytes of cached leaves, in a younger and an older half: enough for the leaves that a batch reads before it
/// writes them, and for those that every batch changes. With four times as much, an import takes half a percent fewer
/// instructions.
pub(crate) const LEAF_CACHE_BYTES: usize = 2 << 20;
const GENERATION_BYTES: usize = LEAF_CACHE_BYTES / 2;
/// Maximum size of a cached leaf; a longer one would evict too many others.
const MAX_CACHED_LEAF: usize = LEAF_CACHE_BYTES / 64;
/// Approximate overhead of a leaf in bytes, besides its content and its keys.
const LEAF_OVERHEAD: usize = 160;

/// A leaf, unpacked.
#[derive(Debug)]
pub(super) struct UnpackedLeaf {
    pub(super) key: Vec<u8>,
    pub(super) bytes: Vec<u8>,
    /// The last key, inclusive, that certainly belongs to this leaf.
    pub(super) until: Vec<u8>,
}

impl UnpackedLeaf {
    fn cost(&self) -> usize {
        self.key.len() + self.until.len() + self.bytes.len() + LEAF_OVERHEAD
    }
}

/// The cached leaves.
#[derive(Default)]
pub(super) struct LeafCache(Mutex<CacheState>);

#[derive(Default)]
struct CacheState {
    young: Generation,
    /// Cleared as a whole when `young` is full. A leaf that is found here before that moves to `young`.
    old: Generation,
    /// Incremented by each write.
    writes: u64,
    /// A write is in progress: some cached leaves are not in the engine yet.
    writing: bool,
}

/// The state of the write counter before a leaf is read.
#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

impl LeafCache {
    /// Returns the leaf that contains a key or, if it is not cached, the ticket that is needed to cache it once it is read.
    pub(super) fn find(&self, key: &[u8]) -> Result<UnpackedLeaf, Ticket> {
        let mut state = self.state();
        let ticket = Ticket(state.writes);
        if state.writing { Err(ticket) } else { state.find(key).ok_or(ticket) }
    }

    /// Caches a leaf that was read after the ticket was issued, unless there was a write in between.
    pub(super) fn insert_read(&self, ticket: Ticket, leaf: &UnpackedLeaf) {
        let mut state = self.state();
        if ticket.0 == state.writes && !state.writing {
            state.insert(leaf);
        }
    }

    /// Begins a write. There is only one writer at a time.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        if state.writing {
            // The previous writer panicked.
            state.clear();
        }
        state.writes += 1;
        state.writing = true;
    }

    /// Returns the leaf that contains a key to the writer.
    pub(super) fn find_for_write(&self, key: &[u8]) -> Option<UnpackedLeaf> {
        self.state().find(key)
    }

    /// Caches a leaf that is about to be written.
    pub(super) fn insert_written(&self, leaf: &UnpackedLeaf) {
        self.state().insert(leaf);
    }

    /// Removes a leaf that is about to be deleted.
    pub(super) fn remove(&self, leaf: &[u8]) {
        self.state().remove(leaf);
    }

    /// Ends a write. After a failure the content of the engine is unknown, so the cache is emptied.
    pub(super) fn end(&self, written: bool) {
        let mut state = self.state();
        if !written {
            state.clear();
        }
        state.writes += 1;
        state.writing = false;
    }

    /// Locks the state. It is consistent after each step, so a panic leaves nothing half done and poisoning can be ignored.
    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let state = self.state();
        [&state.young, &state.old].map(|generation| generation.taken).iter().sum()
    }
}

impl CacheState {
    fn find(&mut self, key: &[u8]) -> Option<UnpackedLeaf> {
        if let Some(leaf) = self.young.find(key) {
            return Some(leaf);
        }
        let leaf = self.old.find(key)?;
        self.insert(&leaf);
        Some(leaf)
    }

    fn insert(&mut self, leaf: &UnpackedLeaf) {
        self.remove(&leaf.key);
        let cost = leaf.cost();
        if cost > MAX_CACHED_LEAF {
            return;
        }
        if self.young.taken + cost > GENERATION_BYTES {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.put(leaf);
    }

    fn remove(&mut self, leaf: &[u8]) {
        self.young.leaves.remove(leaf);
        self.old.leaves.remove(leaf);
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

/// Leaves stored one after the other in a single buffer, which is reused. As separate allocations, with short-lived ones between
/// them, they would hold on to several times as much memory.
#[derive(Default)]
struct Generation {
    leaves: BTreeMap<Vec<u8>, Slot>,
    bytes: Vec<u8>,
    /// The cost of all leaves, including removed ones: their space is free again only when the half is cleared.
    taken: usize,
}

/// The ranges of a leaf's bytes and of its last key in the buffer.
struct Slot {
    bytes: Range<usize>,
    until: Range<usize>,
}

impl Generation {
    fn find(&self, key: &[u8]) -> Option<UnpackedLeaf> {
        let (leaf, slot) =
            self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        let until = &self.bytes[slot.until.clone()];
        (key <= until).then(|| UnpackedLeaf {
            key: leaf.clone(),
            bytes: self.bytes[slot.bytes.clone()].to_vec(),
            until: until.to_vec(),
        })
    }

    /// Adds a leaf. The caller has checked that there is room.
    fn put(&mut self, leaf: &UnpackedLeaf) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(GENERATION_BYTES);
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
