//! Reads conversations from ChatGPT's files without the importer, and from stored documents, for comparison.
//!
//! These rules apply to both (README, *Rules*):
//! - nodes without a message, or with one that the receipt names as skipped, are left out;
//! - members of an object have no order: without `children`, siblings and roots are ordered by time, then by id;
//! - a message without a role is the system's;
//! - several texts to a tool are joined, and JSON to a tool is compared as a value.

use satchel_importer::testkit::round_trip::{
    Chat, Nodes, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
};
use serde_json::{Map, Value, json};

#[path = "lists.rs"]
mod lists;

/// The two readers.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "chatgpt", read_file: source_chats, ignored: &[], read_stored: stored_chats };

fn source_chats(file: &SourceFile<'_>) -> Vec<Chat> {
    if matches!(file.base(), "group_chats.json" | "codex.json") {
        return lists::source_chats(file);
    }
    let list = if file.base() == "chat.html" { page(file) } else { file.elements("conversations") };
    list.iter().filter_map(|(place, item)| chat(place, item, file)).collect()
}

/// The list in the script of the page.
fn page(file: &SourceFile<'_>) -> Vec<(String, Value)> {
    let Some(at) = file.text.find("jsonData = ") else { return Vec::new() };
    let mut values = serde_json::Deserializer::from_str(&file.text[at + 11..]).into_iter::<Vec<Value>>();
    let items = values.next().and_then(Result::ok).unwrap_or_default();
    items.into_iter().enumerate().map(|(number, item)| (format!("{}[{number}]", file.name), item)).collect()
}

fn chat(place: &str, item: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let mapping = item["mapping"].as_object()?;
    let nodes = Nodes::new(mapping, |key| file.skips(&format!("{place}.mapping.{key}")));
    let id = text_of(&item["conversation_id"]).or_else(|| text_of(&item["id"]));
    let title = item["title"].as_str().map(ToOwned::to_owned);
    let turns = nodes.turns(source_turn);
    let current = item["current_node"].as_str().map(|key| nodes.nearest_kept(key).unwrap_or(key).to_owned());
    (!turns.is_empty()).then_some(Chat {
        key: id.unwrap_or_else(|| format!("{title:?}")),
        title,
        created: time_text(&item["create_time"]),
        updated: time_text(&item["update_time"]),
        current,
        turns,
    })
}

fn source_turn(key: &str, node: &Value, parent: Option<&str>) -> Turn {
    let message = &node["message"];
    let role = message["author"]["role"].as_str().unwrap_or("system");
    let mut texts = typed_texts(message, role);
    if let Some(id) = message["id"].as_str().filter(|id| *id != key) {
        texts.insert(0, ("id".to_owned(), id.to_owned()));
    }
    Turn {
        id: key.to_owned(),
        parent: parent.map(ToOwned::to_owned),
        role: role.to_owned(),
        time: time_text(&message["create_time"]),
        parts: texts,
    }
}

/// The texts of a message, each with the type of the content.
fn typed_texts(message: &Value, role: &str) -> Vec<(String, String)> {
    let content = match &message["content"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({ "parts": [text] })),
        content => content.clone(),
    };
    let kind = content["content_type"].as_str().unwrap_or("text");
    let texts = texts(kind, &content, &message["metadata"]);
    let called =
        text_of(&message["recipient"]).filter(|to| !matches!(to.as_str(), "all" | "user" | "assistant"));
    let to_tool = called.is_some() && role.eq_ignore_ascii_case("assistant");
    if let Some(arguments) = called.as_deref().filter(|_| to_tool).and_then(|tool| arguments(&content, tool))
    {
        return vec![(kind.to_owned(), arguments.to_string())];
    }
    let texts = if to_tool && !texts.is_empty() { vec![canonical(&texts.join("\n"))] } else { texts };
    texts.into_iter().map(|text| (kind.to_owned(), text)).collect()
}

/// Arguments of a tool that are an object: the only part, a field, or the fields of a canvas call.
fn arguments(content: &Value, tool: &str) -> Option<Value> {
    let parts = content["parts"].as_array().cloned().unwrap_or_default();
    if let [part] = parts.as_slice() {
        return (part.is_object() && part["content_type"].is_null()).then(|| part.clone());
    }
    let object = ["text", "arguments", "input", "content"]
        .into_iter()
        .map(|key| &content[key])
        .find(|field| field.is_object());
    if object.is_some() || !tool.starts_with("canmore.") {
        return object.cloned();
    }
    let mut fields = content.as_object()?.clone();
    fields.retain(|key, _| matches!(key.as_str(), "name" | "type" | "content" | "updates"));
    (fields.contains_key("content") || fields.contains_key("updates")).then(|| Value::from(fields))
}

