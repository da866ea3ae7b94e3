//! Vectors of memories (PAM 1.0 §12). The text is the authority, never the vector.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{names::names, time::Timestamp};

mod writer;

pub use writer::{SCHEMA, Writer};

names! {
    /// Where something is kept that does not stand here.
    StorageKind {
        /// A file of the bundle.
        File = "file",
        /// A database.
        Database = "database",
        /// An object store.
        ObjectStorage = "object_storage",
        /// A vector database.
        VectorDb = "vector_db",
        /// An address.
        Uri = "uri",
    }
}

/// Where a vector is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// The kind of place.
    #[serde(rename = "type")]
    pub kind: StorageKind,
    /// Where in it; at least one character.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// The vector of one memory under one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Embedding {
    /// Unique in its document.
    pub id: String,
    /// The memory.
    pub memory_id: String,
    /// The model.
    pub model: String,
    /// Length of the vector; at least 1.
    pub dimensions: u32,
    /// When it was computed.
    pub created_at: Timestamp,
    /// The vector, if it stands here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vec<f64>>,
    /// Where it is, if elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// `embeddings.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingsDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// `major.minor`, that of the store.
    pub schema_version: String,
    /// At most one for each memory.
    pub embeddings: Vec<Embedding>,
    /// What a later minor version added, by JSON path; not written.
    #[serde(skip)]
    pub unknown: BTreeMap<String, Value>,
}

impl EmbeddingsDocument {
    /// The document of the schema version that we write.
    #[must_use]
    pub fn new(embeddings: Vec<Embedding>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            schema_version: crate::SCHEMA_VERSION.to_owned(),
            embeddings,
            unknown: BTreeMap::new(),
        }
    }
}
