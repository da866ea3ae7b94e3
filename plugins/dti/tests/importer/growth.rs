//! What was imported once keeps its ids in later exports.

use std::collections::BTreeSet;

use satchel_importer::{
    Bundle,
    pam::record::ConversationRecord,
    testkit::{conversations, produce, text},
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
    let with_roles = |list: &[(u32, &str, &str)]| {
        let record = read("a.json", "2026-06-02", list);
        let messages = record.messages.into_iter().map(|message| (message.id, format!("{:?}", message.role)));
        (record.id, messages.collect::<BTreeSet<_>>())
    };
    assert_eq!(with_roles(&EARLY), with_roles(&reversed));
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

/// A file of an exporter that writes the time of the export for messages without a time, and uses it as the end.
fn read_session(exported: &str, messages: &[(Option<&str>, &str, &str)]) -> ConversationRecord {
    let messages: Vec<Value> = messages
        .iter()
        .map(|(at, sender, text)| json!({"sentAt": at.unwrap_or(exported), "sender": sender, "text": text}))
        .collect();
    let file = json!({
        "details": {"createdBy": "Grok", "createdAt": exported, "startTime": "2026-06-01T10:00:00Z", "endTime": exported},
        "identifiers": [{"name": "user", "identifier": "user"}],
        "messages": messages,
    });
    let produced = produce::<Dti>(&Bundle::from_files([("a.json", file.to_string())])).expect("it is read");
    let lines: Vec<_> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    conversations(&lines)[0].clone()
}

#[test]
fn ids_and_order_stay_when_missing_times_are_replaced_by_that_of_the_export() {
    let noon = Some("2026-06-01T12:00:00Z");
    let early = [(None, "user", "Hi"), (None, "AI", "Yes"), (noon, "user", "More"), (noon, "AI", "Yes")];
    let later = [&early[..], &[(None, "user", "Thanks")]].concat();
    for count in [2, 4] {
        let before = read_session("2026-06-02T10:00:00Z", &early[..count]);
        let after = read_session("2026-06-09T10:00:00Z", &later);
        assert_eq!(before.id, after.id);
        assert_eq!(before.title.as_deref(), Some("Hi"));
        assert_eq!(before.messages, after.messages[..count]);
        assert!(before.messages[..2].iter().all(|message| message.created_at.is_none()));
    }
}

#[test]
fn the_conversation_keeps_its_id_when_messages_of_its_first_instant_are_added() {
    for count in 2..20 {
        let texts: Vec<String> = (0..count).map(|at| format!("answer {at}")).collect();
        let mut list = vec![(0, "mo@example.org", "Hi")];
        list.extend(texts.iter().map(|text| (0, "AI", text.as_str())));
        let after = read("a.json", "2026-06-02", &list);
        assert_eq!(read("a.json", "2026-06-02", &list[..2]).id, after.id, "{count}");
    }
}

#[test]
fn a_list_that_is_newest_first_is_reversed() {
    let list =
        [(3, "AI", "c"), (2, "AI", "b2"), (2, "AI", "b1"), (2, "mo@example.org", "b0"), (1, "AI", "a")];
    let record = read("a.json", "2026-06-02", &list);
    let mut texts = Vec::new();
    let mut next = record.current.clone();
    while let Some(message) = record.messages.iter().find(|message| Some(&message.id) == next.as_ref()) {
        texts.insert(0, text(message));
        next.clone_from(&message.parent);
    }
    assert_eq!(texts, ["a", "b0", "b1", "b2", "c"]);
}

#[test]
fn a_message_without_text_keeps_its_id_when_the_file_is_formatted_anew() {
    let details = r#"{"createdBy":"x","createdAt":"2026-06-02T10:00:00Z","startTime":"2026-06-01T10:00:00Z","endTime":"2026-06-01T10:00:00Z"}"#;
    let ids_of = |picture: &str| {
        let file = format!(
            r#"{{"details":{details},"identifiers":[],"messages":[{{"sentAt":"2026-06-01T10:00:00Z","sender":"AI","text":"a"}},{picture}]}}"#
        );
        let produced = produce::<Dti>(&Bundle::from_files([("a.json", file)])).expect("it is read");
        let lines: Vec<_> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
        ids(conversations(&lines)[0])
    };
    let one = ids_of(
        r#"{"sentAt":"2026-06-01T10:00:01Z","sender":"AI","caption":"A robin on a fence in the snow."}"#,
    );
    let other = ids_of(
        r#"{ "sentAt": "2026-06-01T10:00:01Z", "sender": "Pi", "caption": "A robin on a fence in the snow." }"#,
    );
    assert_eq!((one.len(), one), (3, other));
}

#[test]
fn the_time_of_an_export_without_an_offset_is_not_kept() {
    let (one, other) =
        (read("a.json", "2026-06-02T10:00:00", &EARLY), read("a.json", "2026-06-09T10:00:00", &EARLY));
    let details = |record: &ConversationRecord| {
        let raw = serde_json::to_value(&record.raw_metadata).expect("it is JSON");
        raw["details"].as_object().map(|details| details.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(details(&one), Some(vec!["createdBy".to_owned()]));
    assert_eq!(details(&other), details(&one));
}

#[test]
fn the_beginning_of_1970_is_no_time() {
    let record = read_session("2026-06-02T10:00:00Z", &[(Some("1970-01-01T00:00:00.000Z"), "user", "Hi")]);
    assert_eq!(record.messages[0].created_at, None);
    let raw = serde_json::to_value(&record.messages[0].raw_metadata).expect("it is JSON");
    assert_eq!(raw["sentAt"], "1970-01-01T00:00:00.000Z");
}
