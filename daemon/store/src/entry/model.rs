//! Converts between PAM's types and entries.

use satchel_pam::{
    conversation::ConversationHeader, embedding::Embedding, memory::Memory, relation::Relation,
};

use super::{EmbeddingEntry, Facets, MemoryEntry, RelationEntry, Summary, content_digest};
use crate::{codec::Malformed, error::StoreError};

/// Makes the entry of a memory that is written.
pub(crate) fn memory_entry(memory: &Memory, withdrawn: bool) -> Result<MemoryEntry, StoreError> {
    let json = json(memory, || format!("memory {:?}", memory.id))?;
    Ok(MemoryEntry { id: memory.id.clone(), withdrawn, facets: facets(memory), json })
}

/// Reads the entry of a memory in the journal.
pub(crate) fn memory(bytes: &[u8], withdrawn: bool) -> Result<MemoryEntry, Malformed> {
    let memory: Memory =
        serde_json::from_slice(bytes).map_err(|_| Malformed("has a memory that does not read"))?;
    Ok(MemoryEntry { facets: facets(&memory), withdrawn, id: memory.id, json: bytes.to_vec() })
}

/// Returns the fields of a memory that lists need.
pub(crate) fn facets(memory: &Memory) -> Facets {
    let created = memory.temporal.created_at.micros();
    Facets {
        memory_type: memory.memory_type.as_str().to_owned(),
        status: memory.status.as_str().to_owned(),
        platform: memory.provenance.platform.clone(),
        account: memory.provenance.platform_user_id.clone(),
        created,
        updated: memory.temporal.updated_at.map_or(created, satchel_pam::time::Timestamp::micros),
        tags: memory.tags.clone(),
        conversation: memory.provenance.conversation_ref.clone(),
        content_hash: memory.content_hash,
    }
}

/// Makes the list row of a conversation.
pub(crate) fn summary(header: &ConversationHeader, messages: u32) -> Summary {
    let created = header.temporal.created_at.micros();
    Summary {
        id: header.id.clone(),
        title: header.title.clone(),
        platform: header.provider.name.clone(),
        account: header.provider.account_id.clone(),
        created,
        updated: header.temporal.updated_at.map_or(created, satchel_pam::time::Timestamp::micros),
        messages,
        archived: header.is_archived,
        tags: header.tags.clone(),
    }
}

/// Reads the list row from a header in the journal.
pub(crate) fn conversation_header(bytes: &[u8], messages: u32) -> Result<Summary, Malformed> {
    let header: ConversationHeader =
        serde_json::from_slice(bytes).map_err(|_| Malformed("has a conversation that does not read"))?;
    Ok(summary(&header, messages))
}

/// Returns the digest of a conversation's content. When it was imported, and from which file, does not count.
pub(crate) fn conversation_digest(
    header: &mut ConversationHeader,
    current: Option<&str>,
    heads: &[u8; 32],
) -> Result<[u8; 32], StoreError> {
    let import = header.import_metadata.take();
    let bytes = json(&*header, || format!("conversation {:?}", header.id))?;
    header.import_metadata = import;
    Ok(content_digest(0, header.id.as_bytes(), &[&bytes, current.unwrap_or_default().as_bytes(), heads]))
}

/// Makes the entry of a relation.
impl TryFrom<&Relation> for RelationEntry {
    type Error = StoreError;

    fn try_from(relation: &Relation) -> Result<Self, StoreError> {
        let json = json(relation, || format!("relation {:?}", relation.id))?;
        Ok(Self { id: relation.id.clone(), from: relation.from.clone(), to: relation.to.clone(), json })
    }
}

/// Reads the entry of a relation in the journal.
pub(crate) fn relation(bytes: &[u8]) -> Result<RelationEntry, Malformed> {
    let relation: Relation =
        serde_json::from_slice(bytes).map_err(|_| Malformed("has a relation that does not read"))?;
    Ok(RelationEntry { id: relation.id, from: relation.from, to: relation.to, json: bytes.to_vec() })
}

/// Makes the entry of an embedding.
impl TryFrom<&Embedding> for EmbeddingEntry {
    type Error = StoreError;

    fn try_from(embedding: &Embedding) -> Result<Self, StoreError> {
        let json = json(embedding, || format!("embedding {:?}", embedding.id))?;
        let (memory, model) = (embedding.memory_id.clone(), embedding.model.clone());
        Ok(Self { withdrawn: false, memory, model, json })
    }
}

/// The fields that identify an embedding. The entry of a withdrawn embedding contains nothing else.
#[derive(serde::Serialize, serde::Deserialize)]
struct EmbeddingName {
    memory_id: String,
    model: String,
}

/// Makes the entry of an embedding that is hidden from now on.
pub(crate) fn embedding_withdrawn(memory: String, model: String) -> Result<EmbeddingEntry, StoreError> {
    let name = EmbeddingName { memory_id: memory, model };
    let json = json(&name, || format!("embedding of {:?}", name.memory_id))?;
    let EmbeddingName { memory_id: memory, model } = name;
    Ok(EmbeddingEntry { withdrawn: true, memory, model, json })
}

/// Reads the entry of an embedding in the journal.
pub(crate) fn embedding(bytes: &[u8], withdrawn: bool) -> Result<EmbeddingEntry, Malformed> {
    let name = if withdrawn {
        serde_json::from_slice(bytes).ok()
    } else {
        let whole = serde_json::from_slice::<Embedding>(bytes).ok();
        whole.map(|Embedding { memory_id, model, .. }| EmbeddingName { memory_id, model })
    };
    let EmbeddingName { memory_id, model } = name.ok_or(Malformed("has an embedding that does not read"))?;
    Ok(EmbeddingEntry { withdrawn, memory: memory_id, model, json: bytes.to_vec() })
}

pub(crate) fn json(value: &impl serde::Serialize, what: impl Fn() -> String) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|source| StoreError::Json { what: what(), source })
}
