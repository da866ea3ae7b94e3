//! Entries in leaves equal those that were put, also for readers during concurrent writes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use proptest::prelude::*;

use super::map::MapEngine;
use crate::{
    engine::{
        Changes, Engine, EngineError, Pair,
        leaves::{LONG_LEAF_BYTES, LeafEngine, SHORT_LEAF_BYTES, unescaped},
        sled_engine::SledEngine,
    },
    keys, value,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Kind and number of a key, and the length of its value, or `None` to remove the entry.
type Step = (u8, u16, Option<usize>);

fn batch() -> impl Strategy<Value = Vec<Step>> {
    let value = prop_oneof![3 => (0_usize..60).prop_map(Some), 1 => (60_usize..3_000).prop_map(Some), 2 => Just(None)];
    prop::collection::vec((0_u8..3, 0_u16..700, value), 1..60)
}

/// Returns a key of a kind with short leaves, with long ones, or without leaves.
fn key(kind: u8, number: u16) -> Vec<u8> {
    let kind = [keys::INDEX, keys::MEMORY, keys::CONVERSATION][usize::from(kind)];
    let mut key = vec![kind];
    key.extend_from_slice(&number.to_be_bytes());
    // Some keys are prefixes of others.
    key.extend(std::iter::repeat_n(0, usize::from(number % 3)));
    key
}

fn apply(engine: &dyn Engine, model: &mut Map, batch: &[Step]) {
    let mut changes = Changes::default();
    for (n, (kind, number, length)) in batch.iter().enumerate() {
        let key = key(*kind, *number);
        if let Some(length) = length {
            let value =
                if *length == 0 { Vec::new() } else { [value::plain(), vec![n as u8; *length]].concat() };
            model.insert(key.clone(), value.clone());
            changes.put(key, value);
        } else {
            model.remove(&key);
            changes.delete(key);
        }
    }
    engine.apply(changes).unwrap();
}

fn expected(model: &Map, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Vec<Pair> {
    let inside = model.iter().filter(|(key, _)| key.as_slice() >= from && key.as_slice() < until);
    let mut found: Vec<_> = inside.map(|(key, value)| (key.clone(), value.clone())).collect();
    if reverse {
        found.reverse();
    }
    found.truncate(limit);
    found
}

proptest! {
    #[test]
    fn entries_in_leaves_match_the_model(
        batches in prop::collection::vec(batch(), 1..12),
        asked in prop::collection::vec((0_u8..3, 0_u16..720, 0_u16..720, 0_usize..300, any::<bool>()), 30),
    ) {
        let inner = MapEngine::default();
        let (leaves, mut model) = (LeafEngine::new(Arc::new(inner.clone())).unwrap(), Map::new());
        for batch in &batches {
            apply(&leaves, &mut model, batch);
            prop_assert_eq!(&inner.entries(), &model);
            for (kind, one, other, ..) in &asked {
                for key in [key(*kind, *one), key(*kind, *other)] {
                    prop_assert_eq!(leaves.get(&key).unwrap(), model.get(&key).cloned());
                }
            }
        }
        for (kind, from, until, limit, reverse) in asked {
            let (from, until) = (key(kind, from), key(kind, until));
            prop_assert_eq!(leaves.get(&from).unwrap(), model.get(&from).cloned());
            prop_assert_eq!(leaves.scan(&from, &until, limit, reverse).unwrap(), expected(&model, &from, &until, limit, reverse));
        }
        let leaf = |key: Vec<u8>| if key[0] == keys::CONVERSATION { key } else { unescaped(&key) };
        let content: Map = inner.content().into_iter().map(|(key, value)| (leaf(key), value)).collect();
        for (key, value) in &content {
            let limit = if key[0] == keys::INDEX { SHORT_LEAF_BYTES } else { LONG_LEAF_BYTES };
            let alone = LeafEngine::new(Arc::new(inner.clone())).unwrap();
            let next = content.keys().find(|other| *other > key && other[0] == key[0]);
            let until = next.cloned().unwrap_or_else(|| vec![key[0] + 1]);
            let count = alone.scan(key, &until, usize::MAX, false).unwrap().len();
            prop_assert!(count > 0, "an empty leaf stays");
            prop_assert!(value.len() <= limit + 4 || count == 1, "a leaf of {count} entries has {} bytes", value.len());
        }
    }

    #[test]
    fn a_scan_during_writes_misses_no_unchanged_entry(
        first in batch(),
        later in prop::collection::vec(batch(), 1..20),
        limit in 1_usize..100,
        reverse in any::<bool>(),
    ) {
        let inner = MapEngine::default();
        let mut model = Map::new();
        apply(&LeafEngine::new(Arc::new(inner.clone())).unwrap(), &mut model, &first);
        let script = Mutex::new(Script { batches: later, now: model.clone(), unchanged: model });
        let racing = RacingWriterEngine { inner, script };
        let racing = Arc::new(racing);
        for kind in [keys::INDEX, keys::MEMORY] {
            let found = LeafEngine::new(Arc::clone(&racing) as Arc<dyn Engine>).unwrap().scan(&[kind], &[kind + 1], limit, reverse).unwrap();
            let Script { now, unchanged, .. } = &*racing.script.lock().unwrap();
            let ordered = found.windows(2).all(|pair| (pair[0].0 < pair[1].0) != reverse && pair[0].0 != pair[1].0);
            prop_assert!(ordered, "a key comes twice, or out of order");
            let last = found.last().map(|(key, _)| key.clone());
            for key in unchanged.keys().filter(|key| key[0] == kind && now.contains_key(*key)) {
                let passed = found.len() < limit || last.as_ref().is_some_and(|last| if reverse { key >= last } else { key <= last });
                prop_assert!(!passed || found.iter().any(|(found, _)| found == key), "a key is missed");
            }
        }
    }
}

/// An engine that writes a batch before each read.
struct RacingWriterEngine {
    inner: MapEngine,
    script: Mutex<Script>,
}

struct Script {
    batches: Vec<Vec<Step>>,
    now: Map,
    /// Entries that were there from the beginning and are still in `now`.
    unchanged: Map,
}

impl Engine for RacingWriterEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.inner.get(key)
    }

    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        let mut script = self.script.lock().unwrap();
        let Script { batches, now, unchanged } = &mut *script;
        if let Some(batch) = batches.pop() {
            apply(&LeafEngine::new(Arc::new(self.inner.clone())).unwrap(), now, &batch);
            for (kind, number, length) in batch {
                if length.is_none() {
                    unchanged.remove(&key(kind, number));
                }
            }
        }
        self.inner.scan(from, until, limit, reverse)
    }

    fn apply(&self, batch: Changes) -> Result<(), EngineError> {
        self.inner.apply(batch)
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.inner.flush()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }
}

