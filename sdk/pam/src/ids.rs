//! Deterministic ids: UUIDv5 over a canonical JSON array of the kind of record and its keys.
//!
//! **Invariant:** two machines that import the same export derive the same ids (test `ids_never_change`).

use uuid::{Uuid, uuid};

use crate::{
    hash::{ContentHash, Sha256Digest},
    jcs,
    memory::MemoryType,
    relation::RelationType,
};

/// The namespace of all ids. It must never change: with another one, every record would be imported a second time.
pub const NAMESPACE: Uuid = uuid!("7b0c1f5e-3a7d-5c58-9d0e-5f1c4be7a2d3");

/// Maximum length in bytes of an id that is used as a file name; file systems allow 255 with the suffix.
const MAX_FILE_STEM: usize = 120;

/// Id of a conversation from the provider's key. Give `account` only if the key is derived from content and may be the same in two
/// accounts.
#[must_use]
pub fn conversation_id(platform: &str, account: Option<&str>, key: &str) -> Uuid {
    derive(&[Some("conversation"), Some(platform), account, Some(key)])
}

/// Id of a message from the key of its node in the conversation.
#[must_use]
pub fn message_id(conversation: Uuid, node: &str) -> Uuid {
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    let conversation = conversation.hyphenated().encode_lower(&mut text);
    derive(&[Some("message"), Some(conversation), Some(node)])
}

/// Id of a memory from its content, type and scope.
#[must_use]
pub fn memory_id(
    hash: &ContentHash,
    memory_type: MemoryType,
    custom_type: Option<&str>,
    scope: Option<&str>,
) -> Uuid {
    derive(&[Some("memory"), Some(&hash.to_string()), Some(memory_type.as_str()), custom_type, scope])
}

/// Id of a relation from the ids of the two memories and its type.
#[must_use]
pub fn relation_id(from: &str, to: &str, relation_type: RelationType) -> Uuid {
    derive(&[Some("relation"), Some(from), Some(to), Some(relation_type.as_str())])
}

/// Id of a piece of evidence from its key in the account.
#[must_use]
pub fn evidence_id(platform: &str, account: Option<&str>, id: &str) -> Uuid {
    derive(&[Some("evidence"), Some(platform), account, Some(id)])
}

/// Id of the embedding of a memory by a model.
#[must_use]
pub fn embedding_id(memory: &str, model: &str) -> Uuid {
    derive(&[Some("embedding"), Some(memory), Some(model)])
}

/// File name of a conversation without `.json`: the id itself if it is a safe file name, otherwise `c-` and 16 hex digits
/// of its SHA-256.
///
/// Unsafe are upper-case letters (some file systems ignore case), all characters but letters, digits, `-` and `_`, device names on
/// Windows, ids in the hashed form, and more than 120 bytes.
#[must_use]
pub fn file_name(id: &str) -> String {
    if is_safe_file_name(id) {
        return id.to_owned();
    }
    let digest = Sha256Digest::of(id.as_bytes()).to_hex();
    format!("c-{}", &digest[..16])
}

fn is_safe_file_name(id: &str) -> bool {
    let device = matches!(id, "con" | "prn" | "aux" | "nul")
        || (id.len() == 4 && (id.starts_with("com") || id.starts_with("lpt")));
    let hashed = id.len() == 18 && id.starts_with("c-");
    (1..=MAX_FILE_STEM).contains(&id.len())
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
