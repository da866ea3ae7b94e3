//! Broken input: whatever is cut or changed, the importer neither panics nor gives records that make no sense.

use std::{collections::BTreeMap, fs, path::Path, sync::OnceLock};

use proptest::prelude::*;
use satchel_importer::{
    Bundle, ErrorKind, Importer, Line, Sink,
    pam::record::{ConversationRecord, RecordKind},
};
use satchel_plugin_claude::Claude;

/// A file of a fixture: its name in the export, and its bytes.
type Sample = (String, Vec<u8>);

fn is_json(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "json")
}

/// Every JSON file of all fixtures.
fn corpus() -> &'static [Sample] {
    static CORPUS: OnceLock<Vec<Sample>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let bundle = Bundle::from_folder(&fixtures).expect("the fixtures can be listed");
        let sample = |path: &str| {
            let (_, inside) = path.split_once("/input/").filter(|(_, name)| is_json(name))?;
            let bytes = fs::read(fixtures.join(path)).expect("a fixture can be read");
            (!bytes.is_empty()).then(|| (inside.to_owned(), bytes))
        };
        bundle.entries().iter().filter_map(|entry| sample(&entry.path)).collect()
    })
}

/// The samples that are lists of conversations.
fn conversation_files() -> Vec<&'static Sample> {
    corpus()
        .iter()
        .filter(|(name, bytes)| name.ends_with("conversations.json") && bytes.starts_with(b"["))
        .collect()
}

/// All that the importer says of one file, whatever it is.
fn read(name: &str, bytes: &[u8]) -> Vec<Line> {
    let bundle = Bundle::from_files([(name, bytes.to_vec())]);
    let found = Claude::detect(&bundle).expect("detection answers");
    let mut sink = Sink::collecting();
    match Claude::run("claude-importer/2026.08", &bundle, &mut sink) {
        Ok(_) => assert_eq!(found.len(), 1, "what is read was claimed"),
        Err(error) => {
            assert_eq!(
                (error.kind, found.len()),
                (ErrorKind::NotThisFormat, 0),
                "what is not claimed is refused"
            );
        }
    }
    sink.into_lines()
}

fn conversation(line: &Line) -> Option<&ConversationRecord> {
    match line {
        Line::Conversation(record) => Some(record),
        _ => None,
    }
}

fn conversations(lines: &[Line]) -> Vec<&ConversationRecord> {
    lines.iter().filter_map(conversation).collect()
}