/// The texts of a content.
fn texts(kind: &str, content: &Value, metadata: &Value) -> Vec<String> {
    let first = |value: &Value, keys: &[&str]| keys.iter().find_map(|key| text_of(&value[*key]));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let all: Vec<String> = match kind {
        "text" | "multimodal_text" => list(&content["parts"]).iter().flat_map(part).collect(),
        "thoughts" if content["thoughts"].is_string() => text_of(&content["thoughts"]).into_iter().collect(),
        "thoughts" => {
            let thoughts = list(&content["thoughts"]);
            thoughts
                .iter()
                .filter_map(|item| text_of(item).or_else(|| first(item, &["content", "summary"])))
                .collect()
        }
        "execution_output" => {
            let messages = list(&metadata["aggregate_result"]["messages"]);
            let aggregate = messages.iter().filter_map(|message| text_of(&message["text"]));
            first(content, &["text"]).map_or_else(|| aggregate.collect(), |text| vec![text])
        }
        "tether_browsing_display" => first(content, &["result", "summary"]).into_iter().collect(),
        "system_error" => first(content, &["text", "name"]).into_iter().collect(),
        "reasoning_recap"
        | "computer_output"
        | "user_editable_context"
        | "model_editable_context"
        | "app_pairing_content" => return Vec::new(),
        _ => Vec::new(),
    };
    if !all.is_empty() {
        return all;
    }
    let parts: Vec<String> = list(&content["parts"]).iter().filter_map(text_of).collect();
    if !parts.is_empty() {
        return parts;
    }
    first(content, &["text", "result", "output_str", "content", "summary"]).into_iter().collect()
}

/// A text, or the addresses or the text in an object.
fn part(part: &Value) -> Vec<String> {
    let mut found: Vec<String> = text_of(part).into_iter().collect();
    let pointers = [part, &part["audio_asset_pointer"], &part["video_container_asset_pointer"]];
    let frames = part["frames_asset_pointers"].as_array().cloned().unwrap_or_default();
    let address = |value: &Value| text_of(value).or_else(|| text_of(&value["asset_pointer"]));
    let addresses = pointers.into_iter().filter(|value| value.is_object()).chain(&frames).filter_map(address);
    found.extend(addresses.map(|address| address.split('?').next().unwrap_or_default().to_owned()));
    if found.is_empty() {
        found.extend(
            ["text", "result", "output_str", "content", "summary"]
                .iter()
                .find_map(|key| text_of(&part[*key])),
        );
    }
    found
}

/// The JSON of an object without its white space and order.
fn canonical(text: &str) -> String {
    let value: Result<Map<String, Value>, _> = serde_json::from_str(text);
    value.map_or_else(|_| text.to_owned(), |value| Value::from(value).to_string())
}

fn stored_chats(stored: &Stored) -> Vec<Chat> {
    if ["group-chat", "codex-task"].iter().any(|tag| stored.tags.contains(*tag)) {
        return vec![lists::stored_chat(stored)];
    }
    // A canvas document is no conversation of the file.
    if stored.tags.contains("canvas") {
        return Vec::new();
    }
    let ids: Vec<String> = stored.messages.iter().map(node_id).collect();
    let current = stored.current.map(|at| ids[at].clone());
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?}", stored.title)),
        title: stored.title.clone(),
        created: stored.time_text(stored.created, "create_time"),
        updated: stored.time_text(stored.updated, "update_time"),
        current: current.or_else(|| stored.metadata_text("current_node")),
        turns: arrange(
            stored
                .messages
                .iter()
                .map(|message| (stored_turn(message, &ids), message.sibling_number()))
                .collect(),
        ),
    }]
}

fn node_id(message: &StoredMessage) -> String {
    message.metadata_text("node_id").or_else(|| message.id.clone()).unwrap_or_default()
}

fn stored_turn(message: &StoredMessage, ids: &[String]) -> Turn {
    let kind = message.raw["content"]["content_type"].as_str().unwrap_or("text");
    let texts = match (&message.raw["original_text"], message.calls.first()) {
        (_, Some(call)) => match &call["input"] {
            Value::Null => Vec::new(),
            Value::String(text) => vec![text.clone()],
            input => vec![input.to_string()],
        },
        (Value::String(text), None) => vec![text.clone()],
        (Value::Array(texts), None) => texts.iter().filter_map(text_of).collect(),
        _ => message.texts(),
    };
    let mut texts: Vec<_> = texts.into_iter().map(|text| (kind.to_owned(), text)).collect();
    if let (Some(_), Some(id)) = (message.metadata_text("node_id"), &message.id) {
        texts.insert(0, ("id".to_owned(), id.clone()));
    }
    Turn {
        id: node_id(message),
        parent: message.metadata_text("node_parent").or_else(|| message.parent.map(|at| ids[at].clone())),
        role: text_of(&message.raw["author"]["role"]).unwrap_or_else(|| message.role.clone()),
        time: message.time_text("create_time"),
        parts: texts,
    }
}
