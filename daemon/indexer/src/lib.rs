//! Keeps the search index up to date with the store.
//!
//! The index follows the journal: a thread reads the change log from the revision that the last commit of the index names, and
//! replaces the documents of each memory and conversation that changed. Nothing that writes to the store waits for it. A process
//! that ends anywhere loses at most what the index has not committed, which the next start adds.

mod deferral;
mod documents;
mod follower;
mod history;
mod pinned;
mod vectors;

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use satchel_search::{
    index::{IndexError, IndexLocation, SearchIndex, Snapshot},
    vectors::VectorHit,
};
use satchel_store::{Revision, Store, StoreError};

pub use self::{
    documents::{memory_text, message_text},
    history::HistoryError,
    pinned::PinnedSnapshot,
    vectors::{EmbeddingModel, VectorQuery, VectorSearchError},
};
use self::{follower::Follower, history::HistoryIndexes, pinned::PinnedSnapshots, vectors::VectorIndexes};

/// Shortest time between two times that an index is built anew because of damage.
const REBUILD_INTERVAL: Duration = Duration::from_mins(10);

/// Why the index cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IndexerError {
    /// The index failed.
    #[error(transparent)]
    Index(Arc<IndexError>),
    /// The store failed.
    #[error("the store cannot be read for the search index")]
    Store(#[source] Arc<StoreError>),
    /// The thread that follows the journal cannot be started.
    #[error("the thread that builds the search index cannot be started: {0}")]
    Thread(String),
    /// A bug.
    #[error("the thread that builds the search index panicked; please report this")]
    Panicked,
}

impl From<IndexError> for IndexerError {
    fn from(error: IndexError) -> Self {
        Self::Index(Arc::new(error))
    }
}

impl From<StoreError> for IndexerError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// How far the index is.
#[derive(Clone, Debug, Default)]
pub struct IndexProgress {
    /// The revision up to which everything can be found.
    pub revision: Revision,
    /// Memories, messages and titles in the index.
    pub documents: u64,
    /// Bytes on disk; 0 if the index is in memory.
    pub bytes: u64,
    /// Whether the journal is being followed. An indexer that nobody has asked yet does not.
    pub running: bool,
    /// Why the index is not kept up to date any more.
    pub error: Option<IndexerError>,
}

/// The index of a store, and the thread that keeps it up to date. Clones share one.
#[derive(Clone)]
pub struct Indexer(Arc<Shared>);

struct Shared {
    store: Store,
    location: IndexLocation,
    /// Held only for a moment, as commits of the store take it to wake the thread.
    state: Mutex<State>,
    /// Held while the index is opened.
    opening: Mutex<()>,
    /// Searches that wait for a revision.
    waiting: AtomicUsize,
    /// Returns whether imports run.
    imports: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Notified when the store has a new revision, when the index has one, and at a stop.
    changed: Condvar,
    pinned: PinnedSnapshots,
    vectors: VectorIndexes,
    history: HistoryIndexes,
}

#[derive(Default)]
struct State {
    index: Option<Arc<SearchIndex>>,
    thread: Option<JoinHandle<()>>,
    stopping: bool,
    /// Whether the thread must end because the index is removed.
    abandoned: bool,
    /// When the index was last built anew.
    rebuilt: Option<Instant>,
    error: Option<IndexerError>,
}

impl State {
    /// Returns whether the thread has to end.
    fn ends(&self) -> bool {
        self.stopping || self.abandoned
    }
}

impl Indexer {
    /// Creates an indexer that does nothing until it is started, or asked for a snapshot.
    #[must_use]
    pub fn new(store: Store, location: IndexLocation) -> Self {
        Self(Arc::new(Shared {
            store,
            location,
            state: Mutex::default(),
            opening: Mutex::default(),
            waiting: AtomicUsize::default(),
            imports: OnceLock::new(),
            changed: Condvar::default(),
            pinned: PinnedSnapshots::default(),
            vectors: VectorIndexes::default(),
            history: HistoryIndexes::default(),
        }))
    }

    /// Sets the function that returns whether imports run. While they do, what they bring is indexed when a search wants it, and
    /// otherwise after a minute. Until this is set, everything is indexed at once.
    pub fn yield_to_imports(&self, run: impl Fn() -> bool + Send + Sync + 'static) {
        if self.0.imports.set(Box::new(run)).is_err() {
            tracing::debug!("which imports run is known already");
        }
    }