/// Returns how many leaves a list of 1,000 entries takes if its keys are put in this order.
fn leaves_of(order: impl Iterator<Item = u32>) -> usize {
    let inner = MapEngine::default();
    let leaves = LeafEngine::new(Arc::new(inner.clone())).unwrap();
    for number in order {
        let mut changes = Changes::default();
        changes.put(
            [&[keys::INDEX], number.to_be_bytes().as_slice(), &[7; 24]].concat(),
            [value::plain(), vec![1; 20]].concat(),
        );
        leaves.apply(changes).unwrap();
        inner.checkpoint();
    }
    inner.content().len()
}

#[test]
fn keys_inserted_in_order_fill_their_leaves() {
    let up = leaves_of(0..1_000);
    let down = leaves_of((0..1_000).rev());
    let mixed = leaves_of((0..1_000).map(|n| n * 389 % 1_000));
    let bytes = 1_000 * (28 + 20 + 4);
    for (order, leaves) in [("up", up), ("down", down)] {
        assert!(leaves * SHORT_LEAF_BYTES < bytes * 6 / 5, "{order}: {leaves} leaves");
    }
    assert!(mixed * SHORT_LEAF_BYTES < bytes * 2, "{mixed} leaves");
}

#[test]
fn malformed_leaves_are_errors() {
    let inner = MapEngine::default();
    let leaves = LeafEngine::new(Arc::new(inner.clone())).unwrap();
    for bytes in [
        vec![],
        vec![1, 0, 0, 2],
        vec![1, 0, 0, 0, 9, 0, 0],
        vec![1, 0, 0, 0, 0, 200],
        vec![1, 0, 0, 0, 0, 0, 0xff, 0xff],
        vec![1, 0, 0, 1, 0xff, 0, 0, 0, 7],
        vec![1, 0, 0, 1, 0, 0, 0, 9, 7, 7, 7],
        // Keys that do not increase.
        vec![1, 0, 0, 0, 1, 5, 0, 1, 0, 0],
        vec![1, 0, 0, 0, 1, 5, 0, 0, 1, 4, 0],
    ] {
        let mut changes = Changes::default();
        changes.put(vec![keys::INDEX], bytes.clone());
        inner.apply(changes).unwrap();
        let error = leaves.get(&[keys::INDEX, 1]).unwrap_err().to_string();
        assert!(error.starts_with("the leaf at key 40 "), "{bytes:?}: {error}");
        assert!(leaves.scan(&[keys::INDEX], &[keys::INDEX + 1], 5, true).is_err());
        let mut changes = Changes::default();
        changes.put(vec![keys::INDEX, 1], Vec::new());
        assert!(leaves.apply(changes).is_err());
    }
}

