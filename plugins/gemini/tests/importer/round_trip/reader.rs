//! Reads Gemini's files independently of the importer, and the same conversations from the store.
//!
//! These rules say how both are compared (README, *Conversations of the activity*, *Fields of JSON*):
//! - Takeout has no threads: a row belongs to each conversation that it names, any other row is compared by itself;
//! - rows are sorted by time, rows of the same time in reverse order, undated rows last; each follows the one before;
//! - a creation or event without an id belongs to the conversation of its time (`rows`);
//! - a row's turn has the role of its first message; the title holds verb and prompt, and a prompt outside the title is a part of
//!   its own; texts are compared without white space around them;
//! - answers are HTML and become Markdown: their letters and digits are compared;
//! - a card of a page is compared by itself, in each conversation that it names;
//! - conversations of the activity have no titles and no times;
//! - rows and turns that the receipt names as skipped are left out, as are rows of other products.

use std::collections::BTreeMap;

use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, text_of, time_text,
};
use serde_json::Value;

use rows::Row;

#[path = "pages.rs"]
mod pages;
#[path = "rows.rs"]
mod rows;
#[path = "studio.rs"]
mod studio;

pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "gemini", read_file: read_chats, ignored: &[], read_stored: rebuilt };

/// The kinds and texts of a turn.
type Parts = Vec<(String, String)>;

fn read_chats(file: &SourceFile<'_>) -> Vec<Chat> {
    match file.json() {
        Some(item) if item["conversation_turns"].is_array() => vec![workspace(file, &item)],
        Some(item) if item["chunkedPrompt"].is_object() => vec![studio::read_chat(file, &item)],
        Some(Value::Object(_)) => Vec::new(),
        None if file.base().to_lowercase().ends_with(".html") => pages::read_chats(file),
        _ => activity(file),
    }
}

fn rebuilt(stored: &Stored) -> Vec<Chat> {
    match stored.format.as_deref() {
        Some("2024.02" | "2025.06") => [rebuilt_rows(stored), pages::rebuilt(stored)].concat(),
        Some("2026.02") => vec![rebuilt_workspace(stored)],
        Some("2024.05") => vec![studio::rebuilt(stored)],
        _ => Vec::new(),
    }
}

/// The parts that are not blank.
fn parts(parts: &[(&str, Option<String>)]) -> Parts {
    let parts = parts.iter().filter_map(|(kind, text)| Some(((*kind).to_owned(), text.clone()?)));
    parts.filter(|(_, text)| !text.trim().is_empty()).collect()
}

/// Turns with role, time and parts, each the child of the one before.
fn thread(turns: impl Iterator<Item = (String, Option<String>, Parts)>) -> Vec<Turn> {
    let turn = |(at, (role, time, content)): (usize, (String, Option<String>, Parts))| Turn {
        id: format!("#{at}"),
        parent: at.checked_sub(1).map(|above| format!("#{above}")),
        role,
        time,
        parts: content,
    };
    turns.enumerate().map(turn).collect()
}

/// A list of activity.
fn activity(file: &SourceFile<'_>) -> Vec<Chat> {
    let ours = |row: &Value| {
        let labels = [&row["header"], &row["products"]].map(ToString::to_string).concat().to_lowercase();
        row.get("header").is_none() || labels.contains("gemini") || labels.contains("bard")
    };
    let full = |row: &Value| row.as_object().is_some_and(|fields| !fields.is_empty());
    // Of rows with the same time, the last one comes first.
    let rows =
        file.elements("rows").into_iter().rev().map(|(_, row)| row).filter(|row| full(row) && ours(row));
    let rows: Vec<(Value, Parts)> = rows.map(|row| (row.clone(), row_parts(&row))).collect();
    let verbs = rows::verbs(&rows);
    let read = |(row, parts)| Row {
        kind: rows::kind(&row, &parts, &verbs),
        conversations: conversation_ids(&row),
        row,
        parts,
    };
    let rows: Vec<Row> = rows.into_iter().map(read).collect();
    let (mut named, mut chats): (BTreeMap<String, Vec<&Row>>, Vec<Chat>) = (BTreeMap::new(), Vec::new());
    for (row, ids) in rows.iter().zip(rows::assign(&rows)) {
        if ids.is_empty() {
            chats.push(single_row(row_turn(row)));
        }
        for id in ids {
            named.entry(id).or_default().push(row);
        }
    }
    for (key, mut rows) in named {
        rows.sort_by_key(|row| rows::microseconds(&row.row).unwrap_or(i64::MAX));
        chats.push(Chat { key, turns: thread(rows.into_iter().map(row_turn)), ..Chat::default() });
    }
    chats
}

