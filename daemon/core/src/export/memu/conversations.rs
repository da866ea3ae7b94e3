//! Conversations in the format of MemU's API, and the API's responses to saved conversations.

use satchel_merge::notes::{self, NOTES_KEY};
use satchel_pam::conversation::{Content, ConversationHeader, Message, Role};
use serde_json::Value;

use super::{Object, PLATFORM, put};

/// Characters of the first question that a summary shows.
const SUMMARY_CHARACTERS: usize = 100;
/// The key that marks a message as hidden by the provider.
const HIDDEN: &str = "hidden";

/// Returns a conversation with its messages in order, as MemU's API returns it. `user` is the user id if the
/// conversation has none.
///
/// A MemU conversation is exported field by field. Of any other conversation, only the branch that was last seen is
/// exported, without thoughts and hidden messages, because MemU knows only linear conversations. The turn count,
/// message indices and summary follow MemU's rules.
#[must_use]
pub fn conversation(header: &ConversationHeader, messages: &[Message], user: &str) -> Object {
    let native = header.provider.name == PLATFORM;
    let mut object = metadata_object(header.raw_metadata.as_ref());
    object.remove("save_answer");
    // A MemU conversation without a time of its own had none in the source, so it gets none. MemU's format requires a
    // time for all others.
    let dated = !native || satchel_note(&object, "created_at_source").is_none();
    object.remove(NOTES_KEY);
    let part = |role| {
        let mut these = header.participants.iter().filter(|participant| participant.role == role);
        these.find_map(|participant| participant.provider_id.clone())
    };
    let id = header.provider.conversation_id.clone();
    put(&mut object, "conversation_id", id.or_else(|| (!native).then(|| header.id.clone())));
    let agent = part(Role::Assistant).or_else(|| (!native).then(|| header.provider.name.clone()));
    put(&mut object, "agent_id", agent);
    let person = part(Role::User).or_else(|| header.provider.account_id.clone());
    put(&mut object, "user_id", person.or_else(|| (!native).then(|| user.to_owned())));
    if dated && !object.contains_key("created_at") {
        put(&mut object, "created_at", Some(header.temporal.created_at.to_string()));
    }
    let list: Vec<Value> = if native {
        messages.iter().map(|message| native_message(message).into()).collect()
    } else {
        let shown: Vec<&Message> = messages.iter().filter(|message| is_visible(message)).collect();
        put(&mut object, "turn_count", Some(shown.len()));
        put(&mut object, "summary", Some(summary(&shown)));
        shown.into_iter().enumerate().map(|(index, message)| foreign_message(index, message).into()).collect()
    };
    object.insert("messages".to_owned(), list.into());
    object
}

/// Returns the API's response that was imported with a MemU conversation, if there was one.
#[must_use]
pub fn save_answer(header: &ConversationHeader) -> Option<Object> {
    let metadata = metadata_object(header.raw_metadata.as_ref());
    let mut answer = metadata.get("save_answer")?.as_object()?.clone();
    put(&mut answer, "conversation_id", header.provider.conversation_id.clone());
    put(&mut answer, "session_id", metadata.get("session_id").cloned());
    put(&mut answer, "created_at", Some(header.temporal.created_at.to_string()));
    Some(answer)
}

/// Returns a message as it was read.
fn native_message(message: &Message) -> Object {
    let mut object = metadata_object(message.raw_metadata.as_ref());
    let dated = satchel_note(&object, "created_at_source").is_none();
    object.remove(NOTES_KEY);
    object.remove(HIDDEN);
    put(&mut object, "message_id", message.provider_message_id.clone());
    if !object.contains_key("role") {
        put(&mut object, "role", Some(message.role.as_str()));
    }
    if dated && !object.contains_key("created_at") {
        put(&mut object, "created_at", Some(message.created_at.to_string()));
    }
    put(&mut object, "content", message.content.as_ref().map(text));
    object
}

fn foreign_message(index: usize, message: &Message) -> Object {
    let mut object = Object::new();
    put(&mut object, "message_id", Some(message.id.clone()));
    // MemU has three roles; tool output belongs to the assistant's side.
    let role = if message.role == Role::Tool { Role::Assistant } else { message.role };
    put(&mut object, "role", Some(role.as_str()));
    put(&mut object, "content", Some(message.content.as_ref().map(text).unwrap_or_default()));
    put(&mut object, "message_index", Some(index));
    put(&mut object, "created_at", Some(message.created_at.to_string()));
    object
}

/// Returns whether a message of another assistant is part of what the user saw.
fn is_visible(message: &Message) -> bool {
    let metadata = metadata_object(message.raw_metadata.as_ref());
    let left = satchel_note(&metadata, "active_path") == Some(&Value::Bool(false));
    let hidden = metadata.get(HIDDEN) == Some(&Value::Bool(true));
    !message.is_thought && !left && !hidden
}

/// Returns all texts of a content, separated by line breaks.
fn text(content: &Content) -> String {
    let parts = content.parts.iter().filter_map(|part| part.text.as_deref());
    let texts: Vec<&str> = content.text.as_deref().into_iter().chain(parts).collect();
    texts.join("\n")
}

/// Returns the summary as MemU makes it.
fn summary(messages: &[&Message]) -> String {
    if messages.is_empty() {
        return "Empty conversation".to_owned();
    }
    let question = messages.iter().find(|message| message.role == Role::User);
    let words = question.and_then(|message| message.content.as_ref()).map(text);
    let start: String = words.map_or_else(
        || "No user message".to_owned(),
        |words| words.chars().take(SUMMARY_CHARACTERS).collect(),
    );
    format!("Conversation with {} turns: {start}...", messages.len())
}

/// Returns a value that Satchel itself recorded.
fn satchel_note<'o>(object: &'o Object, key: &str) -> Option<&'o Value> {
    notes::own(object)?.get(key)
}

fn metadata_object(metadata: Option<&satchel_pam::raw::RawObject>) -> Object {
    metadata.map(satchel_pam::raw::RawObject::to_map).unwrap_or_default()
}

#[cfg(test)]
mod tests;
