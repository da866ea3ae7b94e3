//! The database of the program has the same sessions as its files and its exports, so all of them become the same records.

use std::{collections::BTreeSet, path::Path};

use satchel_importer::{
    Bundle, Importer as _, Line, Memo, Sink,
    names::has_extension,
    testkit::{conversations, messages, produce, skips, text, warnings},
};
use satchel_plugin_goose::Goose;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
/// Facts about a session that the program computes for an export.
const COMPUTED: [&str; 3] = ["message_count", "last_message_at", "last_message_snippet"];

fn bundle(fixture: &str) -> Bundle {
    Bundle::from_folder(&Path::new(FIXTURES).join(fixture).join("input")).expect("the fixture is there")
}

/// What the importer emits for all files of one format.
fn read(bundle: &Bundle, format: &str) -> Vec<Line> {
    let exports = produce::<Goose>(bundle).expect("detection answers").exports;
    exports
        .into_iter()
        .filter(|export| export.detection.format == format)
        .flat_map(|export| export.lines)
        .collect()
}

/// The conversation with this id of the program, as JSON.
fn conversation(lines: &[Line], id: &str) -> Value {
    let found = conversations(lines)
        .into_iter()
        .find(|chat| chat.provider_conversation_id.as_deref() == Some(id))
        .expect("the session is emitted");
    serde_json::to_value(found).expect("it is JSON")
}

#[test]
fn the_database_and_an_export_of_it_give_the_same_records() {
    let lines = read(&bundle("sessions-in-a-database"), "goose-importer/2025.09");
    let mut in_database = conversation(&lines, "20251024_3");
    let mut exported = conversation(&read(&bundle("an-export"), "goose-importer/2025.10"), "20251024_3");
    for one in [&mut in_database, &mut exported] {
        let one = one.as_object_mut().expect("it is an object");
        assert!(one.remove("locator").is_some() && one.remove("export_format_version").is_some());
    }
    let metadata = exported["raw_metadata"].as_object_mut().expect("it is an object");
    metadata.retain(|name, _| !COMPUTED.contains(&name.as_str()));
    assert_eq!(in_database, exported);
}

#[test]
fn a_session_that_was_a_file_is_completed() {
    let bundle = bundle("old-files-and-the-database");
    let id = "20250714_091503";
    let in_file = conversation(&read(&bundle, "goose-importer/2025.01"), id);
    let in_database = conversation(&read(&bundle, "goose-importer/2025.09"), id);
    assert_eq!(in_file["id"], in_database["id"]);
    assert_eq!(in_file["title"], in_database["title"]);
    let (old, new) = (in_file["messages"].as_array(), in_database["messages"].as_array());
    let (old, new) = (old.expect("it is a list"), new.expect("it is a list"));
    assert_eq!((old.len(), new.len()), (9, 11));
    // The database gives each message an id, and the shape of results is another one since 2025.
    for (old, new) in old.iter().zip(new) {
        for field in
            ["id", "role", "parent", "created_at", "content", "tool_calls", "is_thought", "attachments"]
        {
            assert_eq!(old[field], new[field], "{field}");
        }
    }
}

#[test]
fn a_session_that_was_continued_keeps_its_ids() {
    let bundle = bundle("sessions-in-a-database");
    let whole = read(&bundle, "goose-importer/2025.09");
    // Without the write-ahead log, the database is as it was before.
    let before = read(&bundle.only(&["sessions/sessions.db".to_owned()]), "goose-importer/2025.09");
    let ids = |lines: &[Line]| messages(lines).iter().map(|message| message.id.clone()).collect::<Vec<_>>();
    let (whole, before) = (ids(&whole), ids(&before));
    assert!(before.len() < whole.len());
    assert!(before.iter().all(|id| whole.contains(id)));
}

/// Runs with the `memo` of the run before; returns the lines and the new memo.
fn again(bundle: &Bundle, memo: Memo) -> (Vec<Line>, Memo) {
    let mut sink = Sink::with_memo(memo);
    Goose::run("goose-importer/2025.09", bundle, &mut sink).expect("it is a database");
    sink.into_lines_and_memo()
}

#[test]
fn a_session_is_emitted_again_only_if_it_has_changed() {
    let now = bundle("sessions-in-a-database");
    let before = now.only(&["sessions/sessions.db".to_owned()]);
    let (old, memo) = again(&before, Memo::default());
    let (new, memo) = again(&now, memo);
    assert_ne!(old, new);
    assert_eq!(new, again(&now, Memo::default()).0);
    assert_eq!(new, again(&now, memo).0);
}

#[test]
fn messages_are_in_the_order_in_which_the_program_shows_them() {
    let lines = read(&bundle("odd-rows-of-a-database"), "goose-importer/2025.09");
    let texts: Vec<String> = messages(&lines).into_iter().map(text).collect();
    let at = |words: &str| texts.iter().position(|text| text.contains(words)).expect("it is read");
    assert!(at("written before the answer") < at("answer to the second"));
    assert_eq!(skips(&lines).len(), 6, "{:?}", skips(&lines));
    assert!(skips(&lines).iter().all(|skip| skip.locator.contains("[rowid ")));
    assert!(!format!("{lines:?}").contains("SECRETKEY"), "a broken column may have credentials");
}

#[test]
fn damaged_databases_are_reported_and_invent_nothing() {
    let fixtures = ["sessions-in-a-database", "old-files-and-the-database", "threads-of-2026"];
    let mut reported = 0;
    for fixture in fixtures {
        let bundle = bundle(fixture);
        let path =
            bundle.entries().iter().find(|entry| has_extension(&entry.path, "db")).expect("it has one");
        let path = path.path.clone();
        let bytes = bundle.read(&path, 1024 * 1024).expect("it is there");
        let sessions = |bytes: Vec<u8>| {
            let lines = read(&Bundle::from_files([(path.clone(), bytes)]), "goose-importer/2025.09");
            let names: BTreeSet<String> = conversations(&lines)
                .into_iter()
                .filter_map(|chat| chat.provider_conversation_id.clone())
                .collect();
            (names, skips(&lines).len() + warnings(&lines).len())
        };
        let (mut whole, _) = sessions(bytes.clone());
        // Without its session, a thread is no copy.
        whole.insert("6f1d2f0a-0b1c-4d2e-8f3a-000000000001".to_owned());
        for page in 1..bytes.len() / 1024 {
            let mut damaged = bytes.clone();
            damaged[page * 1024..(page + 1) * 1024].fill(0xa5);
            let (left, reports) = sessions(damaged);
            assert!(left.is_subset(&whole), "{fixture}, page {page}");
            reported += usize::from(reports > 0);
        }
        for length in (0..bytes.len()).step_by(509) {
            let (left, _) = sessions(bytes[..length].to_vec());
            assert!(left.is_subset(&whole), "{fixture}, {length} bytes");
        }
    }
    assert!(reported > 10, "{reported}");
}
