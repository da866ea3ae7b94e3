//! Both directions of the round trip. Rules of the README that both apply:
//! - stubs, and messages that the receipt reports as skipped, are ignored;
//! - members of an object have no order: without `childrenIds`, siblings are sorted by time, then by id;
//! - a chat without an id and a title is not compared;
//! - `chat.messages` counts only where it has more than the tree;
//! - `content` is a copy of `output`, unless `output` has no words.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
};
use serde_json::{Value, json};

pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "open-webui", read_file: from_source, ignored: &[], read_stored: from_stored };

/// The kind and the text of each part.
type Parts = Vec<(String, String)>;

fn part(kind: &str, text: impl Into<String>) -> (String, String) {
    (kind.to_owned(), text.into())
}

/// A text, or the JSON of anything else; a text that is an object counts as the object.
fn text_or_json(value: &Value) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inside) if inside.is_object() => inside.to_string(),
            _ => text.clone(),
        },
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

// From the file.

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    file.elements("chats").iter().filter_map(|(locator, row)| source_chat(locator, row, file)).collect()
}

fn source_chat(locator: &str, row: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let chat = if row["chat"].is_object() { &row["chat"] } else { row };
    let listed = chat["messages"].as_array();
    let messages = match &chat["history"]["messages"] {
        Value::Object(tree) if !tree.is_empty() => {
            let mut all: Vec<(String, &Value)> =
                tree.iter().map(|(key, message)| (key.clone(), message)).collect();
            let texts: BTreeSet<String> =
                tree.values().filter_map(|message| text_of(&message["content"])).collect();
            let more =
                listed.map(|list| numbered(list)).unwrap_or_default().into_iter().filter(|(id, message)| {
                    let copied = text_of(&message["content"]).is_some_and(|text| texts.contains(&text));
                    if id.starts_with('#') { !copied } else { !tree.contains_key(id) }
                });
            all.extend(more);
            all
        }
        Value::Array(list) => numbered(list),
        _ => numbered(listed?),
    };
    let inside = if row["chat"].is_object() { ".chat" } else { "" };
    let skipped = |key: &str| file.skips(&format!("{locator}{inside}.history.messages.{key}"));
    let nodes = Nodes::new(messages, |key, message| !message.is_object() || skipped(key));
    let stated = [&chat["history"]["currentId"], &chat["currentId"], &row["current_message_id"]];
    let title = text_of(&row["title"]).filter(|title| !title.trim().is_empty());
    let created = time_text(&row["created_at"]).or_else(|| time_text(&chat["timestamp"]));
    let named = title.is_some() || row["id"].is_string() || chat["id"].is_string();
    if !named {
        return None;
    }
    Some(Chat {
        key: text_of(&row["id"]).or_else(|| text_of(&chat["id"])).unwrap_or_else(|| format!("{title:?}")),
        title,
        created,
        updated: time_text(&row["updated_at"]),
        current: stated.iter().filter_map(|id| text_of(id)).find(|id| nodes.has(id)),
        turns: nodes.turns(),
    })
}

/// The messages of a list with their ids, or else their numbers.
fn numbered(list: &[Value]) -> Vec<(String, &Value)> {
    let mut known = BTreeSet::new();
    let id = |(at, message): (usize, &Value)| {
        text_of(&message["id"]).filter(|id| known.insert(id.clone())).unwrap_or_else(|| format!("#{at}"))
    };
    let ids: Vec<String> = list.iter().enumerate().map(id).collect();
    ids.into_iter().zip(list).collect()
}

struct Nodes<'v> {
    all: Vec<(String, &'v Value)>,
    dropped: BTreeSet<String>,
    parents: BTreeMap<String, String>,
}

