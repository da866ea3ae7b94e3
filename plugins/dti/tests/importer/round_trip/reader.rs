//! Reads histories without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README that both apply:
//! - messages are sorted by time if the file is not, with the person's message first among equal times; a file that is newest first is
//!   reversed before; one without a time stays behind its predecessor, and each is the parent of the next;
//! - the time of the export is no time of a message, except of the last ones;
//! - the title is the first line of the person's first message; the time of the details counts;
//! - messages that the receipt reports as skipped are ignored.

use satchel_importer::testkit::round_trip::{Chat, RoundTrip, SourceFile, Stored, Turn, text_of, time_text};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "dti", read_file: from_source, ignored: &[], read_stored: from_stored };

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let Some(root) = file.json().or_else(|| file.json_before_cut()) else { return Vec::new() };
    let items = root["messages"].as_array().cloned().unwrap_or_default();
    let place = |at: usize| format!("{}.messages[{at}]", file.name);
    let mut kept: Vec<Value> = items
        .into_iter()
        .enumerate()
        .filter(|(at, item)| item.is_object() && !file.skips(&place(*at)))
        .map(|(_, item)| item)
        .collect();
    if kept.is_empty() {
        return Vec::new();
    }
    let ai = kept.iter().any(|item| item["sender"] == "AI");
    let role = |item: &Value| role(&root["identifiers"], &item["sender"], ai);
    forget_export_time(&root["details"], &mut kept);
    sort(&mut kept, role);
    let id = |at: usize| format!("#{at}");
    let turns = kept.iter().enumerate().map(|(at, item)| Turn {
        id: id(at),
        parent: at.checked_sub(1).map(id),
        role: role(item).to_owned(),
        time: time_text(&item["sentAt"]).filter(|_| micros(item).is_some()),
        parts: text_of(&item["text"]).map(|text| ("text".to_owned(), text)).into_iter().collect(),
    });
    let title = kept.iter().find(|item| role(item) == "user");
    let title = title.and_then(|item| item["text"].as_str()?.lines().next().map(ToOwned::to_owned));
    let times = || kept.iter().filter_map(micros);
    let stated = |name: &str| time_text(&root["details"][name]).filter(|time| time.parse::<i64>().is_ok());
    vec![Chat {
        key: title.clone().unwrap_or_default(),
        title,
        created: stated("startTime").or_else(|| times().min().map(|time| time.to_string())),
        updated: stated("endTime").or_else(|| times().max().map(|time| time.to_string())),
        current: Some(id(kept.len() - 1)),
        turns: turns.collect(),
    }]
}

fn micros(item: &Value) -> Option<i64> {
    time_text(&item["sentAt"])?.parse().ok()
}

/// The role that the README gives to a sender.
fn role(identifiers: &Value, sender: &Value, ai: bool) -> &'static str {
    let Some(name) = sender.as_str() else { return "assistant" };
    let people: Vec<&Value> = identifiers.as_array().into_iter().flatten().collect();
    let people: Vec<&Value> = people.into_iter().filter(|item| item["identifier"].is_string()).collect();
    let found = people.iter().find(|item| item["identifier"] == name || item["name"] == name);
    let person = match found {
        _ if name == "AI" => false,
        None => name.contains('@'),
        Some(item) => {
            let phone = item["identifier"].as_str().is_some_and(|text| text.starts_with('+'));
            item["type"] == "email" || phone || ai || people.len() == 1
        }
    };
    if person { "user" } else { "assistant" }
}

fn forget_export_time(details: &Value, kept: &mut [Value]) {
    let export = &details["createdAt"];
    if *export != details["endTime"] || *export == details["startTime"] {
        return;
    }
    let own = |item: &Value| item["sentAt"].is_string() && item["sentAt"] != *export;
    let last = kept.iter().rposition(own).unwrap_or(kept.len());
    for item in &mut kept[..last] {
        if item["sentAt"] == *export {
            item["sentAt"] = Value::Null;
        }
    }
}

fn sort(kept: &mut Vec<Value>, role: impl Fn(&Value) -> &'static str) {
    let times: Vec<i64> = kept.iter().filter_map(micros).collect();
    if times.is_sorted() {
        return;
    }
    if times.is_sorted_by(|before, after| before >= after) {
        kept.reverse();
    }
    let mut last = (i64::MIN, false);
    let mut keyed: Vec<((i64, bool), Value)> = Vec::new();
    for item in kept.drain(..) {
        if let Some(time) = micros(&item) {
            last = (time, role(&item) == "assistant");
        }
        keyed.push((last, item));
    }
    keyed.sort_by_key(|(key, _)| *key);
    kept.extend(keyed.into_iter().map(|(_, item)| item));
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let id = |at: usize| format!("#{at}");
    let turn = |at: usize| {
        let message = &stored.messages[at];
        Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.role.clone(),
            time: message.time.map(|time| time.to_string()),
            parts: message.texts().into_iter().map(|text| ("text".to_owned(), text)).collect(),
        }
    };
    vec![Chat {
        key: stored.title.clone().unwrap_or_default(),
        title: stored.title.clone(),
        created: stored.created.map(|time| time.to_string()),
        updated: stored.updated.map(|time| time.to_string()),
        current: stored.current.map(id),
        turns: (0..stored.messages.len()).map(turn).collect(),
    }]
}
