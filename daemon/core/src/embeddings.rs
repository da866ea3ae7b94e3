//! Vectors of memories: those that programs supply, and which of all belong to the text that a memory has now.
//!
//! A vector that a program supplies belongs to no import: it is recorded as evidence that always counts, so that no undo of an
//! import removes it, and the newest vector of a model is the one that is current.

use std::{collections::BTreeMap, sync::Arc};

use satchel_merge::evidence::{MemoryField, VectorEvidence, edited_fields};
use satchel_pam::{embedding::Embedding, ids, memory::Memory, time::Timestamp};
use satchel_source::CancelToken;
use satchel_store::{
    Batch, Change, EmbeddingRecord, EvidenceWrite, MemoryRecord, Origin, Revision, Store, StoreError,
    record_key,
};
use serde::{Deserialize, Serialize};

use crate::{
    clock::Clock,
    edits::EditContext,
    provenance::{
        ProvenanceError,
        vectors::{vector_name, visibility_changes},
    },
    request::{self, RequestError},
    write_lock::WriteLock,
};

/// Largest number of vectors in one call.
pub const MAX_EMBEDDINGS_PER_CALL: usize = 1_000;
/// Largest number of numbers in one call, in all of its vectors: with the ids, somewhat less than the 4 MiB of a request.
pub const MAX_NUMBERS_PER_CALL: usize = 1_000_000;
/// Numbers that are stored in one commit, about 50 KiB. A vector is read with all of its commit.
const NUMBERS_PER_COMMIT: usize = 4_096;
/// Largest number of numbers of a vector.
pub const MAX_DIMENSIONS: usize = 65_536;
/// Longest name of a model, in bytes.
pub const MAX_MODEL_BYTES: usize = 256;
/// The reason in the history.
const REASON: &str = "embedding";

/// The vector of the text of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEmbedding {
    /// The id of the memory.
    pub memory: String,
    /// The content hash of the text, as the memory has it: the vector is of this text and of no other.
    pub content_hash: String,
    /// The numbers.
    pub vector: Vec<f32>,
}

/// What became of the vectors of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEmbeddings {
    /// How many were stored.
    pub stored: u64,
    /// How many were there already.
    pub unchanged: u64,
    /// The memories that do not exist or have another text by now; their vectors were not stored.
    pub outdated: Vec<String>,
    /// The revision from which on the result is visible.
    pub revision: u64,
}

/// A text that has no vector of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextWithoutEmbedding {
    /// The id of the memory.
    pub memory: String,
    /// The content hash of the text.
    pub content_hash: String,
    /// The text.
    pub text: String,
}

/// The reason why no vectors are stored.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingsError {
    /// A field is not valid.
    #[error("{field} {problem}")]
    Invalid {
        /// The name of the field.
        field: String,
        /// The problem, as a predicate.
        problem: String,
    },
    /// The request id was already used for a different request.
    #[error("request id {0:?} was used for another request; take a fresh one")]
    RequestReused(String),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The evidence cannot be read or written.
    #[error(transparent)]
    Provenance(#[from] ProvenanceError),
    /// A bug in Satchel.
    #[error("a vector cannot be encoded; please report this")]
    Unencodable,
}

impl EmbeddingsError {
    fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), problem: problem.into() }
    }
}

impl From<RequestError> for EmbeddingsError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Reused(id) => Self::RequestReused(id),
            RequestError::Store(error) => Self::Store(error),
            RequestError::Unencodable => Self::Unencodable,
        }
    }
}

/// The vectors that programs supply. Clones share the store.
#[derive(Clone)]
pub struct Embeddings {
    store: Store,
    clock: Arc<dyn Clock>,
    write_lock: Arc<WriteLock>,
}

