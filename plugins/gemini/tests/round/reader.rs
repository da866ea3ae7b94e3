//! A reader of Gemini's files that knows nothing of the importer, and the same pictures from what is stored.
//!
//! Where both could differ, one of these rules says so (README, *Conversations of the activity*, *Fields of JSON*):
//! - Takeout knows no threads: a row that names conversations is told in each of them, any other by itself;
//! - rows are told by time, of one time the one further behind first, undated ones last, each after the one before;
//! - a row without an id that tells of what Gemini made, or of another event, is told in the conversation that went on then (`acts`);
//! - a row's turn has the role of its first message; verb and prompt stand in its title, or the prompt beside it where the title is cut
//!   or says nothing; words are compared without white space around them;
//! - answers are HTML and become Markdown: their letters and digits are compared;
//! - a card of a page is told by itself, in each conversation that it names;
//! - activity has no titles and no times of conversations;
//! - rows and turns that the receipt names as skipped are passed over, and so are rows of other products.

use std::collections::BTreeMap;

use satchel_importer::testkit::round::{
    Chat, Round, SourceFile, Stored, StoredMessage, Turn, text_of, time_told,
};
use serde_json::Value;

use acts::Row;

#[path = "acts.rs"]
mod acts;
#[path = "pages.rs"]
mod pages;
#[path = "studio.rs"]
mod studio;

/// Both ways.
pub(crate) const ROUND: Round = Round { platform: "gemini", told, aside: &[], rebuilt };

type Said = Vec<(String, String)>;

fn told(file: &SourceFile<'_>) -> Vec<Chat> {
    match file.json() {
        Some(item) if item["conversation_turns"].is_array() => vec![work(file, &item)],
        Some(item) if item["chunkedPrompt"].is_object() => vec![studio::told(file, &item)],
        Some(Value::Object(_)) => Vec::new(),
        None if file.base().to_lowercase().ends_with(".html") => pages::told(file),
        _ => rows(file),
    }
}

fn rebuilt(stored: &Stored) -> Vec<Chat> {
    match stored.format.as_deref() {
        Some("2024.02" | "2025.06") => [rebuilt_rows(stored), pages::rebuilt(stored)].concat(),
        Some("2026.02") => vec![rebuilt_work(stored)],
        Some("2024.05") => vec![studio::rebuilt(stored)],
        _ => Vec::new(),
    }
}

fn pieces(pieces: &[(&str, Option<String>)]) -> Said {
    let said = pieces.iter().filter_map(|(kind, text)| Some(((*kind).to_owned(), text.clone()?)));
    said.filter(|(_, text)| !text.trim().is_empty()).collect()
}

/// Turns that answer one another.
fn line(turns: impl Iterator<Item = (String, Option<String>, Said)>) -> Vec<Turn> {
    let turn = |(at, (role, time, said)): (usize, (String, Option<String>, Said))| Turn {
        id: format!("#{at}"),
        parent: at.checked_sub(1).map(|above| format!("#{above}")),
        role,
        time,
        said,
    };
    turns.enumerate().map(turn).collect()
}

/// A list of activity.
fn rows(file: &SourceFile<'_>) -> Vec<Chat> {
    let ours = |row: &Value| {
        let labels = [&row["header"], &row["products"]].map(ToString::to_string).concat().to_lowercase();
        row.get("header").is_none() || labels.contains("gemini") || labels.contains("bard")
    };
    let full = |row: &Value| row.as_object().is_some_and(|fields| !fields.is_empty());
    // Of one time, the row further behind comes first.
    let rows =
        file.elements("rows").into_iter().rev().map(|(_, row)| row).filter(|row| full(row) && ours(row));
    let rows: Vec<(Value, Said)> = rows.map(|row| (row.clone(), row_said(&row))).collect();
    let words = acts::words(&rows);
    let read =
        |(row, said)| Row { act: acts::act(&row, &said, &words), named: conversations(&row), row, said };
    let rows: Vec<Row> = rows.into_iter().map(read).collect();
    let (mut named, mut chats): (BTreeMap<String, Vec<&Row>>, Vec<Chat>) = (BTreeMap::new(), Vec::new());
    for (row, ids) in rows.iter().zip(acts::homes(&rows)) {
        if ids.is_empty() {
            chats.push(alone(row_turn(row)));
        }
        for id in ids {
            named.entry(id).or_default().push(row);
        }
    }
    for (key, mut rows) in named {
        rows.sort_by_key(|row| acts::microseconds(&row.row).unwrap_or(i64::MAX));
        chats.push(Chat { key, turns: line(rows.into_iter().map(row_turn)), ..Chat::default() });
    }
    chats
}

