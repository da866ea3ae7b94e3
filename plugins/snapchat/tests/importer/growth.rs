//! What was imported once keeps its ids in later exports.

use std::collections::BTreeSet;

use satchel_importer::{
    Bundle, Line,
    pam::record::ConversationRecord,
    testkit::{conversations, evidence, produce},
};
use satchel_plugin_snapchat::Snapchat;
use serde_json::{Value, json};

fn lines(path: &str, file: &Value) -> Vec<Line> {
    let produced =
        produce::<Snapchat>(&Bundle::from_files([(path, file.to_string())])).expect("detection answers");
    produced.exports.into_iter().flat_map(|export| export.lines).collect()
}

/// The conversation of entries: time in seconds and words.
fn read(path: &str, entries: &[(u32, &str)]) -> ConversationRecord {
    let entry = |(second, words): &(u32, &str)| json!({"Timestamp": format!("2025-03-09 10:{:02}:{:02} UTC", second / 60, second % 60), "Type": "CHAT", "Content": words});
    let file = json!({"My AI Content": entries.iter().map(entry).collect::<Vec<_>>()});
    conversations(&lines(path, &file))[0].clone()
}

fn ids(record: &ConversationRecord) -> BTreeSet<String> {
    record.messages.iter().map(|message| message.id.clone()).chain([record.id.clone()]).collect()
}

const EARLY: [(u32, &str); 5] = [(65, "Yes"), (65, "Yes"), (63, "Yes"), (2, "Hello!"), (2, "Hi")];

#[test]
fn ids_and_roles_stay_when_the_chat_goes_on_and_the_file_moves() {
    let before = read("json/snapchat_ai.json", &EARLY);
    let later = [&[(400, "Bye!"), (399, "Bye")], &EARLY[..]].concat();
    let after = read("mydata/json/renamed.json", &later);
    assert!(ids(&before).is_subset(&ids(&after)));
    assert_eq!((ids(&before).len(), ids(&after).len()), (6, 8));
    let role = |record: &ConversationRecord, id: &str| {
        record.messages.iter().find(|message| message.id == id).map(|message| message.role)
    };
    for message in &before.messages {
        assert_eq!(role(&after, &message.id), Some(message.role));
    }
}

#[test]
fn ids_do_not_depend_on_the_order_of_the_list() {
    let mut reversed = EARLY;
    reversed.reverse();
    assert_eq!(ids(&read("a.json", &EARLY)), ids(&read("a.json", &reversed)));
}

#[test]
fn the_same_memory_is_the_same_evidence() {
    let memory = |time: &str, text: &str| {
        let file = json!({"My AI Memory": [{"Timestamp": time, "Memory": text}], "My AI Content": []});
        evidence(&lines("a.json", &file))[0].id.clone()
    };
    let first = memory("2025-03-09 10:00:00 UTC", "User has a dog.");
    assert_eq!(first, memory("2025-03-09 10:00:00 UTC", "User has a dog.\n"));
    assert_ne!(first, memory("2025-03-10 10:00:00 UTC", "User has a cat."));
}