    /// Opens the index and begins to follow the journal. Does nothing if it does so already.
    ///
    /// # Errors
    /// If the index cannot be opened or created, or failed before.
    pub fn start(&self) -> Result<(), IndexerError> {
        self.index().map(drop)
    }

    fn index(&self) -> Result<Arc<SearchIndex>, IndexerError> {
        if let Some(index) = self.opened()? {
            return Ok(index);
        }
        let _opening = self.0.opening.lock().unwrap_or_else(PoisonError::into_inner);
        // Another caller may have opened it meanwhile.
        if let Some(index) = self.opened()? {
            return Ok(index);
        }
        let index = Arc::new(open(&self.0.location, &self.0.store)?);
        let mut state = self.0.lock();
        state.index = Some(Arc::clone(&index));
        if !state.stopping {
            let follower = Follower::new(Arc::clone(&self.0), Arc::clone(&index));
            let thread = thread::Builder::new().name("search index".to_owned()).spawn(|| follower.run());
            state.thread = Some(thread.map_err(|error| IndexerError::Thread(error.to_string()))?);
        }
        Ok(index)
    }

    /// Returns the index if it is open. It can be searched even while it cannot be kept up to date.
    fn opened(&self) -> Result<Option<Arc<SearchIndex>>, IndexerError> {
        let state = self.0.lock();
        match (&state.index, &state.error) {
            (None, Some(error)) => Err(error.clone()),
            (index, _) => Ok(index.clone()),
        }
    }

    /// Returns a snapshot with everything up to `revision`; after `patience`, the newest one without it. Starts the indexer if
    /// it is not running.
    ///
    /// # Errors
    /// As [`Indexer::start`], and if the index fails while this waits.
    pub fn snapshot_at(&self, revision: Revision, patience: Duration) -> Result<Snapshot, IndexerError> {
        let index = self.index()?;
        let until = Instant::now() + patience;
        // The thread commits at once then, and not only every second.
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        self.0.notify();
        let reached = self.wait_for(&index, revision, until);
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        reached.map(|()| index.snapshot())
    }

    fn wait_for(&self, index: &SearchIndex, revision: Revision, until: Instant) -> Result<(), IndexerError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let reached = || index.revision() >= revision.get();
            let ended = left.is_zero() || !self.0.wait_unless(left, reached) || self.0.is_stopping();
            if reached() {
                return Ok(());
            }
            if let Some(error) = self.0.lock().error.clone() {
                return Err(error);
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Keeps a snapshot for the next pages of a list. `now` is the time that its first page was made for.
    pub fn pin(&self, snapshot: &Snapshot, now: i64) {
        self.0.pinned.insert(PinnedSnapshot { snapshot: snapshot.clone(), now });
    }

    /// Returns the snapshot that was kept at a revision; `None` if it was dropped since.
    #[must_use]
    pub fn pinned(&self, revision: u64) -> Option<PinnedSnapshot> {
        self.0.pinned.get(revision)
    }

    /// Returns the memories as they were at a revision. The first call for a revision reads them, which takes about a second for
    /// 50,000; they are then in memory until ten minutes after their last use. `now` is the time for which hits are ranked; a search
    /// of less than ten minutes before keeps its own, so that the pages of its list stay as they are.
    ///
    /// # Errors
    /// If there are more than 200,000, or the store cannot be read.
    pub fn snapshot_as_of(&self, revision: Revision, now: i64) -> Result<PinnedSnapshot, HistoryError> {
        self.0.history.get_or_read(&self.0.store, revision, now)
    }

    /// Returns the memories as they were at a revision if they are in memory, for the next page of a list.
    #[must_use]
    pub fn pinned_as_of(&self, revision: Revision) -> Option<PinnedSnapshot> {
        self.0.history.get(revision)
    }

    /// Returns the models of which memories have vectors, those with the most vectors first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn embedding_models(&self) -> Result<Vec<EmbeddingModel>, StoreError> {
        self.0.vectors.models(&self.0.store)
    }

    /// Returns the memories whose vectors are nearest to a query, the nearest first, and the model that the vectors are of.
    /// `model` can be empty: the model with the most vectors. Only memories that pass count; vectors of a text that a memory does
    /// not have any more never do. They are as the store has them now, whatever the words of the index are.
    ///
    /// The first search after a while reads all vectors, which takes some seconds for 50,000.
    ///
    /// # Errors
    /// If there are no such vectors, the query does not fit them, or the store cannot be read.
    pub fn search_vectors(
        &self,
        model: &str,
        query: VectorQuery<'_>,
        limit: usize,
        passes: &dyn Fn(&str) -> bool,
    ) -> Result<(String, Vec<VectorHit>), VectorSearchError> {
        self.0.vectors.search(&self.0.store, (model, query), (limit, passes))
    }

