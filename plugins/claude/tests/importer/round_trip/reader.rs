//! A reader of Claude's conversations that is independent of the importer, and the same chats from stored records.
//!
//! These rules say where both may differ (README, *Rules*):
//! - skipped messages are left out;
//! - messages are in the order of their tree, and siblings in the order of the list;
//! - if no message names a parent, each answers the one before, sorted by time;
//! - the flat text is read if no block holds text, though one could;
//! - an index entry with a file of its own is left out;
//! - `token_budget` and blocks without text are left out;
//! - the texts of a tool's result are joined by line breaks; other results and all inputs are compared as JSON;
//! - a thought without text is read from its summaries.

use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
};
use serde_json::{Value, json};

pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "claude", read_file: file_chats, ignored: &[], read_stored: stored_chats };

/// The parent that the first message of a conversation names.
const NO_PARENT: &str = "00000000-0000-4000-8000-000000000000";

/// Texts with the type of their block.
type Texts = Vec<(String, String)>;

fn file_chats(file: &SourceFile<'_>) -> Vec<Chat> {
    let chats = file.elements("conversations");
    let is_chat = |item: &Value| list_of(item).is_some() || is_index_entry(item, file);
    chats.iter().filter(|(_, item)| is_chat(item)).map(|(place, item)| chat(place, item, file)).collect()
}

/// The name of the list of messages.
fn list_of(item: &Value) -> Option<&'static str> {
    // Chats of the design tool name a project.
    let other = || (item["messages"].is_array() && item.get("project").is_none()).then_some("messages");
    item.get("chat_messages").map(|_| "chat_messages").or_else(other)
}

/// Whether it is an index entry without a file of its own.
fn is_index_entry(item: &Value, file: &SourceFile<'_>) -> bool {
    let file_name = text_of(&item["uuid"]).map(|uuid| format!("conversations/{uuid}.json"));
    file.base() == "conversations.json"
        && file_name.is_some_and(|file_name| !file.names.iter().any(|name| name.ends_with(&file_name)))
}

fn chat(place: &str, item: &Value, file: &SourceFile<'_>) -> Chat {
    let name = list_of(item).unwrap_or("chat_messages");
    let list = item[name].as_array().into_iter().flatten().enumerate();
    let mut messages: Vec<&Value> = list
        .filter(|(at, message)| message.is_object() && !file.skips(&format!("{place}.{name}[{at}]")))
        .map(|(_, message)| message)
        .collect();
    let id = |at: usize, message: &Value| text_of(&message["uuid"]).unwrap_or_else(|| format!("#{at:06}"));
    let linear = messages.iter().all(|message| text_of(&message["parent_message_uuid"]).is_none());
    if linear {
        by_time(&mut messages);
    }
    let turn = |(at, message): (usize, &&Value)| Turn {
        id: id(at, message),
        parent: if linear {
            at.checked_sub(1).map(|above| id(above, messages[above]))
        } else {
            text_of(&message["parent_message_uuid"]).filter(|parent| parent != NO_PARENT)
        },
        role: speaker(message),
        time: time_text(&message["created_at"]),
        parts: texts(message),
    };
    let title = [&item["name"], &item["title"]].into_iter().find_map(Value::as_str);
    let title = title.filter(|title| !title.trim().is_empty()).map(ToOwned::to_owned);
    Chat {
        key: text_of(&item["uuid"]).unwrap_or_else(|| format!("{title:?}")),
        title,
        created: time_text(&item["created_at"]),
        updated: time_text(&item["updated_at"]),
        current: None,
        turns: arrange(
            messages.iter().enumerate().map(turn).enumerate().map(|(at, turn)| (turn, Some(at))).collect(),
        ),
    }
}

fn speaker(message: &Value) -> String {
    let role = message["role"].as_str().map(|role| if role == "user" { "human" } else { role });
    message["sender"].as_str().or(role).unwrap_or("assistant").to_owned()
}

/// Messages in the order of their times, if some is earlier than one before it.
fn by_time(messages: &mut Vec<&Value>) {
    let time = |message: &Value| time_text(&message["created_at"]).and_then(|time| time.parse::<i64>().ok());
    if messages.iter().filter_map(|message| time(message)).is_sorted() {
        return;
    }
    let mut blocks: Vec<Vec<&Value>> = vec![Vec::new()];
    for message in messages.drain(..) {
        if time(message).is_some() {
            blocks.push(Vec::new());
        }
        blocks.last_mut().expect("there is one").push(message);
    }
    let answer = |block: &Vec<&Value>| block.first().is_some_and(|first| speaker(first) != "human");
    blocks.sort_by_key(|block| (block.first().and_then(|first| time(first)), answer(block)));
    messages.extend(blocks.into_iter().flatten());
}