impl Embeddings {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>, write_lock: Arc<WriteLock>) -> Self {
        Self { store, clock, write_lock }
    }

    /// Stores the vectors of a model. One of a text that its memory does not have any more is not stored. Durable when this
    /// returns.
    ///
    /// # Errors
    /// A field that is not valid, in which case nothing is stored, or an error of the store.
    pub fn put(
        &self,
        call: &EditContext,
        model: &str,
        embeddings: &[NewEmbedding],
    ) -> Result<StoredEmbeddings, EmbeddingsError> {
        check(model, embeddings)?;
        let _guard = self.write_lock.lock(&CancelToken::new());
        let now = self.clock.now_micros();
        if let Some(done) = request::answered(&self.store, call.request.as_ref(), now)? {
            return Ok(done);
        }
        let (mut outcome, mut batch, mut numbers) = (StoredEmbeddings::default(), batch(call, now), 0);
        for new in embeddings {
            if !self.has_text(new)? {
                outcome.outdated.push(new.memory.clone());
                continue;
            }
            let written = self.changes(model, new, now)?;
            if written.is_empty() {
                outcome.unchanged += 1;
                continue;
            }
            outcome.stored += 1;
            batch.changes.extend(written);
            numbers += new.vector.len();
            if numbers >= NUMBERS_PER_COMMIT {
                numbers = 0;
                self.store.commit(std::mem::replace(&mut batch, self::batch(call, now)))?;
            }
        }
        outcome.revision = self.store.revision().get() + u64::from(batch.raises_revision());
        batch.changes.extend(request::entries(&self.store, call.request.as_ref(), now, &outcome)?);
        if !batch.changes.is_empty() {
            self.store.commit(batch)?;
        }
        Ok(outcome)
    }

    /// Returns whether a vector is of the text that its memory has now.
    fn has_text(&self, new: &NewEmbedding) -> Result<bool, StoreError> {
        let known = self.store.memory(&new.memory, None)?.filter(|known| !known.withdrawn);
        Ok(known.is_some_and(|known| known.memory.content_hash.to_string() == new.content_hash))
    }

    /// Returns what stores a vector; nothing if it is the current one already.
    fn changes(&self, model: &str, new: &NewEmbedding, now: i64) -> Result<Vec<Change>, EmbeddingsError> {
        let vector = decimals(&new.vector);
        let stored = self.store.embedding(&new.memory, model)?;
        if let Some(stored) = &stored
            && stored.embedding.vector.as_ref() == Some(&vector)
            && is_current(&self.store, stored, self.store.revision())?
        {
            return Ok(Vec::new());
        }
        // A vector must be newer than what it replaces, and not older than an edit of the text, whatever the clock showed then.
        // Otherwise it would not be the one that counts.
        let after = stored.map_or(i64::MIN, |stored| stored.embedding.created_at.micros().saturating_add(1));
        let memory = self.store.memory(&new.memory, None)?.map(|record| record.memory);
        let edited = memory.and_then(|memory| edited_fields(&memory).get(&MemoryField::Content).copied());
        let after = after.max(edited.unwrap_or(i64::MIN));
        let embedding = Embedding {
            id: ids::embedding_id(&new.memory, model).to_string(),
            memory_id: new.memory.clone(),
            model: model.to_owned(),
            dimensions: u32::try_from(vector.len()).unwrap_or(u32::MAX),
            created_at: Timestamp::saturating(now.max(after)),
            vector: Some(vector),
            storage: None,
        };
        let identity = vector_name(&embedding)?;
        let place = (new.memory.clone(), model.to_owned());
        let available = BTreeMap::from([(identity.digest.clone(), embedding)]);
        let mut changes = visibility_changes(&self.store, &place, Some(&identity), available)?;
        let evidence = VectorEvidence { identity, without_import: true };
        let (id, json) = evidence.encode().map_err(|_| EmbeddingsError::Unencodable)?;
        changes.push(Change::Evidence(EvidenceWrite { id: record_key(&id), json }));
        Ok(changes)
    }

    /// Returns the text of a memory if it has one, and at a revision no vector of a model is of it. A vector of another number of
    /// dimensions does not count if the number is given.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn missing(
        &self,
        record: MemoryRecord,
        (model, dimensions): (&str, Option<usize>),
        at: Revision,
    ) -> Result<Option<TextWithoutEmbedding>, StoreError> {
        let memory = record.memory;
        if record.withdrawn || memory.content.trim().is_empty() {
            return Ok(None);
        }
        if let Some(stored) = self.store.embedding(&memory.id, model)?
            && let Some(vector) = &stored.embedding.vector
            && dimensions.is_none_or(|dimensions| dimensions == vector.len())
            && is_current(&self.store, &stored, at)?
        {
            return Ok(None);
        }
        let Memory { id: memory, content_hash, content: text, .. } = memory;
        let content_hash = content_hash.to_string();
        Ok(Some(TextWithoutEmbedding { memory, content_hash, text }))
    }
}

