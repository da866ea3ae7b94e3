//! Broken input: whatever is cut or changed, the importer neither panics nor gives records that make no sense.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
    sync::OnceLock,
};

use proptest::prelude::*;
use satchel_importer::{
    Bundle, ErrorKind, Importer, Line, Sink,
    pam::record::{ConversationRecord, RecordKind},
};
use satchel_plugin_chatgpt::ChatGpt;

/// The conversation files of all fixtures.
fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let bundle = Bundle::from_folder(&fixtures).expect("the fixtures can be listed");
        let named = |path: &&str| path.contains("/input/conversations");
        let paths = bundle.entries().iter().map(|entry| entry.path.as_str()).filter(named);
        paths.map(|path| fs::read(fixtures.join(path)).expect("a fixture can be read")).collect()
    })
}

/// All that the importer says of one file, whatever it is.
fn read(bytes: &[u8]) -> Vec<Line> {
    let bundle = Bundle::from_files([("conversations.json", bytes.to_vec())]);
    ChatGpt::detect(&bundle).expect("detection answers");
    let mut sink = Sink::collecting();
    ChatGpt::run("chatgpt-importer/2026.07", &bundle, &mut sink).expect("a run comes to its end");
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
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_file_gives_what_stood_whole_before_the_cut(file in 0..corpus().len(), part in 0.0..1.0) {
        let bytes = &corpus()[file];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a small file")]
        let cut = (bytes.len() as f64 * part) as usize;
        let (whole, lines) = (read(bytes), read(&bytes[..cut]));
        let (whole, given) = (conversations(&whole), conversations(&lines));
        prop_assert!(given.len() <= whole.len());
        for (given, whole) in given.iter().zip(&whole) {
            prop_assert_eq!(&given.id, &whole.id);
            prop_assert_eq!(&given.messages, &whole.messages);
        }
        let opened = bytes[..cut].contains(&b'[');
        let told = lines.iter().any(|line| matches!(line, Line::Skip(skip) if skip.kind == RecordKind::Conversation));
        let between = ends_between_lines(&bytes[..cut], given.len());
        prop_assert!(told || between || given.len() == whole.len() || !opened, "a loss is told");
    }

    #[test]
    fn changed_bytes_never_panic(file in 0..corpus().len(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = corpus()[file].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let lines = read(&bytes);
        for record in conversations(&lines) {
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

/// Files by name.
type Files = Vec<(String, Vec<u8>)>;

/// The files of all fixtures that have something beside the conversations.
fn exports() -> &'static [Files] {
    static EXPORTS: OnceLock<Vec<Files>> = OnceLock::new();
    EXPORTS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let all = Bundle::from_folder(&fixtures).expect("the fixtures can be listed");
        let mut found: BTreeMap<&str, Files> = BTreeMap::new();
        for entry in all.entries() {
            if let Some((name, path)) = entry.path.split_once("/input/") {
                let bytes = fs::read(fixtures.join(&entry.path)).expect("a fixture can be read");
                found.entry(name).or_default().push((path.to_owned(), bytes));
            }
        }
        found.into_values().filter(|files| files.len() > 1).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_files_beside_the_conversations_never_sink_them(
        export in any::<prop::sample::Index>(),
        file in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        cut in any::<bool>(),
        byte in any::<u8>(),
    ) {
        let mut files = export.get(exports()).clone();
        let (path, bytes) = file.get_mut(&mut files);
        let source = path.starts_with("conversations") || path == "chat.html";
        let at = place.index(bytes.len().max(1));
        if cut {
            bytes.truncate(at);
        } else if let Some(old) = bytes.get_mut(at) {
            *old = byte;
        }
        let whole = export.get(exports());
        let read = |files: &[(String, Vec<u8>)]| {
            let bundle = Bundle::from_files(files.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())));
            let mut count = 0;
            for detection in ChatGpt::detect(&bundle).expect("detection answers") {
                let mut sink = Sink::collecting();
                ChatGpt::run(&detection.format, &bundle.only(&detection.files), &mut sink)
                    .expect("a run comes to its end");
                let lines = sink.into_lines();
                for record in conversations(&lines) {
                    check_tree(record);
                    count += usize::from(record.locator.starts_with("conversations"));
                }
            }
            count
        };
        let (before, after) = (read(whole), read(&files));
        prop_assert!(source || before == after, "{before} conversations became {after}");
    }
}

#[test]
fn a_hundred_thousand_children_are_read() {
    let mut text = String::from(r#"[{"id":"wide","mapping":{"root":{"message":null,"parent":null}"#);
    for node in 0..100_000 {
        let parent = if node < 50_000 { "root".to_owned() } else { format!("n{}", node - 1) };
        // Every second one is a gap, so that links lead over long runs of dropped nodes.
        let message = if node % 2 == 0 { "null" } else { r#"{"author":{"role":"user"},"content":"x"}"# };
        write!(text, r#","n{node}":{{"parent":"{parent}","message":{message}}}"#).expect("strings take all");
    }
    text.push_str("}}]");
    let lines = read(text.as_bytes());
    let read = conversations(&lines);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].messages.len(), 50_000);
    let ids: BTreeSet<&str> = read[0].messages.iter().map(|message| message.id.as_str()).collect();
    let mut parents = read[0].messages.iter().filter_map(|message| message.parent.as_deref());
    assert!(parents.all(|parent| ids.contains(parent)), "links go to messages only");
}

#[test]
fn nesting_beyond_the_limit_skips_the_conversation_alone() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let text = format!(
        r#"[{{"id":"deep","odd":{deep},"mapping":{{}}}},{{"id":"b","mapping":{{"u":{{"message":{{"author":{{"role":"user"}},"content":"x"}}}}}}}}]"#
    );
    let lines = read(text.as_bytes());
    assert!(matches!(&lines[0], Line::Skip(skip) if skip.locator == "conversations.json[0]"), "{lines:?}");
    assert_eq!(conversations(&lines).len(), 1);
}

#[test]
fn the_host_can_stop_a_run_at_any_call() {
    let bytes = &corpus()[0];
    let bundle = Bundle::from_files([("conversations.json", bytes.clone())]);
    let mut sink = Sink::stopping_after(0);
    let error = ChatGpt::run("chatgpt-importer/2023.01", &bundle, &mut sink).expect_err("it stops");
    assert_eq!(error.kind, ErrorKind::Cancelled);
}

#[test]
fn messages_of_one_id_in_a_group_are_one() {
    let said =
        r#"{"chats":[{"id":"g","messages":[{"id":"m","text":"a"},{"id":"m","text":"b"},{"text":"c"},7]}]}"#;
    let (name, conversations_file) =
        exports().iter().flatten().find(|(name, _)| name == "conversations.json").expect("it is there");
    let files = [(name.as_str(), conversations_file.clone()), ("group_chats.json", said.as_bytes().to_vec())];
    let mut sink = Sink::collecting();
    ChatGpt::run("chatgpt-importer/2026.07", &Bundle::from_files(files), &mut sink)
        .expect("a run comes to its end");
    let lines = sink.into_lines();
    let group =
        conversations(&lines).into_iter().find(|record| record.id == "group_chat:g").expect("it is read");
    assert_eq!(
        group.messages.iter().map(|message| message.id.as_str()).collect::<Vec<_>>(),
        ["m", "message-2"]
    );
    check_tree(group);
    let skipped = lines
        .iter()
        .filter(|line| matches!(line, Line::Skip(skip) if skip.locator.starts_with("group_chats")));
    assert_eq!(skipped.count(), 2);
}