/// A row: who speaks in its first message, when, and what is said in all.
fn row_turn(Row { row, said, act, .. }: &Row) -> (String, Option<String>, Said) {
    (acts::role(*act, said).to_owned(), time_told(&row["time"]), said.clone())
}

/// A row that is told by itself, as its conversation has no id.
fn alone((role, time, said): (String, Option<String>, Said)) -> Chat {
    let key = format!("{time:?} {:?}", said.first());
    Chat { key, turns: line(std::iter::once((role, time, said))), ..Chat::default() }
}

/// The ids in the addresses of a row.
fn conversations(row: &Value) -> Vec<String> {
    let listed = row["details"].as_array().into_iter().flatten().map(|detail| &detail["url"]);
    let mut ids: Vec<String> = Vec::new();
    for address in listed.chain([&row["titleUrl"]]).filter_map(Value::as_str) {
        let path = address.split(['?', '#']).next().unwrap_or_default();
        let Some((_, path)) = path.split_once("gemini.google.com/") else { continue };
        let id = path.rsplit('/').next().unwrap_or_default().to_owned();
        if path.contains("app/") && !id.is_empty() && !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

fn row_said(row: &Value) -> Said {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let of = |name: &str| {
        list(&row["details"])
            .iter()
            .find(|detail| detail["name"] == name)
            .and_then(|detail| text_of(&detail["value"]))
    };
    let inner = list(&row["userInteractions"])
        .first()
        .map(|item| item["userInteraction"].clone())
        .unwrap_or_default();
    let asked = of("Request").or_else(|| request(&inner["request"]));
    let html = match &row["safeHtmlItem"] {
        Value::Array(items) => items.clone(),
        one => vec![one.clone()],
    };
    let html = html
        .iter()
        .filter_map(|item| [item, &item["html"], &item["htmlValue"]].into_iter().find_map(text_of));
    let mut answers: Vec<String> = html.map(|html| letters(&without_tags(&html))).collect();
    answers.extend(
        of("Response").or_else(|| text_of(&inner["response"])).map(|text| letters(&without_marks(&text))),
    );
    let title = text_of(&row["title"]).unwrap_or_default();
    if answers.concat().is_empty() && acts::is_of_a_work(&title) {
        let remarks = list(&row["subtitles"])
            .iter()
            .filter(|item| item.get("url").is_none())
            .filter_map(|item| text_of(&item["name"]))
            .collect::<Vec<_>>();
        answers.push(letters(&remarks.concat()));
    }
    let answer = answers.concat();
    let prompt = asked.or_else(|| acts::prompt_beside(row, !answer.is_empty()));
    let said = pieces(&[("title", Some(words(&title))), ("prompt", prompt), ("answer", Some(answer))]);
    // Without a title, the prompt stands in its place.
    match said.first() {
        Some((kind, prompt)) if kind == "prompt" => {
            let title = ("title".to_owned(), words(prompt));
            std::iter::once(title).chain(said.into_iter().skip(1)).collect()
        }
        _ => said,
    }
}

/// The prompt inside of a request that is JSON in a text.
fn request(request: &Value) -> Option<String> {
    let inner: Value = serde_json::from_str(request.as_str()?).ok()?;
    text_of(&inner["contents"][0]["parts"][0]["text"])
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The words of HTML, and what stands for its pictures.
fn without_tags(html: &str) -> String {
    let (mut out, mut rest) = (String::new(), html);
    let silent = ["script", "style"];
    while let Some((before, tag)) = rest.split_once('<') {
        out.push_str(before);
        let (tag, after) = tag.split_once('>').unwrap_or((tag, ""));
        let after = match silent.iter().find(|name| tag.starts_with(**name)) {
            Some(name) => after.split_once(&format!("</{name}>")).map_or("", |(_, after)| after),
            None => after,
        };
        let alt = tag.strip_prefix("img").and_then(|tag| tag.split_once("alt=\"")?.1.split('"').next());
        out.push_str(alt.unwrap_or_default());
        rest = after;
    }
    out.push_str(rest);
    let names = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&#8239;", " "),
        ("&emsp;", " "),
        ("&amp;", "&"),
    ];
    names.iter().fold(out, |text, (name, sign)| text.replace(name, sign))
}

/// The words of Markdown: without addresses of links and pictures, names of languages and numbers of lists.
fn without_marks(markdown: &str) -> String {
    let fence = |line: &&str| !line.trim_start().starts_with("```");
    let number = |line: &str| {
        let item = line.trim_start().split_once(". ");
        item.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
            .map_or(line, |(_, words)| words)
            .to_owned()
    };
    let text = markdown.lines().filter(fence).map(number).collect::<Vec<_>>().join("\n");
    let (mut out, mut rest) = (String::new(), text.as_str());
    while let Some((before, address)) = rest.split_once("](") {
        out.push_str(before);
        rest = address.split_once(')').map_or("", |(_, after)| after);
    }
    out + rest
}

fn rebuilt_rows(stored: &Stored) -> Vec<Chat> {
    let mut rows: Vec<(String, Option<String>, Said)> = Vec::new();
    let mut page = false;
    for message in &stored.messages {
        let answer = is_answer(message);
        let words = letters(&without_marks(&message.texts().join("\n")));
        // Rows of pages are told by `pages`.
        page = if answer { page } else { message.raw.get("caption").is_some() };
        if page {
            continue;
        }
        match rows.last_mut().filter(|_| answer) {
            Some((.., said)) => said.extend(pieces(&[("answer", Some(words))])),
            None => rows.push((message.role.clone(), message.told("time"), row_of(message, words))),
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    if stored.id.is_none() {
        return rows.into_iter().map(alone).collect();
    }
    let turns = line(rows.into_iter());
    vec![Chat { key: stored.id.clone().unwrap_or_default(), turns, ..Chat::default() }]
}

/// Of a row, only the first message holds what else the row says.
fn is_answer(message: &StoredMessage) -> bool {
    message.role == "assistant" && message.raw.as_object().is_none_or(serde_json::Map::is_empty)
}

fn row_of(message: &StoredMessage, made: String) -> Said {
    let text = message.texts().concat();
    let attached = message.kept("attached").unwrap_or_default();
    match message.kept("title") {
        Some(title) if message.role == "assistant" => {
            pieces(&[("title", Some(words(&title))), ("answer", Some(made))])
        }
        Some(title) => pieces(&[("title", Some(words(&title))), ("prompt", Some(text))]),
        None => {
            let title = format!("{}{text} {attached}", message.kept("verb").unwrap_or_default());
            pieces(&[("title", Some(words(&title)))])
        }
    }
}

/// A conversation of Workspace.
fn work(file: &SourceFile<'_>, item: &Value) -> Chat {
    let turns = item["conversation_turns"].as_array().into_iter().flatten().enumerate();
    let turns = turns.filter(|(at, _)| !file.skips(&format!("{}[0].conversation_turns[{at}]", file.name)));
    let turn = |(_, turn): (usize, &Value)| {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        if turn["user_turn"].is_object() {
            let turn = &turn["user_turn"];
            return (
                "user".to_owned(),
                time_told(&turn["turn_last_modified"]),
                pieces(&[("text", text_of(&turn["prompt"]))]),
            );
        }
        let turn = &turn["system_turn"];
        let mut said = Said::new();
        for thought in list(&turn["model_thoughts"]) {
            said.extend(pieces(&[
                ("thought", text_of(&thought["headline"])),
                ("thought", text_of(&thought["description"])),
            ]));
        }
        for text in list(&turn["text"]) {
            said.extend(pieces(&[("text", text_of(&text["preamble"])), ("text", text_of(&text["data"]))]));
            let cards = list(&text["cards"]);
            said.extend(cards.iter().flat_map(|card| pieces(&[("text", text_of(&card["content"]))])));
        }
        ("assistant".to_owned(), time_told(&turn["turn_last_modified"]), said)
    };
    let title = text_of(&item["title"]);
    let created = time_told(&item["creation_time"]);
    Chat {
        key: format!("{title:?} {created:?}"),
        title,
        created,
        updated: time_told(&item["last_modification_time"]),
        current: None,
        turns: line(turns.map(turn)),
    }
}

fn rebuilt_work(stored: &Stored) -> Chat {
    let mut turns: Vec<(String, Option<String>, Said)> = Vec::new();
    let mut thought = Said::new();
    for message in &stored.messages {
        let texts = message.texts();
        if message.thought {
            let pieces = texts.iter().flat_map(|text| text.split("\n\n"));
            thought =
                pieces.map(|piece| ("thought".to_owned(), piece.trim_matches('*').to_owned())).collect();
            continue;
        }
        let said = texts.into_iter().map(|text| ("text".to_owned(), text));
        let said = std::mem::take(&mut thought).into_iter().chain(said).collect();
        turns.push((message.role.clone(), message.told("turn_last_modified"), said));
    }
    let created = stored.told(stored.created, "creation_time");
    Chat {
        key: format!("{:?} {created:?}", stored.title),
        title: stored.title.clone(),
        created,
        updated: stored.told(stored.updated, "last_modification_time"),
        current: None,
        turns: line(turns.into_iter()),
    }
}
