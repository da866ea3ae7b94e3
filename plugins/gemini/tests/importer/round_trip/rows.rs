//! Rows of activity by the rules of the README: their kind and role, prompts outside the title, and the conversations of rows
//! without an id.

use satchel_importer::testkit::round_trip::{text_of, time_text};
use serde_json::Value;

use super::Parts;

/// The verbs of prompts, the longer first.
const PROMPT_VERBS: [&str; 22] = [
    "Prompted with",
    "Prompted",
    "Asked Bard",
    "Asked Gemini",
    "Asked",
    "Said",
    "Submitted query",
    "Query submitted",
    "Branched",
    "Answered",
    "Live Prompt",
    "Eingegebener Prompt",
    "Gav instruktionen",
    "送信したメッセージ",
    "プロンプト",
    "已提示",
    "분기된",
    "Solicitou",
    "Υποβλήθηκε το ερώτημα",
    "Has dicho",
    "Hiciste la petición",
    "Preguntado",
];

/// The first words of English titles that are not prompts.
const EVENT_VERBS: [&str; 18] = [
    "Added", "Cleared", "Created", "Deleted", "Edited", "Exported", "Gave", "Pinned", "Removed", "Renamed",
    "Searched", "Selected", "Shared", "Unpinned", "Updated", "Used", "Viewed", "Visited",
];

/// The longest pause inside a conversation, in microseconds.
const MAX_PAUSE: i64 = 30 * 60 * 1_000_000;

/// The kind of a row. Rows are assigned to conversations in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowKind {
    Prompt,
    /// Gemini created something, and the row holds it.
    Creation,
    Event,
}

/// The verbs in the titles of a list.
#[derive(Debug, Default)]
pub(super) struct Verbs {
    any_known: bool,
    /// The beginning of nearly all answered rows in an unknown language, up to a colon.
    learned: Option<String>,
}

pub(super) fn verbs(rows: &[(Value, Parts)]) -> Verbs {
    let rows = rows
        .iter()
        .filter(|(row, parts)| !has_prompt_part(row, parts))
        .map(|(row, parts)| (title(row), row, parts));
    let rows = rows.filter(|(title, row, _)| !is_creation(title) && !is_event(row, title));
    let (known, unknown): (Vec<_>, Vec<_>) = rows.partition(|(title, ..)| without_verb(title).is_some());
    let answered: Vec<&String> =
        unknown.iter().filter(|(.., parts)| has(parts, "answer")).map(|(title, ..)| title).collect();
    let count = |verb: &str| answered.iter().filter(|title| up_to_colon(title) == Some(verb)).count();
    let most_common = answered.iter().filter_map(|title| up_to_colon(title)).max_by_key(|verb| count(verb));
    let learned = most_common.filter(|verb| count(verb) >= 3 && count(verb) * 10 >= answered.len() * 9);
    Verbs { any_known: !known.is_empty(), learned: learned.map(ToOwned::to_owned) }
}

fn up_to_colon(title: &str) -> Option<&str> {
    title.split_once([':', '：']).map(|(first, _)| first)
}

/// Whether the prompt is outside the title, or replaces it.
fn has_prompt_part(row: &Value, parts: &Parts) -> bool {
    has(parts, "prompt") || (text_of(&row["title"]).is_none() && has(parts, "title"))
}

fn has(parts: &Parts, kind: &str) -> bool {
    parts.iter().any(|(found, _)| found == kind)
}

pub(super) fn kind(row: &Value, parts: &Parts, verbs: &Verbs) -> RowKind {
    let (title, answered) = (title(row), has(parts, "answer"));
    let is_prompt = || {
        let verb_found = verbs.any_known || verbs.learned.is_some();
        let learned = verbs.learned.is_some() && up_to_colon(&title) == verbs.learned.as_deref();
        answered || without_verb(&title).is_some() || learned || !verb_found
    };
    match () {
        () if has_prompt_part(row, parts) => RowKind::Prompt,
        () if is_creation(&title) && answered => RowKind::Creation,
        () if is_creation(&title) || is_event(row, &title) => RowKind::Event,
        () if is_prompt() => RowKind::Prompt,
        () => RowKind::Event,
    }
}

/// The role of the first message of a row.
pub(super) fn role(kind: RowKind, parts: &Parts) -> &'static str {
    match kind {
        RowKind::Prompt => "user",
        RowKind::Event if !has(parts, "answer") => "system",
        RowKind::Creation | RowKind::Event => "assistant",
    }
}

/// Whether a title says that Gemini created something.
pub(super) fn is_creation(title: &str) -> bool {
    title.starts_with("Created") || title.starts_with("Δημιουργήθηκε") || title.ends_with("作成しました")
}

fn is_event(row: &Value, title: &str) -> bool {
    let first = title.split([' ', ':']).next().unwrap_or_default();
    let english = is_english(row) && (EVENT_VERBS.contains(&first) || title.starts_with("Answered survey"));
    english || title.starts_with("使用:")
}

