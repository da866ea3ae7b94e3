//! A reader of Grok's conversations that knows nothing of the importer, and the same pictures from what is stored.
//!
//! Where both could differ, one of these rules says so (README, *Rules*):
//! - responses that the receipt names as skipped are passed over;
//! - where no response names a parent, each answers the one before;
//! - `create_time` orders nothing: siblings stand in the order of the list, and the rest in that of the tree;
//! - a thought that repeats the answer's own is one;
//! - where the person's turn has no text, its `query` is the text.

use satchel_importer::testkit::round::{Chat, Round, SourceFile, Stored, Turn, arrange, text_of, time_told};
use serde_json::Value;

/// Both ways.
pub(crate) const ROUND: Round = Round { platform: "grok", told, aside: &[], rebuilt };

fn told(file: &SourceFile<'_>) -> Vec<Chat> {
    if file.base().starts_with("prod-mc-") || file.name.contains("prod-mc-asset-server") {
        return Vec::new();
    }
    let chats = file.elements("conversations");
    chats
        .iter()
        .filter(|(_, item)| item.get("responses").is_some())
        .map(|(place, item)| chat(place, item, file))
        .collect()
}

fn chat(place: &str, item: &Value, file: &SourceFile<'_>) -> Chat {
    let head = if item["conversation"].is_object() { &item["conversation"] } else { item };
    let list = item["responses"].as_array().into_iter().flatten().enumerate();
    let list = list.filter(|(at, _)| !file.skips(&format!("{place}.responses[{at}]")));
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
        said: said(responses[at]),
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

/// A time as it stands or inside of `$date`.
fn time(raw: &Value) -> Option<String> {
    let inner = raw.get("$date").map_or(raw, |date| date.get("$numberLong").unwrap_or(date));
    let told = time_told(inner)?;
    if told.parse::<i64>().is_ok() { Some(told) } else { time_told(raw) }
}

fn said(response: &Value) -> Vec<(String, String)> {
    let spoken = |text: &String| !text.trim().is_empty();
    let main = text_of(&response["thinking_trace"]).filter(spoken);
    let agents = response["agent_thinking_traces"].as_array().cloned().unwrap_or_default();
    let agents =
        agents.iter().filter_map(|agent| text_of(agent).or_else(|| text_of(&agent["thinking_trace"])));
    let agents = agents.filter(|thought| spoken(thought) && Some(thought) != main.as_ref());
    let asked = text_of(&response["query"]).filter(|_| response["sender"] == "human");
    let text = text_of(&response["message"]).or(asked);
    let thoughts = main.iter().cloned().chain(agents).map(|thought| ("thought".to_owned(), thought));
    thoughts.chain(text.map(|text| ("text".to_owned(), text))).collect()
}

fn rebuilt(stored: &Stored) -> Vec<Chat> {
    if ["media-post", "project"].iter().any(|tag| stored.tags.contains(*tag)) {
        return Vec::new();
    }
    let spoken: Vec<usize> = (0..stored.messages.len()).filter(|at| !stored.messages[*at].thought).collect();
    let id = |at: usize| {
        let number = spoken.iter().position(|other| *other == at).unwrap_or_default();
        stored.messages[at].id.clone().unwrap_or_else(|| format!("#{number:06}"))
    };
    let turns = spoken.iter().map(|at| (rebuilt_turn(stored, *at, &id), stored.messages[*at].number()));
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?}", stored.title)),
        title: stored.title.clone(),
        created: kept_time(stored.created, &stored.raw["create_time"]),
        updated: kept_time(stored.updated, &stored.raw["modify_time"]),
        current: stored.current.map(&id).or_else(|| stored.kept("leaf_response_id")),
        turns: arrange(turns.collect()),
    }]
}

fn rebuilt_turn(stored: &Stored, at: usize, id: &dyn Fn(usize) -> String) -> Turn {
    let message = &stored.messages[at];
    let (mut above, mut said) = (message.parent, Vec::new());
    while let Some(thought) = above.filter(|above| stored.messages[*above].thought) {
        said.push(("thought".to_owned(), stored.messages[thought].texts().concat()));
        above = stored.messages[thought].parent;
    }
    said.reverse();
    let text = message.kept("message").or_else(|| message.texts().first().cloned());
    said.extend(text.map(|text| ("text".to_owned(), text)));
    let role = if message.role == "user" { "human" } else { "assistant" };
    Turn {
        id: id(at),
        parent: message.kept("parent_response_id").or_else(|| above.map(id)),
        role: message.kept("sender").unwrap_or_else(|| role.to_owned()),
        time: kept_time(message.time, &message.raw["create_time"]),
        said,
    }
}

fn kept_time(micros: Option<i64>, kept: &Value) -> Option<String> {
    micros.map(|micros| micros.to_string()).or_else(|| time(kept))
}
