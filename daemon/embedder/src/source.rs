//! What the worker needs of a store.

use std::error::Error;

/// A text that has no vector of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingText {
    /// The memory that has the text.
    pub memory_id: String,
    /// The hash of the text, by which the source recognises it later.
    pub content_hash: String,
    /// The text.
    pub text: String,
}

/// The vector of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextVector {
    /// The memory that has the text.
    pub memory_id: String,
    /// The hash of the text that was embedded.
    pub content_hash: String,
    /// The embedding. All vectors of a model have the same number of values; they are finite, and not all are zero.
    pub vector: Vec<f32>,
}

/// The memories whose embeddings a worker keeps complete. All calls come from the worker's thread.
pub trait EmbeddingSource: Send + 'static {
    /// Why the source failed.
    type Error: Error + Send + Sync + 'static;

    /// Returns memories that have a text and no vector of `model` for it, in a stable order, from the first one behind the
    /// memory `after`; fewer than `limit` if these are the last ones.
    ///
    /// # Errors
    /// If the memories cannot be read.
    fn missing(
        &self,
        model: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<MissingText>, Self::Error>;

    /// Stores vectors of `model`. A memory that was removed, or has another text by now, is skipped.
    ///
    /// # Errors
    /// If the vectors cannot be stored.
    fn store(&self, model: &str, vectors: Vec<TextVector>) -> Result<(), Self::Error>;

    /// Returns a number that is another one after each change of a memory.
    fn revision(&self) -> u64;

    /// Returns how many memories [`missing`](Self::missing) would list in all; `None` if that is not known.
    ///
    /// # Errors
    /// If the memories cannot be counted.
    fn count_missing(&self, _model: &str) -> Result<Option<u64>, Self::Error> {
        Ok(None)
    }
}
