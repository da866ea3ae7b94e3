//! Reads Grok's conversations without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Rules*) that both apply:
//! - responses that the receipt reports as skipped are ignored;
//! - if no response names a parent, each one is the parent of the next;
//! - `create_time` does not matter: siblings are in the order of the list, and the rest in that of the tree;
//! - an agent's thought that equals the answer's own is dropped;
//! - the text of a message of the person without text is its `query`.

use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, Turn, arrange, text_of, time_text,
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "grok", read_file: from_source, ignored: &[], read_stored: from_stored };

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    if file.base().starts_with("prod-mc-") || file.name.contains("prod-mc-asset-server") {
        return Vec::new();
    }
    let chats = file.elements("conversations");
    chats
        .iter()
        .filter(|(_, item)| item.get("responses").is_some())
        .map(|(locator, item)| chat(locator, item, file))
        .collect()
}

fn chat(locator: &str, item: &Value, file: &SourceFile<'_>) -> Chat {
    let head = if item["conversation"].is_object() { &item["conversation"] } else { item };
    let list = item["responses"].as_array().into_iter().flatten().enumerate();
    let list = list.filter(|(at, _)| !file.skips(&format!("{locator}.responses[{at}]")));
    let responses: Vec<&Value> = list
        .map(|(_, item)| if item["response"].is_object() { &item["response"] } else { item })
        .filter(|response| response.is_object())
        .collect();
    let linear = responses.iter().all(|response| text_of(&response["parent_response_id"]).is_none());
    let id = |at: usize| first(responses[at], &["_id", "response_id"]).unwrap_or_else(|| format!("#{at:06}"));
    let turn = |at: usize| Turn {
        id: id(at),
        parent: if linear {
            at.checked_sub(1).map(id)
        } else {
            text_of(&responses[at]["parent_response_id"])
        },
        role: text_of(&responses[at]["sender"]).unwrap_or_else(|| "assistant".to_owned()),
        time: time(&responses[at]["create_time"]),
        parts: parts(responses[at]),
    };
    let turns: Vec<Turn> = (0..responses.len()).map(turn).collect();
    let title = text_of(&head["title"]).filter(|title| !title.trim().is_empty());
    Chat {
        key: first(head, &["id", "conversation_id"]).unwrap_or_else(|| format!("{title:?}")),
        title,
        created: time(&head["create_time"]),
        updated: time(&head["modify_time"]),
        current: text_of(&head["leaf_response_id"]),
        turns: arrange(turns.into_iter().enumerate().map(|(at, turn)| (turn, Some(at))).collect()),
    }
}

fn first(value: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| text_of(&value[*key]))
}

/// A time, plain or in `$date`.
fn time(raw: &Value) -> Option<String> {
    let inner = raw.get("$date").map_or(raw, |date| date.get("$numberLong").unwrap_or(date));
    let text = time_text(inner)?;
    if text.parse::<i64>().is_ok() { Some(text) } else { time_text(raw) }
}

fn parts(response: &Value) -> Vec<(String, String)> {
    let not_blank = |text: &String| !text.trim().is_empty();
    let trace = text_of(&response["thinking_trace"]).filter(not_blank);
    let agents = response["agent_thinking_traces"].as_array().cloned().unwrap_or_default();
    let agents =
        agents.iter().filter_map(|agent| text_of(agent).or_else(|| text_of(&agent["thinking_trace"])));
    let agents = agents.filter(|thought| not_blank(thought) && Some(thought) != trace.as_ref());
    let query = text_of(&response["query"]).filter(|_| response["sender"] == "human");
    let text = text_of(&response["message"]).or(query);
    let thoughts = trace.iter().cloned().chain(agents).map(|thought| ("thought".to_owned(), thought));
    thoughts.chain(text.map(|text| ("text".to_owned(), text))).collect()
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    if ["media-post", "project"].iter().any(|tag| stored.tags.contains(*tag)) {
        return Vec::new();
    }
    let answers: Vec<usize> = (0..stored.messages.len()).filter(|at| !stored.messages[*at].thought).collect();
    let id = |at: usize| {
        let number = answers.iter().position(|other| *other == at).unwrap_or_default();
        stored.messages[at].id.clone().unwrap_or_else(|| format!("#{number:06}"))
    };
    let turns =
        answers.iter().map(|at| (stored_turn(stored, *at, &id), stored.messages[*at].sibling_number()));
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?}", stored.title)),
        title: stored.title.clone(),
        created: stored_time(stored.created, &stored.raw["create_time"]),
        updated: stored_time(stored.updated, &stored.raw["modify_time"]),
        current: stored.current.map(&id).or_else(|| stored.metadata_text("leaf_response_id")),
        turns: arrange(turns.collect()),
    }]
}

fn stored_turn(stored: &Stored, at: usize, id: &dyn Fn(usize) -> String) -> Turn {
    let message = &stored.messages[at];
    let (mut parent, mut parts) = (message.parent, Vec::new());
    while let Some(thought) = parent.filter(|parent| stored.messages[*parent].thought) {
        parts.push(("thought".to_owned(), stored.messages[thought].texts().concat()));
        parent = stored.messages[thought].parent;
    }
    parts.reverse();
    let text = message.metadata_text("message").or_else(|| message.texts().first().cloned());
    parts.extend(text.map(|text| ("text".to_owned(), text)));
    let role = if message.role == "user" { "human" } else { "assistant" };
    Turn {
        id: id(at),
        parent: message.metadata_text("parent_response_id").or_else(|| parent.map(id)),
        role: message.metadata_text("sender").unwrap_or_else(|| role.to_owned()),
        time: stored_time(message.time, &message.raw["create_time"]),
        parts,
    }
}

fn stored_time(micros: Option<i64>, raw: &Value) -> Option<String> {
    micros.map(|micros| micros.to_string()).or_else(|| time(raw))
}
