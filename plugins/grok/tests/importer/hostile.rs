//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests,
    testkit::{
        BrokenFiles, Unclaimed, conversations, large_tree, nested_json, parents_are_messages, run_file, skips,
    },
};
use satchel_plugin_grok::Grok;

const FILE: &str = "prod-grok-backend.json";
const FORMAT: &str = "grok-importer/2026.02";

/// The conversations of all fixtures.
fn files() -> BrokenFiles {
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), |file| file.name.ends_with(FILE), |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    let lines = run_file::<Grok>(FORMAT, FILE, bytes).checked_lines(Unclaimed::ReadOrRefused);
    assert!(conversations(&lines).into_iter().all(parents_are_messages));
    lines
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

/// A byte order mark with a wrong last byte is text before the object that has the lists.
#[test]
fn lists_behind_something_else_are_not_claimed() {
    let lists = r#"{"conversations":[{"conversation":{"id":"a"},"responses":[]}]}"#;
    for before in ["\u{fffd}\t", "{}\n", "x\n"] {
        let lines = read(format!("{before}{lists}").as_bytes());
        assert!(conversations(&lines).is_empty(), "{before:?}");
    }
    assert_eq!(conversations(&read(format!("\u{feff}{lists}").as_bytes())).len(), 1);
}

broken_file_tests! { importer: Grok, format: FORMAT, files: files() }

#[test]
fn a_hundred_thousand_children_are_read() {
    let nodes = large_tree(100_000, "n0", |node, parent| {
        format!(
            r#"{{"response":{{"_id":"n{node}","parent_response_id":"{parent}","sender":"human","message":"x"}}}}"#
        )
    });
    let text = format!(r#"{{"conversations":[{{"conversation":{{"id":"wide"}},"responses":[{nodes}]}}]}}"#);
    let lines = read(text.as_bytes());
    let read = conversations(&lines);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].messages.len(), 100_000);
}

#[test]
fn nesting_beyond_the_limit_skips_the_conversation_alone() {
    let good = r#"{"conversation":{"id":"b"},"responses":[{"response":{"_id":"r","sender":"human","message":"x"}}]}"#;
    let text = r#"{"conversations":[$good,{"conversation":{"id":"deep","odd":$deep},"responses":[]},$good]}"#
        .replace("$good", good);
    let lines = read(&nested_json(&text));
    assert!(skips(&lines).iter().any(|skip| skip.locator == format!("{FILE}.conversations[1]")), "{lines:?}");
    assert_eq!(conversations(&lines).len(), 2);
}

#[test]
fn unclosed_markup_does_not_hang() {
    let tags = "<grok:render card_id=\\\"c\\\">".repeat(50_000);
    let text = format!(
        r#"{{"conversations":[{{"conversation":{{"id":"c"}},"responses":[{{"response":{{"_id":"r","sender":"human","message":"{tags}"}}}}]}}]}}"#
    );
    let lines = read(text.as_bytes());
    assert_eq!(conversations(&lines).len(), 1);
}
