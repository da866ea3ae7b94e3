//! Reads of a few records, which run on the threads of the runtime: passing one to another thread takes longer than the
//! read itself.
//!
//! **Invariant:** one thread of the runtime is never in such a read, so that a disk that does not answer holds up no other
//! call.

use std::sync::Arc;

use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit},
};

/// The places for such reads: one fewer than the runtime has threads. Clones share them.
#[derive(Clone, Debug)]
pub struct ShortReads(Arc<Semaphore>);

impl ShortReads {
    /// Creates the places for the runtime of the caller.
    pub(crate) fn new() -> Self {
        let threads = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        Self(Arc::new(Semaphore::new(threads.saturating_sub(1))))
    }

    /// Takes a place until it is dropped; `None` if none is free.
    pub(super) fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire().ok()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn one_thread_stays_free() {
        let reads = ShortReads::new();
        let (first, second) = (reads.place().unwrap(), reads.place().unwrap());
        assert!(reads.place().is_none());
        drop(first);
        assert!(reads.place().is_some());
        drop(second);
    }

    #[tokio::test]
    async fn the_only_thread_does_not_read() {
        assert!(ShortReads::new().place().is_none());
    }
}
