//! Small exports that overlap in every way: the same conversations in longer, shorter and poorer versions, the same
//! memories and others.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use serde_json::{Value, json};

/// A conversation in one export.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestConversation {
    number: usize,
    messages: usize,
    title: usize,
    /// Whether the parts that slim exports omit are missing.
    slim: bool,
}

impl TestConversation {
    pub(crate) fn new(number: usize, messages: usize) -> Self {
        Self { number, messages, title: messages, slim: false }
    }

    pub(crate) fn slim(self) -> Self {
        Self { slim: true, ..self }
    }

    fn to_json(self) -> Value {
        let begin = 1_746_180_000 + 100 * self.number;
        let mut mapping = serde_json::Map::new();
        mapping.insert(
            "root".into(),
            json!({"id": "root", "message": null, "parent": null, "children": ["m0"]}),
        );
        for at in 0..self.messages {
            let (id, parent) =
                (format!("m{at}"), at.checked_sub(1).map_or("root".into(), |up| format!("m{up}")));
            let metadata =
                if self.slim { json!({}) } else { json!({"model_slug": "gpt-5-2", "request_id": at}) };
            let children: Vec<String> =
                (at + 1 < self.messages).then(|| format!("m{}", at + 1)).into_iter().collect();
            mapping.insert(
                id.clone(),
                json!({"id": id, "parent": parent, "children": children, "message": {
                "id": format!("{}-{id}", self.number), "author": {"role": (["user", "assistant"][at % 2])},
                "create_time": begin + at, "recipient": "all", "metadata": metadata,
                "content": {"content_type": "text", "parts": [format!("{at} of {}", self.number)]}}}),
            );
        }
        json!({
            "title": format!("Talk {} of {}", self.number, self.title), "create_time": begin,
            "update_time": begin + self.messages, "current_node": format!("m{}", self.messages - 1),
            "conversation_id": format!("68148001-7a10-800f-9c51-{:012}", self.number), "mapping": mapping,
        })
    }
}

/// Writes a ChatGPT export of `talks` and of a conversation that shows `memories`.
pub(crate) fn write_chatgpt(
    dir: &Path,
    name: &str,
    talks: &[TestConversation],
    memories: &[&str],
) -> Result<PathBuf> {
    let list: Vec<String> = memories
        .iter()
        .enumerate()
        .map(|(at, memory)| format!("{}. [2025-05-0{}]. {memory}.", at + 1, at + 1))
        .collect();
    let mut all: Vec<Value> = talks.iter().map(|talk| talk.to_json()).collect();
    all.push(json!({
        "title": "Hives", "create_time": 1_751_360_400, "update_time": 1_751_360_500 + talks.len(),
        "current_node": "u1", "conversation_id": "68148099-7a10-800f-9c51-000000000001",
        "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["mem"]},
            "mem": {"id": "mem", "parent": "root", "children": ["u1"], "message": {
                "id": "mem", "author": {"role": "assistant"}, "create_time": 1_751_360_401.0, "recipient": "all",
                "content": {"content_type": "model_editable_context", "model_set_context": list.join("\n")},
                "metadata": {"is_visually_hidden_from_conversation": true}}},
            "u1": {"id": "u1", "parent": "mem", "children": [], "message": {
                "id": "u1", "author": {"role": "user"}, "create_time": 1_751_360_402.0, "recipient": "all",
                "content": {"content_type": "text", "parts": ["Hello"]}, "metadata": {}}},
        },
    }));
    write(dir, name, &json!(all))
}

/// Writes a Claude export with an edit of its list of memories.
pub(crate) fn write_claude(dir: &Path, name: &str, says: &str) -> Result<PathBuf> {
    let edit = json!({"type": "tool_use", "id": "toolu_1", "name": "memory_user_edits",
        "input": {"command": "add", "control": says}});
    write(
        dir,
        name,
        &json!([{
            "uuid": "aaaaaaaa-0000-4000-8000-000000000077", "name": "Honey", "account": {"uuid": "account-1"},
            "created_at": "2025-06-01T08:00:00Z", "updated_at": "2025-06-01T08:01:00Z",
            "chat_messages": [
                {"uuid": "m-1", "sender": "human", "created_at": "2025-06-01T08:00:00Z", "text": "Remember it",
                    "content": [{"type": "text", "text": "Remember it"}]},
                {"uuid": "m-2", "sender": "assistant", "created_at": "2025-06-01T08:01:00Z", "text": "Done", "content": [
                    edit,
                    {"type": "tool_result", "tool_use_id": "toolu_1", "name": "memory_user_edits", "is_error": false,
                        "content": [{"type": "text", "text": "Added memory #1"}]},
                    {"type": "text", "text": "Done"}]},
            ],
        }]),
    )
}

fn write(dir: &Path, name: &str, value: &Value) -> Result<PathBuf> {
    let folder = dir.join(name);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("conversations.json"), serde_json::to_vec(value)?)?;
    Ok(folder)
}
