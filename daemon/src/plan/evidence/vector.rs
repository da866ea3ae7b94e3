//! Vectors that imports brought: a kind of evidence that names them. The numbers stand apart, for they are long.

use satchel_pam::{embedding::Embedding, hash::Sha256Digest, ids};
use serde::{Deserialize, Serialize};

/// Stands for the platform in the ids of this evidence; no platform has a space.
const KIND: &str = "vector of a memory";
const FOUND: &str = "vector that was found";
/// How the stored form begins.
const START: &[u8] = br#"{"vector":"#;

/// A vector as an export has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vector {
    /// Which it is.
    #[serde(rename = "vector")]
    pub named: Named,
    /// Whether it was stored before it was noted who brought it: then it is nobody's, and always counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found: bool,
}

/// Which vector of which memory. Of two for one memory and model the later stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Named {
    /// The memory's id.
    pub memory: String,
    /// The model.
    pub model: String,
    /// When it was made, in microseconds.
    pub at: i64,
    /// Of all that the export says of it.
    pub digest: String,
}

impl Vector {
    /// Names a vector.
    ///
    /// # Errors
    /// When a number of it cannot be written as JSON.
    pub fn of(embedding: &Embedding) -> serde_json::Result<Self> {
        let digest = Sha256Digest::of(&serde_json::to_vec(embedding)?).to_hex();
        let Embedding { memory_id, model, created_at, .. } = embedding;
        let (memory, model) = (memory_id.clone(), model.clone());
        Ok(Self { named: Named { memory, model, at: created_at.micros(), digest }, found: false })
    }

    /// What is left of it when it is erased: whose it was.
    #[must_use]
    pub fn emptied(&self) -> Self {
        let Named { memory, .. } = self.named.clone();
        let named = Named { memory, model: String::new(), at: 0, digest: String::new() };
        Self { named, found: self.found }
    }

    /// Whether it was erased.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.named.digest.is_empty()
    }

    /// Whether the bytes of a stored piece of evidence are a vector.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(START)
    }

    /// The evidence's id, one for each report of a vector, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text or a number.
    pub fn encode(&self) -> serde_json::Result<(String, Vec<u8>)> {
        let Named { memory, model, at: _, digest } = &self.named;
        // An import that says the same takes no part of what is nobody's.
        let kind = if self.found { FOUND } else { KIND };
        let id = ids::evidence_id(kind, Some(memory), &format!("{model}\n{digest}")).to_string();
        Ok((id, serde_json::to_vec(self)?))
    }
}
