//! An engine in memory, for a store whose disk accepts no writes. It is built from the journal and lost with the process.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{PoisonError, RwLock},
};

use super::{Changes, Engine, EngineError, Pair};

/// Returns up to `limit` pairs of a map with `from ≤ key < until`, the last ones first if `reverse`.
pub(crate) fn pairs(
    map: &BTreeMap<Vec<u8>, Vec<u8>>,
    (from, until): (&[u8], &[u8]),
    limit: usize,
    reverse: bool,
) -> Vec<Pair> {
    if from >= until {
        return Vec::new();
    }
    let range = map.range::<[u8], _>((Bound::Included(from), Bound::Excluded(until)));
    let pair = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    if reverse { range.rev().take(limit).map(pair).collect() } else { range.take(limit).map(pair).collect() }
}

/// An ordered map. A batch cannot panic in the middle, because a map accepts every change, so a poisoned lock can be ignored.
#[derive(Default)]
pub(crate) struct MemoryEngine(RwLock<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Engine for MemoryEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(pairs(&map, (from, until), limit, reverse))
    }

    fn apply(&self, batch: Changes) -> Result<(), EngineError> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in batch.operations {
            match value {
                Some(value) => drop(map.insert(key, value)),
                None => drop(map.remove(&key)),
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn size(&self) -> u64 {
        0
    }
}
