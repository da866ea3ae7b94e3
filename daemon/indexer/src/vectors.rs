//! The vectors of memories, by model, as they can be searched.
//!
//! They are read from the store when they are first searched, follow its change log from then on, and are dropped when nobody
//! has searched them for a while: the memory that they take is not taken at rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use satchel_core::embeddings::is_current;
use satchel_search::vectors::{VectorError, VectorFilter, VectorHit, VectorIndex, VectorSearch};
use satchel_store::{ChangeKind, ChangePosition, EmbeddingRecord, Store, StoreError};

/// Changes that are read at once.
const CHANGES: usize = 1_000;
/// After so long without a search, the vectors are dropped.
const DROP_AFTER: Duration = Duration::from_mins(10);

/// Why vectors cannot be searched.
#[derive(Debug, thiserror::Error)]
pub enum VectorSearchError {
    /// No memory has a vector of the model.
    #[error("no memory has a vector of the model {model:?}")]
    NoModel {
        /// The model; empty if none was named.
        model: String,
    },
    /// The vectors of the model have another number of dimensions.
    #[error("the vectors of {model:?} have {known} numbers, and the query has {dimension}")]
    Dimension {
        /// The model.
        model: String,
        /// How many numbers the query has.
        dimension: usize,
        /// How many numbers the vectors have; the most frequent number.
        known: usize,
    },
    /// The memory has no vector of the model.
    #[error("memory {memory:?} has no vector of {model:?}")]
    NoVector {
        /// The memory.
        memory: String,
        /// The model.
        model: String,
    },
    /// The query is not a vector.
    #[error(transparent)]
    Query(VectorError),
    /// The store failed.
    #[error("the vectors cannot be read")]
    Store(#[from] StoreError),
}

/// A model, and its vectors of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// The name of the model.
    pub name: String,
    /// How many numbers a vector has.
    pub dimension: usize,
    /// How many memories have one.
    pub vectors: usize,
}

