//! Broken input: whatever is cut or changed, the importer neither panics nor gives records that make no sense.

use std::{collections::BTreeSet, fs, path::Path, sync::OnceLock};

use proptest::prelude::*;
use satchel_importer::{
    Bundle, ErrorKind, Importer, Line, Sink,
    pam::record::{Claim, ConversationRecord, RecordKind},
};
use satchel_plugin_memu::MemU;

const FORMAT: &str = "memu-importer/2025.07";

/// A file of a fixture: its name in the export, and its bytes.
type Sample = (String, Vec<u8>);

/// Every file of all fixtures of the generation that is read.
fn corpus() -> &'static [Sample] {
    static CORPUS: OnceLock<Vec<Sample>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let bundle = Bundle::from_folder(&fixtures).expect("the fixtures can be listed");
        let sample = |path: &str| {
            let (fixture, inside) = path.split_once("/input/")?;
            let bytes = fs::read(fixtures.join(path)).expect("a fixture can be read");
            (!fixture.starts_with("other-")).then(|| (inside.to_owned(), bytes))
        };
        bundle.entries().iter().filter_map(|entry| sample(&entry.path)).collect()
    })
}

/// All that the importer says of one file, whatever it is.
fn read(name: &str, bytes: &[u8]) -> Vec<Line> {
    let bundle = Bundle::from_files([(name, bytes.to_vec())]);
    let found = MemU::detect(&bundle).expect("detection answers");
    let mut sink = Sink::collecting();
    match MemU::run(FORMAT, &bundle, &mut sink) {
        Ok(_) => assert!(found.iter().any(|one| one.format == FORMAT), "what is read was claimed"),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NotThisFormat);
            assert!(found.iter().all(|one| one.format != FORMAT), "what is not read is not claimed");
        }
    }
    let lines = sink.into_lines();
    check(&lines);
    lines
}

/// Every record makes sense by itself: ids are unique, parents come before their children, items say something.
fn check(lines: &[Line]) {
    for line in lines {
        match line {
            Line::Conversation(record) => {
                let mut known = BTreeSet::new();
                for message in &record.messages {
                    assert!(message.parent.as_ref().is_none_or(|parent| known.contains(parent)));
                    assert!(known.insert(message.id.clone()), "message ids are unique");
                }
            }
            Line::Evidence(evidence) => {
                let items = match &evidence.claim {
                    Claim::Statement(item) => std::slice::from_ref(item),
                    Claim::Snapshot { items, .. } => items.as_slice(),
                    Claim::Edit { .. } => &[],
                };
                assert!(!items.is_empty() && items.iter().all(|item| !item.content.trim().is_empty()));
            }
            Line::Embedding(embedding) => {
                let length = embedding.vector.as_ref().map_or(0, Vec::len);
                assert_eq!(u32::try_from(length), Ok(embedding.dimensions));
            }
            Line::Relation(_) | Line::Account(_) | Line::Skip(_) | Line::Warning(_) => {}
        }
    }
}

fn conversations(lines: &[Line]) -> Vec<&ConversationRecord> {
    lines.iter().filter_map(conversation).collect()
}

fn conversation(line: &Line) -> Option<&ConversationRecord> {
    match line {
        Line::Conversation(record) => Some(record),
        _ => None,
    }
}

fn skips(lines: &[Line]) -> usize {
    lines.iter().filter(|line| matches!(line, Line::Skip(_))).count()
}

