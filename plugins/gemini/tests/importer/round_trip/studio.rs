//! Reads prompts of AI Studio.

use std::collections::BTreeMap;

use satchel_importer::testkit::round_trip::{
    Chat, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
};
use serde_json::Value;

use super::{Parts, parts};

/// A prompt of AI Studio. The parent of a chunk is the one that it names, else the chunk before.
pub(super) fn read_chat(file: &SourceFile<'_>, item: &Value) -> Chat {
    let chunks = item["chunkedPrompt"]["chunks"].as_array().into_iter().flatten().enumerate();
    let chunks: Vec<&Value> = chunks
        .filter(|(at, _)| !file.skips(&format!("{}[0].chunkedPrompt.chunks[{at}]", file.name)))
        .map(|(_, chunk)| chunk)
        .collect();
    let known = |id: &String| chunks.iter().any(|chunk| text_of(&chunk["id"]).as_ref() == Some(id));
    let ids = numbered(chunks.iter().map(|chunk| text_of(&chunk["id"])));
    let turn = |at: usize| Turn {
        id: ids[at].clone(),
        parent: branch_parent(chunks[at]).filter(known).or_else(|| Some(ids[at.checked_sub(1)?].clone())),
        role: text_of(&chunks[at]["role"]).unwrap_or_else(|| "model".to_owned()),
        time: time_text(&chunks[at]["createTime"]),
        parts: chunk_parts(chunks[at]),
    };
    let name = file.base().strip_suffix(".json").unwrap_or(file.base());
    let title = [&item["displayName"], &item["title"]]
        .into_iter()
        .find_map(text_of)
        .unwrap_or_else(|| name.to_owned());
    Chat {
        key: text_of(&item["id"]).unwrap_or_else(|| title.clone()),
        title: Some(title),
        created: time_text(&item["createTime"]),
        updated: time_text(&item["updateTime"]),
        current: None,
        turns: arrange((0..chunks.len()).map(|at| (turn(at), Some(at))).collect()),
    }
}

fn branch_parent(chunk: &Value) -> Option<String> {
    text_of(&chunk["branchParent"]["id"])
}

/// Unique ids: repeated ids are numbered, and an absent id is the position.
fn numbered(ids: impl Iterator<Item = Option<String>>) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    ids.enumerate()
        .map(|(at, id)| {
            let Some(id) = id else { return format!("#{at:06}") };
            let count = seen.entry(id.clone()).or_default();
            *count += 1;
            if *count == 1 { id } else { format!("{id}#{count}") }
        })
        .collect()
}

fn chunk_parts(chunk: &Value) -> Parts {
    let list = chunk["parts"].as_array().cloned().unwrap_or_default();
    let joined: String = list.iter().filter_map(|part| part["text"].as_str()).collect();
    let kind = if chunk["isThought"] == true { "thought" } else { "text" };
    let first =
        |key: &str| [chunk].into_iter().chain(&list).map(|part| part[key].clone()).find(Value::is_object);
    let (code, result) = (first("executableCode"), first("codeExecutionResult"));
    parts(&[
        (kind, text_of(&chunk["text"]).or(Some(joined))),
        ("code", code.map(|code| code.to_string())),
        ("result", result.and_then(|result| text_of(&result["output"]))),
    ])
}

pub(super) fn rebuilt(stored: &Stored) -> Chat {
    let ids = numbered(stored.messages.iter().map(|message| message.id.clone()));
    let turn = |(at, message): (usize, &StoredMessage)| {
        let role = if message.role == "assistant" { "model" } else { &message.role };
        let kind = if message.thought { "thought" } else { "text" };
        let call = message.calls.first().cloned().unwrap_or_default();
        let code = Some(&call["input"]).filter(|input| input.is_object()).map(ToString::to_string);
        Turn {
            id: ids[at].clone(),
            parent: branch_parent(&message.raw)
                .filter(|id| ids.contains(id))
                .or_else(|| message.parent.map(|at| ids[at].clone())),
            role: message.metadata_text("role").unwrap_or_else(|| role.to_owned()),
            time: message.time_text("createTime"),
            parts: parts(&[
                (kind, Some(message.texts().concat())),
                ("code", code),
                ("result", text_of(&call["output"])),
            ]),
        }
    };
    let title = stored.title.clone();
    Chat {
        key: stored.id.clone().or(title.clone()).unwrap_or_default(),
        title,
        created: stored.time_text(stored.created, "createTime"),
        updated: stored.time_text(stored.updated, "updateTime"),
        current: None,
        turns: arrange(
            stored
                .messages
                .iter()
                .enumerate()
                .map(|(at, message)| (turn((at, message)), message.sibling_number()))
                .collect(),
        ),
    }
}
