//! Both directions of the round trip. Rules of the README that both apply:
//! - empty items, messages that the receipt reports as skipped, and copies of messages are ignored;
//! - a message inside another one answers it, whatever parent it names;
//! - the content counts where it has words; the text beside it is its copy;
//! - what agents say beside the first one of their group are answers of their own.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
};
use serde_json::{Value, json};

pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "librechat", read_file: from_source, ignored: &[], read_stored: from_stored };

const NO_PARENT: &str = "00000000-0000-0000-0000-000000000000";

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

/// A message of the file with the name of the one above.
#[derive(Clone)]
struct Found<'v> {
    name: String,
    above: Option<String>,
    value: &'v Value,
}

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    file.elements("chats").iter().filter_map(|(locator, export)| source_chat(locator, export, file)).collect()
}

fn source_chat(locator: &str, export: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let mut found: Vec<Found<'_>> = Vec::new();
    for list in ["messages", "messagesTree"] {
        collect(&export[list], &format!("{locator}.{list}"), None, file, &mut found);
    }
    chain(&mut found);
    let turns = found.iter().flat_map(source_turns).enumerate().map(|(at, turn)| (turn, Some(at))).collect();
    Some(Chat {
        key: text_of(&export["conversationId"])?,
        title: text_of(&export["title"]),
        turns: arrange(turns),
        ..Chat::default()
    })
}

/// Adds the messages of a list, each before those below it.
fn collect<'v>(
    list: &'v Value,
    place: &str,
    above: Option<&str>,
    file: &SourceFile<'_>,
    found: &mut Vec<Found<'v>>,
) {
    for (number, value) in list.as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}[{number}]");
        let id = text_of(&value["messageId"]);
        let same = |other: &Found<'_>| id.is_some() && other.value["messageId"] == value["messageId"];
        let says = |value: &Value| ["text", "content", "isCreatedByUser"].map(|key| value[key].clone());
        let copy = found.iter().find(|other| same(other) && says(other.value) == says(value));
        let name = match copy {
            Some(original) => original.name.clone(),
            None if found.iter().any(same) => format!("#{place}"),
            None => id.clone().unwrap_or_else(|| format!("#{place}")),
        };
        let skipped = value.is_null() || file.skips(&place);
        if copy.is_none() && !skipped {
            let named = text_of(&value["parentMessageId"]).filter(|parent| parent != NO_PARENT);
            let above = above.map(ToOwned::to_owned).or(named);
            found.push(Found { name: name.clone(), above, value });
        }
        let below = if skipped { above } else { Some(name.as_str()) };
        collect(&value["children"], &format!("{place}.children"), below, file, found);
    }
}

