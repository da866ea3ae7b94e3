//! Reads the lists of My AI without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README that both apply:
//! - the list is reversed unless it begins with the oldest entry, and then sorted by time if needed; each entry is the parent of the next;
//! - entries of an exchange of words alternate if their number is even, or else only the first one is the person's; photos are the person's, and
//!   everything else is My AI's;
//! - entries that the receipt reports as skipped are ignored, and so are chats with people.

use satchel_importer::{
    address::unsigned,
    testkit::round_trip::{Chat, RoundTrip, SourceFile, Stored, Turn, text_of, time_of},
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "snapchat", read_file: from_source, ignored: &[], read_stored: from_stored };

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let root = if file.name.ends_with("html") { page(&file.text) } else { file.json() };
    let Some(root) = root.or_else(|| file.json_before_cut()) else { return Vec::new() };
    let lists = ["My AI Content", "myai", "My AI"];
    lists.iter().filter_map(|name| chat(name, &root[*name], file)).collect()
}

/// The chat of a page, as the file would have it.
fn page(text: &str) -> Option<Value> {
    let (_, table) = text.split_once("<h3>My AI Content</h3>")?;
    let (table, _) = table.split_once("</table>")?;
    let texts = |row: &str, tag: &str| -> Vec<String> {
        let begin = format!("<{tag}");
        let cells = row.split(&begin).skip(1).filter_map(|cell| cell.split_once('>'));
        let plain = |(_, cell): (&str, &str)| {
            let cell = cell.split_once(&format!("</{tag}>")).map_or(cell, |(cell, _)| cell);
            let cell = cell.replace("<b>", "").replace("</b>", "");
            cell.replace("&#x27;", "'").replace("&lt;", "<").replace("&amp;", "&")
        };
        cells.map(plain).collect()
    };
    let mut rows = table.split("<tr>").skip(1);
    let names = texts(rows.next()?, "th");
    let row = |row: &str| -> Value {
        let cells = texts(row, "td");
        if cells.len() != names.len() {
            return Value::Null;
        }
        names.iter().cloned().zip(cells.into_iter().map(Value::from)).collect()
    };
    let list: Vec<Value> = rows.map(row).collect();
    Some(serde_json::json!({ "My AI Content": list }))
}

fn chat(name: &str, list: &Value, file: &SourceFile<'_>) -> Option<Chat> {
    let items = list.as_array()?.iter().enumerate();
    let place = |at: usize| format!("{}.{name}[{at}]", file.name);
    let mut kept: Vec<&Value> = items
        .filter(|(at, item)| item.is_object() && !file.skips(&place(*at)))
        .map(|(_, item)| item)
        .collect();
    if kept.is_empty() {
        return None;
    }
    let ascending =
        |kept: &[&Value]| kept.iter().filter_map(|item| time(item)).collect::<Vec<_>>().is_sorted();
    let ends: Vec<i64> = kept.iter().filter_map(|item| time(item)).collect();
    if !ascending(&kept) || ends.first() == ends.last() {
        kept.reverse();
    }
    if !ascending(&kept) {
        let mut last = i64::MIN;
        let mut keyed: Vec<(i64, &Value)> = Vec::new();
        for item in kept {
            last = time(item).unwrap_or(last);
            keyed.push((last, item));
        }
        keyed.sort_by_key(|(key, _)| *key);
        kept = keyed.into_iter().map(|(_, item)| item).collect();
    }
    let id = |at: usize| format!("#{at}");
    let turn = |at: usize| Turn {
        id: id(at),
        parent: at.checked_sub(1).map(id),
        role: role(&kept, at).to_owned(),
        time: time(kept[at]).map(|time| time.to_string()),
        parts: parts(kept[at]),
    };
    let times = || kept.iter().filter_map(|item| time(item));
    Some(Chat {
        key: "My AI".to_owned(),
        title: None,
        created: times().min().map(|time| time.to_string()),
        updated: times().max().map(|time| time.to_string()),
        current: Some(id(kept.len() - 1)),
        turns: (0..kept.len()).map(turn).collect(),
    })
}

fn time(item: &Value) -> Option<i64> {
    if let Some(millis) = item["Created(microseconds)"].as_i64().filter(|millis| *millis != 0) {
        return Some(millis * 1000);
    }
    let text = if item["Created"].is_string() { &item["Created"] } else { &item["Timestamp"] };
    text.as_i64().map(|seconds| seconds * 1_000_000).or_else(|| time_of(text.as_str()?))
}

fn is_words(item: &Value) -> bool {
    matches!(item["Type"].as_str().or(item["Media Type"].as_str()), Some("CHAT" | "TEXT"))
}

/// The role by the sender, or else by the exchange that the entry belongs to.
fn role(kept: &[&Value], at: usize) -> &'static str {
    if let Some(sent) = kept[at]["IsSender"].as_bool() {
        return if sent { "user" } else { "assistant" };
    }
    let joined = |before: usize| {
        let pair = kept
            .get(before)
            .and_then(|item| time(item))
            .zip(kept.get(before + 1).and_then(|item| time(item)));
        pair.is_some_and(|(one, other)| other - one <= 15_000_000)
    };
    let first = (0..at).rev().take_while(|before| joined(*before)).last().unwrap_or(at);
    let last = (at..kept.len()).find(|at| !joined(*at)).unwrap_or(kept.len() - 1);
    let photo =
        matches!(kept[at]["Type"].as_str().or(kept[at]["Media Type"].as_str()), Some("SNAP" | "MEDIA"));
    let words_alone = kept[first..=last].iter().all(|item| is_words(item));
    let person = match (words_alone, (last - first) % 2) {
        (true, 1) => (at - first).is_multiple_of(2),
        (true, _) => at == first && last > first,
        (false, _) => photo,
    };
    if person { "user" } else { "assistant" }
}

fn parts(item: &Value) -> Vec<(String, String)> {
    let photo = item["Type"] == "SNAP";
    let kind = if photo { "photo" } else { "text" };
    let media = item["Media IDs"].as_str().unwrap_or_default().split(" | ").filter(|id| !id.is_empty());
    let content = text_of(&item["Content"]).map(|text| {
        // The signature of an address that is shared is removed.
        let text = if is_words(item) { text } else { unsigned(&text).into_owned() };
        (kind.to_owned(), text)
    });
    content.into_iter().chain(media.map(|id| ("medium".to_owned(), id.to_owned()))).collect()
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let id = |at: usize| format!("#{at}");
    let turn = |at: usize| {
        let message = &stored.messages[at];
        let texts = message.texts().into_iter().map(|text| ("text".to_owned(), text));
        let files = message.attachments.iter().filter_map(|file| {
            let name = text_of(&file["name"]).map(|name| ("photo".to_owned(), name));
            name.or_else(|| text_of(&file["provider_id"]).map(|id| ("medium".to_owned(), id)))
        });
        Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.role.clone(),
            time: message.time.map(|time| time.to_string()),
            parts: texts.chain(files).collect(),
        }
    };
    vec![Chat {
        key: "My AI".to_owned(),
        title: None,
        created: stored.created.map(|time| time.to_string()),
        updated: stored.updated.map(|time| time.to_string()),
        current: stored.current.map(id),
        turns: (0..stored.messages.len()).map(turn).collect(),
    }]
}
