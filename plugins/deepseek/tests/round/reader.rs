//! A reader of DeepSeek's conversations that knows nothing of the importer, and the same pictures from what is stored.
//!
//! Where both could differ, one of these rules says so (README, *Rules*):
//! - nodes without a message, or with one that the receipt names as skipped, are passed over;
//! - members of an object have no order: where no `children` give one, siblings and roots stand by time, then by id;
//! - the export does not name the answer that was seen last;
//! - lists of results are compared as JSON, without signatures of addresses;
//! - of a message with fragments, `content` and `reasoning_content` are copies.

use satchel_importer::{
    address::unsigned_json,
    testkit::round::{
        Chat, Nodes, Round, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_told,
    },
};
use serde_json::{Value, json};

/// Both ways.
pub(crate) const ROUND: Round = Round { platform: "deepseek", told, aside: &[], rebuilt };

type Said = Vec<(String, String)>;

fn told(file: &SourceFile<'_>) -> Vec<Chat> {
    file.elements("conversations").iter().filter_map(|(place, item)| chat(place, item, file)).collect()
}

fn chat(place: &str, item: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let nodes = Nodes::new(item["mapping"].as_object()?, |key| file.skips(&format!("{place}.mapping.{key}")));
    let title = item["title"].as_str().filter(|title| !title.trim().is_empty()).map(ToOwned::to_owned);
    let created = time_told(&item["inserted_at"]);
    Some(Chat {
        key: text_of(&item["id"]).unwrap_or_else(|| format!("{title:?} {created:?}")),
        title,
        created,
        updated: time_told(&item["updated_at"]),
        current: None,
        turns: nodes.turns(told_turn),
    })
}

fn told_turn(key: &str, node: &Value, parent: Option<&str>) -> Turn {
    let message = &node["message"];
    let role = text_of(&message["role"]).unwrap_or_default();
    let fragments = message["fragments"].as_array().cloned().unwrap_or_default();
    let mut said: Said = fragments.iter().flat_map(fragment).collect();
    if !said.iter().any(|(kind, _)| spoken(kind)) {
        said.extend(text_of(&message["content"]).map(|text| ("content".to_owned(), text)));
    }
    if !fragments.iter().any(Value::is_object)
        && let Some(thought) = text_of(&message["reasoning_content"]).filter(|text| !text.trim().is_empty())
    {
        said.insert(0, ("reasoning".to_owned(), thought));
    }
    let files = std::iter::once(message).chain(&fragments).map(|holder| &holder["files"]);
    let names = files.filter_map(Value::as_array).flatten().filter_map(|file| text_of(&file["file_name"]));
    said.extend(named_files(names));
    Turn {
        id: key.to_owned(),
        parent: parent.map(ToOwned::to_owned),
        role,
        time: time_told(&message["inserted_at"]),
        said,
    }
}

/// The names of files, in no order, each once.
fn named_files(names: impl Iterator<Item = String>) -> impl Iterator<Item = (String, String)> {
    let names: std::collections::BTreeSet<String> = names.collect();
    names.into_iter().map(|name| ("file".to_owned(), name))
}

fn spoken(kind: &str) -> bool {
    kind != "THINK" && kind != "results" && kind != "file" && !is_call(kind)
}

fn is_call(kind: &str) -> bool {
    kind == "SEARCH" || kind.starts_with("TOOL") || kind.starts_with("READ")
}

fn fragment(fragment: &Value) -> Said {
    let kind = fragment["type"].as_str().unwrap_or_default();
    let words = if is_call(kind) { words(&fragment["content"]) } else { text_of(&fragment["content"]) };
    let results = is_call(kind).then(|| words_of_results(&fragment["results"])).flatten();
    let said = words.map(|words| (kind.to_owned(), words));
    said.into_iter().chain(results.map(|results| ("results".to_owned(), results))).collect()
}

/// A text, or the JSON of anything else.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn words_of_results(value: &Value) -> Option<String> {
    words(value).map(|text| unsigned_json(text.into()).into_owned())
}

fn rebuilt(stored: &Stored) -> Vec<Chat> {
    let spoken: Vec<usize> =
        (0..stored.messages.len()).filter(|at| stored.messages[*at].id.is_some()).collect();
    let created = stored.told(stored.created, "inserted_at");
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?} {created:?}", stored.title)),
        title: stored.title.clone(),
        created,
        updated: stored.told(stored.updated, "updated_at"),
        current: None,
        turns: arrange(
            spoken.iter().map(|at| (rebuilt_turn(stored, *at), stored.messages[*at].number())).collect(),
        ),
    }]
}

fn rebuilt_turn(stored: &Stored, at: usize) -> Turn {
    let message = &stored.messages[at];
    // Questions and thoughts of the same node stand above, without an id of the provider.
    let (mut above, mut thoughts, mut asked) = (message.parent, Vec::new(), Vec::new());
    let mut files = message.attachments.clone();
    while let Some(piece) = above.filter(|above| stored.messages[*above].id.is_none()) {
        let piece = &stored.messages[piece];
        if piece.thought {
            thoughts.extend(piece.texts());
        } else {
            asked = piece.texts();
            files.extend(piece.attachments.clone());
        }
        above = piece.parent;
    }
    thoughts.reverse();
    let role = message.kept("role").unwrap_or_default();
    let mut said = said(message, thoughts, asked, &role);
    said.extend(named_files(files.iter().filter_map(|file| text_of(&file["name"]))));
    Turn {
        id: message.id.clone().unwrap_or_default(),
        parent: message
            .kept("node_parent")
            .or_else(|| above.and_then(|above| stored.messages[above].id.clone())),
        time: message.told("inserted_at"),
        said,
        role,
    }
}

fn said(message: &StoredMessage, thoughts: Vec<String>, asked: Vec<String>, role: &str) -> Said {
    let named = |kind: &str, texts: Vec<String>| {
        texts.into_iter().map(|text| (kind.to_owned(), text)).collect::<Said>()
    };
    let Some(fragments) = message.raw["fragments"].as_array() else {
        let kind = match (role, message.role.as_str()) {
            ("", "user") => "REQUEST",
            ("", _) => "RESPONSE",
            _ => "content",
        };
        return [named("reasoning", thoughts), named(kind, message.texts())].concat();
    };
    let (mut thoughts, mut asked) = (thoughts.into_iter(), asked.into_iter());
    let (mut texts, mut calls) = (message.texts().into_iter(), message.calls.iter());
    let mut said = Vec::new();
    for fragment in fragments {
        let kind = fragment["type"].as_str().unwrap_or_default();
        // What has no words was left as it stood.
        let blank = fragment.get("content").is_some() || !fragment.is_object();
        if is_call(kind) {
            let call = calls.next().unwrap_or(&Value::Null);
            said.extend(named(kind, json_of(&call["input"]).into_iter().collect()));
            said.extend(named("results", json_of(&call["output"]).into_iter().collect()));
        } else if !blank {
            let words = match kind {
                "THINK" => thoughts.next(),
                "FILE" => None,
                "REQUEST" => asked.next().or_else(|| texts.next()),
                _ => texts.next(),
            };
            said.extend(named(kind, words.into_iter().collect()));
        }
    }
    [said, named("content", texts.collect())].concat()
}

/// A text, compact where it is JSON.
fn json_of(output: &Value) -> Option<String> {
    let Some(text) = output.as_str() else { return words(output) };
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    words(&value)
}
