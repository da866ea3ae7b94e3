//! The memories as they were at a revision, each revision in an index of its own.
//!
//! The index that follows the journal has only what is stored now. What was stored at an earlier revision is read from the store when
//! somebody searches it, into an index in memory that is dropped when it was not searched for a while.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use satchel_pam::memory::Memory;
use satchel_search::index::{IndexLocation, OwnerId, SearchIndex};
use satchel_store::{MemoryOrder, MemoryQuery, MemoryRecord, Revision, Store, StoreError};

use crate::{IndexerError, documents, follower::successor, pinned::PinnedSnapshot};

/// Memories that an index takes, at most: it is in memory.
const MAX_MEMORIES: usize = 200_000;
/// Indexes that are kept.
const MAX_INDEXES: usize = 2;
/// Memories that are read at once.
const PAGE: usize = 256;
/// After so long without a search, an index is dropped.
const DROP_AFTER: Duration = Duration::from_mins(10);
/// For so long, lists have the time of the first of them, in microseconds.
const KEPT_TIME_MICROS: i64 = 10 * 60 * 1_000_000;

/// Why an earlier revision cannot be searched.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There are too many memories.
    #[error("the store had more than {MAX_MEMORIES} memories at revision {0}")]
    TooManyMemories(Revision),
    /// The index or the store failed.
    #[error(transparent)]
    Indexer(IndexerError),
}

impl<E: Into<IndexerError>> From<E> for HistoryError {
    fn from(error: E) -> Self {
        Self::Indexer(error.into())
    }
}

struct HistoryIndex {
    pinned: PinnedSnapshot,
    used: Instant,
}

/// The indexes, the one that was used last at the end.
#[derive(Default)]
pub(crate) struct HistoryIndexes(Mutex<Vec<HistoryIndex>>);

impl HistoryIndexes {
    fn lock(&self) -> MutexGuard<'_, Vec<HistoryIndex>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what has not been searched for a while. Does not wait while an index is read.
    pub(crate) fn drop_unused(&self) {
        if let Ok(mut indexes) = self.0.try_lock() {
            indexes.retain(|index| index.used.elapsed() < DROP_AFTER);
        }
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Returns the memories of a revision if they are still in memory.
    pub(crate) fn get(&self, revision: Revision) -> Option<PinnedSnapshot> {
        get(&mut self.lock(), revision)
    }

    /// Returns the memories of a revision. They are read if nobody searched them lately. Of several callers at once, one reads and
    /// the others wait. `now` is the time for which hits are ranked, unless a list that began lately has another one.
    pub(crate) fn get_or_read(
        &self,
        store: &Store,
        revision: Revision,
        now: i64,
    ) -> Result<PinnedSnapshot, HistoryError> {
        let mut indexes = self.lock();
        if let Some(found) = get(&mut indexes, revision) {
            let began_lately = now.saturating_sub(found.now) < KEPT_TIME_MICROS;
            let now = if began_lately { found.now } else { now };
            // The one that was used last is at the end.
            if let Some(index) = indexes.last_mut() {
                index.pinned.now = now;
            }
            return Ok(PinnedSnapshot { now, ..found });
        }
        // Not more are in memory than that, also while another one is read.
        let too_many = (indexes.len() + 1).saturating_sub(MAX_INDEXES);
        indexes.drain(..too_many);
        let pinned = PinnedSnapshot { snapshot: read(store, revision)?.snapshot(), now };
        indexes.push(HistoryIndex { pinned: pinned.clone(), used: Instant::now() });
        Ok(pinned)
    }
}

fn get(indexes: &mut Vec<HistoryIndex>, revision: Revision) -> Option<PinnedSnapshot> {
    let at = indexes.iter().position(|index| index.pinned.snapshot.revision() == revision.get())?;
    let index = HistoryIndex { used: Instant::now(), ..indexes.remove(at) };
    let pinned = index.pinned.clone();
    indexes.push(index);
    Some(pinned)
}

/// Indexes the memories that the store had at a revision.
fn read(store: &Store, revision: Revision) -> Result<SearchIndex, HistoryError> {
    let index = SearchIndex::open(&IndexLocation::Memory, &store.store_id().to_string())?;
    let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
    let (mut after, mut count) = (None, 0);
    loop {
        let page = store.memories(&query, after.as_ref(), PAGE, revision)?;
        count += page.items.len();
        if count > MAX_MEMORIES {
            return Err(HistoryError::TooManyMemories(revision));
        }
        for MemoryRecord { memory, .. } in &page.items {
            let next = successor(memory, |id| memory_at(store, id, revision))?;
            index.add(&OwnerId::Memory(&memory.id), &documents::memory(memory, next.as_ref()))?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    index.commit(revision.get())?;
    // Nothing is added any more, so its writer is not needed.
    index.rest()?;
    Ok(index)
}

fn memory_at(store: &Store, id: &str, revision: Revision) -> Result<Option<Memory>, StoreError> {
    let record = store.memory(id, Some(revision))?.filter(|record| !record.withdrawn);
    Ok(record.map(|record| record.memory))
}
