//! Embedding vectors from imports: a kind of evidence that identifies a vector. The numbers are stored separately
//! because they are long.

use std::cmp::Ordering;

use satchel_pam::{embedding::Embedding, hash::Sha256Digest, ids};
use serde::{Deserialize, Serialize};

use super::Exported;

/// Used in place of the platform in the ids of this evidence; no platform name contains a space.
const KIND: &str = "vector of a memory";
const FOUND: &str = "vector that was found";
/// The beginning of the stored form.
const START: &[u8] = br#"{"vector":"#;

/// A vector as an export contains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vector {
    /// The identity of the vector.
    #[serde(rename = "vector")]
    pub named: Named,
    /// Whether it was stored before origins were recorded. It then belongs to no import and always counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found: bool,
}

/// The identity of a vector: its memory, its model and its version. Of two vectors for one memory and model, the
/// greater one counts, which is the later one. A withdrawal is greater than every vector made before it, unless the
/// vector was reported again after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The memory's id.
    pub memory: String,
    /// The model.
    pub model: String,
    /// For a withdrawal, the time of the withdrawal; for a vector, the time of the withdrawal after which it was
    /// reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Exported>,
    /// When the vector was made, in microseconds.
    pub at: i64,
    /// Digest of everything that the export says about the vector; empty for a withdrawal.
    pub digest: String,
    /// As in [`super::Document`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stranger: Option<String>,
}

impl Named {
    /// Creates a withdrawal, at `at`, of the vector of a memory under a model's name.
    #[must_use]
    pub fn withdrawal(memory: String, model: String, at: Exported) -> Self {
        Self { memory, model, after: Some(at), at: i64::MIN, digest: String::new(), stranger: None }
    }

    /// Returns whether this is a withdrawal.
    #[must_use]
    pub fn withdrawn(&self) -> bool {
        self.digest.is_empty() && !self.model.is_empty()
    }

    /// Returns the sort key.
    fn rank(&self) -> impl Ord + '_ {
        let Self { memory, model, after, at, digest, stranger } = self;
        let since = after.map_or(*at, |after| after.at.max(*at));
        let told = after.map(|after| (after.revision, !self.withdrawn()));
        (memory, model, stranger.is_none(), since, told, at, digest, after, stranger)
    }
}

impl Ord for Named {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Vector {
    /// Creates the identity of a vector.
    ///
    /// # Errors
    /// If a number in it cannot be written as JSON.
    pub fn of(embedding: &Embedding) -> serde_json::Result<Self> {
        let digest = Sha256Digest::of(&serde_json::to_vec(embedding)?).to_hex();
        let Embedding { memory_id, model, created_at, .. } = embedding;
        let (memory, model) = (memory_id.clone(), model.clone());
        let at = created_at.micros();
        let named = Named { memory, model, after: None, at, digest, stranger: None };
        Ok(Self { named, found: false })
    }

    /// Returns what remains after the vector is erased: the memory and the stranger.
    #[must_use]
    pub fn emptied(&self) -> Self {
        let Named { memory, stranger, .. } = self.named.clone();
        let (model, digest) = (String::new(), String::new());
        let named = Named { memory, model, after: None, at: 0, digest, stranger };
        Self { named, found: self.found }
    }

    /// Returns whether the vector was erased.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.named.digest.is_empty() && self.named.model.is_empty()
    }

    /// Returns whether the bytes of a stored piece of evidence are a vector.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(START)
    }

    /// Returns the evidence id, which is unique for each report of a vector, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text or a number.
    pub fn encode(&self) -> serde_json::Result<(String, Vec<u8>)> {
        let Named { memory, model, after, at: _, digest, stranger } = &self.named;
        // The id differs, so that an import with the same vector does not become an owner of one that belongs to no
        // import.
        let kind = if self.found { FOUND } else { KIND };
        let after = after.map(|after| format!("\n{} {}", after.at, after.revision)).unwrap_or_default();
        let by = stranger.as_ref().map(|stranger| format!("\n{stranger}")).unwrap_or_default();
        let id = ids::evidence_id(kind, Some(memory), &format!("{model}\n{digest}{after}{by}")).to_string();
        Ok((id, serde_json::to_vec(self)?))
    }
}
