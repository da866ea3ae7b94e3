//! Vectors that imports brought: a kind of evidence that names them. The numbers stand apart, for they are long.

use std::cmp::Ordering;

use satchel_pam::{embedding::Embedding, hash::Sha256Digest, ids};
use serde::{Deserialize, Serialize};

use super::Exported;

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

/// Which vector of which memory. Of two for one memory and model the greater stands: the later. A withdrawal is greater than what
/// was made before it, unless that was told again after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The memory's id.
    pub memory: String,
    /// The model.
    pub model: String,
    /// The withdrawal that it was told after, or that it is: when that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Exported>,
    /// When it was made, in microseconds.
    pub at: i64,
    /// Of all that the export says of it; empty: it is a withdrawal.
    pub digest: String,
    /// As of a [`super::Document`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stranger: Option<String>,
}

impl Named {
    /// What says that the vector of a memory under a model's name was taken back, at `at`.
    #[must_use]
    pub fn withdrawal(memory: String, model: String, at: Exported) -> Self {
        Self { memory, model, after: Some(at), at: i64::MIN, digest: String::new(), stranger: None }
    }

    /// Whether it is a withdrawal.
    #[must_use]
    pub fn withdrawn(&self) -> bool {
        self.digest.is_empty() && !self.model.is_empty()
    }

    /// By what one is greater than another.
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
    /// Names a vector.
    ///
    /// # Errors
    /// When a number of it cannot be written as JSON.
    pub fn of(embedding: &Embedding) -> serde_json::Result<Self> {
        let digest = Sha256Digest::of(&serde_json::to_vec(embedding)?).to_hex();
        let Embedding { memory_id, model, created_at, .. } = embedding;
        let (memory, model) = (memory_id.clone(), model.clone());
        let at = created_at.micros();
        let named = Named { memory, model, after: None, at, digest, stranger: None };
        Ok(Self { named, found: false })
    }

    /// What is left of it when it is erased: whose it was.
    #[must_use]
    pub fn emptied(&self) -> Self {
        let Named { memory, stranger, .. } = self.named.clone();
        let (model, digest) = (String::new(), String::new());
        let named = Named { memory, model, after: None, at: 0, digest, stranger };
        Self { named, found: self.found }
    }

    /// Whether it was erased.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.named.digest.is_empty() && self.named.model.is_empty()
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
        let Named { memory, model, after, at: _, digest, stranger } = &self.named;
        // An import that says the same takes no part of what is nobody's.
        let kind = if self.found { FOUND } else { KIND };
        let after = after.map(|after| format!("\n{} {}", after.at, after.revision)).unwrap_or_default();
        let by = stranger.as_ref().map(|stranger| format!("\n{stranger}")).unwrap_or_default();
        let id = ids::evidence_id(kind, Some(memory), &format!("{model}\n{digest}{after}{by}")).to_string();
        Ok((id, serde_json::to_vec(self)?))
    }
}
