//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests,
    testkit::{
        BrokenFiles, Unclaimed, conversations, large_tree, nested_json, parents_are_messages, run_file, skips,
    },
};
use satchel_plugin_deepseek::DeepSeek;

const FILE: &str = "conversations.json";
const FORMAT: &str = "deepseek-importer/2026.01";

/// The conversations of all fixtures.
fn files() -> BrokenFiles {
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), |file| file.name.ends_with(FILE), |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<DeepSeek>(FORMAT, FILE, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

#[test]
fn a_cut_file_gives_the_conversations_before_the_cut() {
    files().cut_at_random(|cut| {
        cut.check_conversations();
        let reported = skips(&cut.lines).iter().any(|skip| skip.locator.contains('@'));
        // A file that is cut too early to be recognised gives no line.
        let known = !cut.lines.is_empty();
        assert!(reported || !known || cut.ends_between_lines() || cut.misses_nothing(), "{cut:?}");
    });
}

broken_file_tests! { importer: DeepSeek, format: FORMAT, files: files() }

#[test]
fn a_hundred_thousand_children_are_read() {
    let nodes = large_tree(99_000, "root", |node, parent| {
        // Every second node has no message, so links lead over long runs of dropped nodes.
        let message =
            if node % 2 == 0 { "null" } else { r#"{"fragments":[{"type":"REQUEST","content":"x"}]}"# };
        format!(r#""n{node}":{{"parent":"{parent}","message":{message}}}"#)
    });
    let text = format!(r#"[{{"id":"wide","mapping":{{"root":{{"parent":null,"message":null}},{nodes}}}}}]"#);
    let lines = read(text.as_bytes());
    let read = conversations(&lines);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].messages.len(), 49_500);
    assert!(parents_are_messages(read[0]), "links go to messages only");
}

#[test]
fn nesting_beyond_the_limit_skips_the_conversation_alone() {
    let good = r#"{"id":"b","mapping":{"1":{"message":{"fragments":[{"type":"REQUEST","content":"x"}]}}}}"#;
    let text = r#"[$good,{"id":"deep","odd":$deep,"mapping":{}},$good]"#.replace("$good", good);
    let lines = read(&nested_json(&text));
    assert!(skips(&lines).iter().any(|skip| skip.locator == format!("{FILE}[1]")), "{lines:?}");
    assert_eq!(conversations(&lines).len(), 2);
}

#[test]
fn unclosed_citation_marks_do_not_hang() {
    let marks = "[citation:".repeat(100_000);
    let text = format!(
        r#"[{{"id":"c","mapping":{{"1":{{"message":{{"fragments":[{{"type":"RESPONSE","content":"{marks}"}}]}}}}}}}}]"#
    );
    let lines = read(text.as_bytes());
    assert_eq!(conversations(&lines).len(), 1);
}