fn is_english(row: &Value) -> bool {
    let labels = [&row["header"], &row["products"][0]];
    row.get("header").is_none()
        || labels.iter().any(|label| *label == "Gemini Apps" || *label == "Gemini" || *label == "Bard")
}

/// The title without the note that counts files.
fn title(row: &Value) -> String {
    let title = text_of(&row["title"]).unwrap_or_default();
    let end = title.rfind("Attached ").filter(|at| title[*at..].trim_end_matches('.').ends_with(['e', 's']));
    title[..end.unwrap_or(title.len())].trim().to_owned()
}

/// The prompt in `text` or in a subtitle, if the title is truncated or does not hold it.
pub(super) fn prompt_outside_title(row: &Value, answered: bool) -> Option<String> {
    let title = title(row);
    let subtitles: Vec<&Value> =
        row["subtitles"].as_array().into_iter().flatten().filter(|line| line.get("url").is_none()).collect();
    let value = subtitles.iter().find_map(|line| text_of(&line["value"]));
    let name = || subtitles.iter().find_map(|line| text_of(&line["name"]));
    let candidates = [text_of(&row["text"]), value.clone()].into_iter().flatten();
    let no_content = title.is_empty() || (is_english(row) && title.starts_with("Used"));
    if no_content {
        return candidates
            .map(|text| text.trim().to_owned())
            .next()
            .or_else(|| name().filter(|_| title.is_empty() && answered));
    }
    if is_creation(&title) || is_event(row, &title) {
        return None;
    }
    let verb = without_verb(&title).is_some();
    let mut longer = candidates.filter_map(|text| longer_prompt(&title, text.trim()));
    let found = longer.next().or_else(|| value.filter(|_| !verb && is_english(row)));
    // If the title holds all of it, it is not a part of its own.
    found.filter(|prompt| without_verb(&title) != Some(prompt.trim()))
}

/// The text behind a known verb and its colon, if it begins with one.
fn without_verb(text: &str) -> Option<&str> {
    let rest = PROMPT_VERBS.iter().find_map(|verb| {
        let rest = text.strip_prefix(verb)?;
        (!rest.starts_with(char::is_alphanumeric)).then_some(rest)
    })?;
    Some(rest.strip_prefix([':', '：']).unwrap_or(rest).trim())
}

/// The prompt in `text`, if the title is its beginning.
fn longer_prompt(title: &str, text: &str) -> Option<String> {
    let colon = title.split_once([':', '：']).map(|(_, rest)| rest);
    let starts = without_verb(title).map_or_else(|| vec![title, colon.unwrap_or(title)], |rest| vec![rest]);
    let bodies = [Some(text), without_verb(text)].into_iter().flatten();
    let mut bodies = bodies.filter(|body| starts.iter().any(|start| starts_with(body, start)));
    bodies.next().map(ToOwned::to_owned)
}

fn starts_with(text: &str, start: &str) -> bool {
    let without_spaces = |text: &str| text.split_whitespace().collect::<String>();
    let start = without_spaces(start.trim_end_matches(['…', '.']));
    !start.is_empty() && without_spaces(text).starts_with(&start)
}

/// One row of a list.
pub(super) struct Row {
    pub(super) row: Value,
    pub(super) parts: Parts,
    pub(super) kind: RowKind,
    /// The ids of the conversations that it names.
    pub(super) conversations: Vec<String>,
}

/// The ids of the conversations of each row: those that it names; for a creation or event that names none, that of the nearest
/// row before it, or else behind it, if there is no pause between them.
pub(super) fn assign(rows: &[Row]) -> Vec<Vec<String>> {
    let mut assigned: Vec<Vec<String>> = rows.iter().map(|row| row.conversations.clone()).collect();
    for kind in [RowKind::Creation, RowKind::Event] {
        let (open, done): (Vec<usize>, Vec<usize>) = (0..rows.len())
            .filter(|at| !rows[*at].conversations.is_empty() || rows[*at].kind <= kind)
            .partition(|at| rows[*at].conversations.is_empty() && rows[*at].kind == kind);
        for at in open {
            let nearest = nearest(rows, &done, at).and_then(|nearest| assigned[nearest].last().cloned());
            assigned[at] = nearest.into_iter().collect();
        }
    }
    assigned
}

/// The nearest of `done` before the row `at`, else behind it.
fn nearest(rows: &[Row], done: &[usize], at: usize) -> Option<usize> {
    let now = microseconds(&rows[at].row)?;
    let dated = done.iter().filter_map(|near| Some((*near, microseconds(&rows[*near].row)?)));
    let dated: Vec<(usize, i64)> = dated.filter(|(_, time)| (now - time).abs() <= MAX_PAUSE).collect();
    let before = dated.iter().filter(|(_, time)| *time <= now).max_by_key(|(_, time)| *time);
    before.or_else(|| dated.iter().min_by_key(|(_, time)| *time)).map(|(near, _)| *near)
}

/// The time of a row, if it can be read.
pub(super) fn microseconds(row: &Value) -> Option<i64> {
    time_text(&row["time"])?.parse().ok()
}
