//! Lookups of current records in the engine, for the writer and for readers.

use crate::{
    change::MessageHead,
    codec::heads::read_part,
    engine::Engine,
    entry::{self, RelationEntry},
    error::StoreError,
    keys::{self, Id16},
    record::BodyPlace,
    value::{ConversationValue, MemoryValue, RelationValue, decode},
};

/// Returns the id that is stored under a key, for the kinds whose values contain it.
pub(crate) fn stored_id(engine: &dyn Engine, kind: u8, id: Id16) -> Result<Option<String>, StoreError> {
    if !matches!(kind, keys::MEMORY | keys::CONVERSATION | keys::RELATION) {
        return Ok(None);
    }
    let Some(value) = engine.get(&keys::object(kind, id))? else { return Ok(None) };
    let what = "a record";
    Ok(Some(match kind {
        keys::MEMORY => decode(&value, what, MemoryValue::take)?.id,
        keys::CONVERSATION => decode(&value, what, ConversationValue::take)?.summary.id,
        _ => decode(&value, what, RelationValue::take)?.id,
    }))
}

/// Returns the relation that is to be withdrawn.
pub(crate) fn relation_entry(engine: &dyn Engine, id: String) -> Result<RelationEntry, StoreError> {
    let what = format!("relation {id:?}");
    let value = engine.get(&keys::object(keys::RELATION, keys::id16(&id)))?;
    let Some(value) = value else { return Err(StoreError::UnknownRelation(id)) };
    let json = decode(&value, &what, RelationValue::take)?.json.ok_or_else(|| wrong_kind(&what))?;
    entry::relation(&json).map_err(|error| StoreError::BadValue { what, problem: error.to_string() })
}

/// Returns the heads of the current version of a conversation, for the writer.
pub(crate) fn conversation_heads(
    engine: &dyn Engine,
    id: Id16,
) -> Result<Option<Vec<(MessageHead, BodyPlace)>>, StoreError> {
    conversation_value(engine, id)?.map_or(Ok(None), |value| conversation_parts(engine, id, &value))
}

/// Returns the current record of a conversation.
pub(crate) fn conversation_value(
    engine: &dyn Engine,
    id: Id16,
) -> Result<Option<ConversationValue>, StoreError> {
    let value = engine.get(&keys::object(keys::CONVERSATION, id))?;
    value.map(|value| decode(&value, "a conversation", ConversationValue::take)).transpose()
}

/// Reads the parts of a conversation's record. Returns `None` if one is missing.
pub(crate) fn conversation_parts(
    engine: &dyn Engine,
    id: Id16,
    value: &ConversationValue,
) -> Result<Option<Vec<(MessageHead, BodyPlace)>>, StoreError> {
    let (mut heads, mut places) = (Vec::new(), Vec::new());
    for part in 0..value.parts {
        let Some(bytes) = engine.get(&keys::part(id, value.stored.revision, part))? else { return Ok(None) };
        decode(&bytes, "the messages of a conversation", |take| read_part(take.0, &mut heads, &mut places))?;
    }
    Ok(Some(heads.into_iter().zip(places).collect()))
}

/// Returns the error for a record whose place in the journal holds something else.
pub(crate) fn wrong_kind(what: &str) -> StoreError {
    StoreError::BadValue {
        what: what.to_owned(),
        problem: "its place in the journal holds something else".to_owned(),
    }
}
