//! Classifies an element by its keys: a record of the generation that is read, or of another one.

use satchel_importer::{JsonError, Parser, json::Kind};

use crate::generation::Generation;

/// The type of a record, in the order of reading: records that others refer to come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordType {
    /// The API's response to saving a conversation.
    SaveResponse,
    /// A memory object, or a row of `memories`.
    Memory,
    /// A row of `memory_contents`.
    Contents,
    /// A conversation with or without its messages, or a row of `conversations`.
    Conversation,
    /// A client's request to save a conversation.
    Request,
    /// A result of the pipeline without its conversation.
    Pipeline,
    /// An entry of the list of operations on memories.
    Operation,
}

/// The class of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Classification {
    /// A record; `certain` if its keys occur together nowhere else.
    Record {
        kind: RecordType,
        certain: bool,
    },
    /// A record of another generation.
    Other(Generation),
    Unknown,
}

/// The keys of the lists in a memory object.
pub(crate) const LISTS: [&str; 3] = ["profile", "event", "mind"];
/// The columns of the same lists.
pub(crate) const COLUMNS: [&str; 3] = ["profile_content", "event_content", "mind_content"];

/// Other keys of a memory object with bare lists.
const MEMORY_KEYS: [&str; 7] =
    ["memory_id", "agent_id", "user_id", "created_at", "updated_at", "version", "mind_metadata"];
/// Keys of one element that are considered; real ones have twenty at most.
const MAX_KEYS: usize = 256;

/// The keys of one element, and of some of its values.
#[derive(Default)]
pub(crate) struct RecordKeys<'a> {
    keys: Vec<&'a str>,
    user: Option<&'a str>,
    /// How many of [`LISTS`] hold a list or a text.
    lists: usize,
    /// Keys of the first object in `messages`.
    message: Vec<&'a str>,
    /// Keys of the first object in `items`.
    item: Vec<&'a str>,
    /// Keys of the object `data`.
    data: Vec<&'a str>,
}

impl<'a> RecordKeys<'a> {
    /// Reads the keys. If the text breaks off, the keys before count.
    pub(crate) fn read(json: &mut Parser<'a>) -> Self {
        let mut it = Self::default();
        let (Ok(()) | Err(_)) = it.read_object(json);
        it
    }

    fn read_object(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            if self.keys.len() < MAX_KEYS {
                self.keys.push(key);
            }
            match key {
                "user_id" if json.kind()? == Kind::String => self.user = Some(json.string()?),
                "messages" => first_object_keys(json, &mut self.message)?,
                "items" => first_object_keys(json, &mut self.item)?,
                "data" => keys(json, &mut self.data)?,
                _ if LISTS.contains(&key) => {
                    self.lists += usize::from(matches!(json.kind()?, Kind::Array | Kind::String));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The keys of the element.
    pub(crate) fn keys(&self) -> &[&'a str] {
        &self.keys
    }

    /// The user that the record names.
    pub(crate) fn user(&self) -> Option<&'a str> {
        self.user.filter(|user| !user.is_empty())
    }

    fn has(&self, key: &str) -> bool {
        self.keys.contains(&key)
    }

    fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.has(key))
    }

    fn has_all(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.has(key))
    }

    pub(crate) fn classify(&self) -> Classification {
        if self.has_any(&["mapping", "chat_messages", "responses", "fragments"]) {
            return Classification::Unknown;
        }
        let record =
            self.row().or_else(|| self.conversation()).or_else(|| self.memory()).or_else(|| self.pipeline());
        match (record, self.other_generation()) {
            (Some((kind, certain)), _) => Classification::Record { kind, certain },
            (None, Some(generation)) => Classification::Other(generation),
            (None, None) => Classification::Unknown,
        }
    }

    /// A record with the columns of a table.
    fn row(&self) -> Option<(RecordType, bool)> {
        let contents = ["content_data", "content_text", "content_vector"];
        if self.has("content_type") && self.has_any(&["content_id", "memory_id"]) && self.has_any(&contents) {
            return Some((RecordType::Contents, true));
        }
        if self.has_all(&["operation_id", "operation_type", "memory_id"]) {
            return Some((RecordType::Operation, true));
        }
        let has_id = self.has_any(&["memory_id", "agent_id", "user_id"]);
        let in_data = COLUMNS.iter().any(|column| self.data.contains(column));
        (has_id && (self.has_any(&COLUMNS) || in_data)).then_some((RecordType::Memory, true))
    }

    fn conversation(&self) -> Option<(RecordType, bool)> {
        let owned = self.has_all(&["agent_id", "user_id"]);
        let numbered = ["message_id", "message_index", "role"].iter().all(|key| self.message.contains(key));
        if self.has("conversation_id") {
            if owned || self.has_any(&["conversation_data", "pipeline_result"]) || numbered {
                return Some((RecordType::Conversation, true));
            }
            let response = self.has("message_count") && self.has_any(&["success", "session_id"]);
            return response.then_some((RecordType::SaveResponse, true));
        }
        if owned && self.has("messages") {
            return Some((RecordType::Request, self.has_any(&["session_id", "memory_id"])));
        }
        numbered.then_some((RecordType::Conversation, false))
    }

    /// A memory object with its bare lists, or a row without them.
    fn memory(&self) -> Option<(RecordType, bool)> {
        let owned = self.has_all(&["memory_id", "agent_id", "user_id"]);
        if owned && (self.has_any(&LISTS) || self.has("updated_at")) {
            return Some((RecordType::Memory, true));
        }
        let alone = self.keys.iter().all(|key| LISTS.contains(key) || MEMORY_KEYS.contains(key));
        let lists = self.keys.iter().filter(|key| LISTS.contains(key)).count();
        // The names of the lists are common words, so two of them must occur, with no unknown key.
        (alone && lists > 1 && self.lists > 0).then_some((RecordType::Memory, false))
    }

    fn pipeline(&self) -> Option<(RecordType, bool)> {
        let stages = ["modification_result", "update_result", "mind_result"];
        (self.has("pipeline_metadata") && self.has_any(&stages)).then_some((RecordType::Pipeline, true))
    }

    /// Another generation, by keys that only it has.
    fn other_generation(&self) -> Option<Generation> {
        if self.has_any(&["recall_files", "recall_file_segments", "recall_file_id"]) {
            return Some(Generation::RecallFiles);
        }
        if self.has_all(&["memory_items", "memory_categories"])
            || self.has_all(&["resource_id", "memory_type", "summary"])
            || (self.has("categories") && self.item.contains(&"memory_type"))
        {
            return Some(Generation::Items);
        }
        if self.has_all(&["category", "content_hash", "embeddings"])
            || (self.has_all(&["agent_id", "user_id", "category", "content"])
                && self.has_any(&["embedding", "happened_at", "links"]))
            || self.has_all(&["related_memories", "total_found"])
            || self.has_all(&["name", "type", "memory_items"])
            || self.has_all(&["character_name", "memory_type", "content"])
        {
            return Some(Generation::Categories);
        }
        let paragraphs = self.has_any(&["profile_memory", "event_memory"]) && self.has("memory_id");
        paragraphs.then_some(Generation::Paragraphs)
    }
}

