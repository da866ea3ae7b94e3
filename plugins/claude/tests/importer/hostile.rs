//! Broken input: the importer neither panics nor emits invalid records.

use proptest::prelude::*;
use satchel_importer::{
    ErrorKind, Line, broken_file_tests, names,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, cancelled_run, conversation_ids, conversations, evidence,
        json_list, nested_json, run_file, skips, skips_of, warnings,
    },
};
use satchel_plugin_claude::Claude;

const FORMAT: &str = "claude-importer/2026.08";

fn files_where(chosen: impl Fn(&FixtureFile) -> bool) -> BrokenFiles {
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), |file| names::is_json(&file.name) && chosen(file), read)
}

fn read(name: &str, bytes: &[u8]) -> Vec<Line> {
    run_file::<Claude>(FORMAT, name, bytes).checked_lines(Unclaimed::Refused)
}

#[test]
fn a_truncated_file_gives_the_whole_records_before_the_cut() {
    let list = |file: &FixtureFile| file.name.ends_with("conversations.json") && file.bytes.starts_with(b"[");
    files_where(list).cut_at_random(|cut| {
        cut.check_conversations();
        let reported = !skips(&cut.lines).is_empty();
        assert!(reported || cut.has_all_conversations() || cut.lines.is_empty(), "{cut:?}");
    });
}

broken_file_tests! { importer: Claude, format: FORMAT, files: files_where(|_| true) }

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

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
    }
}

#[test]
fn a_cancelled_run_stops_at_once() {
    let text = json_list(50, |id| format!(r#"{{"uuid":"c-{id}","chat_messages":[null]}}"#));
    let lines = cancelled_run::<Claude>("claude-importer/2025.06", "conversations.json", text, 5);
    assert!(conversations(&lines).len() < 6);
}

#[test]
fn unknown_formats_and_foreign_files_are_refused() {
    let run = |format| run_file::<Claude>(format, "conversations.json", "[]").error.map(|error| error.kind);
    assert_eq!(run("claude-importer/1999.01"), Some(ErrorKind::UnsupportedVersion));
    assert_eq!(run("claude-importer/2025.06"), Some(ErrorKind::NotThisFormat));
}

#[test]
fn deep_nesting_skips_only_its_conversation() {
    let text = r#"[{"uuid":"c-1","chat_messages":[{"uuid":"m","content":[{"type":"tool_use","input":$deep}]}]},{"uuid":"c-2","chat_messages":[]}]"#;
    let lines = read("conversations.json", &nested_json(text));
    assert_eq!(skips_of(&lines, RecordKind::Conversation), 1);
    assert_eq!(conversation_ids(&lines), ["c-2"]);
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
fn lists_over_the_limit_skip_only_their_conversation() {
    let nulls = vec!["null"; 100_001].join(",");
    let blocks = vec!["7"; 5_001].join(",");
    let text = format!(
        r#"[{{"uuid":"c-1","chat_messages":[{nulls}]}},{{"uuid":"c-2","chat_messages":[{{"content":[{blocks}]}}]}},{{"uuid":"c-3","chat_messages":[{{"files":[{blocks}]}}]}},{{"uuid":"c-4","chat_messages":[]}}]"#
    );
    let lines = read("conversations.json", text.as_bytes());
    assert_eq!(conversation_ids(&lines), ["c-4"]);
    assert_eq!(skips(&lines).len(), 3);
}

#[test]
fn documents_with_a_repeated_id_are_skipped() {
    let text = r#"[{"uuid":"p","name":"Bakery","prompt_template":"","description":"Bread","creator":{"uuid":"u"},
        "docs":[{"uuid":"d","filename":"a.md"},{"uuid":"d"},{"filename":"c"},{"filename":"c"},{"uuid":"description"}]}]"#;
    let lines = read("projects.json", text.as_bytes());
    assert_eq!(conversations(&lines)[0].messages.len(), 3);
    assert_eq!(skips(&lines).len(), 3, "{lines:?}");
}

#[test]
fn memories_over_the_limit_are_reported_once() {
    let headings: Vec<String> = (0..30_000).map(|number| format!("**{number}**\\nx")).collect();
    let text = format!(r#"{{"conversations_memory":"{}"}}"#, headings.join("\\n"));
    let lines = read("memories.json", text.as_bytes());
    assert_eq!(evidence(&lines).len(), 20_000);
    assert_eq!(skips(&lines).len(), 1);

    let flood = vec!["7"; 30_000].join(",");
    let lines = read("memories.json", format!(r#"{{"memory_files":[{flood}]}}"#).as_bytes());
    assert_eq!(skips(&lines).len(), 20_000);
    assert_eq!(warnings(&lines).len(), 1);
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
fn many_calls_and_results_are_joined_quickly() {
    let call = |at: usize| {
        let block = match at % 3 {
            0 => r#"{"type":"tool_use","name":"t"}"#,
            1 => r#"{"type":"tool_result","name":"other"}"#,
            _ => r#"{"type":"tool_result","name":"t","content":"x"}"#,
        };
        format!(r#"{{"uuid":"m-{at}","content":[{block}]}}"#)
    };
    let text = format!(r#"[{{"uuid":"c-1","chat_messages":{}}}]"#, json_list(60_000, call));
    let lines = read("conversations.json", text.as_bytes());
    let messages = &conversations(&lines)[0].messages;
    assert_eq!(messages[0].tool_calls[0].output.as_deref(), Some("x"));
    assert!(messages[2].tool_calls.is_empty());
}
