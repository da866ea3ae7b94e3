//! The endpoint for embeddings that the configuration names, and the worker that keeps the vectors of memories complete with it.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
}

impl Embedder {
    /// Prepares the endpoint. Nothing is sent yet.
    ///
    /// # Errors
    /// If it cannot be used as configured.
    pub fn new(config: EndpointConfig) -> Result<Self, EndpointConfigError> {
        let endpoint = Endpoint::new(config)?;
        Ok(Self(Arc::new(Inner { endpoint, worker: Mutex::new(None) })))
    }

    fn worker(&self) -> MutexGuard<'_, Option<Worker>> {
        self.0.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to make vectors of the texts that have none.
    pub fn start(&self, store: Store, imports: Imports) {
        let config = self.0.endpoint.config();
        tracing::info!("{}", config.disclosure());
        match Worker::start(self.0.endpoint.clone(), StoreSource::new(store, imports)) {
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
    /// The memories that had no vector when they were read.
    missing: BTreeSet<String>,
}

/// Where the list of all memories goes on.
struct Rest(Option<Cursor>);

impl StoreSource {
    fn new(store: Store, imports: Imports) -> Self {
        Self { store, imports, scan: Mutex::default() }
    }

    /// Begins to read the memories that may have no vector: at first all of them, later those that changed.
    fn begin(&self, scan: &mut Scan) -> Result<(), StoreError> {
        scan.reads_to = self.store.revision();
        scan.queue.clear();
        let Some(read_to) = scan.read_to else {
            scan.rest = Some(Rest(None));
            return Ok(());
        };
        let mut changed = std::mem::take(&mut scan.missing);
        let mut position = ChangePosition::after(read_to);
        loop {
            let changes = self.store.changes_since(position, PAGE)?;
            let Some(last) = changes.last() else { break };
            position = last.position;
            let relevant = |kind| matches!(kind, ChangeKind::Memory | ChangeKind::Embedding);
            changed
                .extend(changes.into_iter().filter(|change| relevant(change.kind)).map(|change| change.id));
        }
        scan.queue = changed.into_iter().collect();
        Ok(())
    }

    /// Returns the id of the next memory that is to be read.
    fn next(&self, scan: &mut Scan) -> Result<Option<String>, StoreError> {
        while scan.queue.is_empty() {
            let Some(Rest(after)) = scan.rest.take() else { return Ok(None) };
            let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
            let page = self.store.memories(&query, after.as_ref(), PAGE, scan.reads_to)?;
            scan.queue.extend(page.items.into_iter().map(|record| record.memory.id));
            scan.rest = page.next.map(|next| Rest(Some(next)));
        }
        Ok(scan.queue.pop_front())
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
        // The worker asks for what follows its last question, or begins anew.
        if after.is_none() {
            self.begin(scan)?;
        }
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(id) = self.next(scan)? else {
                scan.read_to = Some(scan.reads_to);
                break;
            };
            let Some(record) = self.store.memory(&id, None)? else { continue };
            let missing = self.imports.embeddings().missing(record, model, self.store.revision())?;
            if let Some(missing) = missing {
                let content_hash = missing.content_hash;
                found.push(MissingText { memory_id: missing.memory, content_hash, text: missing.text });
                scan.missing.insert(id);
            }
        }
        Ok(found)
    }

    fn store(&self, model: &str, vectors: Vec<TextVector>) -> Result<(), SourceError> {
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
        Ok(())
    }

    fn revision(&self) -> u64 {
        self.store.revision().get()
    }
}
