//! The endpoint for embeddings that the configuration names, and the worker that keeps the vectors of memories complete with it.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use satchel_core::{
    edits::EditContext,
    embeddings::{EmbeddingsError, NewEmbedding},
    ingest::Imports,
};
use satchel_embedder::{
    EmbedderProgress, EmbeddingSource, Endpoint, EndpointConfig, EndpointConfigError, EndpointError,
    MissingText, TextVector, Worker,
};
use satchel_store::{
    ChangeKind, ChangePosition, Cursor, MemoryOrder, MemoryQuery, Revision, Store, StoreError,
};

/// The actor in the history of vectors that the worker stores.
const ACTOR: &str = "embeddings";
/// Memories that are read at once.
const PAGE: usize = 256;

/// The endpoint and its worker. Clones share them.
#[derive(Clone)]
pub struct Embedder(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    worker: Mutex<Option<Worker>>,
    /// Ends a long reading of the store.
    stopping: Arc<AtomicBool>,
}

impl Embedder {
    /// Prepares the endpoint. Nothing is sent yet.
    ///
    /// # Errors
    /// If it cannot be used as configured.
    pub fn new(config: EndpointConfig) -> Result<Self, EndpointConfigError> {
        let endpoint = Endpoint::new(config)?;
        Ok(Self(Arc::new(Inner { endpoint, worker: Mutex::default(), stopping: Arc::default() })))
    }

    fn worker(&self) -> MutexGuard<'_, Option<Worker>> {
        self.0.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to make vectors of the texts that have none.
    pub fn start(&self, store: Store, imports: Imports) {
        let config = self.0.endpoint.config();
        tracing::info!("{}", config.disclosure());
        let source = StoreSource {
            store,
            imports,
            dimensions: config.dimensions,
            stopping: Arc::clone(&self.0.stopping),
            scan: Mutex::default(),
        };
        match Worker::start(self.0.endpoint.clone(), source) {
            Ok(worker) => *self.worker() = Some(worker),
            Err(error) => tracing::error!(%error, "no embeddings are made, as there is no thread for them"),
        }
    }

    /// Says that the store has a new revision. Returns at once.
    pub fn wake(&self) {
        if let Some(worker) = &*self.worker() {
            worker.wake();
        }
    }

    /// Stops the worker; the store can be closed afterwards.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
        let worker = self.worker().take();
        if let Some(worker) = worker {
            worker.stop();
        }
    }

    /// Returns the settings of the endpoint.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        self.0.endpoint.config()
    }

    /// Returns how far the worker is; `None` if it does not run.
    #[must_use]
    pub fn progress(&self) -> Option<EmbedderProgress> {
        self.worker().as_ref().map(Worker::progress)
    }

    /// Returns the vector of a text. Waits for the endpoint.
    ///
    /// # Errors
    /// If the endpoint fails.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, EndpointError> {
        Ok(self.0.endpoint.embed(&[text])?.pop().unwrap_or_default())
    }
}

