//! The remains of a memory or conversation whose content is erased: its existence, its times, and the hash of its content.

use satchel_pam::{
    conversation::{ConversationHeader, Provider},
    memory::{Memory, Provenance, Status, Temporal},
    raw::RawObject,
};
use serde_json::{Map, Value, json};

use crate::{
    codec::{Malformed, heads::HeadWriter},
    entry::{ConversationEntry, MemoryEntry, conversation_digest, json, memory_entry, summary},
    error::StoreError,
};

/// The key of this program's data in a memory's metadata and in the raw metadata of a conversation.
const METADATA_KEY: &str = "satchel";
/// The key below it which records that the owner erased the content.
const PURGED_KEY: &str = "purged";

/// Returns a memory without its content.
#[must_use]
pub fn empty_memory(memory: &Memory) -> Memory {
    let Temporal { created_at, updated_at, .. } = memory.temporal;
    let Provenance { platform, extraction_method, extracted_at, extractor, .. } = memory.provenance.clone();
    Memory {
        id: memory.id.clone(),
        memory_type: memory.memory_type,
        custom_type: memory.custom_type.clone(),
        status: Status::Retracted,
        content: String::new(),
        content_hash: memory.content_hash,
        summary: None,
        tags: Vec::new(),
        confidence: None,
        temporal: Temporal {
            created_at,
            updated_at,
            valid_from: None,
            valid_until: None,
            superseded_by: None,
        },
        provenance: Provenance {
            platform,
            extraction_method,
            extracted_at,
            extractor,
            ..Provenance::default()
        },
        access: None,
        embedding_ref: None,
        metadata: Map::from_iter([(METADATA_KEY.to_owned(), json!({ PURGED_KEY: true }))]),
    }
}

/// Returns whether a memory's content was erased.
#[must_use]
pub fn erased(memory: &Memory) -> bool {
    let mark = memory.metadata.get(METADATA_KEY).and_then(|own| own.get(PURGED_KEY));
    memory.content.is_empty() && mark == Some(&Value::Bool(true))
}

/// Returns whether a conversation's content was erased.
#[must_use]
pub fn erased_conversation(header: &ConversationHeader) -> bool {
    header.raw_metadata.as_ref().is_some_and(|metadata| metadata.as_str() == erased_metadata().as_str())
}

/// Returns the raw metadata of a conversation whose content was erased.
fn erased_metadata() -> RawObject {
    RawObject::default().with(METADATA_KEY, &json!({ PURGED_KEY: true }))
}

/// Returns the header of a conversation without its content.
#[must_use]
pub fn empty_conversation(header: &ConversationHeader) -> ConversationHeader {
    let ConversationHeader { id, provider, temporal, import_metadata, .. } = header.clone();
    let Provider { name, conversation_id, account_id, export_format_version } = provider;
    ConversationHeader {
        id,
        provider: Provider { name, conversation_id, account_id, export_format_version },
        title: None,
        temporal,
        participants: Vec::new(),
        model: None,
        system_instruction: None,
        is_archived: false,
        tags: Vec::new(),
        raw_metadata: Some(erased_metadata()),
        import_metadata,
    }
}

/// Returns the same version of a memory, without its content.
pub(super) fn without_memory(entry: &MemoryEntry) -> Result<MemoryEntry, StoreError> {
    let memory: Memory = read(&entry.json, &entry.id)?;
    memory_entry(&empty_memory(&memory), entry.withdrawn)
}

/// Returns the same version of a conversation, without messages.
pub(super) fn without_conversation(entry: &ConversationEntry) -> Result<ConversationEntry, StoreError> {
    let header: ConversationHeader = read(&entry.header, &entry.summary.id)?;
    let mut header = empty_conversation(&header);
    let (parts, heads) = HeadWriter::new(0).finish();
    let digest = conversation_digest(&mut header, None, &heads)?;
    Ok(ConversationEntry {
        withdrawn: entry.withdrawn,
        summary: summary(&header, 0),
        header: json(&header, || format!("conversation {:?}", header.id))?,
        current: None,
        opaque: Vec::new(),
        parts,
        digest,
    })
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8], id: &str) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|_| StoreError::BadValue {
        what: format!("{id:?}"),
        problem: Malformed("has a record that does not read").to_string(),
    })
}
