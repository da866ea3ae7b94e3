//! Broken input: whatever is cut or changed, the importer neither panics nor gives records that make no sense.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::OnceLock,
};

use proptest::prelude::*;
use satchel_importer::{
    Bundle, ErrorKind, Importer, Line, Sink, names,
    pam::record::{ConversationRecord, RecordKind},
};
use satchel_plugin_copilot::Copilot;

const NAME: &str = "copilot-activity-history.csv";
const FORMAT: &str = "copilot-importer/2026.02-history";

/// The files of all fixtures that hold conversations.
fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let bundle = Bundle::from_folder(&fixtures).expect("the fixtures can be listed");
        let paths = bundle.entries().iter().map(|entry| entry.path.as_str());
        let named = paths.filter(|path| path.contains("/input/") && names::ends_in(path, "csv"));
        let whole = named.map(|path| fs::read(fixtures.join(path)).expect("a fixture can be read"));
        whole.filter(|bytes| !conversations(&read(bytes)).is_empty()).collect()
    })
}

/// All that the importer says of one file, whatever it is.
fn read(bytes: &[u8]) -> Vec<Line> {
    let bundle = Bundle::from_files([(NAME, bytes.to_vec())]);
    let found = Copilot::detect(&bundle).expect("detection answers");
    let mut sink = Sink::collecting();
    let ended = Copilot::run(FORMAT, &bundle, &mut sink);
    if let Err(error) = ended {
        assert_eq!(error.kind, ErrorKind::NotThisFormat, "{error}");
        assert!(found.is_empty(), "what was detected is read");
    }
    sink.into_lines()
}

fn conversations(lines: &[Line]) -> Vec<&ConversationRecord> {
    let mut found = Vec::new();
    for line in lines {
        if let Line::Conversation(record) = line {
            found.push(&**record);
        }
    }
    found
}

/// Ids are unique, parents never lead in a circle, `current` is a message.
fn check_tree(record: &ConversationRecord) {
    let parents: BTreeMap<&str, Option<&str>> =
        record.messages.iter().map(|message| (message.id.as_str(), message.parent.as_deref())).collect();
    assert_eq!(parents.len(), record.messages.len(), "message ids are unique");
    let mut sound: BTreeSet<&str> = BTreeSet::new();
    for start in parents.keys() {
        let (mut at, mut path) = (Some(*start), BTreeSet::new());
        while let Some(node) = at.filter(|node| !sound.contains(node)) {
            assert!(path.insert(node), "the parents of {start:?} lead in a circle");
            at = parents.get(node).copied().flatten();
        }
        sound.extend(path);
    }
    assert!(record.current.as_deref().is_none_or(|current| parents.contains_key(current)));
}

/// The texts of all messages.
fn texts(lines: &[Line]) -> Vec<String> {
    let messages = conversations(lines).into_iter().flat_map(|record| &record.messages);
    messages.map(|message| serde_json::to_string(&message.content).expect("it can be written")).collect()
}

fn told(lines: &[Line]) -> bool {
    lines.iter().any(|line| matches!(line, Line::Skip(_) | Line::Warning(_)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(file in 0..corpus().len(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = corpus()[file].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for record in conversations(&read(&bytes)) {
            check_tree(record);
        }
    }
}

#[test]
fn a_file_cut_anywhere_gives_what_stood_whole_before_the_cut() {
    for bytes in corpus() {
        let whole = texts(&read(bytes));
        for cut in 1..bytes.len() {
            let lines = read(&bytes[..cut]);
            let given = texts(&lines);
            // The last row may be cut, which is told; all others are whole.
            let strange = given.iter().filter(|text| !whole.contains(text)).count();
            assert!(strange <= usize::from(told(&lines)), "at {cut}: {given:?}");
            let line_end = matches!(bytes[cut - 1], b'\n' | b'\r');
            let detected = !lines.is_empty();
            assert!(
                !detected || given.len() == whole.len() || told(&lines) || line_end,
                "at {cut}: a loss is told"
            );
        }
    }
}

#[test]
fn a_hundred_thousand_rows_of_one_second_are_read() {
    let mut text = String::from("Conversation,Time,Author,Message\n");
    for _ in 0..100_001 {
        text.push_str("Untitled,2026-01-01T00:00:00,Human,x\n");
    }
    let lines = read(text.as_bytes());
    let read = conversations(&lines);
    let messages: usize = read.iter().map(|record| record.messages.len()).sum();
    assert_eq!(messages, 100_001);
    read.into_iter().for_each(check_tree);
    assert!(told(&lines), "that the conversation goes on in another is told");
}

#[test]
fn a_quotation_mark_that_nobody_closes_costs_no_memory() {
    let mut text = String::from(
        "Conversation,Time,Author,Message\nTea,2026-01-01T00:00:00,Human,whole\nTea,2026-01-01T00:00:00,AI,\"",
    );
    text.push_str(&"never closed, ".repeat(2_000_000));
    let lines = read(text.as_bytes());
    assert_eq!(texts(&lines).len(), 1);
    assert!(lines.iter().any(|line| matches!(line, Line::Skip(skip) if skip.kind == RecordKind::Message)));
}

#[test]
fn newer_rows_change_no_id() {
    let head = "Conversation,Time,Author,Message\r\n";
    let old = "Tea,2026-01-01T00:00:00,AI,a\r\nTea,2026-01-01T00:00:00,Human,q\r\n";
    let new = "Tea,2026-01-02T00:00:00,AI,b\r\nTea,2026-01-02T00:00:00,Human,r\r\n";
    let (before, after) =
        (read(format!("{head}{old}").as_bytes()), read(format!("{head}{new}{old}").as_bytes()));
    let (before, after) = (conversations(&before)[0], conversations(&after)[0]);
    assert_eq!(before.id, after.id);
    assert_eq!(before.messages[..], after.messages[..2]);
    assert_eq!(after.messages.len(), 4);
}

#[test]
fn the_host_can_stop_a_run() {
    let bundle = Bundle::from_files([(NAME, corpus()[0].clone())]);
    let mut sink = Sink::stopping_after(0);
    let error = Copilot::run(FORMAT, &bundle, &mut sink).expect_err("it stops");
    assert_eq!(error.kind, ErrorKind::Cancelled);
}