/// The query of a search for vectors.
#[derive(Clone, Copy, Debug)]
pub enum VectorQuery<'a> {
    /// A vector of the model.
    Vector(&'a [f32]),
    /// The vector that a memory has. The memory itself is not among the hits.
    Memory(&'a str),
}

/// The vectors of all models.
#[derive(Default)]
pub(crate) struct VectorIndexes(Mutex<Option<Loaded>>);

/// Vectors in memory.
struct Loaded {
    /// By model and dimension: nothing keeps imports from naming two kinds of vectors the same.
    indexes: BTreeMap<(String, usize), VectorIndex>,
    /// The last change that was read.
    position: ChangePosition,
    used: Instant,
}

impl VectorIndexes {
    fn lock(&self) -> MutexGuard<'_, Option<Loaded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the vectors if they have not been searched for a while. Does not wait while they are read or searched.
    pub(crate) fn drop_unused(&self) {
        let Ok(mut loaded) = self.0.try_lock() else { return };
        if loaded.as_ref().is_some_and(|loaded| loaded.used.elapsed() >= DROP_AFTER) {
            *loaded = None;
        }
    }

    /// Drops the vectors.
    pub(crate) fn clear(&self) {
        *self.lock() = None;
    }

    /// Runs `work` with the vectors as the store has them now.
    fn with<T>(&self, store: &Store, work: impl FnOnce(&Loaded) -> T) -> Result<T, StoreError> {
        let mut place = self.lock();
        let mut loaded = match place.take() {
            Some(loaded) => loaded,
            None => Loaded::read(store)?,
        };
        // Nothing is kept after an error: what was read of the changes is not known.
        loaded.follow(store)?;
        loaded.used = Instant::now();
        Ok(work(place.insert(loaded)))
    }

    pub(crate) fn models(&self, store: &Store) -> Result<Vec<EmbeddingModel>, StoreError> {
        self.with(store, Loaded::models)
    }

    pub(crate) fn search(
        &self,
        store: &Store,
        (model, query): (&str, VectorQuery<'_>),
        (limit, passes): (usize, &dyn Fn(&str) -> bool),
    ) -> Result<(String, Vec<VectorHit>), VectorSearchError> {
        self.with(store, |loaded| loaded.search(store, (model, query), (limit, passes)))?
    }
}

impl Loaded {
    /// Reads all vectors.
    fn read(store: &Store) -> Result<Self, StoreError> {
        let started = Instant::now();
        // What changes meanwhile is read again.
        let position = ChangePosition::after(store.revision());
        let mut loaded = Self { indexes: BTreeMap::new(), position, used: started };
        store.each_embedding(|stored| loaded.insert(store, &stored))?;
        let vectors: usize = loaded.indexes.values().map(VectorIndex::len).sum();
        tracing::debug!(vectors, elapsed = ?started.elapsed(), "the vectors of memories were read");
        Ok(loaded)
    }

    /// Reads what has changed.
    fn follow(&mut self, store: &Store) -> Result<(), StoreError> {
        loop {
            let tip = store.revision();
            // The changes that were read last may have ended within the last revision.
            if tip <= self.position.revision && self.position.n == u32::MAX {
                return Ok(());
            }
            let changes = store.changes_since(self.position, CHANGES)?;
            let last = changes.last().map(|change| change.position);
            let caught_up = changes.len() < CHANGES;
            let relevant = |kind| matches!(kind, ChangeKind::Memory | ChangeKind::Embedding);
            let changed: BTreeSet<String> =
                changes.into_iter().filter(|change| relevant(change.kind)).map(|change| change.id).collect();
            for memory in changed {
                for index in self.indexes.values_mut() {
                    index.remove(&memory);
                }
                for stored in store.embeddings_of(&memory)? {
                    self.insert(store, &stored)?;
                }
            }
            let read_to = last.map_or(tip, |last| tip.max(last.revision));
            self.position =
                if caught_up { ChangePosition::after(read_to) } else { last.unwrap_or(self.position) };
        }
    }

    /// Inserts a vector if it is of the text that its memory has now. Others, and those that are not vectors, are left out.
    fn insert(&mut self, store: &Store, stored: &EmbeddingRecord) -> Result<(), StoreError> {
        let Some(vector) = &stored.embedding.vector else { return Ok(()) };
        if !is_current(store, stored, store.revision())? {
            return Ok(());
        }
        let numbers = single(vector);
        let key = (stored.embedding.model.clone(), numbers.len());
        let inserted = match self.indexes.get_mut(&key) {
            Some(index) => index.insert(&stored.embedding.memory_id, &numbers),
            None => VectorIndex::new(numbers.len()).and_then(|mut index| {
                index.insert(&stored.embedding.memory_id, &numbers)?;
                self.indexes.insert(key, index);
                Ok(())
            }),
        };
        if let Err(error) = inserted {
            let (memory, model) = (&stored.embedding.memory_id, &stored.embedding.model);
            tracing::debug!(%error, memory, model, "a vector cannot be searched");
        }
        Ok(())
    }

    /// Returns the models, those with the most vectors first.
    fn models(&self) -> Vec<EmbeddingModel> {
        let mut models: Vec<EmbeddingModel> = self
            .indexes
            .iter()
            .filter(|(_, index)| !index.is_empty())
            .map(|((name, dimension), index)| EmbeddingModel {
                name: name.clone(),
                dimension: *dimension,
                vectors: index.len(),
            })
            .collect();
        models.sort_by_key(|model| std::cmp::Reverse(model.vectors));
        models
    }

    /// Returns the hits, and the model that they are of: the one with the most vectors if none is named.
    fn search(
        &self,
        store: &Store,
        (model, query): (&str, VectorQuery<'_>),
        (limit, passes): (usize, &dyn Fn(&str) -> bool),
    ) -> Result<(String, Vec<VectorHit>), VectorSearchError> {
        let models = self.models();
        let named = |known: &&EmbeddingModel| model.is_empty() || known.name == model;
        let Some(most) = models.iter().find(named) else {
            return Err(VectorSearchError::NoModel { model: model.to_owned() });
        };
        let vector = match query {
            VectorQuery::Vector(vector) => vector.to_vec(),
            VectorQuery::Memory(memory) => self.vector_of(store, &most.name, memory)?,
        };
        let Some(index) = self.index(&most.name, vector.len()) else {
            let (model, dimension, known) = (most.name.clone(), vector.len(), most.dimension);
            return Err(VectorSearchError::Dimension { model, dimension, known });
        };
        let itself = if let VectorQuery::Memory(memory) = query { memory } else { "" };
        let passes = |id: &str| id != itself && passes(id);
        let original = |id: &str| original(store, id, &most.name);
        let search = VectorSearch { limit, filter: VectorFilter::Where(&passes), original: Some(&original) };
        let hits = index.search(&vector, &search).map_err(VectorSearchError::Query)?;
        Ok((most.name.clone(), hits))
    }

    /// Returns the vectors of a model that have this length, if there are any.
    fn index(&self, model: &str, dimension: usize) -> Option<&VectorIndex> {
        self.indexes.get(&(model.to_owned(), dimension)).filter(|index| !index.is_empty())
    }

    /// Returns the vector of the text that a memory has now.
    fn vector_of(&self, store: &Store, model: &str, memory: &str) -> Result<Vec<f32>, VectorSearchError> {
        let stored = store.embedding(memory, model)?.and_then(|stored| stored.embedding.vector);
        let vector = stored.map(|vector| single(&vector)).filter(|vector| {
            // One of another text is not in the index.
            self.index(model, vector.len()).is_some_and(|index| index.contains(memory))
        });
        vector.ok_or_else(|| {
            let (memory, model) = (memory.to_owned(), model.to_owned());
            VectorSearchError::NoVector { memory, model }
        })
    }
}

/// Returns a vector as it is stored; `None` if it cannot be read, as the index has it nearly as exact.
fn original(store: &Store, memory: &str, model: &str) -> Option<Vec<f32>> {
    let stored = store.embedding(memory, model).ok()??;
    stored.embedding.vector.map(|vector| single(&vector))
}

#[expect(clippy::cast_possible_truncation, reason = "models compute with less")]
fn single(vector: &[f64]) -> Vec<f32> {
    vector.iter().map(|number| *number as f32).collect()
}