/// Returns an entry of a kind with long leaves.
fn record(id: [u8; 16], length: usize) -> (Vec<u8>, Vec<u8>) {
    let value = [value::plain(), (0..length).map(|n| (n % 7) as u8).collect()].concat();
    (keys::object(keys::MEMORY, id), value)
}

#[test]
fn very_long_entries_and_their_neighbours_round_trip() {
    let leaves = LeafEngine::new(Arc::new(MapEngine::default())).unwrap();
    let mut entries = Vec::new();
    for (at, length) in [3_000, 300 << 10, 40, 2 << 20, 100].into_iter().enumerate() {
        entries.push(record([at as u8; 16], length));
        let mut changes = Changes::default();
        changes.put(entries[at].0.clone(), entries[at].1.clone());
        leaves.apply(changes).unwrap();
    }
    assert_eq!(leaves.scan(&[keys::MEMORY], &[keys::MEMORY + 1], 9, false).unwrap(), entries);
    for (key, value) in &entries {
        assert_eq!(leaves.get(key).unwrap().as_ref(), Some(value));
    }
}

#[test]
fn sled_finds_the_leaf_before_a_key_of_any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let leaves = LeafEngine::new(Arc::new(SledEngine::open(folder.path(), 8 << 20).unwrap())).unwrap();
    let id = |head: [u8; 5], rest: u8, at: u8| {
        let mut id = [rest; 16];
        id[..5].copy_from_slice(&head);
        id[9] = at;
        id
    };
    let mut entries = Vec::new();
    for at in 0..60 {
        // Long entries have a leaf each.
        entries.push(record(id([0, 0, 0, 0x0a, 0xff], 0xff, at), LONG_LEAF_BYTES));
        entries.push(record(id([0, 0, 0, 0x0b, 0x80], 0, at), LONG_LEAF_BYTES));
    }
    for (key, value) in &entries {
        let mut changes = Changes::default();
        changes.put(key.clone(), value.clone());
        leaves.apply(changes).unwrap();
    }
    entries.sort();
    for (key, value) in &entries {
        assert_eq!(leaves.get(key).unwrap().as_ref(), Some(value));
    }
    for head in [0x00, 0x7f, 0x81, 0xff] {
        assert_eq!(leaves.get(&keys::object(keys::MEMORY, id([0, 0, 0, 0x0b, head], 3, 3))).unwrap(), None);
    }
    entries.reverse();
    assert_eq!(leaves.scan(&[keys::MEMORY], &[keys::MEMORY + 1], 200, true).unwrap(), entries);
}
