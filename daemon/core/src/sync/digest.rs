//! A digest of what a store shows, by which two stores can tell whether they agree.

use satchel_pam::{hash::Sha256Digest, jcs};
use satchel_store::{
    ConversationQuery, ConversationRecord, MemoryQuery, MemoryRecord, RelationRecord, Revision, Store,
    StoreError,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Sync, SyncError, UNREADABLE};
use crate::{each_row, edits::QuarantinedMemory, provenance::PurgedData};

/// Records per page of a list.
const PAGE: usize = 500;

/// What a store shows, in short. Ids, times and texts count, also of what agents wrote and the owner has to review. Versions, revisions, the history and the import metadata of conversations do
/// not, as each store has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDigest {
    /// SHA-256 over the SHA-256 digests of all records, in ascending order.
    pub digest: Sha256Digest,
    /// The number of memories.
    pub memories: u64,
    /// The number of relations.
    pub relations: u64,
    /// The number of conversations.
    pub conversations: u64,
}

impl Sync {
    /// Returns a digest of what the store shows. All records are read: this takes about as long as an export.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn state_digest(&self) -> Result<StateDigest, SyncError> {
        let (store, at) = (self.0.store(), self.0.store().revision());
        let mut records = Vec::new();
        let query = MemoryQuery::default();
        each_row(
            |after| Ok::<_, SyncError>(store.memories(&query, after, PAGE, at)?),
            |MemoryRecord { memory, .. }| {
                records.push(digest_of("memory", &memory)?);
                Ok(())
            },
        )?;
        let memories = records.len() as u64;
        each_row(
            |after| Ok::<_, SyncError>(store.relations(after, PAGE, at)?),
            |RelationRecord { relation, .. }| {
                records.push(digest_of("relation", &relation)?);
                Ok(())
            },
        )?;
        let relations = records.len() as u64 - memories;
        let query = ConversationQuery::default();
        each_row(
            |after| Ok::<_, SyncError>(store.conversations(&query, after, PAGE, at)?),
            |summary| {
                if let Some(record) = conversation(store, &summary.id, at)? {
                    records.push(digest_of("conversation", &record)?);
                }
                Ok(())
            },
        )?;
        let conversations = records.len() as u64 - memories - relations;
        let purged = PurgedData::load(store)?;
        for agent_memory in QuarantinedMemory::all(store)? {
            // What an agent writes again after it was erased stays in one store.
            if !agent_memory.1.is_erased(&purged) {
                records.push(digest_of("agent memory", &agent_memory)?);
            }
        }
        records.sort_unstable();
        let digest = Sha256Digest::of(records.as_flattened());
        Ok(StateDigest { digest, memories, relations, conversations })
    }
}

/// Returns what counts of a conversation.
fn conversation(store: &Store, id: &str, at: Revision) -> Result<Option<Value>, StoreError> {
    let Some(record) = store.conversation(id, Some(at))? else { return Ok(None) };
    let mut messages = Vec::with_capacity(record.heads.len());
    for (head, body) in record.heads.iter().zip(store.all_bodies(&record)) {
        // Exports of one provider differ in the white space of what they say about a message.
        let digest = canonical_digest(&body?.1).to_hex();
        messages.push(json!([head.id, head.parent, head.created_at_micros, head.hidden, digest]));
    }
    let ConversationRecord { mut header, current, .. } = record;
    // It names the import that changed the conversation last, which depends on the order of imports.
    header.import_metadata = None;
    Ok(Some(json!({"header": header, "current": current, "messages": messages})))
}

/// Hashes the canonical form of JSON, or the bytes themselves if they have none.
fn canonical_digest(json: &[u8]) -> Sha256Digest {
    let value = serde_json::from_slice::<Value>(json).ok();
    let canonical = value.and_then(|value| jcs::to_vec(&value).ok());
    Sha256Digest::of(canonical.as_deref().unwrap_or(json))
}

fn digest_of(kind: &str, record: &impl Serialize) -> Result<[u8; 32], SyncError> {
    let bytes = serde_json::to_vec(&(kind, record)).map_err(|_| UNREADABLE)?;
    Ok(*canonical_digest(&bytes).as_bytes())
}
