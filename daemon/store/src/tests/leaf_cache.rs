//! Cached leaves are equal to those of the engine: after writes, after failed writes, and for readers during concurrent writes.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use proptest::prelude::*;

use super::map::MapEngine;
use crate::{
    engine::{
        Changes, Engine, EngineError, Pair,
        leaves::{LEAF_CACHE_BYTES, LeafEngine},
    },
    keys, value,
};

/// Number of a key, and the length of its value, or `None` to remove the entry.
type Step = (u8, Option<usize>);

fn batch() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((any::<u8>(), prop::option::weighted(0.7, 0_usize..400)), 1..40)
}

fn key(number: u8) -> Vec<u8> {
    vec![keys::LEDGER_TIME, number / 16, number % 16]
}

/// Returns the changes of a batch; `mark` distinguishes its values from those of other batches.
fn changes(batch: &[Step], mark: u8) -> Changes {
    let mut changes = Changes::default();
    for (number, length) in batch {
        match length {
            Some(length) => changes.put(key(*number), [value::plain(), vec![mark; *length]].concat()),
            None => changes.delete(key(*number)),
        }
    }
    changes
}

/// Returns the content of the engine below, read without a cache.
fn stored(inner: &MapEngine) -> BTreeMap<Vec<u8>, Vec<u8>> {
    inner.entries()
}

fn read(leaves: &LeafEngine) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let value = |number| Some((key(number), leaves.get(&key(number)).unwrap()?));
    (0..=u8::MAX).filter_map(value).collect()
}

proptest! {
    #[test]
    fn the_cache_is_emptied_after_a_failed_write(
        batches in prop::collection::vec((batch(), any::<bool>()), 2..12),
    ) {
        let inner = MapEngine::default();
        let leaves = LeafEngine::new(Arc::new(inner.clone())).unwrap();
        for (mark, (batch, fails)) in (1_u8..).zip(batches) {
            if fails {
                inner.fail_after(0);
            }
            prop_assert_eq!(leaves.apply(changes(&batch, mark)).is_err(), fails);
            inner.fail_after(usize::MAX);
            prop_assert_eq!(read(&leaves), stored(&inner));
        }
    }

    #[test]
    fn a_reader_during_a_write_caches_nothing_stale(
        first in batch(),
        later in prop::collection::vec((batch(), any::<u8>()), 1..20),
    ) {
        let (inner, racing, leaves) = racing();
        leaves.apply(changes(&first, 1)).unwrap();
        for (mark, (batch, asked)) in (2_u8..).zip(later) {
            let (before, after) = (stored(&inner), changes(&batch, mark));
            *racing.pending.lock().unwrap() = Some(after);
            let seen = leaves.get(&key(asked)).unwrap();
            // The leaf was cached, so the engine was not read; the batch is written now.
            let left = racing.pending.lock().unwrap().take();
            if let Some(after) = left {
                leaves.apply(after).unwrap();
            }
            let now = stored(&inner);
            prop_assert!([&before, &now].map(|stored| stored.get(&key(asked))).contains(&seen.as_ref()));
            prop_assert_eq!(read(&leaves), now);
        }
    }
}

fn racing() -> (MapEngine, Arc<RacingEngine>, Arc<LeafEngine>) {
    let inner = MapEngine::default();
    let racing = Arc::new(RacingEngine { inner: inner.clone(), ..RacingEngine::default() });
    let leaves = Arc::new(LeafEngine::new(Arc::clone(&racing) as Arc<dyn Engine>).unwrap());
    racing.leaves.set(Arc::downgrade(&leaves)).ok();
    (inner, racing, leaves)
}

#[test]
fn the_cache_is_emptied_after_a_writer_panicked() {
    let (inner, racing, leaves) = racing();
    leaves.apply(changes(&[(1, Some(5)), (9, Some(5))], 1)).unwrap();
    racing.panics.store(true, Ordering::Relaxed);
    let lost = changes(&[(1, None), (5, Some(9))], 2);
    assert!(catch_unwind(AssertUnwindSafe(|| leaves.apply(lost))).is_err());
    assert_eq!(read(&leaves), stored(&inner));
    leaves.apply(changes(&[(7, Some(3))], 3)).unwrap();
    assert_eq!(read(&leaves), stored(&inner));
    assert_eq!(stored(&inner).into_keys().collect::<Vec<_>>(), [1, 7, 9].map(key));
}

/// An engine that writes after a reader has read and before it caches the leaf, and that reads when a writer is about to write.
#[derive(Default)]
struct RacingEngine {
    inner: MapEngine,
    leaves: OnceLock<Weak<LeafEngine>>,
    /// The batch that is written behind the next reader.
    pending: Mutex<Option<Changes>>,
    /// The next write panics.
    panics: AtomicBool,
}

impl RacingEngine {
    fn leaves(&self) -> Arc<LeafEngine> {
        self.leaves.get().and_then(Weak::upgrade).unwrap()
    }
}

impl Engine for RacingEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.inner.get(key)
    }

    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        let found = self.inner.scan(from, until, limit, reverse);
        let pending = self.pending.lock().unwrap().take();
        if let Some(changes) = pending {
            self.leaves().apply(changes)?;
        }
        found
    }

    fn apply(&self, batch: Changes) -> Result<(), EngineError> {
        let (leaves, before) = (self.leaves(), stored(&self.inner));
        assert_eq!(read(&leaves), before, "a reader sees what is not written yet");
        assert!(!self.panics.swap(false, Ordering::Relaxed), "planted");
        self.inner.apply(batch)?;
        assert_eq!(read(&leaves), stored(&self.inner), "a reader sees what is written no more");
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.inner.flush()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }
}

#[test]
fn the_cache_size_is_bounded() {
    let inner = MapEngine::default();
    let leaves = LeafEngine::new(Arc::new(inner.clone())).unwrap();
    let record = |number: u32| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.wrapping_mul(0x9e37_79b1).to_be_bytes());
        let length = if number.is_multiple_of(50) { 300 << 10 } else { 700 };
        (keys::object(keys::MEMORY, id), [value::plain(), vec![7; length]].concat())
    };
    let mut most = 0;
    for from in (0..6_000).step_by(200) {
        let mut changes = Changes::default();
        (from..from + 200).map(record).for_each(|(key, value)| changes.put(key, value));
        leaves.apply(changes).unwrap();
        inner.checkpoint();
        most = most.max(leaves.cached_bytes());
    }
    for number in 0..6_000 {
        let (key, value) = record(number);
        assert_eq!(leaves.get(&key).unwrap(), Some(value));
        most = most.max(leaves.cached_bytes());
    }
    assert!(most <= LEAF_CACHE_BYTES, "{most} bytes are kept");
    assert!(most > LEAF_CACHE_BYTES / 2, "only {most} bytes are kept");
}
