//! Reads exports without the importer, and rebuilds the same from the stored records. The sessions of a storage are in many files, which
//! this comparison cannot read together: `layouts.rs` checks that they give the same records as an export.
//!
//! Rules of the README (*Messages*) that both apply:
//! - each text, thought, call, result and error of an answer is a message, which follows the one before it;
//! - the texts and files of a prompt are one message; what the program added to it belongs to the system.

use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, text_of, time_text,
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip = RoundTrip {
    platform: "opencode",
    read_file: from_source,
    ignored: &[(
        "odd-fields-and-repeated-ids/session.json",
        "most of its messages are of no shape that the program writes",
    )],
    read_stored: from_stored,
};
/// That session.
const ODD: &str = "ses_400da7e1cffeRosaGarden0013";
/// The version of the format of exports.
const EXPORT: &str = "2026.01";

/// The kind and the text of each part of a turn.
type Parts = Vec<(String, String)>;

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let Some(root) = file.json().or_else(|| file.json_before_cut()) else { return Vec::new() };
    let info = &root["info"];
    let mut messages: Vec<&Value> = root["messages"].as_array().into_iter().flatten().collect();
    // A message that is cut off is reported.
    messages.retain(|message| message["info"]["id"].is_string() && message["parts"].is_array());
    if file.json().is_none() {
        messages.pop();
    }
    messages.sort_by_key(|message| {
        (message["info"]["time"]["created"].as_u64(), message["info"]["id"].to_string())
    });
    let mut turns: Vec<Turn> = Vec::new();
    for message in &messages {
        for mut turn in turns_of(message) {
            if turn.id.ends_with(":result") || turn.id.ends_with(":error") {
                turn.id = format!("#{}", turns.len());
            }
            turn.parent = turns.last().map(|before| before.id.clone());
            turns.push(turn);
        }
    }
    let first_prompt = || turns.iter().find(|turn| turn.role == "user").and_then(first_line);
    let named = text_of(&info["title"]).filter(|title| !title.starts_with("New session - 2"));
    let title = named.or_else(first_prompt);
    let key = text_of(&info["id"]).unwrap_or_default();
    let (created, updated) = (time_text(&info["time"]["created"]), time_text(&info["time"]["updated"]));
    let chat = Chat { key, title, created, updated, current: None, turns };
    Some(chat).filter(|chat| !chat.turns.is_empty() && root["messages"].is_array()).into_iter().collect()
}

fn first_line(turn: &Turn) -> Option<String> {
    turn.parts
        .iter()
        .find(|(kind, _)| kind == "text")
        .map(|(_, text)| text.lines().next().unwrap_or_default().to_owned())
}

/// The turns of a message; their ids are those of their parts, but the first one has the id of the message.
fn turns_of(message: &Value) -> Vec<Turn> {
    let info = &message["info"];
    let created = time_text(&info["time"]["created"]);
    let created = created.as_deref();
    let parts: Vec<&Value> = message["parts"].as_array().into_iter().flatten().collect();
    let mut turns = if info["role"] == "user" { prompt(&parts, created) } else { answer(&parts, created) };
    let id = text_of(&info["id"]).unwrap_or_default();
    if let Some(first) = turns.first_mut() {
        first.id.clone_from(&id);
    }
    if info["error"].is_object() {
        let name = text_of(&info["error"]["name"]);
        let text = text_of(&info["error"]["data"]["message"]).or(name).unwrap_or_default();
        turns.push(turn(format!("{id}:error"), "system", created, vec![("text".to_owned(), text)]));
    }
    if turns.is_empty() {
        let role = text_of(&info["role"]).unwrap_or_default();
        turns.push(turn(id, &role, created, Vec::new()));
    }
    turns
}

fn turn(id: String, role: &str, time: Option<&str>, parts: Parts) -> Turn {
    Turn { id, parent: None, role: role.to_owned(), time: time.map(ToOwned::to_owned), parts }
}