/// Without links each message answers the one before, in the order of their times if these contradict that of the file.
fn chain(found: &mut [Found<'_>]) {
    if found.iter().any(|found| found.above.is_some() || found.value["parentMessageId"] == NO_PARENT) {
        return;
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    let time =
        |at: &usize| time_text(&found[*at].value["createdAt"]).and_then(|time| time.parse::<i64>().ok());
    if order.iter().all(|at| time(at).is_some()) {
        order.sort_by_key(time);
    }
    for pair in order.windows(2) {
        found[pair[1]].above = Some(found[pair[0]].name.clone());
    }
}

/// The answer of the first agent, and those of the others.
fn source_turns(found: &Found<'_>) -> Vec<Turn> {
    let empty = Vec::new();
    let content = found.value["content"].as_array().unwrap_or(&empty);
    let others = content.iter().filter_map(|part| other_agent(part, content));
    let with = |agent: Option<&str>| {
        let mut value = found.value.clone();
        let own = |part: &&Value| other_agent(part, content) == agent;
        if !content.is_empty() {
            value["content"] = content.iter().filter(own).cloned().collect();
        }
        if agent.is_some() {
            value["files"] = Value::Null;
            value["attachments"] = Value::Null;
        }
        value
    };
    let mut turns = vec![source_turn(&Found { value: &with(None), ..found.clone() })];
    for agent in others.collect::<BTreeSet<_>>() {
        let name = format!("{} {agent}", found.name);
        turns.push(source_turn(&Found { name, value: &with(Some(agent)), above: found.above.clone() }));
    }
    turns
}

/// The agent that wrote a part, unless it is the first of its group. Agents that were added to a conversation are never the first.
fn other_agent<'v>(part: &'v Value, content: &'v [Value]) -> Option<&'v str> {
    let of_group = |other: &&Value| !part["groupId"].is_null() && other["groupId"] == part["groupId"];
    let added = |agent: &&str| {
        agent.rsplit_once("____").is_some_and(|(_, number)| number.parse::<u32>().is_ok_and(|n| n > 0))
    };
    let mut agents = content.iter().filter(of_group).filter_map(|other| other["agentId"].as_str());
    let first = agents.find(|agent| !added(agent));
    part["agentId"].as_str().filter(|agent| !part["groupId"].is_null() && first != Some(agent))
}

fn source_turn(found: &Found<'_>) -> Turn {
    let value = found.value;
    let role = match &value["isCreatedByUser"] {
        Value::Bool(true) => "user",
        _ => "assistant",
    };
    Turn {
        id: found.name.clone(),
        parent: found.above.clone(),
        role: role.to_owned(),
        time: time_text(&value["createdAt"]),
        parts: source_parts(value, role),
    }
}

fn source_parts(message: &Value, role: &str) -> Parts {
    let mut parts: Parts = match &message["content"] {
        Value::Array(list) => list.iter().flat_map(content_part).collect(),
        Value::String(text) => vec![part("text", text)],
        _ => Parts::new(),
    };
    if let Some(text) = text_of(&message["text"]).filter(|_| !parts.iter().any(|(kind, _)| kind == "text")) {
        let split = if role == "user" { None } else { thought_of(&text) };
        match split {
            Some((thought, words)) => parts.extend([part("think", thought), part("text", words)]),
            None => parts.push(part("text", text)),
        }
    }
    parts.retain(|(kind, text)| kind.starts_with("call") || kind == "result" || !text.is_empty());
    parts.extend(plugin_parts(message));
    let listed = ["files", "attachments"].map(|key| message[key].as_array());
    let names = listed.into_iter().flatten().flatten().filter_map(|file| text_of(&file["filename"]));
    parts.extend(names.map(|name| part("file", name)));
    parts
}

fn thought_of(text: &str) -> Option<(String, String)> {
    let (thought, words) = match text.strip_prefix(":::thinking") {
        Some(rest) => rest.split_once("\n:::")?,
        None => text.strip_prefix("<think>")?.split_once("</think>")?,
    };
    Some((thought.trim().to_owned(), words.trim().to_owned()))
}

fn words(value: &Value) -> String {
    text_of(value).or_else(|| text_of(&value["value"])).unwrap_or_default()
}

fn content_part(item: &Value) -> Parts {
    let known = ["text", "think", "tool_call", "image_file", "summary"];
    let absent = known.into_iter().find(|key| !item[*key].is_null()).unwrap_or_default();
    match item["type"].as_str().unwrap_or(absent) {
        "think" => {
            let thought = words(&item["think"]);
            vec![part("think", thought.trim_start_matches("<think>").trim_end_matches("</think>").trim())]
        }
        "summary" => {
            let list = item["content"].as_array().into_iter().flatten();
            let texts: String = list.filter_map(|item| item["text"].as_str()).collect();
            vec![part("summary", words(&item["content"]) + &texts)]
        }
        "steer" => vec![part("steer", words(&item["steer"]))],
        "tool_call" => call_parts(&item["tool_call"]),
        "text_delta" => vec![part("text", words(&item["text_delta"]))],
        "error" => vec![part("text", words(&item["error"]) + &words(&item["text"]))],
        "image_file" => {
            text_of(&item["image_file"]["filename"]).map(|name| part("file", name)).into_iter().collect()
        }
        _ if item.is_string() => vec![part("text", words(item))],
        _ => vec![part("text", words(&item["text"]))],
    }
}

fn call_parts(call: &Value) -> Parts {
    if !call.is_object() {
        return Parts::new();
    }
    let kind = call["type"].as_str().unwrap_or("tool_call");
    let (name, input, output) = match kind {
        "function" => {
            let function = &call["function"];
            (&function["name"], &function["arguments"], function["output"].clone())
        }
        "code_interpreter" => {
            let code = &call["code_interpreter"];
            let logs =
                code["outputs"].as_array().into_iter().flatten().filter_map(|out| out["logs"].as_str());
            (&call["name"], &code["input"], json!(logs.collect::<Vec<_>>().join("\n")))
        }
        "retrieval" | "file_search" => (&Value::Null, &Value::Null, call[kind].clone()),
        _ => (&call["name"], &call["args"], call["output"].clone()),
    };
    let name = text_of(name).unwrap_or_else(|| kind.to_owned());
    let output = Some(output).filter(|output| *output != json!({})).unwrap_or_default();
    vec![part(&format!("call:{name}"), text_or_json(input)), part("result", text_or_json(&output))]
}

/// The calls of plugins, without their results, which belong to all calls of a message.
fn plugin_parts(message: &Value) -> Parts {
    let steps = message["plugin"]["inputs"].as_array().into_iter().flatten();
    let calls = message["plugins"].as_array().into_iter().flatten();
    let of_call = |call: &Value| {
        let within = call["inputs"]
            .as_array()
            .and_then(|inputs| inputs.iter().find(|step| step["plugin"].is_string()));
        let own = Some(call).filter(|call| call["plugin"].is_string()).or(within);
        match own {
            Some(step) => part(&format!("plugin:{}", words(&step["plugin"])), text_or_json(&step["input"])),
            None => part(&format!("plugin:{}", words(&call["latest"])), ""),
        }
    };
    steps.chain(calls).filter(|call| call.is_object()).map(of_call).collect()
}

// From the store.

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let Some(key) = stored.id.clone() else { return Vec::new() };
    let pieces = pieces(stored);
    let turns = (0..stored.messages.len())
        .filter(|at| !pieces.contains_key(at))
        .map(|at| (stored_turn(stored, at, &pieces), stored.messages[at].sibling_number()))
        .collect();
    vec![Chat { key, title: stored.title.clone(), turns: arrange(turns), ..Chat::default() }]
}

/// The messages that are parts of others, which the metadata of these others lists, by index; each with its kind.
fn pieces(stored: &Stored) -> BTreeMap<usize, &'static str> {
    let mut found = BTreeMap::new();
    for message in &stored.messages {
        let listed = message.raw["pieces"].as_array().into_iter().flatten();
        let mut kinds: Vec<&'static str> = listed
            .filter_map(|piece| {
                ["think", "steer", "summary"].into_iter().find(|kind| {
                    piece["type"] == *kind
                        || (piece["type"].as_str().is_none() && *kind == "think" && piece["type"].is_number())
                })
            })
            .collect();
        let mut above = message.parent;
        while let (Some(at), Some(kind)) = (above, kinds.pop()) {
            let other = &stored.messages[at];
            // A part whose words are elsewhere has no message.
            let expected = match kind {
                "think" => other.thought,
                "steer" => other.role == "user" && other.id.is_none(),
                _ => other.role == "system",
            };
            if expected && other.id.is_none() {
                found.insert(at, kind);
                above = other.parent;
            }
        }
    }
    found
}

