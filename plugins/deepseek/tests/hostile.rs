//! Broken input: whatever is cut or changed, the importer neither panics nor gives records that make no sense.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
    sync::OnceLock,
};

use proptest::prelude::*;
use satchel_importer::{Bundle, ErrorKind, Importer, Line, Sink, pam::record::ConversationRecord};
use satchel_plugin_deepseek::DeepSeek;

const FILE: &str = "conversations.json";

/// The conversations of all fixtures that are ours.
fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let bundle = Bundle::from_folder(&fixtures).expect("the fixtures can be listed");
        let paths =
            bundle.entries().iter().map(|entry| entry.path.as_str()).filter(|path| path.ends_with(FILE));
        paths.map(|path| fs::read(fixtures.join(path)).expect("a fixture can be read")).collect()
    })
}

/// All that the importer says of one file, whatever it is; nothing if it does not know it.
fn read(bytes: &[u8]) -> Vec<Line> {
    let bundle = Bundle::from_files([(FILE, bytes.to_vec())]);
    let mut lines = Vec::new();
    for detection in DeepSeek::detect(&bundle).expect("detection answers") {
        let mut sink = Sink::collecting();
        DeepSeek::run(&detection.format, &bundle, &mut sink).expect("a run comes to its end");
        lines.extend(sink.into_lines());
    }
    lines
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
    for start in parents.keys() {
        let mut at = *start;
        for step in 0.. {
            assert!(step <= parents.len(), "the parents of {start:?} lead in a circle");
            match parents.get(at).copied().flatten() {
                Some(above) => at = above,
                None => break,
            }
        }
    }
    assert!(record.current.as_deref().is_none_or(|current| parents.contains_key(current)));
}

/// Whether nothing shows that there was more: every line of what is left gave its conversation.
fn ends_between_lines(left: &[u8], given: usize) -> bool {
    left.starts_with(b"{") && given == left.trim_ascii().split(|byte| *byte == b'\n').count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_file_gives_what_stood_whole_before_the_cut(file in 0..corpus().len(), cut in any::<prop::sample::Index>()) {
        let bytes = &corpus()[file];
        let cut = cut.index(bytes.len());
        let (whole, lines) = (read(bytes), read(&bytes[..cut]));
        let (whole, given) = (conversations(&whole), conversations(&lines));
        prop_assert!(given.len() <= whole.len());
        for (given, whole) in given.iter().zip(&whole) {
            prop_assert_eq!(&given.id, &whole.id);
            prop_assert_eq!(&given.messages, &whole.messages);
        }
        let told = lines.iter().any(|line| matches!(line, Line::Skip(skip) if skip.locator.contains('@')));
        // What was cut so early that nobody can tell whose it is gives no line at all.
        let known = !lines.is_empty();
        let between = ends_between_lines(&bytes[..cut], given.len());
        prop_assert!(told || !known || between || bytes[cut..].trim_ascii().is_empty(), "a cut is told");
    }

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
        let places: Vec<usize> = text.match_indices(": ").map(|(at, _)| at + 2).collect();
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
fn a_hundred_thousand_children_are_read() {
    let mut text = String::from(r#"[{"id":"wide","mapping":{"root":{"parent":null,"message":null}"#);
    for node in 0..99_000 {
        let parent = if node < 50_000 { "root".to_owned() } else { format!("n{}", node - 1) };
        // Every second one is a gap, so that links lead over long runs of dropped nodes.
        let message =
            if node % 2 == 0 { "null" } else { r#"{"fragments":[{"type":"REQUEST","content":"x"}]}"# };
        write!(text, r#","n{node}":{{"parent":"{parent}","message":{message}}}"#).expect("strings take all");
    }
    text.push_str("}}]");
    let lines = read(text.as_bytes());
    let read = conversations(&lines);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].messages.len(), 49_500);
    let ids: BTreeSet<&str> = read[0].messages.iter().map(|message| message.id.as_str()).collect();
    let mut parents = read[0].messages.iter().filter_map(|message| message.parent.as_deref());
    assert!(parents.all(|parent| ids.contains(parent)), "links go to messages only");
}

#[test]
fn nesting_beyond_the_limit_skips_the_conversation_alone() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let good = r#"{"id":"b","mapping":{"1":{"message":{"fragments":[{"type":"REQUEST","content":"x"}]}}}}"#;
    let text = format!(r#"[{good},{{"id":"deep","odd":{deep},"mapping":{{}}}},{good}]"#);
    let lines = read(text.as_bytes());
    let deep =
        lines.iter().any(|line| matches!(line, Line::Skip(skip) if skip.locator == format!("{FILE}[1]")));
    assert!(deep, "{lines:?}");
    assert_eq!(conversations(&lines).len(), 2);
}

#[test]
fn marks_without_an_end_do_not_hang() {
    let marks = "[citation:".repeat(100_000);
    let text = format!(
        r#"[{{"id":"c","mapping":{{"1":{{"message":{{"fragments":[{{"type":"RESPONSE","content":"{marks}"}}]}}}}}}}}]"#
    );
    let lines = read(text.as_bytes());
    assert_eq!(conversations(&lines).len(), 1);
}

#[test]
fn the_host_can_stop_a_run_at_any_call() {
    let bundle = Bundle::from_files([(FILE, corpus()[0].clone())]);
    let mut sink = Sink::stopping_after(0);
    let error = DeepSeek::run("deepseek-importer/2026.01", &bundle, &mut sink).expect_err("it stops");
    assert_eq!(error.kind, ErrorKind::Cancelled);
}
