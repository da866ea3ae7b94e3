//! Reads threads without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Messages*) that both apply:
//! - each thought, call and result, and the texts and files between them, is a message, which follows the one before it;
//! - a message follows the one that it names, or else the one before it.

use std::collections::BTreeMap;

use satchel_importer::{
    names::has_extension,
    testkit::round_trip::{
        Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
    },
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip = RoundTrip {
    platform: "jan",
    read_file: from_source,
    ignored: &[
        (
            "odd-lines/threads/0190aaaa-0000-4000-8000-000000000005/messages.jsonl",
            "most of its lines are of no shape that the program writes",
        ),
        (
            "broken-links/threads/0190aaaa-0000-4000-8000-000000000004/messages.jsonl",
            "how its links are repaired is tested alone",
        ),
    ],
    read_stored: from_stored,
};
/// The ids of these two.
const IGNORED: [&str; 2] = ["0190aaaa-0000-4000-8000-000000000005", "0190aaaa-0000-4000-8000-000000000004"];

/// The kind and the text of each part of a turn.
type Parts = Vec<(String, String)>;

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let export = has_extension(file.name, "json").then(|| file.json()).flatten();
    let listed = export.as_ref().and_then(|root| root["messages"].as_array().cloned());
    let lines = has_extension(file.name, "jsonl")
        .then(|| file.elements("no list").into_iter().map(|(_, line)| line).collect());
    let Some(messages) = listed.or(lines) else { return Vec::new() };
    // What is behind the file of a thread is in another one, so these are not compared.
    let key = export.as_ref().and_then(|root| text_of(&root["title"]));
    let key = key.or(messages.first().and_then(|message| text_of(&message["thread_id"]))).unwrap_or_default();
    let (mut turns, mut last, mut ends) = (Vec::new(), None, BTreeMap::new());
    for (number, message) in messages.iter().enumerate() {
        let named = text_of(&message["metadata"]["parentId"]);
        let is_root = message["metadata"].as_object().is_some_and(|own| own.contains_key("parentId"))
            && named.is_none();
        let mut above = match named {
            Some(id) => ends.get(&id).cloned(),
            None if is_root && message["role"] == "user" => None,
            None => last.clone(),
        };
        for (at, turn) in turns_of(message).into_iter().enumerate() {
            let id =
                if at == 0 { text_of(&message["id"]).unwrap_or_default() } else { format!("#{number}.{at}") };
            turns.push((Turn { id: id.clone(), parent: above, ..turn }, Some(turns.len())));
            above = Some(id);
        }
        ends.insert(text_of(&message["id"]).unwrap_or_default(), above.clone().unwrap_or_default());
        last = above;
    }
    vec![Chat { key, turns: arrange(turns), ..Chat::default() }]
}

/// The turns of a message, without their ids and parents.
fn turns_of(message: &Value) -> Vec<Turn> {
    let role = text_of(&message["role"]).unwrap_or_default();
    let time = time_text(&message["created_at"]).or(time_text(&message["created"]));
    let mut turns: Vec<(String, Parts)> = Vec::new();
    let mut open = false;
    for part in message["content"].as_array().into_iter().flatten() {
        let text = text_of(&part["text"]["value"]).unwrap_or_default();
        match part["type"].as_str() {
            Some("reasoning") => {
                turns.push(("thought".to_owned(), vec![("text".to_owned(), text)]));
                open = false;
            }
            Some("tool_call") => {
                turns.push(call(&part["tool_name"]));
                turns.extend(result(&part["output"]));
                open = false;
            }
            _ => {
                let mut shown = text.as_str();
                if let Some(inside) = text.strip_prefix("<think>") {
                    let (thought, answer) = inside.split_once("</think>").unwrap_or((inside, ""));
                    turns.push(("thought".to_owned(), vec![("text".to_owned(), thought.to_owned())]));
                    (shown, open) = (answer.trim_start(), false);
                }
                let files = part["text"]["annotations"].as_array().map_or(0, Vec::len);
                let files =
                    files + usize::from(part["image_url"].is_object() || part["input_audio"].is_object());
                if !shown.is_empty() || files > 0 {
                    if !open {
                        turns.push((role.clone(), Parts::new()));
                        open = true;
                    }
                    let parts = turns.last_mut().map(|(_, parts)| parts);
                    let texts = Some(("text".to_owned(), shown.to_owned())).filter(|_| !shown.is_empty());
                    let files = std::iter::repeat_n(("file".to_owned(), String::new()), files);
                    parts
                        .into_iter()
                        .for_each(|parts| parts.extend(texts.clone().into_iter().chain(files.clone())));
                }
            }
        }
    }
    for entry in message["metadata"]["tool_calls"].as_array().into_iter().flatten() {
        turns.push(call(&entry["tool"]["function"]["name"]));
        turns.extend(result(&entry["response"]));
    }
    let listed = message["metadata"]["inline_file_contents"].as_array().map_or(0, Vec::len);
    if let Some((_, parts)) = turns.first_mut().filter(|_| listed > 0) {
        // Two are in the list of the prompt, of which one is among these.
        parts.extend(std::iter::repeat_n(("file".to_owned(), String::new()), listed + 1));
    }
    let turn = |(role, parts)| Turn { role, parts, time: time.clone(), ..Turn::default() };
    turns.into_iter().map(turn).collect()
}

fn call(name: &Value) -> (String, Parts) {
    ("assistant".to_owned(), vec![("call".to_owned(), text_of(name).unwrap_or_default())])
}

fn result(value: &Value) -> Option<(String, Parts)> {
    let texts = value["content"].as_array().filter(|_| value["error"].is_null());
    let text = match texts {
        Some(texts) => texts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        None if value.is_null() => return None,
        None => value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned),
    };
    Some(("tool".to_owned(), vec![("text".to_owned(), text)]))
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let key = stored.id.clone().or(stored.title.clone()).unwrap_or_default();
    if IGNORED.contains(&&*key) {
        return Vec::new();
    }
    let name = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    let turn = |(at, message): (usize, &StoredMessage)| {
        let turn = Turn {
            id: name(at),
            parent: message.parent.map(name),
            role: if message.thought { "thought".to_owned() } else { message.role.clone() },
            time: message.time.map(|time| time.to_string()),
            parts: stored_parts(message),
        };
        (turn, message.sibling_number())
    };
    let turns = arrange(stored.messages.iter().enumerate().map(turn).collect());
    // The title of an export is compared as its key.
    vec![Chat { key, turns, ..Chat::default() }]
}

fn stored_parts(message: &StoredMessage) -> Parts {
    let mut parts: Parts = message.parts.iter().map(|(_, text)| ("text".to_owned(), compact(text))).collect();
    let names = message.calls.iter().filter_map(|call| text_of(&call["name"]));
    parts.extend(names.map(|name| ("call".to_owned(), name)));
    parts.extend(message.attachments.iter().map(|_| ("file".to_owned(), String::new())));
    parts
}

/// The text of an object without the white space between its members.
fn compact(text: &str) -> String {
    let object = text.starts_with('{').then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    object.map_or_else(|| text.to_owned(), |object| object.to_string())
}
