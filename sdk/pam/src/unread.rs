//! Words that an importer kept in `raw_metadata` and did not read: the sign of a field that is called otherwise now.
//!
//! The host looks at every record of every importer so, and the test kit does it alike. Only records without words are
//! looked into.

use crate::{
    conversation::{Content, PartKind, Role},
    prose,
    raw::RawObject,
    record::{ConversationRecord, MessageRecord},
};

/// What is to be said of a message that the person would see without words although its `raw_metadata` holds natural language.
/// Neither hidden messages nor thoughts nor those of the system and of tools are expected to have words, nor calls of tools.
#[must_use]
pub fn in_message(message: &MessageRecord) -> Option<String> {
    if message.is_thought {
        // A recap of a thought, such as how long it took, has no words of its own.
        return None;
    }
    // What a model made often comes without words and with its prompt beside; people write to the files that they give.
    let without_words = match message.role {
        Role::User => true,
        Role::Assistant => message.attachments.is_empty(),
        Role::System | Role::Tool => false,
    };
    let shown = message.content.as_ref().is_some_and(shows_something);
    if !without_words || shown || !message.tool_calls.is_empty() {
        return None;
    }
    let raw = message.raw_metadata.as_ref().filter(|raw| !is_hidden(raw))?;
    let path = prose::longest(raw)?;
    Some(format!(
        "no text of this message was recognised, although its field \"{path}\" holds text; the field is kept in raw_metadata"
    ))
}

/// What is to be said of a record whose field `field` is not known to the importer and holds natural language.
#[must_use]
pub fn in_field(field: &str) -> String {
    format!("its field \"{field}\" is not known and holds text; the field is kept in raw_metadata")
}

/// What is to be said of a conversation that came without messages although a list in its `raw_metadata` holds natural
/// language.
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

/// Whether there are words, or a part that is no text.
fn shows_something(content: &Content) -> bool {
    let has_words = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    has_words(&content.text)
        || content.parts.iter().any(|part| part.kind != PartKind::Text || has_words(&part.text))
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
    fn an_empty_message_with_words_beside_it_is_told() {
        let told = message(json!({})).expect("it is told");
        assert!(told.contains("\"x_text[0]\""), "{told}");
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
    fn what_shows_something_or_is_not_shown_is_not_told() {
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
    fn an_empty_conversation_with_a_list_of_words_is_told() {
        let of = |raw: Value, messages: Value| {
            let record = json!({"id": "c", "locator": "l", "raw_metadata": raw, "messages": messages});
            in_conversation(&serde_json::from_value(record).expect("it is a conversation"))
        };
        let list = json!({"x_messages": [{"id": 1, "text": "tea is hot"}]});
        assert!(of(list.clone(), json!([])).is_some_and(|told| told.contains("\"x_messages[0].text\"")));
        assert_eq!(of(list, json!([{"id": "m", "role": "user"}])), None);
        let nodes = json!({"x_mapping": {"a": {"parts": ["tea is hot"]}}});
        assert!(of(nodes, json!([])).is_some_and(|told| told.contains("\"x_mapping.a.parts[0]\"")));
        assert_eq!(of(json!({"summary": "they talked about tea"}), json!([])), None);
        assert_eq!(of(json!({"starters": ["what is hot tea?"]}), json!([])), None, "a project");
    }
}
