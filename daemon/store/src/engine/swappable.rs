//! The engine that readers use, which can be replaced by another one while they read.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::{Changes, Engine, EngineError, Pair};
use crate::keys::Id16;

/// Replaces a failed engine with another one; returns false if that is not possible now.
type RepairFn = Box<dyn Fn() -> bool + Send + Sync>;

/// An engine, and the callback for its failure.
pub(crate) struct SwappableEngine {
    current: RwLock<Arc<dyn Engine>>,
    repair: OnceLock<RepairFn>,
}

impl SwappableEngine {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { current: RwLock::new(engine), repair: OnceLock::new() }
    }

    /// Sets the callback for a read that fails because a resource is exhausted. The callback must not wait for readers.
    pub(crate) fn on_failure(&self, repair: RepairFn) {
        // A store is built once, so there is only one callback; a second one would be ignored.
        drop(self.repair.set(repair));
    }

    /// Makes all readers use this engine from now on. It holds the same data as the previous one.
    pub(crate) fn replace(&self, engine: Arc<dyn Engine>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = engine;
    }

    fn current(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn read<T>(&self, read: impl Fn(&dyn Engine) -> Result<T, EngineError>) -> Result<T, EngineError> {
        match read(self.current().as_ref()) {
            Err(error) if error.passes() && self.repair.get().is_some_and(|repair| repair()) => {
                tracing::warn!(%error, "the database failed; what is read comes from the journal now");
                read(self.current().as_ref())
            }
            answer => answer,
        }
    }
}

impl Engine for SwappableEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.read(|engine| engine.get(key))
    }

    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        self.read(|engine| engine.scan(from, until, limit, reverse))
    }

    fn apply(&self, batch: Changes) -> Result<(), EngineError> {
        self.current().apply(batch)
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.current().flush()
    }

    fn size(&self) -> u64 {
        self.current().size()
    }

    fn blind(&self, name: &str) -> Id16 {
        self.current().blind(name)
    }
}
