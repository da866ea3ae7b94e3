//! Writes an embeddings document piece by piece.

use std::io::{self, Write};

use super::{Embedding, EmbeddingsDocument};
use crate::pretty::Root;

/// The `schema` of an embeddings document.
pub const SCHEMA: &str = "portable-ai-memory-embeddings";

/// Writes one embeddings document, vector by vector.
///
/// Nothing is buffered: give a buffered `W`. The file ends only with [`Writer::finish`].
pub struct Writer<W> {
    root: Root<W>,
}

impl<W: Write> Writer<W> {
    /// Writes what stands before the vectors.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn new(out: W) -> io::Result<Self> {
        let mut root = Root::begin(out)?;
        root.field("schema", SCHEMA)?;
        root.field("schema_version", crate::SCHEMA_VERSION)?;
        root.begin_list("embeddings")?;
        Ok(Self { root })
    }

    /// Writes the next vector.
    ///
    /// # Errors
    /// If a component is not finite, or the output fails.
    pub fn embedding(&mut self, embedding: &Embedding) -> io::Result<()> {
        if embedding.vector.iter().flatten().any(|component| !component.is_finite()) {
            let problem = format!("embedding {:?} has a component that is not finite", embedding.id);
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        self.root.item(embedding)
    }

    /// Ends the document, and gives the output back, not flushed.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.root.end_list()?;
        self.root.end()
    }
}

impl EmbeddingsDocument {
    /// The document as text.
    ///
    /// # Errors
    /// If a component of a vector is not finite.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new(Vec::new())?;
        self.embeddings.iter().try_for_each(|embedding| writer.embedding(embedding))?;
        writer.finish()
    }
}
