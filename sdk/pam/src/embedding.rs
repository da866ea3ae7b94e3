//! Embeddings of memories (PAM 1.0 §12). They can be recomputed: the text of the memory is authoritative.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{names::names, pretty::Root, time::Timestamp};

/// The `schema` of an embeddings document.
pub const SCHEMA: &str = "portable-ai-memory-embeddings";

names! {
    /// Where something is stored outside the document.
    StorageKind {
        /// A file of the bundle.
        File = "file",
        /// A database.
        Database = "database",
        /// An object store.
        ObjectStorage = "object_storage",
        /// A vector database.
        VectorDb = "vector_db",
        /// A URI.
        Uri = "uri",
    }
}

/// Where a vector is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Kind of storage.
    #[serde(rename = "type")]
    pub kind: StorageKind,
    /// Location in it; at least one character.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// The embedding of a memory by a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Embedding {
    /// Unique in its document.
    pub id: String,
    /// Id of the memory.
    pub memory_id: String,
    /// Name of the model.
    pub model: String,
    /// Length of the vector; at least 1.
    pub dimensions: u32,
    /// When it was computed.
    pub created_at: Timestamp,
    /// The vector, if the document contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vec<f64>>,
    /// Where the vector is, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// An `embeddings.json` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingsDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// `major.minor`, the same as that of the store.
    pub schema_version: String,
    /// At most one embedding for each memory.
    pub embeddings: Vec<Embedding>,
    /// Fields that a later minor version added, by JSON path; not written.
    #[serde(skip)]
    pub unknown: BTreeMap<String, Value>,
}

impl EmbeddingsDocument {
    /// A document of version [`crate::SCHEMA_VERSION`].
    #[must_use]
    pub fn new(embeddings: Vec<Embedding>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            schema_version: crate::SCHEMA_VERSION.to_owned(),
            embeddings,
            unknown: BTreeMap::new(),
        }
    }

    /// Writes the document as JSON.
    ///
    /// # Errors
    /// If a component of a vector is not finite.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new(Vec::new())?;
        self.embeddings.iter().try_for_each(|embedding| writer.embedding(embedding))?;
        writer.finish()
    }
}

/// Writes an embeddings document, one embedding at a time.
///
/// The output is not buffered; pass a buffered `W`. The document is complete only after [`Writer::finish`].
pub struct Writer<W> {
    root: Root<W>,
}

impl<W: Write> Writer<W> {
    /// Writes the beginning of the document.
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

    /// Writes the next embedding.
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

    /// Writes the end of the document and returns the output, not flushed.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.root.end_list()?;
        self.root.end()
    }
}
