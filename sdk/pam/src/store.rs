//! The memory store document (PAM 1.0 §3): owner, memories, their relations, and what protects them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    conversation::ConversationTemporal, embedding::StorageKind, hash::Sha256Digest, memory::Memory,
    names::names, relation::Relation, time::Timestamp,
};

mod writer;

pub use writer::{SCHEMA, Signer, WriteError, Writer, Written};

names! {
    /// Whether a document holds everything or what changed.
    #[derive(Default)]
    ExportType {
        /// Everything.
        #[default]
        Full = "full",
        /// What is new or changed since a base.
        Incremental = "incremental",
    }
}

/// A `memory-store.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryStore {
    /// `1.0`, or a later minor version when read.
    pub schema_version: String,
    /// The fields of the root that are no lists.
    pub header: StoreHeader,
    /// The statements.
    pub memories: Vec<Memory>,
    /// Edges between them.
    pub relations: Vec<Relation>,
    /// The conversations they come from.
    pub conversations_index: Vec<IndexEntry>,
    /// Checksum and count.
    pub integrity: Option<Integrity>,
    /// Over checksum, export id, export date and owner id.
    pub signature: Option<SignatureBlock>,
    /// What a later minor version added outside `metadata`, by JSON path; not written.
    pub unknown: BTreeMap<String, Value>,
}

/// The fields of a store's root that are no lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreHeader {
    /// Where the specification is; never fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_uri: Option<String>,
    /// A UUID v4 for each export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_id: Option<String>,
    /// `name/x.y.z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_by: Option<String>,
    /// When it was exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_date: Option<Timestamp>,
    /// Whose memories these are.
    pub owner: Owner,
    /// Everything or what changed.
    #[serde(default)]
    pub export_type: ExportType,
    /// The full export that an incremental one adds to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_export_id: Option<String>,
    /// The time since when an incremental one holds changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Where custom types are registered; never fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_registry: Option<String>,
}

/// Whose memories these are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Not empty; the same in every export of this person.
    pub id: String,
    /// `did:method:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub did: Option<String>,
    /// Since when there is such an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
}

/// One conversation in the store's list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// The conversation's id; not empty.
    pub id: String,
    /// The same name as `provider.name` in its file.
    pub platform: String,
    /// The same title as in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How many messages its file holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_count: Option<u64>,
    /// The same times as in its file.
    pub temporal: ConversationTemporal,
    /// The same tags as in its file.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Ids of the memories whose `conversation_ref` it is.
    #[serde(default)]
    pub derived_memories: Vec<String>,
    /// Where its file is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageReference>,
}

/// Where a conversation is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageReference {
    /// What kind of place.
    #[serde(rename = "type")]
    pub kind: StorageKind,
    /// Where in it; of a file: relative to the store, inside the bundle.
    #[serde(rename = "ref")]
    pub reference: String,
    /// `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// Checksum and count of the memories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integrity {
    /// `RFC8785`, the only value.
    #[serde(default = "rfc8785")]
    pub canonicalization: String,
    /// Over the memories in id order, as canonical JSON.
    pub checksum: Sha256Digest,
    /// How many memories there are.
    pub total_memories: u64,
}

/// A signature over [`crate::sign::Payload`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureBlock {
    /// `Ed25519`, `ES256`, `ES384`, `RS256`, `RS384` or `RS512`.
    pub algorithm: String,
    /// Multibase, JWK or PEM.
    pub public_key: String,
    /// base64url of the signature's bytes.
    pub value: String,
    /// Not before `export_date`.
    pub signed_at: Timestamp,
    /// A DID URL that names the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
}

impl Integrity {
    /// The block of a checksum and a count.
    #[must_use]
    pub fn new(checksum: Sha256Digest, total_memories: u64) -> Self {
        Self { canonicalization: rfc8785(), checksum, total_memories }
    }
}

impl StorageReference {
    /// A JSON file of the bundle; `path` is relative to the store's file.
    #[must_use]
    pub fn file(path: impl Into<String>) -> Self {
        Self { kind: StorageKind::File, reference: path.into(), format: Some("json".to_owned()) }
    }
}

impl StoreHeader {
    /// The header of a full export with nothing but an owner.
    #[must_use]
    pub fn new(owner: Owner) -> Self {
        Self {
            spec_uri: None,
            export_id: None,
            exported_by: None,
            export_date: None,
            owner,
            export_type: ExportType::Full,
            base_export_id: None,
            since: None,
            type_registry: None,
        }
    }
}

fn rfc8785() -> String {
    "RFC8785".to_owned()
}
