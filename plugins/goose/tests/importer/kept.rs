//! What stays the same when a session goes on, when it is exported again, or when its file is copied.

use satchel_importer::testkit::{Unclaimed, conversation_ids, messages, run_file};
use satchel_plugin_goose::Goose;

use crate::hostile::{LINES, SESSION, ids, message, read, read_as, read_export, text};

const CALL: &str =
    r#"{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"ls","arguments":{}}}}"#;

#[test]
fn a_session_that_grows_keeps_its_ids() {
    let all = [
        message("user", 1, &text("List the beds.")),
        message("assistant", 2, &format!("{},{CALL}", text("I'll look."))),
        message(
            "user",
            3,
            r#"{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[]}}"#,
        ),
        message("assistant", 4, &text("Two beds.")),
    ];
    let whole = ids(&read(&all));
    for length in 1..all.len() {
        assert!(whole.starts_with(&ids(&read(&all[..length]))), "{length}");
    }
    // An answer that gets more parts.
    let shorter = message("assistant", 2, &text("I'll look."));
    let before = ids(&read(&[all[0].clone(), shorter, all[2].clone()]));
    assert!(before.iter().all(|id| whole.contains(id)));
}

#[test]
fn lines_and_exports_of_a_session_have_the_same_ids() {
    let plain = [message("user", 1, &text("List the beds.")), message("assistant", 2, CALL)];
    // The database gives messages ids, and a session that is shortened changes what is shown.
    let later = plain.clone().map(|message| {
        message.replacen(
            r#"{"role""#,
            r#"{"id":"msg_s_7","metadata":{"userVisible":true,"agentVisible":false},"role""#,
            1,
        )
    });
    let spaced = later.clone().map(|message| message.replace(":[", ": [\n  "));
    assert_eq!(ids(&read(&plain)), ids(&read_export(&later, "")));
    assert_eq!(ids(&read(&plain)), ids(&read_export(&spaced, "")));
}

#[test]
fn a_text_that_the_program_cut_is_the_same_message() {
    let long = "a long text ".repeat(6_000);
    let cut = format!("{}\\n\\n[... content truncated during session loading]", &long[..50_000]);
    let read = |text_of: &str| ids(&read(&[message("user", 1, &text(text_of))]));
    assert_eq!(read(&long), read(&cut));
}

#[test]
fn the_copy_of_a_file_is_the_same_session() {
    let file = format!("{SESSION}\n{}\n", message("user", 1, &text("x")));
    for name in ["20250801_100315.jsonl", "20250801_100315 (1).jsonl", "b/20250801_100315 copy.jsonl"] {
        let lines = run_file::<Goose>(LINES, name, file.as_bytes()).checked_lines(Unclaimed::ReadOrRefused);
        assert_eq!(conversation_ids(&lines), ["20250801_100315"], "{name}");
    }
    let other = read_as("another.jsonl", file.as_bytes());
    assert_eq!(ids(&other), ids(&read_as("20250801_100315.jsonl", file.as_bytes())));
}

#[test]
fn members_of_an_export_may_come_in_any_order() {
    let own = message("user", 1, &text("x"));
    let sorted = format!(
        r#"{{"artifacts":[],"child_sessions":[],"conversation":[{own}],"extension_data":{{}},"id":"s","message_count":1,"name":"Beds","session_type":"user","working_dir":"/x"}}"#
    );
    let lines = read_as("a.json", sorted.as_bytes());
    assert_eq!((conversation_ids(&lines), messages(&lines).len()), (vec!["s"], 1));
}

#[test]
fn times_are_read_in_the_unit_that_they_have() {
    let time = |created: &str| {
        let line = format!(r#"{{"role":"user","created":{created},"content":[]}}"#);
        messages(&read(&[line, message("user", 1, &text("x"))])).first().and_then(|first| first.created_at)
    };
    for created in ["1752484503", "1752484503000", "\"2025-07-14T09:15:03Z\"", "\"1752484503\""] {
        assert_eq!(time(created), Some(1_752_484_503_000_000), "{created}");
    }
    let id = |created: &str| {
        ids(&read(&[
            format!(r#"{{"role":"user","created":{created},"content":[]}}"#),
            message("user", 1, ""),
        ]))
    };
    assert_eq!(id("1752484503"), id("1752484503000"));
    assert_eq!(time("1752484503.25"), Some(1_752_484_503_250_000));
    assert_eq!((time("{}"), time("\"soon\"")), (None, None));
}

#[test]
fn an_unknown_part_that_is_a_sentence_is_kept() {
    let part = r#"{"type":"citation","note":"This sentence is in a part that nobody knows."}"#;
    let lines = read(&[message("assistant", 1, part)]);
    assert!(format!("{:?}", messages(&lines)).contains("nobody knows"), "{lines:?}");
}

/// Goose counts the sessions of a day for each database, so two computers have a session with the same id.
#[test]
fn sessions_of_two_databases_with_the_same_id_are_two_conversations() {
    let export = |id: &str, created: &str, title: &str| {
        let message = message("user", 1, &text("x"));
        let json = format!(
            r#"{{"id":"{id}","created_at":"{created}","name":"{title}","working_dir":"/x","session_type":"user","extension_data":{{}},"conversation":[{message}]}}"#
        );
        conversation_ids(&read_as("a.json", json.as_bytes())).concat()
    };
    let laptop = export("20251014_1", "2025-10-14T08:00:00Z", "Beds");
    assert_ne!(laptop, export("20251014_1", "2025-10-14T09:30:00Z", "Bread"));
    assert_eq!(laptop, export("20251014_1", "2025-10-14 08:00:00", "Renamed"));
    // Ids of sessions that were files name a second, and stay those of the files.
    assert_eq!(export("20250801_100315", "2025-08-01T10:03:15Z", "Beds"), "20250801_100315");
}
