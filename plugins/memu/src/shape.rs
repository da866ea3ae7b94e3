//! What one element is, told by its keys: a record of the generation that is read, or of another one.

use satchel_importer::{JsonError, Parser, json::Kind};

use crate::generation::Generation;

/// A record, in the order in which records are read: those that others refer to come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// The API's answer to a saved conversation.
    Answer,
    /// A memory object: as it is kept, as the API answers it, or a row of `memories`.
    Memory,
    /// A row of `memory_contents`.
    Contents,
    /// A conversation: whole, without its messages, or a row of `conversations`.
    Conversation,
    /// What a client sends to have a conversation saved.
    Request,
    /// The result of the pipeline without the conversation it belongs to.
    Pipeline,
    /// A line of the list of operations on memories.
    Operation,
}

/// What an element turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// A record; `sure` if its keys occur together nowhere else.
    Record { shape: Shape, sure: bool },
    /// A record of another generation.
    Other(Generation),
    /// Nothing that is known.
    Nothing,
}

/// The lists by the names under which a memory object holds them.
pub(crate) const LISTS: [&str; 3] = ["profile", "event", "mind"];
/// The same lists by the names of the columns.
pub(crate) const COLUMNS: [&str; 3] = ["profile_content", "event_content", "mind_content"];

/// What else may stand beside the bare lists.
const BESIDE_LISTS: [&str; 7] =
    ["memory_id", "agent_id", "user_id", "created_at", "updated_at", "version", "mind_metadata"];
/// Keys of one element that are looked at; real ones have twenty at most.
const MAX_KEYS: usize = 256;

/// The keys of one element, and of what in it tells more.
#[derive(Default)]
pub(crate) struct Seen<'a> {
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

impl<'a> Seen<'a> {
    /// Reads the keys. Where the text breaks off, those before it count.
    pub(crate) fn read(json: &mut Parser<'a>) -> Self {
        let mut it = Self::default();
        let (Ok(()) | Err(_)) = it.walk(json);
        it
    }

    fn walk(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            if self.keys.len() < MAX_KEYS {
                self.keys.push(key);
            }
            match key {
                "user_id" if json.kind()? == Kind::String => self.user = Some(json.string()?),
                "messages" => first_object(json, &mut self.message)?,
                "items" => first_object(json, &mut self.item)?,
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

    /// Whose record it says that it is.
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

    /// What an element with these keys is.
    pub(crate) fn sight(&self) -> Sight {
        if self.has_any(&["mapping", "chat_messages", "responses", "fragments"]) {
            return Sight::Nothing;
        }
        let record =
            self.columns().or_else(|| self.conversation()).or_else(|| self.lists()).or_else(|| self.rest());
        match (record, self.other()) {
            (Some((shape, sure)), _) => Sight::Record { shape, sure },
            (None, Some(generation)) => Sight::Other(generation),
            (None, None) => Sight::Nothing,
        }
    }

    /// Records told by the columns of their table.
    fn columns(&self) -> Option<(Shape, bool)> {
        let contents = ["content_data", "content_text", "content_vector"];
        if self.has("content_type") && self.has_any(&["content_id", "memory_id"]) && self.has_any(&contents) {
            return Some((Shape::Contents, true));
        }
        if self.has_all(&["operation_id", "operation_type", "memory_id"]) {
            return Some((Shape::Operation, true));
        }
        let named = self.has_any(&["memory_id", "agent_id", "user_id"]);
        let within = COLUMNS.iter().any(|column| self.data.contains(column));
        if named && (self.has_any(&COLUMNS) || within) {
            return Some((Shape::Memory, true));
        }
        None
    }

    fn conversation(&self) -> Option<(Shape, bool)> {
        let owned = self.has_all(&["agent_id", "user_id"]);
        let numbered = ["message_id", "message_index", "role"].iter().all(|key| self.message.contains(key));
        if self.has("conversation_id") {
            if owned || self.has_any(&["conversation_data", "pipeline_result"]) || numbered {
                return Some((Shape::Conversation, true));
            }
            let answer = self.has("message_count") && self.has_any(&["success", "session_id"]);
            return answer.then_some((Shape::Answer, true));
        }
        if owned && self.has("messages") {
            return Some((Shape::Request, self.has_any(&["session_id", "memory_id"])));
        }
        numbered.then_some((Shape::Conversation, false))
    }

    /// A memory object with its bare lists, or a row without them.
    fn lists(&self) -> Option<(Shape, bool)> {
        let owned = self.has_all(&["memory_id", "agent_id", "user_id"]);
        if owned && (self.has_any(&LISTS) || self.has("updated_at")) {
            return Some((Shape::Memory, true));
        }
        let alone = self.keys.iter().all(|key| LISTS.contains(key) || BESIDE_LISTS.contains(key));
        let lists = self.keys.iter().filter(|key| LISTS.contains(key)).count();
        // The three words are common ones: two of them at least, and nothing else.
        (alone && lists > 1 && self.lists > 0).then_some((Shape::Memory, false))
    }

    fn rest(&self) -> Option<(Shape, bool)> {
        let stages = ["modification_result", "update_result", "mind_result"];
        (self.has("pipeline_metadata") && self.has_any(&stages)).then_some((Shape::Pipeline, true))
    }

    /// Another generation, by what only it has.
    fn other(&self) -> Option<Generation> {
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

fn first_object<'a>(json: &mut Parser<'a>, found: &mut Vec<&'a str>) -> Result<(), JsonError> {
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

    fn sight(text: &str) -> Sight {
        let arena = Arena::new();
        Seen::read(&mut Parser::new(text, &arena)).sight()
    }

    fn sure(shape: Shape) -> Sight {
        Sight::Record { shape, sure: true }
    }

    #[test]
    fn records_are_told_by_their_keys() {
        for (text, expected) in [
            (r#"{"memory_id":"m","profile_content":[]}"#, sure(Shape::Memory)),
            (r#"{"agent_id":"a","user_id":"u","data":{"mind_content":[]}}"#, sure(Shape::Memory)),
            (
                r#"{"memory_id":"m","agent_id":"a","user_id":"u","created_at":1,"updated_at":2}"#,
                sure(Shape::Memory),
            ),
            (r#"{"profile":[],"event":"a"}"#, Sight::Record { shape: Shape::Memory, sure: false }),
            (r#"{"content_id":"c","content_type":"mind","content_text":"x"}"#, sure(Shape::Contents)),
            (r#"{"conversation_id":"c","agent_id":"a","user_id":"u"}"#, sure(Shape::Conversation)),
            (r#"{"conversation_id":"c","conversation_data":{}}"#, sure(Shape::Conversation)),
            (r#"{"agent_id":"a","user_id":"u","messages":[],"session_id":"s"}"#, sure(Shape::Request)),
            (r#"{"success":true,"conversation_id":"c","message_count":2}"#, sure(Shape::Answer)),
            (r#"{"mind_result":{},"pipeline_metadata":{}}"#, sure(Shape::Pipeline)),
            (
                r#"{"messages":[{"message_id":"m","role":"user","message_index":0}]}"#,
                Sight::Record { shape: Shape::Conversation, sure: false },
            ),
        ] {
            assert_eq!(sight(text), expected, "{text}");
        }
    }

    #[test]
    fn other_generations_are_told_apart() {
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
            assert_eq!(sight(text), Sight::Other(expected), "{text}");
        }
    }

    #[test]
    fn what_others_write_is_left_alone() {
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
            assert_eq!(sight(text), Sight::Nothing, "{text}");
        }
    }
}
