//! Warnings about text that an importer kept in `raw_metadata` without recognising it, as happens when a provider renames a field.
//!
//! The host and the test kit check every record of every importer. Only records without text of their own are searched.

use crate::{
    conversation::{Content, PartKind, Role},
    prose,
    raw::RawObject,
    record::{ConversationRecord, MessageRecord},
};

/// A warning for a message that would be shown without text although its `raw_metadata` contains natural language.
///
/// Hidden messages, thoughts, tool calls, and messages of the system and of tools need no text.
#[must_use]
pub fn in_message(message: &MessageRecord) -> Option<String> {
    if message.is_thought {
        return None;
    }
    // Files that a model created often come without text; people write something with the files that they upload.
    let needs_text = match message.role {
        Role::User => true,
        Role::Assistant => message.attachments.is_empty(),
        Role::System | Role::Tool => false,
    };
    let shown = message.content.as_ref().is_some_and(has_content);
    if !needs_text || shown || !message.tool_calls.is_empty() {
        return None;
    }
    let raw = message.raw_metadata.as_ref().filter(|raw| !is_hidden(raw))?;
    let path = prose::longest(raw)?;
    Some(format!(
        "no text of this message was recognised, although its field \"{path}\" holds text; the field is kept in raw_metadata"
    ))
}

/// A warning for a record with a field `field` that the importer does not know and that contains natural language.
#[must_use]
pub fn in_field(field: &str) -> String {
    format!("its field \"{field}\" is not known and holds text; the field is kept in raw_metadata")
}

/// A warning for a conversation without messages although a list in its `raw_metadata` contains natural language.
#[must_use]
pub fn in_conversation(conversation: &ConversationRecord) -> Option<String> {
    if !conversation.messages.is_empty() {
        return None;
    }
    let path = prose::longest_in_records(conversation.raw_metadata.as_ref()?)?;
    Some(format!(
        "no message of this conversation was recognised, although its field \"{path}\" holds text; the field is kept in \
         raw_metadata"
    ))
}

/// Whether there is text, or a part of another kind.
fn has_content(content: &Content) -> bool {
    let has_text = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    has_text(&content.text)
        || content.parts.iter().any(|part| part.kind != PartKind::Text || has_text(&part.text))
}

fn is_hidden(raw: &RawObject) -> bool {
    raw.as_str().contains("\"hidden\"") && raw.to_map().get("hidden").is_some_and(|hidden| hidden == true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(extra: Value) -> Option<String> {
        let mut record = json!({"id": "m", "role": "assistant", "raw_metadata": {"x_text": ["tea is hot"]}});
        let (Value::Object(record), Value::Object(extra)) = (&mut record, extra) else { return None };
        record.extend(extra);
        in_message(&serde_json::from_value(Value::Object(record.clone())).expect("it is a message"))
    }

    #[test]
    fn an_empty_message_with_unread_text_gets_a_warning() {
        let warning = message(json!({})).expect("it gets a warning");
        assert!(warning.contains("\"x_text[0]\""), "{warning}");
        for empty in [
            json!({"content": {"type": "text", "text": "  \n"}}),
            json!({"content": {"type": "multipart", "parts": [{"type": "text", "text": ""}]}}),
            json!({"role": "user", "attachments": [{"type": "file", "name": "a"}]}),
            json!({"raw_metadata": {"hidden": false, "a": "tea is hot"}}),
        ] {
            assert!(message(empty.clone()).is_some(), "{empty}");
        }
    }

    #[test]
    fn a_message_with_content_or_that_is_not_shown_gets_none() {
        for fine in [
            json!({"content": {"type": "text", "text": "tea"}}),
            json!({"content": {"type": "multipart", "parts": [{"type": "image", "ref": "a"}]}}),
            json!({"tool_calls": [{"name": "search"}]}),
            json!({"attachments": [{"type": "image", "name": "a"}]}),
            json!({"role": "system"}),
            json!({"is_thought": true}),
            json!({"role": "tool"}),
            json!({"raw_metadata": {"hidden": true, "a": "tea is hot"}}),
            json!({"raw_metadata": {"status": "finished_successfully", "model": "Claude Sonnet"}}),
            json!({"raw_metadata": null}),
        ] {
            assert_eq!(message(fine.clone()), None, "{fine}");
        }
    }

    #[test]
    fn an_empty_conversation_with_a_list_of_texts_gets_a_warning() {
        let of = |raw: Value, messages: Value| {
            let record = json!({"id": "c", "locator": "l", "raw_metadata": raw, "messages": messages});
            in_conversation(&serde_json::from_value(record).expect("it is a conversation"))
        };
        let list = json!({"x_messages": [{"id": 1, "text": "tea is hot"}]});
        assert!(
            of(list.clone(), json!([])).is_some_and(|warning| warning.contains("\"x_messages[0].text\""))
        );
        assert_eq!(of(list, json!([{"id": "m", "role": "user"}])), None);
        let nodes = json!({"x_mapping": {"a": {"parts": ["tea is hot"]}}});
        assert!(of(nodes, json!([])).is_some_and(|warning| warning.contains("\"x_mapping.a.parts[0]\"")));
        assert_eq!(of(json!({"summary": "they talked about tea"}), json!([])), None);
        assert_eq!(of(json!({"starters": ["what is hot tea?"]}), json!([])), None, "a project");
    }
}