/// The flat text if no block holds text, and its index among `blocks`.
fn flat_text(message: &Value, blocks: &[Value]) -> Option<(usize, String)> {
    let text = text_of(&message["text"])?;
    let flat = text.replace("```\nThis block is not supported on your current device yet.\n```", "");
    let flat = flat.trim().to_owned();
    let texts: Texts = blocks.iter().flat_map(block).collect();
    let present = texts.iter().any(|(kind, text)| {
        !matches!(kind.as_str(), "tool_use" | "input" | "tool_result" | "thinking" | "user_interjection")
            || *text == flat
    });
    let non_text = ["token_budget", "injected_prompt_block", "image", "document", "tool_use", "tool_result"];
    let empty =
        |one: &Value| block(one).is_empty() && !non_text.contains(&one["type"].as_str().unwrap_or_default());
    let missing = blocks.iter().position(|one| one["type"] == "text" && one["text"].is_null());
    let place = missing.unwrap_or(blocks.len());
    (!present && !flat.is_empty() && blocks.iter().any(empty)).then_some((place, flat))
}

fn texts(message: &Value) -> Texts {
    let blocks = match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        block @ Value::Object(_) => vec![block.clone()],
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| vec![json!(text)]),
        _ => Vec::new(),
    };
    if blocks.is_empty() {
        return text_of(&message["text"]).map(|text| ("text".to_owned(), text)).into_iter().collect();
    }
    let flat = flat_text(message, &blocks).map(|(place, text)| (place, ("text".to_owned(), text)));
    let at = |place: usize| flat.iter().filter(move |(at, _)| *at == place).map(|(_, text)| text.clone());
    let all = blocks.iter().enumerate().flat_map(|(number, one)| at(number).chain(block(one)));
    all.chain(at(blocks.len())).collect()
}

fn block(block: &Value) -> Texts {
    let kind = block["type"].as_str().unwrap_or(if block.is_string() { "text" } else { "" });
    let text = match kind {
        "token_budget" | "injected_prompt_block" | "image" | "document" => None,
        "thinking" => {
            text_of(&block["thinking"]).or_else(|| text_of(&block["text"])).or_else(|| summaries(block))
        }
        "tool_use" => {
            return vec![
                ("tool_use".to_owned(), block["name"].as_str().unwrap_or("unknown").to_owned()),
                ("input".to_owned(), block["input"].to_string()),
            ];
        }
        "tool_result" => Some(result(&block["content"])),
        _ => text_of(block).or_else(|| text_of(&block["text"])),
    };
    text.map(|text| (kind.to_owned(), text)).into_iter().collect()
}

fn summaries(block: &Value) -> Option<String> {
    let list = block["summaries"].as_array()?.iter().filter_map(|item| text_of(&item["summary"]));
    let lines = list.collect::<Vec<_>>().join("\n");
    (!lines.is_empty()).then_some(lines)
}

/// The result of a tool: a text, texts, or JSON.
fn result(content: &Value) -> String {
    let plain = |item: &Value| item["type"] == "text" && item["text"].is_string();
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(plain) => {
            items.iter().filter_map(|item| item["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn stored_chats(stored: &Stored) -> Vec<Chat> {
    if !stored.tags.is_empty() || stored.id.as_ref().is_some_and(|id| Some(id) == stored.account.as_ref()) {
        return Vec::new();
    }
    let whole: Vec<usize> =
        (0..stored.messages.len()).filter(|at| !is_piece(&stored.messages[*at])).collect();
    let id = |at: usize| {
        let place = whole.iter().position(|other| *other == at).unwrap_or_default();
        stored.messages[at].id.clone().unwrap_or_else(|| format!("#{place:06}"))
    };
    let turns = whole.iter().map(|at| (stored_turn(stored, *at, &id), stored.messages[*at].sibling_number()));
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?}", stored.title)),
        title: stored.title.clone(),
        created: stored.time_text(stored.created, "created_at"),
        updated: stored.time_text(stored.updated, "updated_at"),
        current: None,
        turns: arrange(turns.collect()),
    }]
}

/// Thoughts and interjections are blocks of the message behind them.
fn is_piece(message: &StoredMessage) -> bool {
    message.thought || message.raw["type"] == "user_interjection"
}

