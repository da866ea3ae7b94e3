//! The changes of the newest revisions, read once for all watchers that wait for the same ones.
//!
//! **Invariant:** callers share a batch only if they ask for the same changes and see all of them.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use prost::Message as _;
use satchel_proto::v1;
use satchel_store::Revision;
use tokio::sync::{OnceCell, Semaphore};
use tonic::Status;

use super::changes::{Batch, Span};

/// Reads for watchers at once. A commit wakes all watchers together, and each read would start a thread.
const MAX_READS: usize = 4;
/// Different batches that are kept until the next revision.
const MAX_BATCHES: usize = 32;
/// Largest batch that is kept, in bytes.
const MAX_BATCH_BYTES: usize = 64 << 10;

/// Which changes a batch has: the query of the watch, and the revisions.
pub(super) type BatchKey = (Arc<[u8]>, Revision, Revision);

/// The batches. Clones share them.
#[derive(Clone)]
pub(in crate::grpc) struct SharedBatches {
    reads: Arc<Semaphore>,
    batches: Arc<Mutex<Batches>>,
}

#[derive(Default)]
struct Batches {
    until: Option<Revision>,
    by_key: HashMap<BatchKey, Arc<OnceCell<Arc<Batch>>>>,
}

impl Default for SharedBatches {
    fn default() -> Self {
        Self { reads: Arc::new(Semaphore::new(MAX_READS)), batches: Arc::default() }
    }
}

impl SharedBatches {
    /// Returns the batch of `query` for a span from its start on, and reads it if no other watcher has. Without a query it
    /// is not shared.
    pub(super) async fn get_or_read(
        &self,
        query: Option<&Arc<[u8]>>,
        span: Span,
        read: impl Future<Output = Result<Batch, Status>>,
    ) -> Result<Arc<Batch>, Status> {
        let Some(key) = query.map(|query| (Arc::clone(query), span.start, span.until)) else {
            return self.read(read).await;
        };
        let Some(cell) = self.cell(&key) else { return self.read(read).await };
        let batch = Arc::clone(cell.get_or_try_init(|| self.read(read)).await?);
        if batch.changes.iter().map(v1::Change::encoded_len).sum::<usize>() > MAX_BATCH_BYTES {
            self.batches().by_key.remove(&key);
        }
        Ok(batch)
    }

    async fn read(&self, read: impl Future<Output = Result<Batch, Status>>) -> Result<Arc<Batch>, Status> {
        // The semaphore is never closed.
        let _permit = self.reads.acquire().await.ok();
        read.await.map(Arc::new)
    }

    /// Returns the place of a batch, unless there are too many or it is not of the newest revision.
    fn cell(&self, key: &BatchKey) -> Option<Arc<OnceCell<Arc<Batch>>>> {
        let mut batches = self.batches();
        if batches.until < Some(key.2) {
            *batches = Batches { until: Some(key.2), ..Batches::default() };
        }
        let known = batches.by_key.contains_key(key);
        let fits = batches.until == Some(key.2) && (known || batches.by_key.len() < MAX_BATCHES);
        fits.then(|| Arc::clone(batches.by_key.entry(key.clone()).or_default()))
    }

    fn batches(&self) -> std::sync::MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_store::ChangePosition;

    use super::*;

    async fn read(batches: &SharedBatches, query: Option<&[u8]>, start: u64, until: u64, reads: &mut u32) {
        let span = Span { start: Revision::new(start), until: Revision::new(until) };
        let query = query.map(Arc::<[u8]>::from);
        let read = async {
            *reads += 1;
            Ok(Batch { changes: Vec::new(), position: ChangePosition::after(span.start), next: None })
        };
        batches.get_or_read(query.as_ref(), span, read).await.unwrap();
    }

    #[tokio::test]
    async fn only_the_same_query_of_the_newest_revision_is_shared() {
        let (batches, mut reads) = (SharedBatches::default(), 0);
        let cases: [(Option<&[u8]>, u64, u64, u32); 8] = [
            (Some(b"a"), 1, 2, 1),
            (Some(b"a"), 1, 2, 1),
            (Some(b"b"), 1, 2, 2),
            (Some(b"a"), 0, 2, 3),
            (None, 1, 2, 4),
            (Some(b"a"), 1, 3, 5),
            // An older revision than the newest one is read again.
            (Some(b"a"), 1, 2, 6),
            (Some(b"a"), 1, 2, 7),
        ];
        for (query, start, until, expected) in cases {
            read(&batches, query, start, until, &mut reads).await;
            assert_eq!(reads, expected, "{query:?} {start} {until}");
        }
    }

    #[tokio::test]
    async fn a_failed_read_is_not_shared() {
        let batches = SharedBatches::default();
        let span = Span { start: Revision::new(1), until: Revision::new(2) };
        let query: Arc<[u8]> = Arc::from(&b"a"[..]);
        let failed = batches.get_or_read(Some(&query), span, async { Err(Status::unavailable("")) });
        assert!(failed.await.is_err());
        let mut reads = 0;
        read(&batches, Some(b"a"), 1, 2, &mut reads).await;
        assert_eq!(reads, 1);
    }
}