    /// Returns how far the index is. Does not start the indexer.
    #[must_use]
    pub fn progress(&self) -> IndexProgress {
        let state = self.0.lock();
        let snapshot = state.index.as_ref().map(|index| index.snapshot());
        IndexProgress {
            revision: Revision::new(snapshot.as_ref().map_or(0, Snapshot::revision)),
            documents: snapshot.as_ref().map_or(0, Snapshot::documents),
            bytes: if state.index.is_some() { self.0.location.bytes() } else { 0 },
            running: state.thread.is_some() && !state.stopping,
            error: state.error.clone(),
        }
    }

    /// Returns what wakes the indexer when the store has a new revision.
    #[must_use]
    pub fn waker(&self) -> IndexerWaker {
        IndexerWaker(Arc::downgrade(&self.0))
    }

    /// Removes an index in which damage was found, and begins to build it anew. Does so at most once in ten minutes: a disk that
    /// fails would otherwise have it written over and over.
    ///
    /// # Errors
    /// If the index cannot be removed or created.
    pub fn rebuild(&self) -> Result<(), IndexerError> {
        let opening = self.0.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = {
            let mut state = self.0.lock();
            if state.stopping || state.rebuilt.is_some_and(|at| at.elapsed() < REBUILD_INTERVAL) {
                return Ok(());
            }
            state.rebuilt = Some(Instant::now());
            state.abandoned = true;
            state.thread.take()
        };
        tracing::error!("the search index is damaged and is built anew");
        self.0.notify();
        drop(thread.map(JoinHandle::join));
        self.0.pinned.clear();
        {
            let mut state = self.0.lock();
            (state.index, state.error, state.abandoned) = (None, None, false);
        }
        self.0.location.remove()?;
        drop(opening);
        self.start()
    }

    /// Commits what was indexed, and stops following the journal. The store can be closed afterwards. Snapshots can still be
    /// searched.
    pub fn stop(&self) {
        let thread = {
            let mut state = self.0.lock();
            state.stopping = true;
            state.thread.take()
        };
        self.0.notify();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that builds the search index panicked");
        }
        self.0.pinned.clear();
        self.0.vectors.clear();
        self.0.history.clear();
        self.0.lock().index = None;
    }
}

/// Wakes an indexer. It keeps neither the indexer nor its store open.
#[derive(Clone)]
pub struct IndexerWaker(Weak<Shared>);

impl IndexerWaker {
    /// Says that the store has a new revision. Returns at once.
    pub fn wake(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.notify();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.lock().ends()
    }

    fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn imports_run(&self) -> bool {
        self.imports.get().is_some_and(|run| run())
    }

    fn set_error(&self, error: Option<IndexerError>) {
        self.lock().error = error;
        self.changed.notify_all();
    }

    /// Wakes all who wait.
    fn notify(&self) {
        // Whoever has looked and does not wait yet holds the lock.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Waits until somebody notifies, unless `reached` is true already or there is a stop. Returns whether nothing was to be
    /// waited for, or the wait ended before the timeout.
    fn wait_unless(&self, timeout: Duration, reached: impl Fn() -> bool) -> bool {
        let state = self.lock();
        if state.ends() || reached() {
            return true;
        }
        let waited = self.changed.wait_timeout(state, timeout);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Waits this long, and returns whether there was a stop.
    fn stops_within(&self, time: Duration) -> bool {
        let stopping = self.changed.wait_timeout_while(self.lock(), time, |state| !state.ends());
        stopping.unwrap_or_else(PoisonError::into_inner).0.ends()
    }
}

/// Opens the index. One that is ahead of the store is of another history, for example of a data directory of which a part was
/// copied back, and is removed.
fn open(location: &IndexLocation, store: &Store) -> Result<SearchIndex, IndexError> {
    let id = store.store_id().to_string();
    let index = SearchIndex::open(location, &id)?;
    if index.revision() <= store.revision().get() {
        return Ok(index);
    }
    drop(index);
    location.remove()?;
    SearchIndex::open(location, &id)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
