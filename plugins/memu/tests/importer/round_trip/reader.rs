//! A reader of MemU's conversations that is independent of the importer, and the same chats from stored records.
//!
//! These rules say where both may differ (README, *Conversation*):
//! - each message answers the one before, sorted by `message_index` if all differ, else in the order of the list;
//! - skipped messages are left out, and so is the response for a saved conversation;
//! - a request has no id and no time; it gets those of its response;
//! - a message without a role is the system's.

use std::collections::BTreeSet;

use satchel_importer::testkit::round_trip::{Chat, RoundTrip, SourceFile, Stored, Turn, text_of, time_text};
use serde_json::Value;

pub(crate) const ROUND: RoundTrip = RoundTrip {
    platform: "memu",
    read_file: file_chats,
    ignored: &[(
        "what-was-sent-and-the-conversation-in-full/request.json",
        "of a request whose conversation the export holds in full only the other fields are taken",
    )],
    read_stored: stored_chats,
};

fn file_chats(file: &SourceFile<'_>) -> Vec<Chat> {
    let chats = file.elements("conversations");
    chats.iter().filter_map(|(place, item)| chat(place, item, file)).collect()
}

/// The list of messages, wherever it is.
fn messages(item: &Value) -> Option<Vec<Value>> {
    let inside = match &item["conversation_data"] {
        Value::String(text) => serde_json::from_str(text).ok()?,
        data => data.clone(),
    };
    let lists = [&item["messages"], &inside["messages"], &inside];
    lists.into_iter().find_map(|list| list.as_array()).cloned()
}

fn chat(place: &str, item: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let imported = |at: &usize| {
        ["messages", "conversation_data", "conversation_data.messages"]
            .iter()
            .all(|list| !file.skips(&format!("{place}.{list}[{at}]")))
    };
    let list = messages(item)?.into_iter().enumerate().filter(|(at, _)| imported(at));
    let mut list: Vec<Value> = list.map(|(_, message)| message).collect();
    let numbers: BTreeSet<u64> =
        list.iter().filter_map(|message| message["message_index"].as_u64()).collect();
    if numbers.len() == list.len() {
        list.sort_by_key(|message| message["message_index"].as_u64());
    }
    let id = |at: usize| text_of(&list[at]["message_id"]).unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| {
        let content = &list[at]["content"];
        let words = content.as_str().map_or_else(|| content.to_string(), ToOwned::to_owned);
        Turn {
            id: id(at),
            parent: at.checked_sub(1).map(id),
            role: list[at]["role"].as_str().unwrap_or("system").to_owned(),
            time: time_text(&list[at]["created_at"]),
            parts: if content.is_null() { Vec::new() } else { vec![("content".to_owned(), words)] },
        }
    };
    let first = list.first().and_then(|message| text_of(&message["message_id"]));
    let session = || text_of(&item["session_id"]).map(|session| format!("session {session}"));
    Some(Chat {
        key: text_of(&item["conversation_id"]).or_else(session).or(first).unwrap_or_default(),
        created: time_text(&item["created_at"]),
        turns: (0..list.len()).map(turn).collect(),
        ..Chat::default()
    })
}

fn stored_chats(stored: &Stored) -> Vec<Chat> {
    if stored.messages.is_empty() {
        return Vec::new();
    }
    let id = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| {
        let message = &stored.messages[at];
        let other = Some(&message.raw["content"]).filter(|other| !other.is_null()).map(ToString::to_string);
        let content = message.parts.first().map(|(_, text)| text.clone()).or(other);
        Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.metadata_text("role").unwrap_or_else(|| message.role.clone()),
            time: message.time_text("created_at"),
            parts: content.map(|content| ("content".to_owned(), content)).into_iter().collect(),
        }
    };
    let first = stored.messages.first().and_then(|message| message.id.clone());
    // A request alone has the id and the time of its response.
    let answered = stored.raw.get("save_answer").is_some() && first.is_none();
    let session = stored.metadata_text("session_id").map(|session| format!("session {session}"));
    vec![Chat {
        key: stored.id.clone().filter(|_| !answered).or(session).or(first).unwrap_or_default(),
        created: stored.time_text(stored.created, "created_at").filter(|_| !answered),
        turns: (0..stored.messages.len()).map(turn).collect(),
        ..Chat::default()
    }]
}
