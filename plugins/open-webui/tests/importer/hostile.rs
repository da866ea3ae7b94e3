//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, large_tree, nested_json, parents_are_messages,
        run_file, skips,
    },
};
use satchel_plugin_open_webui::OpenWebUi;

const NAME: &str = "chats.json";
const FORMAT: &str = "open-webui-importer/2026.06";

/// The files of all fixtures that hold chats.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| !conversations(&read(&file.bytes)).is_empty();
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<OpenWebUi>(FORMAT, NAME, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

/// One chat with these messages.
fn chat(id: &str, messages: &str) -> String {
    format!(
        r#"{{"id":"{id}","user_id":"u","title":"T","chat":{{"history":{{"messages":{messages},"currentId":"q"}}}}}}"#
    )
}

/// An answer with this text.
fn answer(text: &str) -> String {
    let text = serde_json::Value::from(text);
    chat("a", &format!(r#"{{"q":{{"id":"q","role":"assistant","content":{text}}}}}"#))
}

broken_file_tests! { importer: OpenWebUi, format: FORMAT, files: files() }

#[test]
fn a_cut_file_gives_the_chats_before_the_cut() {
    files().cut_at_random(|cut| {
        cut.check_conversations();
        let reported = skips(&cut.lines).iter().any(|skip| skip.locator.contains('@'));
        // A file that is cut too early to be recognised gives no line.
        let known = !cut.lines.is_empty();
        assert!(reported || !known || cut.ends_between_lines() || cut.misses_nothing(), "{cut:?}");
    });
}

#[test]
fn a_hundred_thousand_messages_are_read() {
    let nodes = large_tree(99_000, "q", |node, parent| {
        // Every second message is a stub, so links lead over long runs of them.
        let rest = if node % 2 == 0 { "" } else { r#","role":"user","content":"x""# };
        format!(r#""n{node}":{{"id":"n{node}","parentId":"{parent}","childrenIds":[]{rest}}}"#)
    });
    let text = format!("[{}]", chat("wide", &format!(r#"{{"q":{{"role":"user","content":"x"}},{nodes}}}"#)));
    let lines = read(text.as_bytes());
    let read = conversations(&lines);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].messages.len(), 49_501);
    assert!(parents_are_messages(read[0]), "links go to messages only");
}

#[test]
fn more_messages_than_the_limit_skip_the_chat_alone() {
    let nodes =
        (0..100_001).map(|n| format!(r#""n{n}":{{"role":"user","content":"x"}}"#)).collect::<Vec<_>>();
    let small = chat("b", r#"{"q":{"role":"user","content":"x"}}"#);
    let text = format!("[{},{small}]", chat("huge", &format!("{{{}}}", nodes.join(","))));
    let lines = read(text.as_bytes());
    assert_eq!(conversations(&lines).len(), 1);
    assert_eq!(skips(&lines).len(), 1);
}

#[test]
fn nesting_beyond_the_limit_skips_the_chat_alone() {
    let good = chat("b", r#"{"q":{"role":"user","content":"x"}}"#);
    let text = format!(r#"[{good},{{"id":"deep","odd":$deep,"chat":{{}}}},{good}]"#);
    let lines = read(&nested_json(&text));
    assert!(skips(&lines).iter().any(|skip| skip.locator == format!("{NAME}[1]")), "{lines:?}");
    assert_eq!(conversations(&lines).len(), 2);
}

#[test]
fn blocks_that_never_end_do_not_hang() {
    for text in [
        "<details type=\"reasoning\">\n".repeat(50_000),
        "\n<details type=\"reasoning\" a=\"".repeat(50_000),
        "\n<details type=\"reasoning".repeat(50_000),
        "\n<details ".repeat(100_000),
        "<think>".repeat(100_000),
        "&".repeat(1_000_000),
    ] {
        assert_eq!(conversations(&read(answer(&text).as_bytes())).len(), 1);
    }
}

#[test]
fn thousands_of_calls_and_results_are_joined() {
    let item = |n: u32| {
        format!(
            r#"{{"type":"function_call","call_id":"c{n}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c{n}","output":"r{n}"}}"#
        )
    };
    let items = (0..20_000).map(item).collect::<Vec<_>>().join(",");
    let text =
        chat("a", &format!(r#"{{"q":{{"id":"q","role":"assistant","content":"","output":[{items}]}}}}"#));
    let lines = read(text.as_bytes());
    let calls = &conversations(&lines)[0].messages[0].tool_calls;
    assert_eq!(calls.len(), 20_000);
    assert!(calls.iter().all(|call| call.output.is_some()));
}
