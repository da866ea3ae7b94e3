//! Reads lines and exports without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Messages*) that both apply:
//! - each thought, text, call and result of an answer is a message, which follows the one before it; neighbours of one kind are one message;
//! - the texts and pictures of a prompt are one message, and what is only for the model belongs to the system;
//! - messages have no lasting ids, so they are numbered here.

use satchel_importer::{
    names::has_extension,
    testkit::round_trip::{Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, text_of, time_text},
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip = RoundTrip {
    platform: "goose",
    read_file: from_source,
    ignored: &[(
        "odd-parts-and-broken-lines/odd.jsonl",
        "most of its messages are of no shape that the program writes",
    )],
    read_stored: from_stored,
};
/// The version of sessions from the database. `database.rs` compares them with the same sessions in other formats.
const DATABASE: &str = "2025.09";
/// That session.
const ODD: &str = "odd";

/// The kind and the text of each part of a turn.
type Parts = Vec<(String, String)>;

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    if !has_extension(file.name, "json") && !has_extension(file.name, "jsonl") {
        return Vec::new();
    }
    let Some(name) = file.base().strip_suffix(".jsonl") else { return exported(file) };
    let mut values: Vec<Value> = file.elements("").into_iter().map(|(_, value)| value).collect();
    let session = match values.first() {
        Some(first) if first["role"].is_null() => values.remove(0),
        _ => Value::Null,
    };
    chat(name, &session, &values).into_iter().collect()
}

fn exported(file: &SourceFile<'_>) -> Vec<Chat> {
    let messages: Vec<Value> = file.elements("conversation").into_iter().map(|(_, value)| value).collect();
    let Some(root) = file.json().or_else(|| file.json_before_cut()) else { return Vec::new() };
    let id = text_of(&root["id"]).unwrap_or_default();
    let mut chats: Vec<Chat> = chat(&id, &root, &messages).into_iter().collect();
    for (at, child) in root["child_sessions"].as_array().into_iter().flatten().enumerate() {
        let messages = child["conversation"].as_array().cloned().unwrap_or_default();
        let id = text_of(&child["id"]).unwrap_or_default();
        let skipped = file.skips(&format!("{}.child_sessions[{at}]", file.name));
        chats.extend(chat(&id, child, &messages).filter(|_| !skipped));
    }
    chats
}

fn chat(id: &str, session: &Value, messages: &[Value]) -> Option<Chat> {
    let messages: Vec<&Value> = messages.iter().filter(|message| message["role"].is_string()).collect();
    let mut turns: Vec<Turn> = Vec::new();
    for message in &messages {
        for (role, parts) in pieces(message) {
            let parent = turns.last().map(|before| before.id.clone());
            let time = time_text(&message["created"]);
            turns.push(Turn { id: format!("#{}", turns.len()), parent, role: role.to_owned(), time, parts });
        }
    }
    let times = || messages.iter().filter_map(|message| time_text(&message["created"]));
    let name = text_of(&session["name"]).or_else(|| text_of(&session["description"]));
    let name =
        name.filter(|name| !name.is_empty() && name != "CLI Session" && !name.starts_with("New session"));
    let prompt = turns.iter().find(|turn| turn.role == "user").and_then(|turn| turn.parts.first().cloned());
    let title = name.or_else(|| prompt?.1.lines().next().map(ToOwned::to_owned));
    let created = time_text(&session["created_at"]).or_else(|| times().min());
    let updated = time_text(&session["updated_at"]).or_else(|| times().max());
    let key = id.to_owned();
    Some(Chat { key, title, created, updated, current: None, turns }).filter(|chat| !chat.turns.is_empty())
}

