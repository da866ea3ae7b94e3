//! Deterministic ids: UUIDv5 over a canonical JSON array of the kind and the keys.
//!
//! **Invariant:** two machines that read the same export get the same ids (test `ids_never_change`).

use uuid::{Uuid, uuid};

use crate::{
    hash::{ContentHash, Sha256Digest},
    jcs,
    memory::MemoryType,
    relation::RelationType,
};

/// The namespace of every id below. A constant for ever: another one would double every record of every store.
pub const NAMESPACE: Uuid = uuid!("7b0c1f5e-3a7d-5c58-9d0e-5f1c4be7a2d3");

/// Longest id, in bytes, that is a file name as it is; file systems end at 255 with the suffix.
const LONGEST_FILE_STEM: usize = 120;

/// Id of a conversation: the provider's own key. `account` only where the key is a natural one, made of content,
/// and may be the same in two accounts.
#[must_use]
pub fn conversation_id(platform: &str, account: Option<&str>, key: &str) -> Uuid {
    derive(&[Some("conversation"), Some(platform), account, Some(key)])
}

/// Id of a message: its node in its conversation.
#[must_use]
pub fn message_id(conversation: Uuid, node: &str) -> Uuid {
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    let conversation = conversation.hyphenated().encode_lower(&mut text);
    derive(&[Some("message"), Some(conversation), Some(node)])
}

/// Id of a memory: what it says, as which type, limited to what.
#[must_use]
pub fn memory_id(
    hash: &ContentHash,
    memory_type: MemoryType,
    custom_type: Option<&str>,
    scope: Option<&str>,
) -> Uuid {
    derive(&[Some("memory"), Some(&hash.to_string()), Some(memory_type.as_str()), custom_type, scope])
}

/// Id of a relation between two memories, by their ids.
#[must_use]
pub fn relation_id(from: &str, to: &str, relation_type: RelationType) -> Uuid {
    derive(&[Some("relation"), Some(from), Some(to), Some(relation_type.as_str())])
}

/// Id of a piece of evidence: its key in the account.
#[must_use]
pub fn evidence_id(platform: &str, account: Option<&str>, id: &str) -> Uuid {
    derive(&[Some("evidence"), Some(platform), account, Some(id)])
}

/// Id of a memory's embedding by a model.
#[must_use]
pub fn embedding_id(memory: &str, model: &str) -> Uuid {
    derive(&[Some("embedding"), Some(memory), Some(model)])
}

/// The name of a conversation's file, without `.json`: the id itself if every file system holds it apart from all
/// others, else `c-` and 16 hex digits of its SHA-256.
///
/// Not safe: upper case (some file systems do not tell it from lower), dots and slashes, names of devices on
/// Windows, ids that look like the hashed form, more than 120 bytes.
#[must_use]
pub fn file_name(id: &str) -> String {
    if file_safe(id) {
        return id.to_owned();
    }
    let digest = Sha256Digest::of(id.as_bytes()).to_hex();
    format!("c-{}", &digest[..16])
}

fn file_safe(id: &str) -> bool {
    let device = matches!(id, "con" | "prn" | "aux" | "nul")
        || (id.len() == 4 && (id.starts_with("com") || id.starts_with("lpt")));
    let hashed = id.len() == 18 && id.starts_with("c-");
    (1..=LONGEST_FILE_STEM).contains(&id.len())
        && !id.starts_with('-')
        && !device
        && !hashed
        && id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

fn derive(parts: &[Option<&str>]) -> Uuid {
    let mut name = Vec::with_capacity(128);
    name.push(b'[');
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            name.push(b',');
        }
        match part {
            Some(text) => jcs::write_string(&mut name, text),
            None => name.extend_from_slice(b"null"),
        }
    }
    name.push(b']');
    Uuid::new_v5(&NAMESPACE, &name)
}