fn first_object_keys<'a>(json: &mut Parser<'a>, found: &mut Vec<&'a str>) -> Result<(), JsonError> {
    if !json.enter_array()? {
        return Ok(());
    }
    while json.item()? {
        if found.is_empty() {
            keys(json, found)?;
        }
    }
    Ok(())
}

fn keys<'a>(json: &mut Parser<'a>, found: &mut Vec<&'a str>) -> Result<(), JsonError> {
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            if found.len() < MAX_KEYS {
                found.push(key);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use satchel_importer::Arena;

    use super::*;

    fn classify(text: &str) -> Classification {
        let arena = Arena::new();
        RecordKeys::read(&mut Parser::new(text, &arena)).classify()
    }

    fn certain(kind: RecordType) -> Classification {
        Classification::Record { kind, certain: true }
    }

    #[test]
    fn records_are_classified_by_their_keys() {
        for (text, expected) in [
            (r#"{"memory_id":"m","profile_content":[]}"#, certain(RecordType::Memory)),
            (r#"{"agent_id":"a","user_id":"u","data":{"mind_content":[]}}"#, certain(RecordType::Memory)),
            (
                r#"{"memory_id":"m","agent_id":"a","user_id":"u","created_at":1,"updated_at":2}"#,
                certain(RecordType::Memory),
            ),
            (
                r#"{"profile":[],"event":"a"}"#,
                Classification::Record { kind: RecordType::Memory, certain: false },
            ),
            (r#"{"content_id":"c","content_type":"mind","content_text":"x"}"#, certain(RecordType::Contents)),
            (r#"{"conversation_id":"c","agent_id":"a","user_id":"u"}"#, certain(RecordType::Conversation)),
            (r#"{"conversation_id":"c","conversation_data":{}}"#, certain(RecordType::Conversation)),
            (
                r#"{"agent_id":"a","user_id":"u","messages":[],"session_id":"s"}"#,
                certain(RecordType::Request),
            ),
            (
                r#"{"success":true,"conversation_id":"c","message_count":2}"#,
                certain(RecordType::SaveResponse),
            ),
            (r#"{"mind_result":{},"pipeline_metadata":{}}"#, certain(RecordType::Pipeline)),
            (
                r#"{"messages":[{"message_id":"m","role":"user","message_index":0}]}"#,
                Classification::Record { kind: RecordType::Conversation, certain: false },
            ),
        ] {
            assert_eq!(classify(text), expected, "{text}");
        }
    }

    #[test]
    fn other_generations_are_recognized() {
        for (text, expected) in [
            (r#"{"resources":[],"recall_files":[{"#, Generation::RecallFiles),
            (r#"{"id":"i","resource_id":"r","memory_type":"profile","summary":"s"}"#, Generation::Items),
            (r#"{"items":[{"memory_type":"event"}],"categories":[]}"#, Generation::Items),
            (r#"{"category":"event","content_hash":"x","embeddings":[]}"#, Generation::Categories),
            (
                r#"{"agent_id":"a","user_id":"u","category":"profile","content":"x","links":[]}"#,
                Generation::Categories,
            ),
            (
                r#"{"memory_id":"m","agent_id":"a","profile_memory":{},"event_memory":{}}"#,
                Generation::Paragraphs,
            ),
        ] {
            assert_eq!(classify(text), Classification::Other(expected), "{text}");
        }
    }

    #[test]
    fn records_of_other_providers_are_unknown() {
        for text in [
            r#"{"mapping":{},"conversation_id":"c","agent_id":"a","user_id":"u"}"#,
            r#"{"uuid":"u","name":"n","account":{},"chat_messages":[]}"#,
            r#"{"profile":{"name":"x"},"settings":{}}"#,
            r#"{"profile":["x"],"event":[],"other":1}"#,
            r#"{"role":"user","content":"x"}"#,
            r#"{"messages":[{"role":"user","content":"x"}]}"#,
            r#"{"items":[{"price":1}],"categories":[]}"#,
            r#"{"conversation_id":"c","title":"t"}"#,
            "[]",
            "7",
        ] {
            assert_eq!(classify(text), Classification::Unknown, "{text}");
        }
    }
}
