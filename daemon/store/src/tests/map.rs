//! The test double of the engine: in memory, and it can be killed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::engine::{
    Changes, Engine, EngineError, Pair,
    folder::{EngineFolder, FileFingerprint},
    leaves::LeafEngine,
    memory::pairs,
};

/// An engine in memory. Clones share their content, as two processes would share a folder.
#[derive(Clone, Default)]
pub(super) struct MapEngine(Arc<Mutex<MapState>>);

#[derive(Default)]
struct MapState {
    now: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The states after each batch since the last `checkpoint`, so that a kill can go back to one of them.
    applied: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    fail_after: Option<usize>,
    /// The error text of the failure.
    error_text: Option<&'static str>,
    panics: bool,
}

impl MapEngine {
    /// Goes back to the state after one of the last batches, as a killed engine may. Returns how many states there were to choose
    /// from.
    pub(super) fn kill(&self, choose: usize) -> usize {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.applied.len();
        if count > 0 {
            state.now = state.applied[choose % count].clone();
        }
        state.applied.clear();
        state.fail_after = None;
        count
    }

    /// Returns an independent copy: the content at the moment when the process was killed.
    pub(super) fn fork(&self) -> Self {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Self(Arc::new(Mutex::new(MapState {
            now: state.now.clone(),
            applied: state.applied.clone(),
            ..MapState::default()
        })))
    }

    /// From now on a kill cannot go back beyond this state.
    pub(super) fn checkpoint(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.applied = vec![state.now.clone()];
    }

    /// Accepts `batches` more batches, then fails.
    pub(super) fn fail_after(&self, batches: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fail_after = Some(batches);
    }

    /// Accepts `batches` more batches, then reports a full disk.
    pub(super) fn fill_after(&self, batches: usize) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.fail_after, state.error_text) = (Some(batches), Some("IO error: StorageFull"));
    }

    /// From now on each batch panics.
    pub(super) fn panics(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).panics = true;
    }

    pub(super) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = MapState::default();
    }

    pub(super) fn content(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).now.clone()
    }

    /// Returns the content regardless of the leaves that contain it; for a plain store.
    pub(super) fn entries(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let leaves = LeafEngine::new(Arc::new(self.clone())).unwrap();
        let of = |kind: u8| leaves.scan(&[kind], &[kind + 1], usize::MAX, false).unwrap();
        (0..u8::MAX).flat_map(of).collect()
    }
}

impl Engine for MapEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).now.get(key).cloned())
    }

    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(pairs(&state.now, (from, until), limit, reverse))
    }

    fn apply(&self, batch: Changes) -> Result<(), EngineError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!state.panics, "planted");
        match &mut state.fail_after {
            Some(0) => return Err(EngineError(state.error_text.unwrap_or("planted").to_owned())),
            Some(left) => *left -= 1,
            None => {}
        }
        for (key, value) in batch.operations {
            match value {
                Some(value) => state.now.insert(key, value),
                None => state.now.remove(&key),
            };
        }
        let now = state.now.clone();
        state.applied.push(now);
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn size(&self) -> u64 {
        0
    }
}

/// The location of a [`MapEngine`].
#[derive(Clone, Default)]
pub(super) struct MapFolder(pub(super) MapEngine);

impl EngineFolder for MapFolder {
    fn released(&self) -> std::io::Result<bool> {
        Ok(true)
    }

    fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        Ok(Arc::new(self.0.clone()))
    }

    fn set_aside(&self) -> std::io::Result<()> {
        self.0.clear();
        Ok(())
    }

    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn fingerprints(&self) -> std::io::Result<Vec<FileFingerprint>> {
        Ok(Vec::new())
    }
}