fn prompt(parts: &[&Value], created: Option<&str>) -> Vec<Turn> {
    let (mut own, mut others, mut files, mut typed) = (Vec::new(), Vec::new(), Vec::new(), false);
    for part in parts {
        let ours = part["synthetic"] == true || part["ignored"] == true;
        match part["type"].as_str() {
            Some("text") if ours => others.push(turn(
                text_of(&part["id"]).unwrap_or_default(),
                "system",
                created,
                text_of(&part["text"]).map(text_part).into_iter().collect(),
            )),
            Some("text") => own.extend(text_of(&part["text"]).map(text_part)),
            Some("subtask") => own.extend(text_of(&part["prompt"]).map(text_part)),
            Some("file") => files.push(file_part(part)),
            Some("compaction") => typed = true,
            _ => {}
        }
    }
    own.extend(files);
    let role = if own.is_empty() { "system" } else { "user" };
    if typed || !own.is_empty() {
        others.insert(0, turn(String::new(), role, created, own));
    }
    others
}

fn answer(parts: &[&Value], created: Option<&str>) -> Vec<Turn> {
    let mut turns = Vec::new();
    for part in parts {
        let id = text_of(&part["id"]).unwrap_or_default();
        let began = time_text(&part["time"]["start"]).or_else(|| created.map(ToOwned::to_owned));
        match part["type"].as_str() {
            Some(kind @ ("text" | "reasoning")) => {
                let thought = if kind == "text" { "assistant" } else { "thought" };
                let said = text_of(&part["text"]).map(text_part);
                turns.extend(said.map(|said| turn(id, thought, began.as_deref(), vec![said])));
            }
            Some("tool") => turns.extend(call(part, id, created)),
            _ => {}
        }
    }
    turns
}

/// A call, and its result if there is one.
fn call(part: &Value, id: String, created: Option<&str>) -> Vec<Turn> {
    let state = &part["state"];
    let began = time_text(&state["time"]["start"]).or_else(|| created.map(ToOwned::to_owned));
    let name = text_of(&part["tool"]).unwrap_or_default();
    let asked = vec![("call".to_owned(), name), ("input".to_owned(), state["input"].to_string())];
    let mut turns = vec![turn(id.clone(), "assistant", began.as_deref(), asked)];
    if matches!(state["status"].as_str(), Some("completed" | "error")) {
        let text = text_of(&state["output"]).or_else(|| text_of(&state["error"]));
        let mut parts: Parts = text.map(text_part).into_iter().collect();
        parts.extend(state["attachments"].as_array().into_iter().flatten().map(file_part));
        turns.push(turn(format!("{id}:result"), "tool", time_text(&state["time"]["end"]).as_deref(), parts));
    }
    turns
}

fn text_part(text: String) -> (String, String) {
    ("text".to_owned(), text)
}

fn file_part(part: &Value) -> (String, String) {
    ("file".to_owned(), text_of(&part["mime"]).unwrap_or_default())
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let own = stored.id.clone().unwrap_or_default();
    if own == ODD || stored.format.as_deref() != Some(EXPORT) {
        return Vec::new();
    }
    let mut turns: Vec<Turn> = Vec::new();
    for message in &stored.messages {
        let parent = message.parent.and_then(|at| turns.get(at)).map(|turn| turn.id.clone());
        // Results and errors have no id of the program, so they are numbered.
        let id = message.id.clone().unwrap_or_else(|| format!("#{}", turns.len()));
        turns.push(Turn {
            parent,
            ..turn(id, role(message), message.time.map(|time| time.to_string()).as_deref(), parts(message))
        });
    }
    vec![Chat {
        key: own,
        title: stored.title.clone(),
        created: stored.created.map(|time| time.to_string()),
        updated: stored.updated.map(|time| time.to_string()),
        current: None,
        turns,
    }]
}

fn role(message: &StoredMessage) -> &str {
    if message.thought { "thought" } else { &message.role }
}

fn parts(message: &StoredMessage) -> Parts {
    let mut parts = message.parts.clone();
    for call in &message.calls {
        parts.push(("call".to_owned(), text_of(&call["name"]).unwrap_or_default()));
        parts.push(("input".to_owned(), call["input"].to_string()));
    }
    parts.extend(
        message
            .attachments
            .iter()
            .map(|file| ("file".to_owned(), text_of(&file["mime_type"]).unwrap_or_default())),
    );
    parts
}