impl<'v> Nodes<'v> {
    fn new(all: Vec<(String, &'v Value)>, dropped: impl Fn(&str, &Value) -> bool) -> Self {
        let gone = |(key, message): &&(String, &Value)| dropped(key, message);
        let dropped = all.iter().filter(gone).map(|(key, _)| key.clone()).collect();
        let mut parents: BTreeMap<String, String> = all
            .iter()
            .filter_map(|(key, message)| Some((key.clone(), text_of(&message["parentId"])?)))
            .collect();
        for (key, message) in &all {
            for child in message["childrenIds"].as_array().into_iter().flatten().filter_map(text_of) {
                parents.entry(child).or_insert_with(|| key.clone());
            }
        }
        let mut nodes = Self { all, dropped, parents };
        if nodes.parents.is_empty() {
            nodes.chain();
        }
        nodes
    }

    /// Without links each message answers the one before, in the order of their times if these contradict that of the file.
    fn chain(&mut self) {
        let mut order: Vec<(Option<i64>, String)> = self
            .all
            .iter()
            .map(|(key, message)| {
                (time_text(&message["timestamp"]).and_then(|time| time.parse().ok()), key.clone())
            })
            .collect();
        if order.iter().all(|(time, _)| time.is_some()) {
            order.sort();
        }
        self.parents.extend(order.windows(2).map(|pair| (pair[1].1.clone(), pair[0].1.clone())));
    }

    fn has(&self, key: &str) -> bool {
        !self.dropped.contains(key) && self.all.iter().any(|(own, _)| own == key)
    }

    fn parent(&self, key: &str) -> Option<String> {
        let mut above = self.parents.get(key)?;
        for _ in 0..self.all.len() {
            if !self.dropped.contains(above) {
                break;
            }
            above = self.parents.get(above)?;
        }
        Some(above.clone())
    }

    fn turns(&self) -> Vec<Turn> {
        let place = |key: &str| {
            let lists = self.all.iter().filter_map(|(_, message)| message["childrenIds"].as_array());
            lists.into_iter().find_map(|list| list.iter().position(|child| child.as_str() == Some(key)))
        };
        let kept = self.all.iter().filter(|(key, _)| !self.dropped.contains(key));
        let turn = |(key, message): &(String, &Value)| {
            let turn = Turn {
                id: key.clone(),
                parent: self.parent(key),
                role: text_of(&message["role"]).unwrap_or_default(),
                time: time_text(&message["timestamp"]),
                parts: source_parts(message),
            };
            (turn, place(key))
        };
        arrange(kept.map(turn).collect())
    }
}

fn source_parts(message: &Value) -> Parts {
    let of_content = match &message["content"] {
        Value::Array(list) => {
            let text = |item: &Value| text_of(item).or_else(|| text_of(&item["text"]));
            list.iter().filter_map(text).map(|text| part("text", text)).collect()
        }
        content if message["role"] == "assistant" => text_parts(content.as_str().unwrap_or_default()),
        content => vec![part("text", content.as_str().unwrap_or_default())],
    };
    let mut parts = message["output"].as_array().map(|items| output_parts(items)).unwrap_or_default();
    if parts.is_empty() {
        parts = of_content;
    } else if !parts.iter().any(|(kind, _)| kind == "text") {
        parts.extend(of_content);
    }
    parts.retain(|(kind, text)| kind != "text" || !text.is_empty());
    if let Some(thought) = text_of(&message["reasoning_content"]) {
        parts.insert(0, part("thought", thought));
    }
    let speaks = parts.iter().any(|(kind, _)| kind != "thought");
    parts.extend(text_of(&message["error"]["content"]).filter(|_| !speaks).map(|text| part("text", text)));
    parts.extend(text_of(&message["merged"]["content"]).map(|text| part("merged", text)));
    let files = message["files"].as_array().into_iter().flatten();
    parts.extend(files.filter_map(|file| text_of(&file["name"])).map(|name| part("file", name)));
    parts
}

fn decoded(text: &str) -> String {
    let pairs = [("&quot;", "\""), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (name, character)| text.replace(name, character))
}

/// Splits a text at the lines that open and close blocks.
fn text_parts(text: &str) -> Parts {
    let mut parts = Parts::new();
    let mut text = text;
    if let Some((thought, rest)) = text.strip_prefix("<think>").and_then(|rest| rest.split_once("</think>")) {
        parts.push(part("thought", thought.trim()));
        text = rest.trim();
    }
    if !text.contains("<details type=") {
        parts.push(part("text", text));
        return parts;
    }
    for (index, piece) in text.split("<details type=\"").enumerate() {
        let Some((block, after)) = piece.split_once("\n</details>").filter(|_| index > 0) else {
            parts.push(part("text", piece.trim()));
            continue;
        };
        parts.extend(block_parts(block));
        parts.push(part("text", after.trim()));
    }
    parts
}

/// The parts of a block from its type to the end of its body.
fn block_parts(block: &str) -> Parts {
    let (kind, rest) = block.split_once('"').unwrap_or_default();
    let (tag, body) = rest.split_once(">\n<summary>").unwrap_or((rest, ""));
    let body = body.split_once("</summary>\n").map_or("", |(_, body)| body);
    let attribute = |name: &str| {
        let (_, value) = tag.split_once(&format!(" {name}=\""))?;
        let value = decoded(value.split_once('"')?.0);
        Some(serde_json::from_str::<String>(&value).unwrap_or(value)).filter(|value| !value.is_empty())
    };
    match kind {
        "reasoning" => {
            let lines = decoded(body);
            let lines =
                lines.lines().map(|line| line.strip_prefix("> ").unwrap_or(line.trim_start_matches('>')));
            vec![part("thought", lines.collect::<Vec<_>>().join("\n"))]
        }
        "code_interpreter" => {
            let code = body.lines().filter(|line| !line.starts_with("```")).collect::<Vec<_>>().join("\n");
            vec![
                part("call:code_interpreter", code),
                part("result", text_or_json(&json!(attribute("output")))),
            ]
        }
        _ => {
            let name = attribute("name").unwrap_or("tool_calls".to_owned());
            let input = attribute("arguments").or_else(|| attribute("content"));
            let result =
                attribute("result").or_else(|| attribute("results")).unwrap_or_else(|| decoded(body));
            let input = text_or_json(&json!(input));
            vec![part(&format!("call:{name}"), input), part("result", text_or_json(&json!(result)))]
        }
    }
}

fn parts_text(list: &Value) -> String {
    match list {
        Value::String(text) => text.clone(),
        list => list.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    }
}

fn output_parts(items: &[Value]) -> Parts {
    let result = |id: &Value| {
        let mut results = items.iter().filter(|item| item["type"] == "function_call_output");
        results.find(|item| item["call_id"] == *id).map(|item| part("result", parts_text(&item["output"])))
    };
    let mut parts = Parts::new();
    for item in items {
        match item["type"].as_str().unwrap_or_default() {
            "reasoning" => {
                let list = if item["summary"].is_array() { &item["summary"] } else { &item["content"] };
                parts.push(part("thought", parts_text(list)));
            }
            "function_call" => {
                let name = item["name"].as_str().unwrap_or_default();
                parts.push(part(&format!("call:{name}"), text_or_json(&item["arguments"])));
                parts.extend(result(&item["call_id"]));
            }
            "function_call_output" => {
                let called =
                    |call: &&Value| call["type"] == "function_call" && call["call_id"] == item["call_id"];
                if !items.iter().any(|call| called(&call)) {
                    parts.push(part("call:function_call_output", ""));
                    parts.push(part("result", parts_text(&item["output"])));
                }
            }
            "open_webui:code_interpreter" => {
                parts.push(part("call:code_interpreter", text_or_json(&item["code"])));
                parts.push(part("result", text_or_json(&item["output"])));
            }
            "web_search_call" => parts.push(part("call:web_search_call", text_or_json(&item["action"]))),
            _ => parts.push(part("text", parts_text(&item["content"]))),
        }
    }
    parts
}

// From the store.

fn from_stored(stored: &Stored) -> Vec<Chat> {
    // Chats of a database are compared with those of exports, in `database.rs`.
    let of_database = matches!(stored.format.as_deref(), Some("2024.02" | "2026.02"));
    if of_database {
        return Vec::new();
    }
    if stored.id.is_none() && stored.title.is_none() {
        return Vec::new();
    }
    let turns: Vec<(Turn, Option<usize>)> = (0..stored.messages.len())
        .filter(|at| !is_piece(stored, *at))
        .map(|at| (stored_turn(stored, at), stored.messages[at].sibling_number()))
        .collect();
    let created = stored.time_text(stored.created, "created_at");
    let name = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?}", stored.title)),
        title: stored.title.clone(),
        created,
        updated: stored.time_text(stored.updated, "updated_at"),
        current: stored.current.map(name),
        turns: arrange(turns),
    }]
}

