//! How a run is asked to stop from another thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Asks a run to stop; clones share one request. The run ends within a second.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the end; cannot be taken back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the end was asked for.
    pub fn cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
