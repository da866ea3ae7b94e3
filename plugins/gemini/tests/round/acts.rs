//! Rows of activity that are not simply a title and an answer: who speaks, where the prompt stands beside the title, and which
//! conversation a row without an id goes on with. Told by the rules of the README alone.

use satchel_importer::testkit::round::{text_of, time_told};
use serde_json::Value;

use super::Said;

/// The words before a prompt, the longer first.
const ASKED: [&str; 22] = [
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

/// First words of English titles that tell of no prompt.
const HAPPENED: [&str; 18] = [
    "Added", "Cleared", "Created", "Deleted", "Edited", "Exported", "Gave", "Pinned", "Removed", "Renamed",
    "Searched", "Selected", "Shared", "Unpinned", "Updated", "Used", "Viewed", "Visited",
];

/// So long after the last row a conversation still goes on, in microseconds.
const GOES_ON: i64 = 30 * 60 * 1_000_000;

/// What a row tells of; in this order rows find their conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    Asked,
    /// Gemini made something, and the row holds it.
    Made,
    Happened,
}

/// What a list tells of the words before its prompts.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Some are known.
    known: bool,
    /// Of an unknown language: what nearly all answered rows begin with, up to a colon.
    learned: Option<String>,
}

pub(super) fn words(rows: &[(Value, Said)]) -> Words {
    let rows =
        rows.iter().filter(|(row, said)| !prompted(row, said)).map(|(row, said)| (title(row), row, said));
    let rows = rows.filter(|(title, row, _)| !is_of_a_work(title) && !is_event(row, title));
    let (known, unknown): (Vec<_>, Vec<_>) = rows.partition(|(title, ..)| behind_verb(title).is_some());
    let answered: Vec<&String> =
        unknown.iter().filter(|(.., said)| has(said, "answer")).map(|(title, ..)| title).collect();
    let begin_so = |first: &str| answered.iter().filter(|title| up_to_colon(title) == Some(first)).count();
    let first = answered.iter().filter_map(|title| up_to_colon(title)).max_by_key(|first| begin_so(first));
    let learned = first.filter(|first| begin_so(first) >= 3 && begin_so(first) * 10 >= answered.len() * 9);
    Words { known: !known.is_empty(), learned: learned.map(ToOwned::to_owned) }
}

fn up_to_colon(title: &str) -> Option<&str> {
    title.split_once([':', '：']).map(|(first, _)| first)
}

/// Whether the prompt stands beside the title, or is all that there is for one.
fn prompted(row: &Value, said: &Said) -> bool {
    has(said, "prompt") || (text_of(&row["title"]).is_none() && has(said, "title"))
}

fn has(said: &Said, kind: &str) -> bool {
    said.iter().any(|(found, _)| found == kind)
}

pub(super) fn act(row: &Value, said: &Said, words: &Words) -> Act {
    let (title, answered) = (title(row), has(said, "answer"));
    let asked = || {
        let told_apart = words.known || words.learned.is_some();
        let learned = words.learned.is_some() && up_to_colon(&title) == words.learned.as_deref();
        answered || behind_verb(&title).is_some() || learned || !told_apart
    };
    match () {
        () if prompted(row, said) => Act::Asked,
        () if is_of_a_work(&title) && answered => Act::Made,
        () if is_of_a_work(&title) || is_event(row, &title) => Act::Happened,
        () if asked() => Act::Asked,
        () => Act::Happened,
    }
}

/// Who speaks in the first message of a row.
pub(super) fn role(act: Act, said: &Said) -> &'static str {
    match act {
        Act::Asked => "user",
        Act::Happened if !has(said, "answer") => "system",
        Act::Made | Act::Happened => "assistant",
    }
}

/// Whether a title says that Gemini made something.
pub(super) fn is_of_a_work(title: &str) -> bool {
    title.starts_with("Created") || title.starts_with("Δημιουργήθηκε") || title.ends_with("作成しました")
}

fn is_event(row: &Value, title: &str) -> bool {
    let first = title.split([' ', ':']).next().unwrap_or_default();
    let english = is_english(row) && (HAPPENED.contains(&first) || title.starts_with("Answered survey"));
    english || title.starts_with("使用:")
}

fn is_english(row: &Value) -> bool {
    let labels = [&row["header"], &row["products"][0]];
    row.get("header").is_none()
        || labels.iter().any(|label| *label == "Gemini Apps" || *label == "Gemini" || *label == "Bard")
}

