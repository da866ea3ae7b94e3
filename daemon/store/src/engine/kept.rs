//! Leaves that were read or written a moment ago, open and unpacked: an import asks whether an entry is there, puts it, and soon
//! one beside it.
//!
//! **Invariant:** what is kept is what the engine holds. A leaf that is about to be written goes before the engine gets it, comes
//! back as it was written, and what a reader has read meanwhile is not kept. Held by `tests::kept`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::EngineError;

/// Most bytes of leaves that are kept, in two halves: what a batch reads before it writes it, and the leaves that each batch changes.
/// At four times as many an import takes half a percent fewer instructions.
pub(crate) const KEPT_BYTES: usize = 2 << 20;
/// A longer leaf would drive out too many others.
const LONGEST: usize = KEPT_BYTES / 64;
/// Bytes that a leaf takes beside its own and its keys, about.
const BESIDE: usize = 160;

/// A leaf, unpacked.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) key: Vec<u8>,
    pub(super) bytes: Arc<Vec<u8>>,
    /// Up to this key, and with it, all belongs to this leaf for certain.
    pub(super) until: Vec<u8>,
}

impl Opened {
    fn holds(&self, key: &[u8]) -> bool {
        (self.key.as_slice()..=self.until.as_slice()).contains(&key)
    }

    fn cost(&self) -> usize {
        2 * self.key.len() + self.until.len() + self.bytes.capacity() + BESIDE
    }
}

/// What a batch does to a leaf.
pub(super) enum Written {
    Put(Opened),
    Gone(Vec<u8>),
}

impl Written {
    fn key(&self) -> &[u8] {
        match self {
            Self::Put(leaf) => &leaf.key,
            Self::Gone(key) => key,
        }
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
    under_way: bool,
}

/// Before a leaf is read: when that was.
#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

impl Kept {
    /// Returns the leaf of a key, or what is needed to keep it once it is read.
    pub(super) fn find(&self, key: &[u8]) -> Result<Opened, Ticket> {
        let mut state = self.state();
        if let Some(leaf) = state.young.find(key) {
            return Ok(leaf.clone());
        }
        let ticket = Ticket(state.writes);
        let found = state.old.find(key).ok_or(ticket)?.key.clone();
        let leaf = state.old.remove(&found).ok_or(ticket)?;
        state.keep(leaf.clone());
        Ok(leaf)
    }

    /// Keeps a leaf that was read since the ticket was given, unless something was written since then.
    pub(super) fn keep(&self, ticket: Ticket, leaf: Opened) {
        let mut state = self.state();
        if ticket.0 == state.writes && !state.under_way {
            state.keep(leaf);
        }
    }

    /// Lets `write` bring leaves into the engine. After a failure nobody knows what that holds, and nothing is kept.
    pub(super) fn write(
        &self,
        leaves: Vec<Written>,
        write: impl FnOnce() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        self.state().begin(&leaves);
        let done = write();
        let mut state = self.state();
        if done.is_err() {
            *state = State { writes: state.writes, ..State::default() };
        }
        let put = leaves.into_iter().filter_map(|leaf| match leaf {
            Written::Put(leaf) if done.is_ok() => Some(leaf),
            Written::Put(_) | Written::Gone(_) => None,
        });
        put.for_each(|leaf| state.keep(leaf));
        state.writes += 1;
        state.under_way = false;
        done
    }

    /// All that it guards holds together after each step, so a panic leaves nothing half done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let state = self.state();
        let leaves = state.young.leaves.values().chain(state.old.leaves.values());
        leaves.map(Opened::cost).sum()
    }
}

impl State {
    fn begin(&mut self, leaves: &[Written]) {
        self.writes += 1;
        self.under_way = true;
        for leaf in leaves {
            self.young.remove(leaf.key());
            self.old.remove(leaf.key());
        }
    }

    fn keep(&mut self, leaf: Opened) {
        let cost = leaf.cost();
        if cost > LONGEST {
            return;
        }
        self.old.remove(&leaf.key);
        self.young.remove(&leaf.key);
        if self.young.bytes + cost > KEPT_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.bytes += cost;
        self.young.leaves.insert(leaf.key.clone(), leaf);
    }
}

#[derive(Default)]
struct Half {
    leaves: BTreeMap<Vec<u8>, Opened>,
    bytes: usize,
}

impl Half {
    fn find(&self, key: &[u8]) -> Option<&Opened> {
        let range = (std::ops::Bound::Unbounded, std::ops::Bound::Included(key));
        let (_, leaf) = self.leaves.range::<[u8], _>(range).next_back()?;
        leaf.holds(key).then_some(leaf)
    }

    fn remove(&mut self, key: &[u8]) -> Option<Opened> {
        let leaf = self.leaves.remove(key)?;
        self.bytes -= leaf.cost();
        Some(leaf)
    }
}
