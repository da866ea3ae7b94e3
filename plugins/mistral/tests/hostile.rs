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
use satchel_plugin_mistral::Mistral;

const NAME: &str = "chat-x.json";
const FORMAT: &str = "mistral-importer/2025.09";

/// The files of all fixtures that hold conversations.
fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let bundle = Bundle::from_folder(&fixtures).expect("the fixtures can be listed");
        let paths = bundle.entries().iter().map(|entry| entry.path.as_str());
        let named = paths.filter(|path| path.contains("/input/") && names::ends_in(path, "json"));
        let whole = named.map(|path| fs::read(fixtures.join(path)).expect("a fixture can be read"));
        whole.filter(|bytes| !conversations(&read(bytes)).is_empty()).collect()
    })
}

/// All that the importer says of one file, whatever it is.
fn read(bytes: &[u8]) -> Vec<Line> {
    let bundle = Bundle::from_files([(NAME, bytes.to_vec())]);
    let found = Mistral::detect(&bundle).expect("detection answers");
    let mut sink = Sink::collecting();
    let ended = Mistral::run(FORMAT, &bundle, &mut sink);
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

    #[test]
    fn values_of_other_types_never_panic(file in 0..corpus().len(), at in any::<prop::sample::Index>(), value in 0..8_usize) {
        let text = String::from_utf8_lossy(&corpus()[file]).into_owned();
        let places: Vec<usize> = text.match_indices("\":").map(|(at, _)| at + 2).collect();
        prop_assume!(!places.is_empty());
        let at = *at.get(&places);
        let values = ["null", "true", "0", "-1.5e300", "\"x\"", "[[{}]]", "{\"a\":{\"b\":[null]}}", "\"\\ud800\""];
        // The old value becomes the value of a key that nobody knows.
        let odd = format!("{}{},\"zz\": {}", &text[..at], values[value], &text[at..]);
        for record in conversations(&read(odd.as_bytes())) {
            check_tree(record);
        }
    }
}

#[test]
fn a_hundred_thousand_messages_and_no_order_are_read() {
    use std::fmt::Write as _;
    let mut text = String::from("[");
    for at in 0..100_000_u32 {
        // A permutation: the step has no factor in common with the count.
        let second = u64::from(at) * 7919 % 100_000;
        let comma = if at == 0 { "" } else { "," };
        write!(text, r#"{comma}{{"id":"m{second}","chatId":"c","role":"user","createdAt":{},"content":"x","contentChunks":null}}"#, 1_700_000_000 + second)
            .expect("strings take all");
    }
    text.push(']');
    let lines = read(text.as_bytes());
    let record = conversations(&lines)[0];
    assert_eq!(record.messages.len(), 100_000);
    for message in &record.messages {
        let number: u32 = message.id[1..].parse().expect("a number");
        let before = number.checked_sub(1).map(|before| format!("m{before}"));
        assert_eq!(message.parent, before);
    }
}

#[test]
fn nesting_beyond_the_limit_skips_the_message_alone() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let text = format!(
        r#"[{{"id":"a","chatId":"c","role":"user","content":"x","contentChunks":null,"odd":{deep}}},{{"id":"b","chatId":"c","role":"user","content":"y","contentChunks":null}}]"#
    );
    let lines = read(text.as_bytes());
    assert_eq!(texts(&lines).len(), 1);
    assert!(lines.iter().any(|line| matches!(line, Line::Skip(skip) if skip.kind == RecordKind::Message)));
}

#[test]
fn a_file_cut_anywhere_gives_what_stood_whole_before_the_cut() {
    for bytes in corpus() {
        let whole = texts(&read(bytes));
        for cut in 1..bytes.len() {
            let lines = read(&bytes[..cut]);
            let given = texts(&lines);
            assert!(given.iter().all(|text| whole.contains(text)), "at {cut}: {given:?}");
            let detected = !lines.is_empty();
            assert!(!detected || given.len() == whole.len() || told(&lines), "at {cut}: a loss is told");
        }
    }
}

#[test]
fn no_signature_of_an_address_is_handed_on() {
    let all: Vec<String> = corpus().iter().map(|bytes| format!("{:?}", read(bytes))).collect();
    let all = all.concat();
    assert!(
        all.contains("example.org/town") && !all.contains("secret"),
        "a fixture holds secrets, and none comes out"
    );
}

#[test]
fn the_host_can_stop_a_run() {
    let bundle = Bundle::from_files([(NAME, corpus()[0].clone())]);
    let mut sink = Sink::stopping_after(0);
    let error = Mistral::run(FORMAT, &bundle, &mut sink).expect_err("it stops");
    assert_eq!(error.kind, ErrorKind::Cancelled);
}
