//! Reads DeepSeek's conversations without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Rules*) that both apply:
//! - nodes without a message, or with one that the receipt reports as skipped, are ignored;
//! - members of an object have no order: without `children`, siblings and roots are sorted by time, then by id;
//! - the export does not name the current answer;
//! - lists of results are compared as JSON, without signatures of addresses;
//! - in a message with fragments, `content` and `reasoning_content` are copies.

use satchel_importer::{
    address::unsigned_json,
    testkit::round_trip::{
        Chat, Nodes, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
    },
};
use serde_json::{Value, json};

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "deepseek", read_file: from_source, ignored: &[], read_stored: from_stored };

/// The kind and the text of each part.
type Parts = Vec<(String, String)>;

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    file.elements("conversations").iter().filter_map(|(locator, item)| chat(locator, item, file)).collect()
}

fn chat(locator: &str, item: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let nodes =
        Nodes::new(item["mapping"].as_object()?, |key| file.skips(&format!("{locator}.mapping.{key}")));
    let title = item["title"].as_str().filter(|title| !title.trim().is_empty()).map(ToOwned::to_owned);
    let created = time_text(&item["inserted_at"]);
    Some(Chat {
        key: text_of(&item["id"]).unwrap_or_else(|| format!("{title:?} {created:?}")),
        title,
        created,
        updated: time_text(&item["updated_at"]),
        current: None,
        turns: nodes.turns(source_turn),
    })
}

fn source_turn(key: &str, node: &Value, parent: Option<&str>) -> Turn {
    let message = &node["message"];
    let role = text_of(&message["role"]).unwrap_or_default();
    let fragments = message["fragments"].as_array().cloned().unwrap_or_default();
    let mut parts: Parts = fragments.iter().flat_map(fragment).collect();
    if !parts.iter().any(|(kind, _)| is_text(kind)) {
        parts.extend(text_of(&message["content"]).map(|text| ("content".to_owned(), text)));
    }
    if !fragments.iter().any(Value::is_object)
        && let Some(thought) = text_of(&message["reasoning_content"]).filter(|text| !text.trim().is_empty())
    {
        parts.insert(0, ("reasoning".to_owned(), thought));
    }
    let files = std::iter::once(message).chain(&fragments).map(|holder| &holder["files"]);
    let names = files.filter_map(Value::as_array).flatten().filter_map(|file| text_of(&file["file_name"]));
    parts.extend(named_files(names));
    Turn {
        id: key.to_owned(),
        parent: parent.map(ToOwned::to_owned),
        role,
        time: time_text(&message["inserted_at"]),
        parts,
    }
}

/// The names of files, in no order, each once.
fn named_files(names: impl Iterator<Item = String>) -> impl Iterator<Item = (String, String)> {
    let names: std::collections::BTreeSet<String> = names.collect();
    names.into_iter().map(|name| ("file".to_owned(), name))
}

fn is_text(kind: &str) -> bool {
    kind != "THINK" && kind != "results" && kind != "file" && !is_call(kind)
}

fn is_call(kind: &str) -> bool {
    kind == "SEARCH" || kind.starts_with("TOOL") || kind.starts_with("READ")
}

fn fragment(fragment: &Value) -> Parts {
    let kind = fragment["type"].as_str().unwrap_or_default();
    let text = if is_call(kind) { text_or_json(&fragment["content"]) } else { text_of(&fragment["content"]) };
    let results = is_call(kind).then(|| results_text(&fragment["results"])).flatten();
    let text = text.map(|text| (kind.to_owned(), text));
    text.into_iter().chain(results.map(|results| ("results".to_owned(), results))).collect()
}

/// A text, or the JSON of anything else.
fn text_or_json(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn results_text(value: &Value) -> Option<String> {
    text_or_json(value).map(|text| unsigned_json(text.into()).into_owned())
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let with_id: Vec<usize> =
        (0..stored.messages.len()).filter(|at| stored.messages[*at].id.is_some()).collect();
    let created = stored.time_text(stored.created, "inserted_at");
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?} {created:?}", stored.title)),
        title: stored.title.clone(),
        created,
        updated: stored.time_text(stored.updated, "updated_at"),
        current: None,
        turns: arrange(
            with_id
                .iter()
                .map(|at| (stored_turn(stored, *at), stored.messages[*at].sibling_number()))
                .collect(),
        ),
    }]
}

fn stored_turn(stored: &Stored, at: usize) -> Turn {
    let message = &stored.messages[at];
    // The ancestors without an id of the provider are the question and the thoughts of the same node.
    let (mut above, mut thoughts, mut questions) = (message.parent, Vec::new(), Vec::new());
    let mut files = message.attachments.clone();
    while let Some(piece) = above.filter(|above| stored.messages[*above].id.is_none()) {
        let piece = &stored.messages[piece];
        if piece.thought {
            thoughts.extend(piece.texts());
        } else {
            questions = piece.texts();
            files.extend(piece.attachments.clone());
        }
        above = piece.parent;
    }
    thoughts.reverse();
    let role = message.metadata_text("role").unwrap_or_default();
    let mut parts = parts(message, thoughts, questions, &role);
    parts.extend(named_files(files.iter().filter_map(|file| text_of(&file["name"]))));
    Turn {
        id: message.id.clone().unwrap_or_default(),
        parent: message
            .metadata_text("node_parent")
            .or_else(|| above.and_then(|above| stored.messages[above].id.clone())),
        time: message.time_text("inserted_at"),
        parts,
        role,
    }
}

fn parts(message: &StoredMessage, thoughts: Vec<String>, questions: Vec<String>, role: &str) -> Parts {
    let named = |kind: &str, texts: Vec<String>| {
        texts.into_iter().map(|text| (kind.to_owned(), text)).collect::<Parts>()
    };
    let Some(fragments) = message.raw["fragments"].as_array() else {
        let kind = match (role, message.role.as_str()) {
            ("", "user") => "REQUEST",
            ("", _) => "RESPONSE",
            _ => "content",
        };
        return [named("reasoning", thoughts), named(kind, message.texts())].concat();
    };
    let (mut thoughts, mut questions) = (thoughts.into_iter(), questions.into_iter());
    let (mut texts, mut calls) = (message.texts().into_iter(), message.calls.iter());
    let mut parts = Vec::new();
    for fragment in fragments {
        let kind = fragment["type"].as_str().unwrap_or_default();
        // A fragment without text was kept as it stands.
        let blank = fragment.get("content").is_some() || !fragment.is_object();
        if is_call(kind) {
            let call = calls.next().unwrap_or(&Value::Null);
            parts.extend(named(kind, json_of(&call["input"]).into_iter().collect()));
            parts.extend(named("results", json_of(&call["output"]).into_iter().collect()));
        } else if !blank {
            let text = match kind {
                "THINK" => thoughts.next(),
                "FILE" => None,
                "REQUEST" => questions.next().or_else(|| texts.next()),
                _ => texts.next(),
            };
            parts.extend(named(kind, text.into_iter().collect()));
        }
    }
    [parts, named("content", texts.collect())].concat()
}

/// A text, compact where it is JSON.
fn json_of(output: &Value) -> Option<String> {
    let Some(text) = output.as_str() else { return text_or_json(output) };
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    text_or_json(&value)
}