fn stored_turn(stored: &Stored, at: usize, pieces: &BTreeMap<usize, &'static str>) -> Turn {
    let message = &stored.messages[at];
    let (mut above, mut before) = (message.parent, Parts::new());
    while let Some((index, kind)) = above.and_then(|index| Some((index, *pieces.get(&index)?))) {
        let texts = stored.messages[index].texts();
        before.splice(0..0, texts.into_iter().map(|text| part(kind, text)));
        above = stored.messages[index].parent;
    }
    let name = |at: usize| {
        let message = &stored.messages[at];
        message.id.clone().or_else(|| name_of_other(message)).unwrap_or_else(|| format!("#{at}"))
    };
    Turn {
        id: name(at),
        parent: message.metadata_text("node_parent").or_else(|| above.map(name)),
        role: message.role.clone(),
        time: message.time_text("createdAt"),
        parts: stored_parts(message, before),
    }
}

/// The name of the answer of another agent.
fn name_of_other(message: &StoredMessage) -> Option<String> {
    let agent = message.raw["pieces"][0]["agentId"].as_str()?;
    Some(format!("{} {agent}", message.metadata_text("messageId")?))
}

/// The parts in the order that the metadata gives.
fn stored_parts(message: &StoredMessage, before: Parts) -> Parts {
    let (mut before, mut texts) = (before.into_iter().peekable(), message.texts().into_iter());
    let mut calls = message.calls.iter();
    let mut files: Vec<String> =
        message.attachments.iter().filter_map(|file| text_of(&file["name"])).collect();
    let empty = Vec::new();
    let mut parts = Parts::new();
    for piece in message.raw["pieces"].as_array().unwrap_or(&empty) {
        let kind = piece["type"].as_str().unwrap_or_default();
        let words = piece.is_object() && !piece["text"].is_number();
        match kind {
            "think" | "steer" | "summary" => {
                parts.extend(before.next_if(|(next, _)| next == kind));
            }
            "tool_call" if piece["tool_call"].is_string() => {}
            "tool_call" => parts.extend(calls.next().into_iter().flat_map(stored_call)),
            "image_file" if piece["image_file"].is_object() && !files.is_empty() => {
                parts.push(part("file", files.remove(0)));
            }
            "image_url" | "video_url" | "input_audio" | "agent_update" | "activity_label" | "image_file" => {}
            "" if piece["type"].is_number() => parts.extend(before.next()),
            _ if words => parts.extend(texts.next().map(|text| part("text", text))),
            _ => {}
        }
    }
    parts.extend(before);
    parts.extend(texts.map(|text| part("text", text)));
    let plugin = |call: &Value| {
        part(&format!("plugin:{}", call["name"].as_str().unwrap_or_default()), text_or_json(&call["input"]))
    };
    parts.extend(calls.map(plugin));
    parts.extend(files.into_iter().map(|name| part("file", name)));
    parts
}

fn stored_call(call: &Value) -> Parts {
    let name = call["name"].as_str().unwrap_or_default();
    vec![
        part(&format!("call:{name}"), text_or_json(&call["input"])),
        part("result", text_or_json(&call["output"])),
    ]
}
