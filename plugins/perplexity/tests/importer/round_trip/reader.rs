//! Reads saved Perplexity threads without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Ids and order*, *Fields*) that both apply:
//! - turns are sorted by time, those of one time or without one in the order of the file; each is the parent of the next;
//! - times that a thread lacks are the oldest and the newest of its turns, and a turn without a time has that of its last change;
//! - turns that the receipt reports as skipped are ignored;
//! - of a cut file, the turns before the cut are read;
//! - the answer is the block `ask_text`, else all `ask_text_…`, else the first block with text, else a workflow's, else `answer`,
//!   else that of the steps in `text`.

use satchel_importer::testkit::round_trip::{Chat, RoundTrip, SourceFile, Stored, Turn, text_of, time_text};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "perplexity", read_file: from_source, ignored: &[], read_stored: from_stored };

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let mut threads = file.elements("threads");
    if threads.is_empty() {
        threads.extend(file.json_before_cut().map(|thread| (format!("{}[0]", file.name), thread)));
    }
    let chats = |(locator, item): &(String, Value)| -> Vec<Chat> {
        if let Some(inner) =
            item["conversations"].as_array().filter(|inner| inner.iter().any(|one| one["entries"].is_array()))
        {
            let inner = inner.iter().enumerate();
            return inner
                .filter_map(|(at, one)| chat(&format!("{}.conversations[{at}]", file.name), one, file))
                .collect();
        }
        match (chat(locator, item, file), item.as_object()) {
            (Some(chat), _) => vec![chat],
            (None, Some(members)) => {
                members.iter().filter_map(|(name, one)| named(name, one, file)).collect()
            }
            (None, None) => Vec::new(),
        }
    };
    threads.iter().flat_map(chats).collect()
}

/// A thread with its name as the key, as an object or as a bare list of entries.
fn named(name: &str, item: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let alone = item.is_array().then(|| serde_json::json!({ "entries": item }));
    let mut chat = chat(&format!("{}.{name}", file.name), alone.as_ref().unwrap_or(item), file)?;
    if !item["entries"]
        .as_array()
        .or(item.as_array())?
        .iter()
        .any(|entry| text_of(&entry["context_uuid"]).is_some())
    {
        chat.key = text_of(&item["slug"]).unwrap_or_else(|| name.to_owned());
    }
    Some(chat)
}

fn chat(locator: &str, item: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let list = ["conversations", "entries"].into_iter().find(|list| item[*list].is_array())?;
    let all = item[list].as_array()?;
    let shown = |at: usize| {
        all[at].is_object()
            && !file.skips(&format!("{locator}.{list}[{at}]"))
            && !file.skips(&format!("{locator}[{at}]"))
    };
    let turns = sorted_by_time((0..all.len()).filter(|at| shown(*at)).map(|at| &all[at]));
    let heads = [&item["metadata"], &item["thread_metadata"]];
    let head = heads.into_iter().find(|head| head.is_object()).unwrap_or(item);
    let times = || {
        let of = |turn: &&Value| [time(turn), time_text(&turn["entry_updated_datetime"])];
        turns.iter().flat_map(of).filter_map(micros)
    };
    let (oldest, newest) = (times().min(), times().max());
    let id = |at: usize| turn_id(turns[at]).unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| Turn {
        id: id(at),
        parent: at.checked_sub(1).map(id),
        role: String::new(),
        time: time(turns[at]),
        parts: parts(turns[at]),
    };
    let own_title =
        first(head, &["thread_title", "title", "context_title"]).filter(|title| !title.trim().is_empty());
    let title = own_title.or_else(|| all.iter().find_map(|turn| text_of(&turn["thread_title"])));
    Some(Chat {
        key: thread_id(head, all).unwrap_or_else(|| format!("{title:?}")),
        title,
        created: given(head, &["thread_created_at", "created_at", "created_us"])
            .or(oldest.map(|time| time.to_string())),
        updated: given(head, &["thread_updated_at", "updated_at", "updated_us"])
            .or(newest.map(|time| time.to_string())),
        current: turns.len().checked_sub(1).map(id),
        turns: (0..turns.len()).map(turn).collect(),
    })
}

/// Turns by time; one without a time stays after the one before it.
fn sorted_by_time<'v>(turns: impl Iterator<Item = &'v Value>) -> Vec<&'v Value> {
    let (mut before, mut keyed) = (i64::MIN, Vec::new());
    for turn in turns {
        before = micros(time(turn)).unwrap_or(before);
        keyed.push((before, turn));
    }
    keyed.sort_by_key(|(time, _)| *time);
    keyed.into_iter().map(|(_, turn)| turn).collect()
}

/// The best id that a thread or one of its turns gives.
fn thread_id(head: &Value, turns: &[Value]) -> Option<String> {
    let of_turns = |key: &str| turns.iter().find_map(|turn| text_of(&turn[key]));
    let address = text_of(&head["thread_url"]).and_then(|url| url.rsplit('/').next().map(ToOwned::to_owned));
    let known = text_of(&head["thread_id"])
        .or(text_of(&head["context_uuid"]))
        .or(address)
        .or_else(|| of_turns("context_uuid"));
    let known = known.or_else(|| of_turns("thread_url_slug"));
    known.or_else(|| first(turns.iter().find(|turn| turn.is_object())?, &["uuid", "backend_uuid"]))
}

fn first(value: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| text_of(&value[*key]))
}

fn given(head: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| time_text(&head[*key]))
}

fn turn_id(turn: &Value) -> Option<String> {
    first(turn, &["uuid", "backend_uuid"])
}