/// Why texts cannot be read, or their vectors not be stored.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error("the texts cannot be read")]
    Store(#[from] StoreError),
    #[error("the vectors cannot be stored")]
    Embeddings(#[from] EmbeddingsError),
}

/// The texts of a store. After a first reading of all memories, only those that have changed are read again.
struct StoreSource {
    store: Store,
    imports: Imports,
    /// The number of dimensions that the configuration asks for.
    dimensions: Option<usize>,
    stopping: Arc<AtomicBool>,
    scan: Mutex<Scan>,
}

/// What is still to be read.
#[derive(Default)]
struct Scan {
    /// Everything up to this revision was read, and what was missing then is in `missing`.
    read_to: Option<Revision>,
    /// What `read_to` becomes when this scan ends.
    reads_to: Revision,
    /// The memories that are read next.
    queue: VecDeque<String>,
    /// Where the list of all memories goes on; `None` if there are no more than those in `queue`.
    rest: Option<Rest>,
    /// The memories that had no vector when they were read, and for which none was stored since.
    missing: BTreeSet<String>,
    /// The memories of the last answer, in order. They are read again unless the next question is for what follows them.
    given: Vec<String>,
}

/// Where the list of all memories goes on.
struct Rest(Option<Cursor>);

impl StoreSource {
    /// Begins to read the memories that may have no vector: at first all of them, later those that changed.
    fn begin(&self, scan: &mut Scan) -> Result<(), StoreError> {
        scan.reads_to = self.store.revision();
        // What was not read yet of those that were queued is not among the changes.
        scan.missing.extend(scan.queue.drain(..));
        scan.given.clear();
        let Some(read_to) = scan.read_to else {
            scan.rest = Some(Rest(None));
            return Ok(());
        };
        let mut changed = BTreeSet::new();
        let mut position = ChangePosition::after(read_to);
        loop {
            let changes = self.store.changes_since(position, PAGE)?;
            let Some(last) = changes.last() else { break };
            position = last.position;
            let relevant = |kind| matches!(kind, ChangeKind::Memory | ChangeKind::Embedding);
            changed
                .extend(changes.into_iter().filter(|change| relevant(change.kind)).map(|change| change.id));
        }
        // Only now: after an error, nothing may be forgotten.
        changed.append(&mut scan.missing);
        scan.queue = changed.into_iter().collect();
        Ok(())
    }

    /// Returns the id of the next memory that is to be read. It stays in the queue, as reading it may fail.
    fn next(&self, scan: &mut Scan) -> Result<Option<String>, StoreError> {
        while scan.queue.is_empty() {
            let Some(Rest(after)) = &scan.rest else { return Ok(None) };
            let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
            let page = self.store.memories(&query, after.as_ref(), PAGE, scan.reads_to)?;
            scan.queue.extend(page.items.into_iter().map(|record| record.memory.id));
            scan.rest = page.next.map(|next| Rest(Some(next)));
        }
        Ok(scan.queue.front().cloned())
    }
}

impl EmbeddingSource for StoreSource {
    type Error = SourceError;

    fn missing(
        &self,
        model: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<MissingText>, SourceError> {
        let scan = &mut *self.scan.lock().unwrap_or_else(PoisonError::into_inner);
        match after {
            None => self.begin(scan)?,
            // After an error, the worker asks for the last texts again.
            Some(after) if scan.given.last().is_none_or(|last| last != after) => {
                let again = std::mem::take(&mut scan.given);
                again.into_iter().rev().for_each(|id| scan.queue.push_front(id));
            }
            Some(_) => scan.given.clear(),
        }
        let mut found = Vec::new();
        while found.len() < limit {
            if self.stopping.load(Ordering::Relaxed) {
                break;
            }
            let Some(id) = self.next(scan)? else {
                scan.read_to = Some(scan.reads_to);
                break;
            };
            let record = self.store.memory(&id, None)?;
            let of_model = |record| {
                self.imports.embeddings().missing(record, (model, self.dimensions), self.store.revision())
            };
            let missing = record.map(of_model).transpose()?.flatten();
            scan.queue.pop_front();
            if let Some(missing) = missing {
                let content_hash = missing.content_hash;
                found.push(MissingText { memory_id: missing.memory, content_hash, text: missing.text });
                scan.missing.insert(id.clone());
                scan.given.push(id);
            }
        }
        Ok(found)
    }

    fn store(&self, model: &str, vectors: Vec<TextVector>) -> Result<(), SourceError> {
        let scan = &mut *self.scan.lock().unwrap_or_else(PoisonError::into_inner);
        let call = EditContext { actor: ACTOR.to_owned(), ..EditContext::default() };
        let vectors: Vec<NewEmbedding> = vectors
            .into_iter()
            .map(|TextVector { memory_id: memory, content_hash, vector }| NewEmbedding {
                memory,
                content_hash,
                vector,
            })
            .collect();
        self.imports.embeddings().put(&call, model, &vectors)?;
        // One that has another text by now is among the changes.
        for vector in &vectors {
            scan.missing.remove(&vector.memory);
        }
        Ok(())
    }

    fn revision(&self) -> u64 {
        self.store.revision().get()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::path::Path;

    use satchel_core::edits::Draft;
    use tempfile::tempdir;

    use super::*;
    use crate::config::Config;

    const MODEL: &str = "m";

    fn source(folder: &Path) -> StoreSource {
        let config = Config::new(folder.join("data"), folder.to_owned());
        let state = crate::run::open(&config, false, None, |_| {}).unwrap().0;
        StoreSource {
            store: state.store.clone(),
            imports: state.imports,
            dimensions: None,
            stopping: Arc::default(),
            scan: Mutex::default(),
        }
    }

    fn add(source: &StoreSource, content: &str) {
        let draft = Draft { content: Some(content.to_owned()), ..Draft::default() };
        source.imports.edits().add_memory(&EditContext::default(), &draft).unwrap();
    }

    fn texts(missing: &[MissingText]) -> BTreeSet<&str> {
        missing.iter().map(|missing| missing.text.as_str()).collect()
    }

    fn store(source: &StoreSource, missing: &[MissingText]) {
        let vectors = missing.iter().map(|missing| TextVector {
            memory_id: missing.memory_id.clone(),
            content_hash: missing.content_hash.clone(),
            vector: vec![1.0],
        });
        source.store(MODEL, vectors.collect()).unwrap();
    }

    fn after(missing: &[MissingText]) -> Option<&str> {
        missing.last().map(|missing| missing.memory_id.as_str())
    }

    #[test]
    fn a_stop_ends_the_reading_of_texts() {
        let folder = tempdir().unwrap();
        let source = source(folder.path());
        add(&source, "one");
        source.stopping.store(true, Ordering::Relaxed);
        assert!(source.missing(MODEL, None, 10).unwrap().is_empty());
        source.stopping.store(false, Ordering::Relaxed);
        assert_eq!(source.missing(MODEL, None, 10).unwrap().len(), 1);
    }

    #[test]
    fn vectors_of_another_dimension_are_made_anew() {
        let folder = tempdir().unwrap();
        let mut source = source(folder.path());
        add(&source, "one");
        let missing = source.missing(MODEL, None, 10).unwrap();
        store(&source, &missing);
        source.dimensions = Some(1);
        assert!(source.missing(MODEL, None, 10).unwrap().is_empty());
        // The configuration asks for others; the daemon was started anew.
        source.dimensions = Some(2);
        source.scan = Mutex::default();
        assert_eq!(source.missing(MODEL, None, 10).unwrap(), missing);
    }

    #[test]
    fn texts_of_a_batch_that_failed_are_given_again() {
        let folder = tempdir().unwrap();
        let source = source(folder.path());
        for content in ["one", "two", "three", "four", "five"] {
            add(&source, content);
        }
        let first = source.missing(MODEL, None, 2).unwrap();
        store(&source, &first);
        let second = source.missing(MODEL, after(&first), 2).unwrap();
        assert_eq!(second.len(), 2);
        // An error: the same question again, and once more from the beginning.
        assert_eq!(source.missing(MODEL, after(&first), 2).unwrap(), second);
        assert_eq!(source.missing(MODEL, None, 2).unwrap(), second);
        store(&source, &second);
        let last = source.missing(MODEL, after(&second), 2).unwrap();
        assert_eq!(last.len(), 1);
        // What was given and not stored comes with the next pass, which reads only what has changed besides.
        add(&source, "six");
        let next = source.missing(MODEL, None, 10).unwrap();
        assert_eq!(texts(&next), texts(&last).into_iter().chain(["six"]).collect());
        // A pass that is interrupted in its queue loses nothing of it.
        assert_eq!(source.missing(MODEL, None, 1).unwrap().len(), 1);
        let again = source.missing(MODEL, None, 10).unwrap();
        assert_eq!(texts(&again), texts(&next));
        store(&source, &again);
        assert!(source.missing(MODEL, None, 10).unwrap().is_empty());
    }
}