/// The role and the parts of each piece of a message.
fn pieces(message: &Value) -> Vec<(&'static str, Parts)> {
    let user = message["role"] == "user";
    let hidden = message["metadata"]["userVisible"] == false;
    let mut found: Vec<(&'static str, Parts)> = Vec::new();
    let mut prompt = None;
    for part in message["content"].as_array().into_iter().flatten() {
        let audience = part["annotations"]["audience"].as_array();
        let hidden = hidden || audience.is_some_and(|roles| !roles.contains(&Value::from("user")));
        let text = |key: &str| text_of(&part[key]).map(text_part).into_iter().collect::<Parts>();
        let joins = |found: &[(&str, Parts)], role: &str| found.last().is_some_and(|(own, _)| *own == role);
        match part["type"].as_str().unwrap_or_default() {
            "text" | "image" if user && !hidden => {
                let at = *prompt.get_or_insert(found.len());
                if at == found.len() {
                    found.push(("user", Vec::new()));
                }
                found[at].1.extend(if part["type"] == "text" { text("text") } else { vec![file(part)] });
            }
            "text" => {
                let role = if user { "system" } else { "assistant" };
                // A call is an answer, too, but no text.
                let calls =
                    found.last().is_some_and(|(_, parts)| parts.iter().any(|(kind, _)| kind != "text"));
                match found.last_mut() {
                    Some((own, parts)) if *own == role && !calls => parts.extend(text("text")),
                    _ => found.push((role, text("text"))),
                }
            }
            "image" => found.push(("assistant", vec![file(part)])),
            kind @ ("thinking" | "reasoning") => {
                let said = text(if kind == "thinking" { "thinking" } else { "text" });
                if joins(&found, "thought") {
                    found.last_mut().into_iter().for_each(|(_, parts)| parts.extend(said.clone()));
                } else {
                    found.push(("thought", said));
                }
            }
            "toolRequest" | "frontendToolRequest" => found.push(("assistant", call(part))),
            "toolResponse" => found.push(("tool", result(&part["toolResult"]))),
            "toolConfirmationRequest" => found.push(("system", text("prompt"))),
            "actionRequired" => found.push(action(&part["data"])),
            "redactedThinking" => {}
            _ => found.push(("system", text("msg"))),
        }
    }
    // The files of a message stand behind its words.
    found.iter_mut().for_each(|(_, parts)| parts.sort_by_key(|(kind, _)| kind == "file"));
    found
}

fn text_part(text: String) -> (String, String) {
    ("text".to_owned(), text)
}

fn file(part: &Value) -> (String, String) {
    ("file".to_owned(), text_of(&part["mimeType"]).unwrap_or_default())
}

fn call(part: &Value) -> Parts {
    let value = &part["toolCall"]["value"];
    let name = text_of(&value["name"]).unwrap_or_else(|| "unnamed".to_owned());
    vec![("call".to_owned(), name), ("input".to_owned(), value["arguments"].to_string())]
}

fn action(data: &Value) -> (&'static str, Parts) {
    if data["user_data"].is_object() {
        return ("user", vec![text_part(data["user_data"].to_string())]);
    }
    ("system", text_of(&data["message"]).map(text_part).into_iter().collect())
}

/// The texts of a result, each once, and then its files.
fn result(result: &Value) -> Parts {
    let (mut texts, mut files): (Parts, Parts) = (Vec::new(), Vec::new());
    texts.extend(text_of(&result["error"]).map(text_part));
    let value = &result["value"];
    for content in value.as_array().or_else(|| value["content"].as_array()).into_iter().flatten() {
        let resource = &content["resource"];
        let text = text_of(&content["text"]).or_else(|| text_of(&resource["text"])).map(text_part);
        texts.extend(text.filter(|text| !texts.contains(text)));
        if !content["data"].is_null() || content["type"] == "resource_link" {
            files.push(file(content));
        } else if !resource["blob"].is_null() {
            files.push(file(resource));
        }
    }
    texts.extend(files);
    texts
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let key = stored.id.clone().unwrap_or_default();
    if key == ODD || stored.format.as_deref() == Some(DATABASE) {
        return Vec::new();
    }
    let turn = |(at, message): (usize, &StoredMessage)| Turn {
        id: format!("#{at}"),
        parent: message.parent.map(|parent| format!("#{parent}")),
        role: if message.thought { "thought".to_owned() } else { message.role.clone() },
        time: message.time.map(|time| time.to_string()),
        parts: parts(message),
    };
    vec![Chat {
        key,
        title: stored.title.clone(),
        created: stored.created.map(|time| time.to_string()),
        updated: stored.updated.map(|time| time.to_string()),
        current: None,
        turns: stored.messages.iter().enumerate().map(turn).collect(),
    }]
}

fn parts(message: &StoredMessage) -> Parts {
    let mut parts = message.parts.clone();
    for call in &message.calls {
        parts.push(("call".to_owned(), text_of(&call["name"]).unwrap_or_default()));
        parts.push(("input".to_owned(), call["input"].to_string()));
    }
    // A file beside the messages belongs to no part.
    let own = message.attachments.iter().filter(|file| file["name"] != "mcp_response_1.txt");
    parts.extend(own.map(|file| ("file".to_owned(), text_of(&file["mime_type"]).unwrap_or_default())));
    parts
}
