//! A reader of MemU's conversations that knows nothing of the importer, and the same pictures from what is stored.
//!
//! Where both could differ, one of these rules says so (README, *Conversation*):
//! - each message answers the one before, by `message_index` where all have different ones, else in the order of the list;
//! - messages that the receipt names as skipped are passed over, and so is an answer that belongs to a saved conversation;
//! - a request has no id and no time; those of the answer to it are kept with it;
//! - a message that names no role is the system's.

use std::collections::BTreeSet;

use satchel_importer::testkit::round::{Chat, Round, SourceFile, Stored, Turn, text_of, time_told};
use serde_json::Value;

/// Both ways.
pub(crate) const ROUND: Round = Round {
    platform: "memu",
    told,
    aside: &[(
        "what-was-sent-and-the-conversation-in-full/request.json",
        "of a request whose conversation the export holds in full only the other fields are taken",
    )],
    rebuilt,
};

fn told(file: &SourceFile<'_>) -> Vec<Chat> {
    let chats = file.elements("conversations");
    chats.iter().filter_map(|(place, item)| chat(place, item, file)).collect()
}

/// The messages, and what their places begin with.
fn messages(item: &Value) -> Option<Vec<Value>> {
    let inside = match &item["conversation_data"] {
        Value::String(text) => serde_json::from_str(text).ok()?,
        data => data.clone(),
    };
    let lists = [&item["messages"], &inside["messages"], &inside];
    lists.into_iter().find_map(|list| list.as_array()).cloned()
}

fn chat(place: &str, item: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let kept = |at: &usize| {
        ["messages", "conversation_data", "conversation_data.messages"]
            .iter()
            .all(|list| !file.skips(&format!("{place}.{list}[{at}]")))
    };
    let list = messages(item)?.into_iter().enumerate().filter(|(at, _)| kept(at));
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
            time: time_told(&list[at]["created_at"]),
            said: if content.is_null() { Vec::new() } else { vec![("content".to_owned(), words)] },
        }
    };
    let first = list.first().and_then(|message| text_of(&message["message_id"]));
    let session = || text_of(&item["session_id"]).map(|session| format!("session {session}"));
    Some(Chat {
        key: text_of(&item["conversation_id"]).or_else(session).or(first).unwrap_or_default(),
        created: time_told(&item["created_at"]),
        turns: (0..list.len()).map(turn).collect(),
        ..Chat::default()
    })
}

fn rebuilt(stored: &Stored) -> Vec<Chat> {
    if stored.messages.is_empty() {
        return Vec::new();
    }
    let id = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| {
        let message = &stored.messages[at];
        let odd = Some(&message.raw["content"]).filter(|odd| !odd.is_null()).map(ToString::to_string);
        let said = message.parts.first().map(|(_, text)| text.clone()).or(odd);
        Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.kept("role").unwrap_or_else(|| message.role.clone()),
            time: message.told("created_at"),
            said: said.map(|said| ("content".to_owned(), said)).into_iter().collect(),
        }
    };
    let first = stored.messages.first().and_then(|message| message.id.clone());
    // The id and the time of what was sent alone are those of its answer.
    let answered = stored.raw.get("save_answer").is_some() && first.is_none();
    let session = stored.kept("session_id").map(|session| format!("session {session}"));
    vec![Chat {
        key: stored.id.clone().filter(|_| !answered).or(session).or(first).unwrap_or_default(),
        created: stored.told(stored.created, "created_at").filter(|_| !answered),
        turns: (0..stored.messages.len()).map(turn).collect(),
        ..Chat::default()
    }]
}