#[test]
fn a_file_cut_anywhere_gives_what_stood_whole_before_the_cut() {
    for (name, bytes) in corpus() {
        let whole = read(name, bytes);
        // Every point of a small file, and as many of a larger one.
        for cut in (0..bytes.len()).step_by(1 + bytes.len() / 500) {
            let lines = read(name, &bytes[..cut]);
            let (all, given) = (conversations(&whole), conversations(&lines));
            for (given, whole) in given.iter().zip(&all) {
                assert_eq!((&given.id, &given.messages), (&whole.id, &whole.messages), "{name}@{cut}");
            }
            let blank = bytes[cut..].iter().all(u8::is_ascii_whitespace);
            // Between two lines nothing shows that there were more.
            let between = satchel_importer::names::ends_in(name, "jsonl")
                && bytes[..cut].trim_ascii_end().ends_with(b"}");
            assert!(
                blank || between || lines.is_empty() || skips(&lines) > 0,
                "{name}@{cut}: a loss is told"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(file in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let (name, bytes) = &corpus()[file.index(corpus().len())];
        let mut bytes = bytes.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read(name, &bytes);
    }

    #[test]
    fn values_of_any_type_stand_where_others_are_expected(file in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), value in prop::sample::select(vec!["null", "0", "-1.5e3", "\"\"", "\"x\"", "\"[\"", "\"{}\"", "[]", "[null]", "[[1],{\"text\":\"a\"}]", "{}", "{\"a\":[1]}", "true"])) {
        let (name, bytes) = &corpus()[file.index(corpus().len())];
        let text = String::from_utf8_lossy(bytes);
        let starts: Vec<usize> = text.match_indices("\": ").map(|(at, _)| at + 3).collect();
        prop_assume!(!starts.is_empty());
        let start = starts[place.index(starts.len())];
        let rest = &text[start..];
        let Some(length) = value_length(rest) else { return Ok(()) };
        read(name, format!("{}{value}{}", &text[..start], &rest[length..]).as_bytes());
    }
}

/// Bytes of the JSON value at the front of `text`.
fn value_length(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

#[test]
fn an_order_to_stop_is_obeyed_at_once() {
    let rows: Vec<String> = (0..50)
        .map(|id| format!(r#"{{"memory_id":"m-{id}","agent_id":"a","user_id":"u","profile_content":["x"]}}"#))
        .collect();
    let bundle = Bundle::from_files([("memories.json", format!("[{}]", rows.join(",")).into_bytes())]);
    let mut sink = Sink::stopping_after(5);
    let error = MemU::run(FORMAT, &bundle, &mut sink).expect_err("it is stopped");
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert!(sink.into_lines().len() < 8);
}

#[test]
fn unknown_formats_foreign_files_and_other_generations_are_refused() {
    let bundle = Bundle::from_files([("conversations.json", b"[]".to_vec())]);
    let run = |format| MemU::run(format, &bundle, &mut Sink::collecting()).map_err(|error| error.kind);
    assert_eq!(run("memu-importer/1999.01"), Err(ErrorKind::UnsupportedVersion));
    assert_eq!(run("memu-importer/2026.07"), Err(ErrorKind::UnsupportedVersion));
    assert_eq!(run(FORMAT), Err(ErrorKind::NotThisFormat));
}

#[test]
fn deep_nesting_spoils_one_conversation_only() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let text = format!(
        r#"[{{"conversation_id":"c-1","agent_id":"a","user_id":"u","messages":[],"pipeline_result":{deep}}},{{"conversation_id":"c-2","agent_id":"a","user_id":"u","messages":[]}}]"#
    );
    let lines = read("conversations.json", text.as_bytes());
    assert_eq!(skips(&lines), 1);
    assert_eq!(conversations(&lines).iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["c-2"]);
}

#[test]
fn a_hundred_thousand_messages_are_one_conversation_and_more_are_refused() {
    let conversation = |messages: usize| {
        let list = vec![r#"{"role":"user","content":"x"}"#; messages].join(",");
        format!(r#"{{"conversation_id":"c","agent_id":"a","user_id":"u","messages":[{list}]}}"#)
    };
    let lines = read("a.json", conversation(100_000).as_bytes());
    assert_eq!(conversations(&lines)[0].messages.len(), 100_000);
    let lines = read("a.json", conversation(100_001).as_bytes());
    assert_eq!((conversations(&lines).len(), skips(&lines)), (0, 1));
}

#[test]
fn a_flood_of_entries_comes_in_pieces_and_ends_with_a_word() {
    let entries: Vec<String> = (0..100_010).map(|number| format!("\"{number}\"")).collect();
    let text = format!(
        r#"{{"memory_id":"m","agent_id":"a","user_id":"u","profile_content":[{}]}}"#,
        entries.join(",")
    );
    let lines = read("a.json", text.as_bytes());
    let items: usize = lines
        .iter()
        .map(|line| match line {
            Line::Evidence(evidence) => match &evidence.claim {
                Claim::Snapshot { items, .. } => items.len(),
                Claim::Statement(_) | Claim::Edit { .. } => 1,
            },
            _ => 0,
        })
        .sum();
    assert_eq!((items, skips(&lines)), (100_000, 1));
    assert!(lines.iter().any(|line| matches!(line, Line::Skip(skip) if skip.kind == RecordKind::Memory)));
}