/// The role of the row's first message, its time, and the parts of all its messages.
fn row_turn(Row { row, parts, kind, .. }: &Row) -> (String, Option<String>, Parts) {
    (rows::role(*kind, parts).to_owned(), time_text(&row["time"]), parts.clone())
}

/// A row whose conversation has no id is compared by itself.
fn single_row((role, time, parts): (String, Option<String>, Parts)) -> Chat {
    let key = format!("{time:?} {:?}", parts.first());
    Chat { key, turns: thread(std::iter::once((role, time, parts))), ..Chat::default() }
}

/// The ids in the addresses of a row.
fn conversation_ids(row: &Value) -> Vec<String> {
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

fn row_parts(row: &Value) -> Parts {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let detail = |name: &str| {
        list(&row["details"])
            .iter()
            .find(|item| item["name"] == name)
            .and_then(|item| text_of(&item["value"]))
    };
    let inner = list(&row["userInteractions"])
        .first()
        .map(|item| item["userInteraction"].clone())
        .unwrap_or_default();
    let request = detail("Request").or_else(|| json_request(&inner["request"]));
    let html = match &row["safeHtmlItem"] {
        Value::Array(items) => items.clone(),
        one => vec![one.clone()],
    };
    let html = html
        .iter()
        .filter_map(|item| [item, &item["html"], &item["htmlValue"]].into_iter().find_map(text_of));
    let mut answers: Vec<String> = html.map(|html| letters(&without_tags(&html))).collect();
    answers.extend(
        detail("Response")
            .or_else(|| text_of(&inner["response"]))
            .map(|text| letters(&without_markup(&text))),
    );
    let title = text_of(&row["title"]).unwrap_or_default();
    if answers.concat().is_empty() && rows::is_creation(&title) {
        let remarks = list(&row["subtitles"])
            .iter()
            .filter(|item| item.get("url").is_none())
            .filter_map(|item| text_of(&item["name"]))
            .collect::<Vec<_>>();
        answers.push(letters(&remarks.concat()));
    }
    let answer = answers.concat();
    let prompt = request.or_else(|| rows::prompt_outside_title(row, !answer.is_empty()));
    let mut parts =
        parts(&[("title", Some(collapse_spaces(&title))), ("prompt", prompt), ("answer", Some(answer))]);
    // Without a title, the prompt replaces it.
    if let Some((kind, text)) = parts.first_mut().filter(|(kind, _)| kind == "prompt") {
        (*kind, *text) = ("title".to_owned(), collapse_spaces(text));
    }
    parts
}

/// The prompt in a request that is JSON in a text.
fn json_request(request: &Value) -> Option<String> {
    let inner: Value = serde_json::from_str(request.as_str()?).ok()?;
    text_of(&inner["contents"][0]["parts"][0]["text"])
}

fn collapse_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The text of HTML, and the alternative texts of its images.
fn without_tags(html: &str) -> String {
    let (mut out, mut rest) = (String::new(), html);
    let without_text = ["script", "style"];
    while let Some((before, tag)) = rest.split_once('<') {
        out.push_str(before);
        let (tag, after) = tag.split_once('>').unwrap_or((tag, ""));
        let after = match without_text.iter().find(|name| tag.starts_with(**name)) {
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

/// The text of Markdown, without addresses, languages of code blocks and numbers of lists.
fn without_markup(markdown: &str) -> String {
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
    let mut rows: Vec<(String, Option<String>, Parts)> = Vec::new();
    let mut page = false;
    for message in &stored.messages {
        let answer = is_answer(message);
        let text = letters(&without_markup(&message.texts().join("\n")));
        // Rows of pages belong to `pages`.
        page = if answer { page } else { message.raw.get("caption").is_some() };
        if page {
            continue;
        }
        match rows.last_mut().filter(|_| answer) {
            Some((.., row)) => row.extend(parts(&[("answer", Some(text))])),
            None => {
                rows.push((message.role.clone(), message.time_text("time"), message_parts(message, text)));
            }
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    if stored.id.is_none() {
        return rows.into_iter().map(single_row).collect();
    }
    let turns = thread(rows.into_iter());
    vec![Chat { key: stored.id.clone().unwrap_or_default(), turns, ..Chat::default() }]
}

/// Whether the message is an answer: only the first message of a row has metadata.
fn is_answer(message: &StoredMessage) -> bool {
    message.role == "assistant" && message.raw.as_object().is_none_or(serde_json::Map::is_empty)
}

fn message_parts(message: &StoredMessage, letters: String) -> Parts {
    let text = message.texts().concat();
    let attached = message.metadata_text("attached").unwrap_or_default();
    match message.metadata_text("title") {
        Some(title) if message.role == "assistant" => {
            parts(&[("title", Some(collapse_spaces(&title))), ("answer", Some(letters))])
        }
        Some(title) => parts(&[("title", Some(collapse_spaces(&title))), ("prompt", Some(text))]),
        None => {
            let title = format!("{}{text} {attached}", message.metadata_text("verb").unwrap_or_default());
            parts(&[("title", Some(collapse_spaces(&title)))])
        }
    }
}

/// A conversation of Workspace.
fn workspace(file: &SourceFile<'_>, item: &Value) -> Chat {
    let turns = item["conversation_turns"].as_array().into_iter().flatten().enumerate();
    let turns = turns.filter(|(at, _)| !file.skips(&format!("{}[0].conversation_turns[{at}]", file.name)));
    let turn = |(_, turn): (usize, &Value)| {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        if turn["user_turn"].is_object() {
            let turn = &turn["user_turn"];
            return (
                "user".to_owned(),
                time_text(&turn["turn_last_modified"]),
                parts(&[("text", text_of(&turn["prompt"]))]),
            );
        }
        let turn = &turn["system_turn"];
        let mut found = Parts::new();
        for thought in list(&turn["model_thoughts"]) {
            found.extend(parts(&[
                ("thought", text_of(&thought["headline"])),
                ("thought", text_of(&thought["description"])),
            ]));
        }
        for text in list(&turn["text"]) {
            found.extend(parts(&[("text", text_of(&text["preamble"])), ("text", text_of(&text["data"]))]));
            let cards = list(&text["cards"]);
            found.extend(cards.iter().flat_map(|card| parts(&[("text", text_of(&card["content"]))])));
        }
        ("assistant".to_owned(), time_text(&turn["turn_last_modified"]), found)
    };
    let title = text_of(&item["title"]);
    let created = time_text(&item["creation_time"]);
    Chat {
        key: format!("{title:?} {created:?}"),
        title,
        created,
        updated: time_text(&item["last_modification_time"]),
        current: None,
        turns: thread(turns.map(turn)),
    }
}

fn rebuilt_workspace(stored: &Stored) -> Chat {
    let mut turns: Vec<(String, Option<String>, Parts)> = Vec::new();
    let mut thoughts = Parts::new();
    for message in &stored.messages {
        let texts = message.texts();
        if message.thought {
            let paragraphs = texts.iter().flat_map(|text| text.split("\n\n"));
            thoughts =
                paragraphs.map(|text| ("thought".to_owned(), text.trim_matches('*').to_owned())).collect();
            continue;
        }
        let mut parts = std::mem::take(&mut thoughts);
        parts.extend(texts.into_iter().map(|text| ("text".to_owned(), text)));
        turns.push((message.role.clone(), message.time_text("turn_last_modified"), parts));
    }
    let created = stored.time_text(stored.created, "creation_time");
    Chat {
        key: format!("{:?} {created:?}", stored.title),
        title: stored.title.clone(),
        created,
        updated: stored.time_text(stored.updated, "last_modification_time"),
        current: None,
        turns: thread(turns.into_iter()),
    }
}
