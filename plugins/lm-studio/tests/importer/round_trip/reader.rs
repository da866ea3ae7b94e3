//! Reads chats without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Messages*) that both apply:
//! - each text, thought, call and result of an answer is a message, which follows the one before it;
//! - every version of a message follows the selected version of the message before it.

use satchel_importer::{
    names::is_json,
    testkit::round_trip::{
        Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
    },
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip = RoundTrip {
    platform: "lm-studio",
    read_file: from_source,
    ignored: &[
        (
            "odd-fields-and-broken-parts/conversations/1767707000000.conversation.json",
            "most of its messages are of no shape that the program writes",
        ),
        ("a-copy-of-a-chat/conversations/ferry backup.json", "its id depends on another file"),
    ],
    read_stored: from_stored,
};
/// What identifies these two.
const IGNORED: [&str; 2] = ["1767707000000", "Ferry"];

/// The kind and the text of each part of a turn.
type Parts = Vec<(String, String)>;

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    if !is_json(file.name) || file.name.ends_with(".metadata.json") {
        return Vec::new();
    }
    let Some(root) = file.json().or_else(|| file.json_before_cut()) else { return Vec::new() };
    let mut messages: Vec<&Value> = root["messages"].as_array().into_iter().flatten().collect();
    // A message that is cut off is reported; its last field is missing.
    messages.retain(|message| file.json().is_some() || message["currentlySelected"].is_number());
    let (mut turns, mut last, mut place) = (Vec::new(), None, 0);
    for (number, message) in messages.iter().enumerate() {
        let mut next = None;
        for (at, version) in message["versions"].as_array().into_iter().flatten().enumerate() {
            let mut above: Option<String> = last.clone();
            for turn in turns_of(version, &format!("#{number}.{at}")) {
                let turn = Turn { parent: above, ..turn };
                above = Some(turn.id.clone());
                turns.push((turn, Some(place)));
                place += 1;
            }
            if message["currentlySelected"] == at {
                next = above;
            }
        }
        last = next;
    }
    if turns.is_empty() {
        return Vec::new();
    }
    let name = file.name.rsplit('/').next().unwrap_or_default();
    let own = name.strip_suffix(".conversation.json").and_then(|name| name.parse::<i64>().ok());
    let began =
        time_text(&root["createdAt"]).and_then(|time| time.parse::<i64>().ok()).filter(|time| *time > 0);
    let id = match (own, began.map(|micros| micros / 1000)) {
        (Some(own), Some(began)) if (own - began).abs() > 2000 => Some(own),
        (own, began) => began.or(own),
    };
    let turns = arrange(turns);
    let first = turns.iter().find(|turn| turn.role == "user").and_then(|turn| turn.parts.first());
    let title =
        text_of(&root["name"]).filter(|name| !name.is_empty()).or(first.map(|(_, text)| text.clone()));
    let newest = ["userLastMessagedAt", "assistantLastMessagedAt"].map(|key| root[key].as_i64().unwrap_or(0));
    let newest = newest.into_iter().max().filter(|time| *time > 0).map(Value::from);
    let times = || turns.iter().filter_map(|turn| turn.time.as_ref()?.parse::<i64>().ok());
    let updated = newest.and_then(|time| time_text(&time)).or(times().max().map(|time| time.to_string()));
    let created = began.or(times().min()).map(|time| time.to_string());
    let key = id.map(|id| id.to_string()).or_else(|| title.clone()).unwrap_or_default();
    vec![Chat { key, title, created, updated, current: last.filter(|id| !id.starts_with('#')), turns }]
}

