//! A reader of saved Perplexity threads that knows nothing of the importer, and the same pictures from what is stored.
//!
//! Where both could differ, one of these rules says so (README, *Ids and order*, *Fields*):
//! - turns are ordered by time; those of one time, and those without, keep the order of the file; each answers the one before;
//! - times that a thread lacks are the oldest and the newest of its turns, and a turn without a time has that of its last change;
//! - turns that the receipt names as skipped are passed over;
//! - of a file that breaks off, the turns before are told;
//! - the answer is the block `ask_text`, else all `ask_text_…`, else the first with words.

use satchel_importer::testkit::round::{Chat, Round, SourceFile, Stored, Turn, text_of, time_told};
use serde_json::Value;

/// Both ways.
pub(crate) const ROUND: Round = Round { platform: "perplexity", told, aside: &[], rebuilt };

fn told(file: &SourceFile<'_>) -> Vec<Chat> {
    let mut threads = file.elements("threads");
    if threads.is_empty() {
        threads.extend(file.before_the_cut().map(|thread| (format!("{}[0]", file.name), thread)));
    }
    threads.iter().filter_map(|(place, item)| chat(place, item, file)).collect()
}

fn chat(place: &str, item: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let list = ["conversations", "entries"].into_iter().find(|list| item[*list].is_array())?;
    let all = item[list].as_array()?;
    let kept = |at: usize| all[at].is_object() && !file.skips(&format!("{place}.{list}[{at}]"));
    let turns = in_time((0..all.len()).filter(|at| kept(*at)).map(|at| &all[at]));
    let heads = [&item["metadata"], &item["thread_metadata"]];
    let head = heads.into_iter().find(|head| head.is_object()).unwrap_or(&Value::Null);
    let times = || {
        let of = |turn: &&Value| [time(turn), time_told(&turn["entry_updated_datetime"])];
        turns.iter().flat_map(of).filter_map(micros)
    };
    let (oldest, newest) = (times().min(), times().max());
    let id = |at: usize| turn_id(turns[at]).unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| Turn {
        id: id(at),
        parent: at.checked_sub(1).map(id),
        role: String::new(),
        time: time(turns[at]),
        said: said(turns[at]),
    };
    let own_title = first(head, &["thread_title", "title"]).filter(|title| !title.trim().is_empty());
    let title = own_title.or_else(|| all.iter().find_map(|turn| text_of(&turn["thread_title"])));
    Some(Chat {
        key: thread_id(head, all).unwrap_or_else(|| format!("{title:?}")),
        title,
        created: given(head, &["thread_created_at", "created_at"]).or(oldest.map(|time| time.to_string())),
        updated: given(head, &["thread_updated_at", "updated_at"]).or(newest.map(|time| time.to_string())),
        current: turns.len().checked_sub(1).map(id),
        turns: (0..turns.len()).map(turn).collect(),
    })
}

/// Turns by time; those without one stay behind the one before.
fn in_time<'v>(turns: impl Iterator<Item = &'v Value>) -> Vec<&'v Value> {
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
    let known = text_of(&head["thread_id"]).or(address).or_else(|| of_turns("context_uuid"));
    let known = known.or_else(|| of_turns("thread_url_slug"));
    known.or_else(|| first(turns.iter().find(|turn| turn.is_object())?, &["uuid", "backend_uuid"]))
}

fn first(value: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| text_of(&value[*key]))
}

fn given(head: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| time_told(&head[*key]))
}

fn turn_id(turn: &Value) -> Option<String> {
    first(turn, &["uuid", "backend_uuid"])
}

fn micros(time: Option<String>) -> Option<i64> {
    time?.parse().ok()
}

fn time(turn: &Value) -> Option<String> {
    ["timestamp", "entry_created_datetime", "entry_updated_datetime", "updated_datetime"]
        .iter()
        .find_map(|key| time_told(&turn[*key]))
}

fn said(turn: &Value) -> Vec<(String, String)> {
    let query = first(turn, &["query", "query_str"]);
    let answer = text_of(&turn["answer"]).or_else(|| blocks(turn["blocks"].as_array()?));
    let pieces = [("query", query), ("answer", answer)];
    pieces.into_iter().filter_map(|(kind, text)| Some((kind.to_owned(), text?))).collect()
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

fn rebuilt(stored: &Stored) -> Vec<Chat> {
    // Question and answer of a turn: those of one id, or a question and what answers it where there is none.
    let mut turns: Vec<Turn> = Vec::new();
    let mut ids: Vec<Option<String>> = Vec::new();
    // The turn of each message.
    let mut of: Vec<usize> = Vec::new();
    for message in &stored.messages {
        let text = message.texts().concat();
        let asked = message.role == "user";
        let goes_on = !asked
            && ids.last() == Some(&message.id)
            && turns.last().is_some_and(|turn| turn.said.len() == 1);
        if !goes_on {
            let id = message.id.clone().unwrap_or_else(|| format!("#{}", turns.len()));
            let parent = message.parent.and_then(|above| Some(turns.get(*of.get(above)?)?.id.clone()));
            turns.push(Turn { id, parent, ..Turn::default() });
            ids.push(message.id.clone());
        }
        of.push(turns.len() - 1);
        if let Some(turn) = turns.last_mut() {
            turn.said.push((if asked { "query" } else { "answer" }.to_owned(), text));
            turn.time = turn.time.take().or_else(|| message.told("timestamp"));
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
