//! A token by which another thread asks a run to stop.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Asks a run to stop; clones share one request. The run ends within a second.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests cancellation; this cannot be reversed.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether cancellation was requested.
    pub fn cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
