//! Reads Copilot's tables without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Conversations*) that both apply:
//! - adjacent rows of one title are one conversation; if the title is a common one, until a pause of more than 30 minutes;
//! - rows are oldest first, each the parent of the next; a row without a time stays after the one before it;
//! - the author of app tables is the person, and a blank author is the assistant;
//! - the times of a conversation are those of its oldest and newest row;
//! - rows that the receipt reports as skipped, and the one in which a file ends, are ignored.

use csv::{ReaderBuilder, StringRecord};
use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, time_of,
};

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "copilot", read_file: from_source, ignored: &[], read_stored: from_stored };

/// Names of columns: title, time, author, text. The last set is in another language.
const HEADERS: [[&str; 4]; 4] = [
    ["conversation", "time", "author", "message"],
    ["chatname", "createdat", "author", "messagecontent"],
    ["clientapp", "timestamp", "", "prompt"],
    ["unterhaltung", "uhrzeit", "autor", "nachricht"],
];
/// Titles that many chats have.
const COMMON: [&str; 3] = ["", "untitled", "new chat"];
/// Microseconds.
const PAUSE: u64 = 30 * 60 * 1_000_000;

/// A row: title, time as text and in microseconds, author, text.
#[derive(Clone, Debug)]
struct Row {
    title: String,
    time: String,
    micros: Option<i64>,
    author: String,
    text: String,
}

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let delimiter = if file.text.starts_with("Time;") { b';' } else { b',' };
    let mut reader =
        ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(file.text.as_bytes());
    let Ok(header) = reader.headers().cloned() else { return Vec::new() };
    let index = |name: &str| header.iter().position(|column| column.eq_ignore_ascii_case(name));
    let Some(names) = HEADERS.iter().find(|names| index(names[0]).is_some() && index(names[3]).is_some())
    else {
        return Vec::new();
    };
    let records: Vec<StringRecord> = reader.records().filter_map(Result::ok).collect();
    let cut = (0..=file.text.len()).any(|at| file.skips(&format!("{}@{at}", file.name)));
    let whole = records.len() - usize::from(cut);
    let cell = |record: &StringRecord, name: &str| {
        index(name).and_then(|at| record.get(at)).unwrap_or_default().to_owned()
    };
    let rows =
        records.iter().take(whole).enumerate().filter(|(at, _)| !file.skips(&format!("{}[{at}]", file.name)));
    let rows: Vec<Row> = rows
        .map(|(_, record)| {
            let time = cell(record, names[1]);
            let micros = micros(&time);
            Row {
                title: cell(record, names[0]),
                micros,
                time,
                author: cell(record, names[2]),
                text: cell(record, names[3]),
            }
        })
        .collect();
    let apps = names[0] == "clientapp";
    let default_author = if apps { "Human" } else { "AI" };
    groups(rows, apps).into_iter().map(|rows| chat(rows, default_author)).collect()
}

/// ISO 8601, or month, day and year with slashes and an offset.
fn micros(text: &str) -> Option<i64> {
    let Some((date, rest)) = text.split_once(' ').filter(|(date, _)| date.contains('/')) else {
        return time_of(text);
    };
    let mut date = date.split('/').map(|part| format!("{part:0>2}"));
    let (month, day, year) = (date.next()?, date.next()?, date.next()?);
    let (clock, zone) = rest.split_once(' ').unwrap_or((rest, ""));
    time_of(&format!("{year}-{month}-{day}T{clock:0>8}{zone}"))
}

fn groups(rows: Vec<Row>, apps: bool) -> Vec<Vec<Row>> {
    let dated: Vec<i64> = rows.iter().filter_map(|row| row.micros).collect();
    let newest_first = match (dated.first(), dated.last()) {
        (Some(first), Some(last)) if first != last => first > last,
        _ => rows.first().is_some_and(|row| row.author.eq_ignore_ascii_case("ai")),
    };
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        let common = apps || COMMON.contains(&row.title.trim().to_lowercase().as_str());
        let continues = |group: &&mut Vec<Row>| {
            let last = group.last().filter(|last| last.title == row.title);
            let paused = |last: &Row| last.micros.zip(row.micros).is_some_and(|(a, b)| a.abs_diff(b) > PAUSE);
            last.is_some_and(|last| !(common && paused(last)))
        };
        match groups.last_mut().filter(continues) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    if newest_first {
        groups.iter_mut().for_each(|group| group.reverse());
    }
    groups
}

/// `default_author` is the author of rows without one.
fn chat(rows: Vec<Row>, default_author: &str) -> Chat {
    let (mut before, mut keyed) = (i64::MIN, Vec::new());
    for row in rows {
        before = row.micros.unwrap_or(before);
        keyed.push((before, row));
    }
    keyed.sort_by_key(|(time, _)| *time);
    let rows: Vec<Row> = keyed.into_iter().map(|(_, row)| row).collect();
    let times: Vec<i64> = rows.iter().filter_map(|row| row.micros).collect();
    let turn = |(at, row): (usize, &Row)| Turn {
        id: format!("#{at}"),
        parent: at.checked_sub(1).map(|above| format!("#{above}")),
        role: if row.author.trim().is_empty() { default_author.to_owned() } else { row.author.clone() },
        time: row.micros.map(|micros| micros.to_string()).or_else(|| Some(row.time.clone())),
        parts: (!row.text.is_empty()).then(|| ("text".to_owned(), row.text.clone())).into_iter().collect(),
    };
    let title = rows.first().map(|row| row.title.clone()).filter(|title| !title.trim().is_empty());
    Chat {
        key: format!("{title:?} {:?}", times.iter().min()),
        title,
        created: times.iter().min().map(ToString::to_string),
        updated: times.iter().max().map(ToString::to_string),
        current: None,
        turns: rows.iter().enumerate().map(turn).collect(),
    }
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let turn = |(at, message): (usize, &StoredMessage)| Turn {
        id: format!("#{at}"),
        parent: message.parent.map(|above| format!("#{above}")),
        role: author(message),
        time: ["Time", "CreatedAt", "Timestamp"].iter().find_map(|name| message.time_text(name)),
        parts: message.texts().into_iter().map(|text| ("text".to_owned(), text)).collect(),
    };
    vec![Chat {
        key: format!("{:?} {:?}", stored.title, stored.created.as_ref()),
        title: stored.title.clone(),
        created: stored.created.map(|time| time.to_string()),
        updated: stored.updated.map(|time| time.to_string()),
        current: None,
        turns: stored.messages.iter().enumerate().map(turn).collect(),
    }]
}

fn author(message: &StoredMessage) -> String {
    let names = ["Author", "author", "Autor"];
    let author = names.iter().find_map(|name| message.metadata_text(name));
    author.unwrap_or_else(|| if message.role == "user" { "Human" } else { "AI" }.to_owned())
}