fn stored_turn(stored: &Stored, at: usize, id: &dyn Fn(usize) -> String) -> Turn {
    let message = &stored.messages[at];
    let (mut above, mut pieces) = (message.parent, Vec::new());
    while let Some(piece) = above.filter(|above| is_piece(&stored.messages[*above])) {
        pieces.push(&stored.messages[piece]);
        above = stored.messages[piece].parent;
    }
    // Thoughts in a text are part of it.
    pieces.retain(|piece| piece.raw["type"].is_string());
    let role = if message.role == "user" { "human" } else { &message.role };
    // A role that is not known is read as the assistant's.
    let unknown = message.metadata_text("role").filter(|_| role == "assistant");
    Turn {
        id: id(at),
        parent: message.metadata_text("parent_message_uuid").or_else(|| above.map(id)),
        role: message.metadata_text("sender").or(unknown).unwrap_or_else(|| role.to_owned()),
        time: message.time_text("created_at"),
        parts: blocks(stored, message, pieces),
    }
}

/// The blocks of a message; `pieces` are its thoughts and interjections, the last one first.
fn blocks(stored: &Stored, message: &StoredMessage, mut pieces: Vec<&StoredMessage>) -> Texts {
    let texts = message.texts();
    let Some(blocks) = message.raw["content"].as_array() else {
        let marked = message
            .metadata_text("text")
            .filter(|marked| texts.iter().all(|text| marked.contains(text)) && marked.contains("<ant"));
        let texts = if texts.len() > 1 { marked.map_or(texts.clone(), |marked| vec![marked]) } else { texts };
        return texts.into_iter().map(|text| ("text".to_owned(), text)).collect();
    };
    let (mut texts, mut calls) = (texts.into_iter().peekable(), message.calls.iter());
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for block in blocks {
        let kind = block["type"].as_str().unwrap_or_default();
        let mut add = |text: Option<String>| found.extend(text.map(|text| (kind.to_owned(), text)));
        match kind {
            "thinking" | "user_interjection" => {
                // One without text stays in the block with its other fields.
                if block.as_object().is_some_and(|block| block.len() == 1) {
                    add(pieces.pop().map(|piece| piece.texts().concat()));
                }
            }
            "tool_use" => {
                let Some(call) = calls.find(|call| !is_orphan(call)) else { continue };
                add(text_of(&call["name"]));
                open.push(call.clone());
                found.push(("input".to_owned(), input(call)));
            }
            "tool_result" => add(output(stored, message, block, &mut open)),
            "injected_prompt_block" | "image" | "document" => {}
            _ => match &block["text"] {
                Value::String(marked) => {
                    while texts.next_if(|text| marked.contains(text.as_str())).is_some() {}
                    add(text_of(&block["text"]));
                }
                Value::Null if kind == "text" => add(texts.next()),
                // The number of its part.
                Value::Number(_) => add(texts.next()),
                _ => {}
            },
        }
    }
    found.extend(texts.map(|text| ("text".to_owned(), text)));
    found
}

/// Whether it is a result without its call.
fn is_orphan(call: &Value) -> bool {
    call.get("input").is_none() && call.get("output").is_some()
}

fn input(call: &Value) -> String {
    match &call["input"] {
        Value::String(text) => {
            serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text)).to_string()
        }
        other => other.to_string(),
    }
}

/// The result of a tool, stored with its call: the one with its id, else the last open one of its name above, else an orphan.
fn output(stored: &Stored, message: &StoredMessage, block: &Value, open: &mut Vec<Value>) -> Option<String> {
    let mut all = message.calls.iter().chain(stored.messages.iter().flat_map(|message| &message.calls));
    let id = text_of(&block["tool_use_id"]);
    let place = match &id {
        Some(id) => open.iter().rposition(|call| call["id"] == id.as_str()),
        None => open.iter().rposition(|call| !block["name"].is_string() || call["name"] == block["name"]),
    };
    let call = match (place, id) {
        (Some(place), _) => open.remove(place),
        (None, Some(id)) => all.find(|call| call["id"] == id.as_str())?.clone(),
        (None, None) => match above(stored, message, block) {
            Some(call) => call,
            None => all.find(|call| is_orphan(call))?.clone(),
        },
    };
    let text = text_of(&call["output"]).unwrap_or_default();
    let json = text.starts_with(['[', '{']).then(|| serde_json::from_str::<Value>(&text).ok()).flatten();
    Some(json.map_or(text, |json| json.to_string()))
}

/// The last call of the name above a message, in one that holds no results itself.
fn above(stored: &Stored, message: &StoredMessage, block: &Value) -> Option<Value> {
    let parent = |message: &&StoredMessage| message.parent.map(|at| &stored.messages[at]);
    let has_results =
        |message: &StoredMessage| message.raw["content"].to_string().contains("\"tool_result\"");
    let mut above = std::iter::successors(parent(&message), parent).filter(|message| !has_results(message));
    above.find_map(|message| message.calls.iter().rev().find(|call| call["name"] == block["name"]).cloned())
}