/// The turns of a version, without their parents.
fn turns_of(version: &Value, key: &str) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let role = text_of(&version["role"]).unwrap_or_default();
    let own: Parts = parts(&version["content"]);
    if !own.is_empty() {
        turns.push(Turn { role: role.clone(), parts: own, ..Turn::default() });
    }
    for step in
        version["steps"].as_array().into_iter().flatten().filter(|step| step["type"] == "contentBlock")
    {
        let id = text_of(&step["stepIdentifier"]).unwrap_or_default();
        let mut texts = String::new();
        let mut found = Vec::new();
        for part in step["content"].as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("text") => texts.push_str(part["text"].as_str().unwrap_or_default()),
                Some("toolCallRequest") => {
                    let own = [&part["name"], &part["toolCallRequest"]["name"]];
                    let name = own.into_iter().find_map(text_of).unwrap_or_default();
                    found.push(("assistant", vec![("call".to_owned(), name)]));
                }
                Some("toolCallResult") => {
                    let text = part["content"]
                        .as_str()
                        .map_or_else(|| part["content"].to_string(), ToOwned::to_owned);
                    found.push(("tool", vec![("text".to_owned(), text)]));
                }
                _ => {}
            }
        }
        if !texts.is_empty() {
            let kind = if step["style"]["type"] == "thinking" { "thought" } else { &role };
            found.insert(0, (kind, vec![("text".to_owned(), texts)]));
        }
        for (at, (role, parts)) in found.into_iter().enumerate() {
            let id = if at == 0 { id.clone() } else { String::new() };
            turns.push(Turn { id, role: role.to_owned(), time: step_time(step), parts, ..Turn::default() });
        }
    }
    if turns.is_empty() {
        turns.push(Turn { role, ..Turn::default() });
    }
    let first = version["steps"].get(0).cloned().unwrap_or_default();
    turns[0].id = text_of(&first["stepIdentifier"]).unwrap_or_default();
    turns[0].time = step_time(&first).or(turns[0].time.take());
    for (at, turn) in turns.iter_mut().enumerate() {
        let repeated = turn.id == "test-content" && at > 0;
        if turn.id.is_empty() || repeated {
            turn.id = format!("{key}.{at}");
        }
    }
    turns
}

fn parts(content: &Value) -> Parts {
    if let Some(text) = content.as_str() {
        return vec![("text".to_owned(), text.to_owned())];
    }
    let items = || content.as_array().into_iter().flatten();
    let texts = items().filter_map(|part| part["text"].as_str().or(part.as_str()));
    let mut parts: Parts = texts.map(|text| ("text".to_owned(), text.to_owned())).collect();
    let files = items().filter_map(|part| text_of(&part["fileIdentifier"]).or(text_of(&part["identifier"])));
    parts.extend(files.map(|file| ("file".to_owned(), file)));
    parts
}

fn step_time(step: &Value) -> Option<String> {
    let (digits, _) = step["stepIdentifier"].as_str()?.split_once('-')?;
    digits.parse::<i64>().ok().map(|time| (time * 1000).to_string())
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let key = stored.id.clone().or(stored.title.clone()).unwrap_or_default();
    if IGNORED.contains(&&*key) {
        return Vec::new();
    }
    let name = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize, message: &StoredMessage| Turn {
        id: name(at),
        parent: message.parent.map(name),
        role: if message.thought { "thought".to_owned() } else { message.role.clone() },
        time: message.time.map(|time| time.to_string()),
        parts: stored_parts(message),
    };
    let turns = stored.messages.iter().enumerate();
    let turns = turns.map(|(at, message)| (turn(at, message), message.sibling_number())).collect();
    vec![Chat {
        key,
        title: stored.title.clone(),
        created: stored.created.map(|time| time.to_string()),
        updated: stored.updated.map(|time| time.to_string()),
        current: stored.current.and_then(|at| stored.messages[at].id.clone()),
        turns: arrange(turns),
    }]
}

fn stored_parts(message: &StoredMessage) -> Parts {
    let mut parts: Parts = message.parts.iter().map(|(_, text)| ("text".to_owned(), compact(text))).collect();
    let names = message.calls.iter().filter_map(|call| text_of(&call["name"]));
    parts.extend(names.map(|name| ("call".to_owned(), name)));
    let files = message.attachments.iter().filter_map(|file| text_of(&file["provider_id"]));
    parts.extend(files.map(|file| ("file".to_owned(), file)));
    parts
}

/// The text of a list without the white space between its items, as the other reader has it.
fn compact(text: &str) -> String {
    let list = text.starts_with("[\n").then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    list.map_or_else(|| text.to_owned(), |list| list.to_string())
}