/// Returns the batch for the vectors of a call, still empty.
fn batch(call: &EditContext, now: i64) -> Batch {
    let (actor, reason) = (call.actor.clone(), REASON.to_owned());
    Batch { origin: Origin { import: None, actor, reason, at_micros: now }, changes: Vec::new() }
}

/// Returns whether a vector is of the text that its memory has at a revision. The user, or a document, may have changed the text
/// since the vector was stored (PAM rule ).
///
/// # Errors
/// Any error of the store.
pub fn is_current(store: &Store, stored: &EmbeddingRecord, at: Revision) -> Result<bool, StoreError> {
    let id = &stored.embedding.memory_id;
    let Some(record) = store.memory(id, Some(at))?.filter(|record| !record.withdrawn) else {
        return Ok(false);
    };
    let edited = edited_fields(&record.memory).get(&MemoryField::Content).copied();
    if edited.is_some_and(|edited| edited > stored.embedding.created_at.micros()) {
        return Ok(false);
    }
    if record.revision <= stored.revision {
        return Ok(true);
    }
    // A vector that was stored before its memory belongs to the memory's first version.
    let then = match store.memory(id, Some(stored.revision))? {
        None => store.memory_versions(id)?.into_iter().next(),
        then => then,
    };
    Ok(then.is_none_or(|then| then.memory.content_hash == record.memory.content_hash))
}

/// Returns the numbers as they are written in decimal: with the fewest digits that give the same `f32` again, a vector takes half
/// the space.
fn decimals(vector: &[f32]) -> Vec<f64> {
    vector.iter().map(|number| number.to_string().parse().unwrap_or_else(|_| f64::from(*number))).collect()
}

fn check(model: &str, embeddings: &[NewEmbedding]) -> Result<(), EmbeddingsError> {
    if model.is_empty() || model.len() > MAX_MODEL_BYTES || model.chars().any(char::is_control) {
        let problem = format!("must have 1 to {MAX_MODEL_BYTES} bytes and no control characters");
        return Err(EmbeddingsError::invalid("model", problem));
    }
    if embeddings.is_empty() || embeddings.len() > MAX_EMBEDDINGS_PER_CALL {
        let problem = format!("must have 1 to {MAX_EMBEDDINGS_PER_CALL} entries");
        return Err(EmbeddingsError::invalid("embeddings", problem));
    }
    if embeddings.iter().map(|new| new.vector.len()).sum::<usize>() > MAX_NUMBERS_PER_CALL {
        let problem = format!("must have at most {MAX_NUMBERS_PER_CALL} numbers in all; send fewer at once");
        return Err(EmbeddingsError::invalid("embeddings", problem));
    }
    let dimensions = embeddings.first().map_or(0, |first| first.vector.len());
    for (at, new) in embeddings.iter().enumerate() {
        let problem = if new.vector.is_empty() || new.vector.len() > MAX_DIMENSIONS {
            format!("must have 1 to {MAX_DIMENSIONS} numbers")
        } else if new.vector.len() != dimensions {
            format!("has {} numbers, and the first vector has {dimensions}", new.vector.len())
        } else if new.vector.iter().any(|number| !number.is_finite()) {
            "has a number that is not finite".to_owned()
        } else if new.vector.iter().all(|number| *number == 0.0) {
            "has no direction, as all numbers are 0".to_owned()
        } else {
            continue;
        };
        return Err(EmbeddingsError::invalid(format!("embeddings[{at}].vector"), problem));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