/// Whether it is a thought or a merged answer, which the export has inside another message.
fn is_piece(stored: &Stored, at: usize) -> bool {
    let message = &stored.messages[at];
    message.thought || (message.id.is_none() && message.raw["merged"].is_object())
}

fn stored_turn(stored: &Stored, at: usize) -> Turn {
    let message = &stored.messages[at];
    let (mut above, mut thoughts) = (message.parent, Vec::new());
    while let Some(thought) = above.filter(|above| stored.messages[*above].thought) {
        thoughts.splice(0..0, stored.messages[thought].texts());
        above = stored.messages[thought].parent;
    }
    let name = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    let merged =
        stored.messages.iter().filter(|other| other.parent == Some(at) && other.raw["merged"].is_object());
    let mut parts = stored_parts(message, thoughts);
    parts.extend(merged.flat_map(StoredMessage::texts).map(|text| part("merged", text)));
    let files = message.attachments.iter().filter_map(|file| text_of(&file["name"]));
    parts.extend(files.map(|name| part("file", name)));
    Turn {
        id: name(at),
        parent: message.metadata_text("node_parent").or_else(|| above.map(name)),
        role: message.metadata_text("role").unwrap_or_else(|| message.role.clone()),
        time: message.time_text("timestamp"),
        parts,
    }
}

/// The parts in the order that the metadata gives.
fn stored_parts(message: &StoredMessage, thoughts: Vec<String>) -> Parts {
    let (mut thoughts, mut texts) = (thoughts.into_iter(), message.texts().into_iter());
    let mut calls = message.calls.iter();
    let mut parts = Parts::new();
    for piece in message.raw["pieces"].as_array().into_iter().flatten() {
        match piece["type"].as_str().unwrap_or_default() {
            "reasoning" | "think" | "reasoning_content" => {
                parts.extend(thoughts.next().map(|text| part("thought", text)));
            }
            "function_call_output"
                if calls.clone().next().is_none_or(|call| call["name"] != "function_call_output") => {}
            kind if kind.ends_with("_call")
                || kind.ends_with("code_interpreter")
                || kind.starts_with("tool_calls")
                || kind == "function_call_output" =>
            {
                let Some(call) = calls.next() else { continue };
                let name = call["name"].as_str().unwrap_or_default();
                parts.push(part(&format!("call:{name}"), text_or_json(&call["input"])));
                let result = call.get("output").filter(|output| !output.is_null());
                parts.extend(result.map(|output| part("result", text_or_json(output))));
            }
            _ => parts.extend(texts.next().map(|text| part("text", text))),
        }
    }
    parts.extend(texts.map(|text| part("text", text)));
    parts
}
