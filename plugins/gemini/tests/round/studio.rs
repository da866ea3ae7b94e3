//! Prompts of AI Studio.

use std::collections::BTreeMap;

use satchel_importer::testkit::round::{
    Chat, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_told,
};
use serde_json::Value;

use super::{Said, pieces};

/// A prompt of AI Studio: its chunks answer one another, but where one names another as that from which it branches off.
pub(super) fn told(file: &SourceFile<'_>, item: &Value) -> Chat {
    let chunks = item["chunkedPrompt"]["chunks"].as_array().into_iter().flatten().enumerate();
    let chunks: Vec<&Value> = chunks
        .filter(|(at, _)| !file.skips(&format!("{}[0].chunkedPrompt.chunks[{at}]", file.name)))
        .map(|(_, chunk)| chunk)
        .collect();
    let known = |id: &String| chunks.iter().any(|chunk| text_of(&chunk["id"]).as_ref() == Some(id));
    let ids = numbered(chunks.iter().map(|chunk| text_of(&chunk["id"])));
    let turn = |at: usize| Turn {
        id: ids[at].clone(),
        parent: branches_off(chunks[at]).filter(known).or_else(|| Some(ids[at.checked_sub(1)?].clone())),
        role: text_of(&chunks[at]["role"]).unwrap_or_else(|| "model".to_owned()),
        time: time_told(&chunks[at]["createTime"]),
        said: chunk_said(chunks[at]),
    };
    let name = file.base().strip_suffix(".json").unwrap_or(file.base());
    let title = [&item["displayName"], &item["title"]]
        .into_iter()
        .find_map(text_of)
        .unwrap_or_else(|| name.to_owned());
    Chat {
        key: text_of(&item["id"]).unwrap_or_else(|| title.clone()),
        title: Some(title),
        created: time_told(&item["createTime"]),
        updated: time_told(&item["updateTime"]),
        current: None,
        turns: arrange((0..chunks.len()).map(|at| (turn(at), Some(at))).collect()),
    }
}

fn branches_off(chunk: &Value) -> Option<String> {
    text_of(&chunk["branchParent"]["id"])
}

/// An id for each: its own, of which the second has a number; else its place.
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

fn chunk_said(chunk: &Value) -> Said {
    let parts = chunk["parts"].as_array().cloned().unwrap_or_default();
    let joined: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    let kind = if chunk["isThought"] == true { "thought" } else { "text" };
    let of =
        |key: &str| [chunk].into_iter().chain(&parts).map(|part| part[key].clone()).find(Value::is_object);
    let (code, result) = (of("executableCode"), of("codeExecutionResult"));
    pieces(&[
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
            parent: branches_off(&message.raw)
                .filter(|id| ids.contains(id))
                .or_else(|| message.parent.map(|at| ids[at].clone())),
            role: message.kept("role").unwrap_or_else(|| role.to_owned()),
            time: message.told("createTime"),
            said: pieces(&[
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
        created: stored.told(stored.created, "createTime"),
        updated: stored.told(stored.updated, "updateTime"),
        current: None,
        turns: arrange(
            stored
                .messages
                .iter()
                .enumerate()
                .map(|(at, message)| (turn((at, message)), message.number()))
                .collect(),
        ),
    }
}
