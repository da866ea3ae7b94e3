//! Checks the changes of a batch before anything of them is written.

use std::collections::{HashMap, HashSet};

use super::Store;
use crate::{
    change::{
        Change, ConversationWrite, MAX_BODY_BYTES, MAX_ID_BYTES, MAX_MESSAGES, MAX_OPAQUE, MessageWrite,
    },
    engine::Engine,
    entry,
    error::StoreError,
    keys::{self, Id16},
    ledger::LedgerWrite,
    lookup,
    value::INLINE,
};

/// Kind and key of a record.
pub(super) type RecordKey = (u8, Id16);

impl Store {
    /// Checks that these changes could be one batch, as far as sizes, ids and their keys are concerned. So the contents of an
    /// untrusted document are checked before they can make a commit fail.
    ///
    /// # Errors
    /// The errors that [`Store::commit`] would return; any error of the engine.
    pub fn validate(&self, changes: &[Change]) -> Result<(), StoreError> {
        let engine = self.engine();
        for change in changes {
            if let Change::Relation(relation) = change {
                check_size(relation.try_into()?)?;
            }
        }
        check(changes)?.iter().try_for_each(|(key, id)| check_collision(engine, *key, id))
    }
}

/// Checks everything that can be checked without the store. Returns the keys and ids that the batch changes.
pub(super) fn check(changes: &[Change]) -> Result<Vec<(RecordKey, String)>, StoreError> {
    let mut keys = Vec::with_capacity(changes.len());
    let mut seen: HashMap<RecordKey, usize> = HashMap::with_capacity(changes.len());
    for change in changes {
        let Some((kind, name, key, id)) = identity(change) else { continue };
        if id.len() > MAX_ID_BYTES {
            return Err(too_large(format!("the id of a {name}"), id.len(), MAX_ID_BYTES));
        }
        if let Some(first) = seen.insert((kind, key), keys.len()) {
            let other: &(_, String) = &keys[first];
            return Err(if other.1 == id {
                StoreError::DuplicateRecord { kind: name, id }
            } else {
                StoreError::IdCollision { id, other: other.1.clone() }
            });
        }
        keys.push(((kind, key), id));
        if let Change::Conversation(conversation) | Change::WithdrawConversation(conversation) = change {
            check_messages(conversation)?;
        }
    }
    Ok(keys)
}

fn check_messages(conversation: &ConversationWrite) -> Result<(), StoreError> {
    let ConversationWrite { header, opaque, messages, .. } = conversation;
    if opaque.len() > MAX_OPAQUE {
        return Err(too_large(
            format!("the opaque bytes of conversation {:?}", header.id),
            opaque.len(),
            MAX_OPAQUE,
        ));
    }
    if messages.len() > MAX_MESSAGES {
        return Err(too_large(format!("conversation {:?}", header.id), messages.len(), MAX_MESSAGES));
    }
    let mut ids = HashSet::with_capacity(messages.len());
    for message in messages {
        let id = &message.head().id;
        if id.len() > MAX_ID_BYTES {
            return Err(too_large("the id of a message".to_owned(), id.len(), MAX_ID_BYTES));
        }
        let opaque = message.head().opaque.len();
        if opaque > MAX_OPAQUE {
            return Err(too_large(format!("the opaque bytes of message {id:?}"), opaque, MAX_OPAQUE));
        }
        if !ids.insert(id.as_str()) {
            return Err(StoreError::DuplicateRecord { kind: "message", id: id.clone() });
        }
        if let MessageWrite::Put { body, .. } = message
            && body.len() > MAX_BODY_BYTES
        {
            return Err(too_large(format!("message {id:?}"), body.len(), MAX_BODY_BYTES));
        }
    }
    Ok(())
}

/// Returns the key kind, the name, the key and the id of the record that a change puts.
fn identity(change: &Change) -> Option<(u8, &'static str, Id16, String)> {
    let named = |kind, name, id: &String| Some((kind, name, keys::id16(id), id.clone()));
    match change {
        Change::Memory(memory) | Change::WithdrawMemory(memory) => named(keys::MEMORY, "memory", &memory.id),
        Change::Conversation(conversation) | Change::WithdrawConversation(conversation) => {
            named(keys::CONVERSATION, "conversation", &conversation.header.id)
        }
        Change::Relation(relation) => named(keys::RELATION, "relation", &relation.id),
        Change::WithdrawRelation(id) => named(keys::RELATION, "relation", id),
        Change::Embedding(embedding) => {
            named(keys::EMBEDDING, "embedding", &format!("{}\n{}", embedding.memory_id, embedding.model))
        }
        Change::WithdrawEmbedding { memory, model } => {
            named(keys::EMBEDDING, "embedding", &format!("{memory}\n{model}"))
        }
        Change::Evidence(evidence) => Some((keys::EVIDENCE, "piece of evidence", evidence.id, String::new())),
        Change::Ledger(LedgerWrite::Entry { ledger, id, .. }) => {
            let name = "ledger entry";
            named(keys::LEDGER, name, &format!("{}\n{id}", ledger.code()))
                .map(|found| (found.0, name, found.2, id.clone()))
        }
        Change::Ledger(LedgerWrite::Issues { import, page, .. }) => {
            named(keys::ISSUES, "page of issues", &format!("{import}\n{page}"))
        }
        // A piece that occurs twice in a batch has the same value both times.
        Change::Ledger(LedgerWrite::Piece { .. }) => None,
    }
}

/// Refuses an id whose key belongs to another id: a UUID can be chosen so that it equals the hash of a text.
pub(super) fn check_collision(
    engine: &dyn Engine,
    (kind, key): (u8, Id16),
    id: &str,
) -> Result<(), StoreError> {
    match lookup::stored_id(engine, kind, key)? {
        Some(other) if other != id => Err(StoreError::IdCollision { id: id.to_owned(), other }),
        Some(_) | None => Ok(()),
    }
}

/// Refuses a relation that is too long for an engine value, where relations are always stored. Ours take about 300 bytes.
pub(super) fn check_size(entry: entry::RelationEntry) -> Result<entry::RelationEntry, StoreError> {
    if entry.json.len() > INLINE {
        return Err(too_large(format!("relation {:?}", entry.id), entry.json.len(), INLINE));
    }
    Ok(entry)
}

fn too_large(what: String, size: usize, limit: usize) -> StoreError {
    StoreError::TooLarge { what, size: size as u64, limit: limit as u64 }
}