/// Ids are unique, and parents never lead in a circle.
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
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_file_gives_what_stood_whole_before_the_cut(file in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        let files = conversation_files();
        let (name, bytes) = files[file.index(files.len())];
        let cut = cut.index(bytes.len());
        let (whole, lines) = (read(name, bytes), read(name, &bytes[..cut]));
        let (whole, given) = (conversations(&whole), conversations(&lines));
        prop_assert!(given.len() <= whole.len());
        for (given, whole) in given.iter().zip(&whole) {
            prop_assert_eq!(&given.id, &whole.id);
            prop_assert_eq!(&given.messages, &whole.messages);
        }
        let told = lines.iter().any(|line| matches!(line, Line::Skip(_)));
        prop_assert!(told || given.len() == whole.len() || lines.is_empty(), "a loss is told");
    }

    #[test]
    fn changed_bytes_never_panic(file in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let (name, bytes) = &corpus()[file.index(corpus().len())];
        let mut bytes = bytes.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for record in conversations(&read(name, &bytes)) {
            check_tree(record);
        }
    }

    #[test]
    fn values_of_any_type_stand_where_others_are_expected(file in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), value in prop::sample::select(vec!["null", "0", "-1.5e3", "\"\"", "\"x\"", "[]", "[null]", "{}", "{\"a\":[1]}", "true"])) {
        let (name, bytes) = &corpus()[file.index(corpus().len())];
        let text = String::from_utf8_lossy(bytes);
        let colons: Vec<usize> = text.match_indices("\": ").map(|(at, _)| at + 3).collect();
        prop_assume!(!colons.is_empty());
        let start = colons[place.index(colons.len())];
        let rest = &text[start..];
        // What is behind may be a whole object: only values that end on their line are replaced.
        let Some(end) = rest.find('\n') else { return Ok(()) };
        let comma = if rest[..end].ends_with(',') { "," } else { "" };
        let changed = format!("{}{value}{comma}{}", &text[..start], &rest[end..]);
        for record in conversations(&read(name, changed.as_bytes())) {
            check_tree(record);
        }
    }

    #[test]
    fn parents_of_any_shape_make_a_tree(parents in prop::collection::vec(0_usize..12, 1..12)) {
        let messages: Vec<String> = parents
            .iter()
            .enumerate()
            .map(|(id, parent)| format!(r#"{{"uuid":"m-{id}","sender":"human","parent_message_uuid":"m-{parent}"}}"#))
            .collect();
        let text = format!(r#"[{{"uuid":"c","name":"n","account":{{}},"chat_messages":[{}]}}]"#, messages.join(","));
        let lines = read("conversations.json", text.as_bytes());
        let records = conversations(&lines);
        prop_assert_eq!(records[0].messages.len(), parents.len());
        check_tree(records[0]);
    }
}

#[test]
fn an_order_to_stop_is_obeyed_at_once() {
    let elements: Vec<String> =
        (0..50).map(|id| format!("{{\"uuid\":\"c-{id}\",\"chat_messages\":[null]}}")).collect();
    let bundle =
        Bundle::from_files([("conversations.json", format!("[{}]", elements.join(",")).into_bytes())]);
    let mut sink = Sink::stopping_after(5);
    let error = Claude::run("claude-importer/2025.06", &bundle, &mut sink).expect_err("it is stopped");
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert!(conversations(&sink.into_lines()).len() < 6);
}

#[test]
fn unknown_formats_and_foreign_files_are_refused() {
    let bundle = Bundle::from_files([("conversations.json", b"[]".to_vec())]);
    let run = |format| Claude::run(format, &bundle, &mut Sink::collecting()).map_err(|error| error.kind);
    assert_eq!(run("claude-importer/1999.01"), Err(ErrorKind::UnsupportedVersion));
    assert_eq!(run("claude-importer/2025.06"), Err(ErrorKind::NotThisFormat));
}

#[test]
fn deep_nesting_spoils_one_conversation_only() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let text = format!(
        r#"[{{"uuid":"c-1","chat_messages":[{{"uuid":"m","content":[{{"type":"tool_use","input":{deep}}}]}}]}},{{"uuid":"c-2","chat_messages":[]}}]"#
    );
    let lines = read("conversations.json", text.as_bytes());
    let skipped =
        lines.iter().filter(|line| matches!(line, Line::Skip(skip) if skip.kind == RecordKind::Conversation));
    assert_eq!(skipped.count(), 1);
    assert_eq!(conversations(&lines).iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["c-2"]);
}

#[test]
fn json_in_a_string_may_nest_as_deep_as_json_may() {
    let deep = format!("{}{}", "[".repeat(90), "]".repeat(90));
    let blocks = format!(r#"[{{\"type\":\"tool_use\",\"name\":\"t\",\"input\":{{\"a\":{deep}}}}}]"#);
    let text = format!(r#"[{{"uuid":"c-1","chat_messages":[{{"uuid":"m","content":"{blocks}"}}]}}]"#);
    let lines = read("conversations.json", text.as_bytes());
    assert_eq!(conversations(&lines)[0].messages[0].tool_calls.len(), 1);
}

#[test]
fn lists_too_long_to_be_real_spoil_one_conversation_only() {
    let nulls = vec!["null"; 100_001].join(",");
    let blocks = vec!["7"; 5_001].join(",");
    let text = format!(
        r#"[{{"uuid":"c-1","chat_messages":[{nulls}]}},{{"uuid":"c-2","chat_messages":[{{"content":[{blocks}]}}]}},{{"uuid":"c-3","chat_messages":[{{"files":[{blocks}]}}]}},{{"uuid":"c-4","chat_messages":[]}}]"#
    );
    let lines = read("conversations.json", text.as_bytes());
    assert_eq!(conversations(&lines).iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["c-4"]);
    assert_eq!(lines.iter().filter(|line| matches!(line, Line::Skip(_))).count(), 3);
}

#[test]
fn documents_of_one_id_are_one() {
    let text = r#"[{"uuid":"p","name":"Bakery","prompt_template":"","description":"Bread","creator":{"uuid":"u"},
        "docs":[{"uuid":"d","filename":"a.md"},{"uuid":"d"},{"filename":"c"},{"filename":"c"},{"uuid":"description"}]}]"#;
    let lines = read("projects.json", text.as_bytes());
    assert_eq!(conversations(&lines)[0].messages.len(), 3);
    check_tree(conversations(&lines)[0]);
    assert_eq!(lines.iter().filter(|line| matches!(line, Line::Skip(_))).count(), 3, "{lines:?}");
}

#[test]
fn a_flood_of_memories_ends_with_a_word() {
    let headings: Vec<String> = (0..30_000).map(|number| format!("**{number}**\\nx")).collect();
    let text = format!(r#"{{"conversations_memory":"{}"}}"#, headings.join("\\n"));
    let lines = read("memories.json", text.as_bytes());
    assert_eq!(lines.iter().filter(|line| matches!(line, Line::Evidence(_))).count(), 20_000);
    assert_eq!(lines.iter().filter(|line| matches!(line, Line::Skip(_))).count(), 1);

    let flood = vec!["7"; 30_000].join(",");
    let lines = read("memories.json", format!(r#"{{"memory_files":[{flood}]}}"#).as_bytes());
    assert_eq!(lines.iter().filter(|line| matches!(line, Line::Skip(_))).count(), 20_000);
    assert_eq!(lines.iter().filter(|line| matches!(line, Line::Warning(_))).count(), 1);
}

#[test]
fn versions_of_a_document_do_not_outgrow_their_conversation() {
    let text = "bread ".repeat(1_000);
    let change = |at: usize| {
        format!(
            r#"{{"uuid":"m-{at}","sender":"assistant","content":[{{"type":"tool_use","name":"artifacts","input":{{"id":"d","command":"update","old_str":"bread","new_str":"rye"}}}}]}}"#
        )
    };
    let changes: Vec<String> = (1..900).map(change).collect();
    let text = format!(
        r#"[{{"uuid":"c-1","chat_messages":[{{"uuid":"m-0","sender":"assistant","content":[{{"type":"tool_use","name":"artifacts","input":{{"id":"d","command":"create","content":"{text}"}}}}]}},{}]}}]"#,
        changes.join(",")
    );
    let lines = read("conversations.json", text.as_bytes());
    let messages = &conversations(&lines)[0].messages;
    assert_eq!(messages.iter().map(|message| message.attachments.len()).sum::<usize>(), 2);
    assert_eq!(messages[899].attachments.len(), 1, "the last version is there");
}

#[test]
fn a_flood_of_calls_and_answers_ends_soon() {
    let call = |at: usize| {
        let block = match at % 3 {
            0 => r#"{"type":"tool_use","name":"t"}"#,
            1 => r#"{"type":"tool_result","name":"other"}"#,
            _ => r#"{"type":"tool_result","name":"t","content":"x"}"#,
        };
        format!(r#"{{"uuid":"m-{at}","content":[{block}]}}"#)
    };
    let messages: Vec<String> = (0..60_000).map(call).collect();
    let text = format!(r#"[{{"uuid":"c-1","chat_messages":[{}]}}]"#, messages.join(","));
    let lines = read("conversations.json", text.as_bytes());
    let messages = &conversations(&lines)[0].messages;
    assert_eq!(messages[0].tool_calls[0].output.as_deref(), Some("x"));
    assert!(messages[2].tool_calls.is_empty());
}
