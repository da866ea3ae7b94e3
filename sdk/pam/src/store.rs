//! The memory store document (PAM 1.0 §3): owner, memories, relations, index of conversations, checksum and signature.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    conversation::ConversationTemporal, embedding::StorageKind, hash::Sha256Digest, memory::Memory,
    names::names, relation::Relation, time::Timestamp,
};

#[cfg(feature = "documents")]
mod writer;

#[cfg(feature = "documents")]
pub use writer::{SCHEMA, Signer, WriteError, Writer, Written};

names! {
    /// Whether an export is complete (§16).
    #[derive(Default)]
    ExportType {
        /// The whole store.
        #[default]
        Full = "full",
        /// Records that are new or changed since a base export.
        Incremental = "incremental",
    }
}

/// A `memory-store.json` document.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryStore {
    /// `major.minor`: 1.0, or a later minor version of a foreign document.
    pub schema_version: String,
    /// Owner and description of the export.
    pub header: StoreHeader,
    /// Memories (§4).
    pub memories: Vec<Memory>,
    /// Relations between memories (§13).
    pub relations: Vec<Relation>,
    /// Index of the conversations (§14).
    pub conversations_index: Vec<IndexEntry>,
    /// Checksum and count of the memories (§15).
    pub integrity: Option<Integrity>,
    /// Signature over checksum, export id, export date and owner id (§18).
    pub signature: Option<SignatureBlock>,
    /// Fields that a later minor version added outside `metadata`, by JSON path; not written.
    pub unknown: BTreeMap<String, Value>,
}

/// Owner and description of an export (§3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreHeader {
    /// URI of the specification; never fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_uri: Option<String>,
    /// UUID v4 of this export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_id: Option<String>,
    /// Software that wrote it, `name/x.y.z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_by: Option<String>,
    /// Time of the export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_date: Option<Timestamp>,
    /// Owner of the memories.
    pub owner: Owner,
    /// Full or incremental.
    #[serde(default)]
    pub export_type: ExportType,
    /// Id of the export on which an incremental one is based (§16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_export_id: Option<String>,
    /// Start of the changes in an incremental export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// URI of a registry of custom types (§19); never fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_registry: Option<String>,
}

/// The owner of the memories (§3, §17).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Not empty; the same in all exports of this person.
    pub id: String,
    /// DID of the owner, `did:method:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub did: Option<String>,
    /// When the owner was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
}

/// An entry of the index of conversations (§14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// Id of the conversation; not empty.
    pub id: String,
    /// The same name as `provider.name` in its file.
    pub platform: String,
    /// The same title as in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Number of messages in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_count: Option<u64>,
    /// The same times as in its file.
    pub temporal: ConversationTemporal,
    /// The same tags as in its file.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Ids of the memories whose `conversation_ref` is this conversation.
    #[serde(default)]
    pub derived_memories: Vec<String>,
    /// Location of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageReference>,
}

/// Location of a conversation (§14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageReference {
    /// Kind of storage.
    #[serde(rename = "type")]
    pub kind: StorageKind,
    /// Location in it; for a file, the path relative to the store, inside the bundle.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Format of the file: `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// Checksum and count of the memories (§15).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integrity {
    /// Always `RFC8785`.
    #[serde(default = "rfc8785")]
    pub canonicalization: String,
    /// SHA-256 over the canonical JSON of the memories in id order.
    pub checksum: Sha256Digest,
    /// Number of memories.
    pub total_memories: u64,
}

/// A signature over a [`crate::sign::Payload`] (§18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureBlock {
    /// `Ed25519`, `ES256`, `ES384`, `RS256`, `RS384` or `RS512`.
    pub algorithm: String,
    /// The key as multibase, `did:key`, JWK or PEM.
    pub public_key: String,
    /// The signature as base64url.
    pub value: String,
    /// Time of the signature, not before `export_date`.
    pub signed_at: Timestamp,
    /// DID URL of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
}

impl Integrity {
    /// Creates a block for a checksum and a count.
    #[must_use]
    pub fn new(checksum: Sha256Digest, total_memories: u64) -> Self {
        Self { canonicalization: rfc8785(), checksum, total_memories }
    }
}

impl StorageReference {
    /// Refers to a JSON file of the bundle; `path` is relative to the store.
    #[must_use]
    pub fn file(path: impl Into<String>) -> Self {
        Self { kind: StorageKind::File, reference: path.into(), format: Some("json".to_owned()) }
    }
}

impl StoreHeader {
    /// Creates the header of a full export with only an owner.
    #[must_use]
    pub fn new(owner: Owner) -> Self {
        Self { owner, ..Self::default() }
    }
}

fn rfc8785() -> String {
    "RFC8785".to_owned()
}