fn micros(time: Option<String>) -> Option<i64> {
    time?.parse().ok()
}

fn time(turn: &Value) -> Option<String> {
    [
        "timestamp",
        "entry_created_datetime",
        "created_us",
        "created_at",
        "entry_updated_datetime",
        "updated_datetime",
    ]
    .iter()
    .find_map(|key| time_text(&turn[*key]))
}

fn parts(turn: &Value) -> Vec<(String, String)> {
    let steps = steps(turn);
    let of_step = || steps.iter().find(|(kind, _)| kind == "INITIAL_QUERY").map(|(_, text)| text.clone());
    let query = first(turn, &["query_str", "query"]).or_else(of_step);
    let of_steps = || {
        let final_answer = steps.iter().rev().find(|(kind, _)| kind == "FINAL").map(|(_, text)| text.clone());
        let reports =
            steps.iter().filter(|(kind, _)| kind == "RESEARCH_ANSWER").map(|(_, text)| text.clone());
        let all: Vec<String> = final_answer.into_iter().chain(reports).collect();
        (!all.is_empty()).then(|| all.join("\n\n"))
    };
    let of_blocks = || turn["blocks"].as_array().and_then(|list| blocks(list).or_else(|| workflow(list)));
    let answer = of_blocks().or_else(|| text_of(&turn["answer"])).or_else(of_steps);
    let pieces = [("query", query), ("answer", answer)];
    pieces.into_iter().filter_map(|(kind, text)| Some((kind.to_owned(), text?))).collect()
}

/// The texts of the steps in `text`, by their kinds; a `text` without steps is a final one.
fn steps(turn: &Value) -> Vec<(String, String)> {
    let Some(text) = text_of(&turn["text"]) else { return Vec::new() };
    let Ok(Value::Array(steps)) = serde_json::from_str(&text) else {
        return vec![("FINAL".to_owned(), unwrapped(&text))];
    };
    let words = |step: &Value| {
        let content = &step["content"];
        let report = text_of(&step["assets"][0]["research_report"]["source_content"]);
        let query = text_of(&content["query"])
            .or(report)
            .or_else(|| text_of(&content["answer"]).map(|text| unwrapped(&text)));
        Some((text_of(&step["step_type"])?, query?))
    };
    steps.iter().filter_map(words).collect()
}

/// The text of an answer that is JSON in a string.
fn unwrapped(text: &str) -> String {
    let Ok(Value::Object(answer)) = serde_json::from_str(text) else { return text.to_owned() };
    let parts = answer.get("structured_answer").and_then(Value::as_array);
    let parts = parts
        .map(|parts| parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n\n"));
    answer.get("answer").and_then(Value::as_str).map_or_else(|| parts.unwrap_or_default(), ToOwned::to_owned)
}

/// The items of workflows that are answers.
fn workflow(blocks: &[Value]) -> Option<String> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let steps = blocks.iter().flat_map(|block| list(&block["workflow_block"], "steps"));
    let payloads =
        steps.flat_map(|step| list(&step, "items")).map(|item| item["payload"]["text_payload"].clone());
    let answers = payloads.filter(|payload| payload["variant"] == "ANSWER");
    let text = |payload: Value| list(&payload, "chunks").iter().filter_map(Value::as_str).collect::<String>();
    Some(answers.map(text).collect::<Vec<_>>().join("\n\n")).filter(|text| !text.is_empty())
}

fn blocks(blocks: &[Value]) -> Option<String> {
    let words = |block: &Value| {
        let markdown = &block["markdown_block"];
        let pieces = markdown["chunks"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let text = markdown["answer"].as_str().map_or_else(|| pieces.collect(), ToOwned::to_owned);
        Some(text).filter(|text: &String| !text.is_empty())
    };
    let usage = |block: &Value| block["intended_usage"].as_str().unwrap_or_default().to_owned();
    let whole = blocks.iter().filter(|block| usage(block) == "ask_text").find_map(words);
    let pieces: String =
        blocks.iter().filter(|block| usage(block).starts_with("ask_text_")).filter_map(words).collect();
    whole.or(Some(pieces).filter(|pieces| !pieces.is_empty())).or_else(|| blocks.iter().find_map(words))
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    // Messages of one turn have one id; without ids, an answer belongs to the question before it.
    let mut turns: Vec<Turn> = Vec::new();
    let mut ids: Vec<Option<String>> = Vec::new();
    // The turn of each message.
    let mut turn_of: Vec<usize> = Vec::new();
    for message in &stored.messages {
        let text = message.texts().concat();
        let question = message.role == "user";
        let continues = !question
            && ids.last() == Some(&message.id)
            && turns.last().is_some_and(|turn| turn.parts.len() == 1);
        if !continues {
            let id = message.id.clone().unwrap_or_else(|| format!("#{}", turns.len()));
            let parent = message.parent.and_then(|above| Some(turns.get(*turn_of.get(above)?)?.id.clone()));
            turns.push(Turn { id, parent, ..Turn::default() });
            ids.push(message.id.clone());
        }
        turn_of.push(turns.len() - 1);
        if let Some(turn) = turns.last_mut() {
            turn.parts.push((if question { "query" } else { "answer" }.to_owned(), text));
            turn.time = turn.time.take().or_else(|| message.time_text("timestamp"));
        }
    }
    let current = stored.current.and_then(|at| stored.messages[at].id.clone());
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?}", stored.title)),
        title: stored.title.clone(),
        created: stored.created.map(|time| time.to_string()),
        updated: stored.updated.map(|time| time.to_string()),
        current: current.or_else(|| turns.last().map(|turn| turn.id.clone())),
        turns,
    }]
}
