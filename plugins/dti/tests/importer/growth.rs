//! What was imported once keeps its ids in later exports.

use std::collections::BTreeSet;

use satchel_importer::{
    Bundle,
    pam::record::ConversationRecord,
    testkit::{conversations, produce},
};
use satchel_plugin_dti::Dti;
use serde_json::{Value, json};

/// The conversation of a file with these messages: time in seconds, sender, text.
fn read(name: &str, created: &str, messages: &[(u32, &str, &str)]) -> ConversationRecord {
    let at = |second: u32| format!("2026-06-01T10:00:{second:02}Z");
    let messages: Vec<Value> = messages
        .iter()
        .map(|(second, sender, text)| json!({"sentAt": at(*second), "sender": sender, "text": text}))
        .collect();
    let ends = messages.last().map(|last| last["sentAt"].clone());
    let file = json!({
        "details": {"createdBy": created, "createdAt": created, "startTime": at(0), "endTime": ends},
        "identifiers": [{"name": "Mo", "type": "email", "identifier": "mo@example.org"}],
        "messages": messages,
    });
    let produced =
        produce::<Dti>(&Bundle::from_files([(name, file.to_string())])).expect("detection answers");
    let lines: Vec<_> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    conversations(&lines)[0].clone()
}

fn ids(record: &ConversationRecord) -> BTreeSet<String> {
    record.messages.iter().map(|message| message.id.clone()).chain([record.id.clone()]).collect()
}

const EARLY: [(u32, &str, &str); 4] = [
    (1, "mo@example.org", "Hi"),
    (1, "AI", "Hi"),
    (2, "mo@example.org", "Yes"),
    (2, "mo@example.org", "Yes"),
];

#[test]
fn ids_stay_when_the_conversation_goes_on() {
    let before = read("a.json", "2026-06-02", &EARLY);
    let later = [&EARLY[..], &[(2, "mo@example.org", "Yes"), (9, "AI", "Good.")]].concat();
    let after = read("renamed.json", "2026-06-09", &later);
    assert_eq!(before.id, after.id);
    assert!(ids(&before).is_subset(&ids(&after)));
    assert_eq!((ids(&before).len(), ids(&after).len()), (5, 7));
}

#[test]
fn ids_do_not_depend_on_the_order_of_the_list() {
    let mut reversed = EARLY;
    reversed.reverse();
    assert_eq!(ids(&read("a.json", "2026-06-02", &EARLY)), ids(&read("a.json", "2026-06-02", &reversed)));
}

#[test]
fn ids_stay_when_an_address_changes() {
    let moved =
        EARLY.map(|(at, sender, text)| (at, if sender == "AI" { "AI" } else { "m@example.com" }, text));
    assert_eq!(ids(&read("a.json", "2026-06-02", &EARLY)), ids(&read("a.json", "2026-06-02", &moved)));
}

#[test]
fn a_later_export_of_the_same_messages_is_the_same_conversation() {
    let mut later = read("b.json", "2026-06-09", &EARLY);
    let before = read("a.json", "2026-06-09", &EARLY);
    later.locator.clone_from(&before.locator);
    assert_eq!(later, before);
}
