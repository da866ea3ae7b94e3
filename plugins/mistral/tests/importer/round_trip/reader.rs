//! Reads Le Chat's files without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Order and ids*, *Fields*) that both apply:
//! - messages are sorted by time, a question before an answer of the same time, undated ones last, each the parent of the next;
//! - the flat copy of a message is its text if its chunks have none;
//! - a chat has no title and no times of its own;
//! - messages that the receipt reports as skipped are ignored;
//! - signatures of addresses in results of tools are removed.

use std::collections::BTreeMap;

use satchel_importer::{
    address::unsigned_json,
    testkit::round_trip::{Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, text_of, time_text},
};
use serde_json::{Value, json};

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "mistral", read_file: from_source, ignored: &[], read_stored: from_stored };

/// The kind and the text of each part.
type Parts = Vec<(String, String)>;

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let mut chats: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut first = None;
    if file.name.contains("-files/") {
        return Vec::new();
    }
    for (_, message) in file.elements("messages") {
        if !message.is_object() || message.get("contentChunks").is_none() {
            continue;
        }
        let chat = text_of(&message["chatId"]).or(first.clone()).unwrap_or_default();
        first.get_or_insert_with(|| chat.clone());
        chats.entry(chat).or_default().push(message);
    }
    chats.into_iter().map(|(key, messages)| chat(key, messages)).collect()
}

fn chat(key: String, mut messages: Vec<Value>) -> Chat {
    let micros = |message: &Value| time_text(&message["createdAt"]).and_then(|time| time.parse::<i64>().ok());
    messages.sort_by_key(|message| (micros(message).unwrap_or(i64::MAX), message["role"] != "user"));
    let id = |at: usize| text_of(&messages[at]["id"]).unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| Turn {
        id: id(at),
        parent: at.checked_sub(1).map(id),
        role: text_of(&messages[at]["role"]).unwrap_or_else(|| "assistant".to_owned()),
        time: time_text(&messages[at]["createdAt"]),
        parts: parts(&messages[at]),
    };
    Chat { key, turns: (0..messages.len()).map(turn).collect(), ..Chat::default() }
}

fn parts(message: &Value) -> Parts {
    let chunks = message["contentChunks"].as_array().cloned().unwrap_or_default();
    let mut parts: Parts = chunks.iter().flat_map(chunk).collect();
    let flat = text_of(&message["content"]);
    let of_chunks: String =
        parts.iter().filter(|(kind, _)| kind == "text").map(|(_, text)| text.as_str()).collect();
    if let Some(flat) = flat.filter(|flat| *flat != of_chunks) {
        let kind = if of_chunks.is_empty() { "text" } else { "content" };
        parts.push((kind.to_owned(), flat));
    }
    parts
}

fn chunk(chunk: &Value) -> Parts {
    let piece = |kind: &str, text: Option<String>| text.map(|text| (kind.to_owned(), text));
    let pieces = match chunk["type"].as_str() {
        Some("text") => vec![piece("text", chunk["text"].as_str().map(ToOwned::to_owned))],
        Some("tool_call") => vec![
            piece("call", text_of(&chunk["name"])),
            piece("arguments", json_of(&chunk["publicArguments"])),
            piece(
                "result",
                json_of(&chunk["publicResult"]).map(|text| unsigned_json(text.into()).into_owned()),
            ),
        ],
        _ => Vec::new(),
    };
    pieces.into_iter().flatten().collect()
}

/// A text, compact where it is JSON; anything else as JSON.
fn json_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => Some(inner.to_string()),
            Ok(_) | Err(_) => Some(text.clone()),
        },
        other => Some(other.to_string()),
    }
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let id = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| {
        let message = &stored.messages[at];
        Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.metadata_text("role").unwrap_or_else(|| message.role.clone()),
            time: message.time_text("createdAt"),
            parts: stored_parts(message),
        }
    };
    let key = stored.id.clone().unwrap_or_default();
    vec![Chat { key, turns: (0..stored.messages.len()).map(turn).collect(), ..Chat::default() }]
}

fn stored_parts(message: &StoredMessage) -> Parts {
    let text = message.texts().concat();
    let chunks = message.raw["contentChunks"].as_array().cloned();
    let Some(chunks) = chunks else {
        let plain = (!text.is_empty()).then(|| ("text".to_owned(), text));
        let flat = message.metadata_text("content").map(|flat| ("content".to_owned(), flat));
        return plain.into_iter().chain(flat).collect();
    };
    let (mut rest, mut calls) = (text.as_str(), message.calls.iter());
    let mut parts = Vec::new();
    for chunk in &chunks {
        match (chunk["type"].as_str(), chunk["length"].as_u64()) {
            (Some("text"), Some(length)) => {
                let (piece, left) =
                    rest.split_at_checked(usize::try_from(length).unwrap_or_default()).unwrap_or((rest, ""));
                parts.push(("text".to_owned(), piece.to_owned()));
                rest = left;
            }
            (Some("tool_call"), _) => {
                let call = calls.next().cloned().unwrap_or(json!({}));
                for (kind, key) in [("call", "name"), ("arguments", "input"), ("result", "output")] {
                    parts.extend(json_of(&call[key]).map(|text| (kind.to_owned(), text)));
                }
            }
            _ => {}
        }
    }
    parts.extend(message.metadata_text("content").map(|flat| ("content".to_owned(), flat)));
    parts.extend(text_of(&json!(rest)).map(|rest| ("text".to_owned(), rest)));
    parts
}
