//! Embedding vectors from imports: a kind of evidence that identifies a vector. The numbers are stored separately
//! because they are long.

use std::cmp::Ordering;

use satchel_pam::{embedding::Embedding, hash::Sha256Digest, ids};
use serde::{Deserialize, Serialize};

use super::ExportTime;

/// Used in place of the platform in the ids of this evidence; no platform name contains a space.
const ID_NAMESPACE: &str = "vector of a memory";
const WITHOUT_IMPORT_NAMESPACE: &str = "vector that was found";
/// The beginning of the stored form.
const STORED_PREFIX: &[u8] = br#"{"vector":"#;

/// A vector as an export contains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorEvidence {
    /// The identity of the vector.
    #[serde(rename = "vector")]
    pub identity: VectorIdentity,
    /// Whether it was stored before origins were recorded. It then belongs to no import and always counts.
    #[serde(default, rename = "found", skip_serializing_if = "std::ops::Not::not")]
    pub without_import: bool,
}

/// The identity of a vector: its memory, its model and its version. Of two vectors for one memory and model, the
/// greater one counts, which is the later one. A withdrawal is greater than every vector made before it, unless the
/// vector was reported again after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorIdentity {
    /// The memory's id.
    pub memory: String,
    /// The model.
    pub model: String,
    /// For a withdrawal, the time of the withdrawal; for a vector, the time of the withdrawal after which it was
    /// reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ExportTime>,
    /// When the vector was made, in microseconds.
    pub at: i64,
    /// Digest of everything that the export says about the vector; empty for a withdrawal.
    pub digest: String,
    /// As in [`super::DocumentEvidence`].
    #[serde(default, rename = "stranger", skip_serializing_if = "Option::is_none")]
    pub untrusted_signer: Option<String>,
}

impl VectorIdentity {
    /// Creates a withdrawal, at `at`, of the vector of a memory under a model's name.
    #[must_use]
    pub fn withdrawal(memory: String, model: String, at: ExportTime) -> Self {
        Self { memory, model, after: Some(at), at: i64::MIN, digest: String::new(), untrusted_signer: None }
    }

    /// Returns whether this is a withdrawal.
    #[must_use]
    pub fn is_withdrawal(&self) -> bool {
        self.digest.is_empty() && !self.model.is_empty()
    }

    /// Returns the sort key.
    fn rank(&self) -> impl Ord + '_ {
        let Self { memory, model, after, at, digest, untrusted_signer: signer } = self;
        let since = after.map_or(*at, |after| after.at.max(*at));
        let revision = after.map(|after| (after.revision, !self.is_withdrawal()));
        (memory, model, signer.is_none(), since, revision, at, digest, after, signer)
    }
}

impl Ord for VectorIdentity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for VectorIdentity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl VectorEvidence {
    /// Creates the identity of a vector.
    ///
    /// # Errors
    /// If a number in it cannot be written as JSON.
    pub fn of(embedding: &Embedding) -> serde_json::Result<Self> {
        let digest = Sha256Digest::of(&serde_json::to_vec(embedding)?).to_hex();
        let Embedding { memory_id, model, created_at, .. } = embedding;
        let (memory, model) = (memory_id.clone(), model.clone());
        let at = created_at.micros();
        let identity = VectorIdentity { memory, model, after: None, at, digest, untrusted_signer: None };
        Ok(Self { identity, without_import: false })
    }

    /// Returns what remains after the vector is erased: the memory and the stranger.
    #[must_use]
    pub fn erased(&self) -> Self {
        let VectorIdentity { memory, untrusted_signer: signer, .. } = self.identity.clone();
        let (model, digest) = (String::new(), String::new());
        let identity = VectorIdentity { memory, model, after: None, at: 0, digest, untrusted_signer: signer };
        Self { identity, without_import: self.without_import }
    }

    /// Returns whether the vector was erased.
    #[must_use]
    pub fn is_erased(&self) -> bool {
        self.identity.digest.is_empty() && self.identity.model.is_empty()
    }

    /// Returns whether the bytes of a stored piece of evidence are a vector.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(STORED_PREFIX)
    }

    /// Returns the evidence id, which is unique for each report of a vector, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text or a number.
    pub fn encode(&self) -> serde_json::Result<(String, Vec<u8>)> {
        let VectorIdentity { memory, model, after, at: _, digest, untrusted_signer: signer } = &self.identity;
        // The id differs, so that an import with the same vector does not become an owner of one that belongs to no
        // import.
        let kind = if self.without_import { WITHOUT_IMPORT_NAMESPACE } else { ID_NAMESPACE };
        let after = after.map(|after| format!("\n{} {}", after.at, after.revision)).unwrap_or_default();
        let by = signer.as_ref().map(|signer| format!("\n{signer}")).unwrap_or_default();
        let id = ids::evidence_id(kind, Some(memory), &format!("{model}\n{digest}{after}{by}")).to_string();
        Ok((id, serde_json::to_vec(self)?))
    }
}