/// The title without the remark that counts files.
fn title(row: &Value) -> String {
    let title = text_of(&row["title"]).unwrap_or_default();
    let end = title.rfind("Attached ").filter(|at| title[*at..].trim_end_matches('.').ends_with(['e', 's']));
    title[..end.unwrap_or(title.len())].trim().to_owned()
}

/// The prompt where it stands in `text`, or below the title, because the title is cut or says nothing of it.
pub(super) fn prompt_beside(row: &Value, answered: bool) -> Option<String> {
    let title = title(row);
    let below: Vec<&Value> =
        row["subtitles"].as_array().into_iter().flatten().filter(|line| line.get("url").is_none()).collect();
    let value = below.iter().find_map(|line| text_of(&line["value"]));
    let name = || below.iter().find_map(|line| text_of(&line["name"]));
    let fuller = [text_of(&row["text"]), value.clone()].into_iter().flatten();
    let silent = title.is_empty() || (is_english(row) && title.starts_with("Used"));
    if silent {
        return fuller
            .map(|text| text.trim().to_owned())
            .next()
            .or_else(|| name().filter(|_| title.is_empty() && answered));
    }
    if is_of_a_work(&title) || is_event(row, &title) {
        return None;
    }
    let verb = behind_verb(&title).is_some();
    let mut fuller = fuller.filter_map(|text| whole(&title, text.trim()));
    let found = fuller.next().or_else(|| value.filter(|_| !verb && is_english(row)));
    // It is told once if the title says all of it.
    found.filter(|prompt| behind_verb(&title) != Some(prompt.trim()))
}

/// What is behind the words before a prompt, if the text begins with such; a colon goes with them.
fn behind_verb(text: &str) -> Option<&str> {
    let rest = ASKED.iter().find_map(|verb| {
        let rest = text.strip_prefix(verb)?;
        (!rest.starts_with(char::is_alphanumeric)).then_some(rest)
    })?;
    Some(rest.strip_prefix([':', '：']).unwrap_or(rest).trim())
}

/// The prompt in `beside`, if it goes on as the title begins.
fn whole(title: &str, beside: &str) -> Option<String> {
    let colon = title.split_once([':', '：']).map(|(_, rest)| rest);
    let starts = behind_verb(title).map_or_else(|| vec![title, colon.unwrap_or(title)], |rest| vec![rest]);
    let bodies = [Some(beside), behind_verb(beside)].into_iter().flatten();
    let mut bodies = bodies.filter(|body| starts.iter().any(|start| goes_on_as(body, start)));
    bodies.next().map(ToOwned::to_owned)
}

fn goes_on_as(whole: &str, start: &str) -> bool {
    let close = |text: &str| text.split_whitespace().collect::<String>();
    let start = close(start.trim_end_matches(['…', '.']));
    !start.is_empty() && close(whole).starts_with(&start)
}

/// One row of a list.
pub(super) struct Row {
    pub(super) row: Value,
    pub(super) said: Said,
    pub(super) act: Act,
    /// The conversations that it names.
    pub(super) named: Vec<String>,
}

/// The conversations of each row: those it names; of what was made or happened without naming any, that of the row before it,
/// or else behind it, if that is near. None for rows that stand in conversations without an id.
pub(super) fn homes(rows: &[Row]) -> Vec<Vec<String>> {
    let mut homes: Vec<Vec<String>> = rows.iter().map(|row| row.named.clone()).collect();
    for act in [Act::Made, Act::Happened] {
        let (lost, settled): (Vec<usize>, Vec<usize>) = (0..rows.len())
            .filter(|at| !rows[*at].named.is_empty() || rows[*at].act <= act)
            .partition(|at| rows[*at].named.is_empty() && rows[*at].act == act);
        for at in lost {
            let near = near(rows, &settled, at).and_then(|near| homes[near].last().cloned());
            homes[at] = near.into_iter().collect();
        }
    }
    homes
}

/// The row that was going on when the one at `at` was written.
fn near(rows: &[Row], settled: &[usize], at: usize) -> Option<usize> {
    let now = microseconds(&rows[at].row)?;
    let dated = settled.iter().filter_map(|near| Some((*near, microseconds(&rows[*near].row)?)));
    let dated: Vec<(usize, i64)> = dated.filter(|(_, time)| (now - time).abs() <= GOES_ON).collect();
    let before = dated.iter().filter(|(_, time)| *time <= now).max_by_key(|(_, time)| *time);
    before.or_else(|| dated.iter().min_by_key(|(_, time)| *time)).map(|(near, _)| *near)
}

/// The time of a row, if it can be read.
pub(super) fn microseconds(row: &Value) -> Option<i64> {
    time_told(&row["time"])?.parse().ok()
}
