//! Broken and hostile input: the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, json_list, messages, nested_json,
        parents_are_messages, run_file, skips, warnings,
    },
};
use satchel_plugin_librechat::LibreChat;

const NAME: &str = "conversation.json";
const FORMAT: &str = "librechat-importer/2025.01";

/// The files of all fixtures that have a conversation.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| !conversations(&read(&file.bytes)).is_empty();
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<LibreChat>(FORMAT, NAME, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

/// An export with this list of messages.
fn export(list: &str, messages: &str) -> String {
    format!(r#"{{"conversationId":"c","title":"T","exportAt":"10:00:00","{list}":{messages}}}"#)
}

/// The fields of a message, without its braces.
fn fields(id: &str, parent: &str) -> String {
    format!(r#""messageId":"{id}","parentMessageId":"{parent}","isCreatedByUser":true,"text":"x""#)
}

broken_file_tests! { importer: LibreChat, format: FORMAT, files: files() }

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

#[test]
fn a_conversation_nested_twenty_thousand_deep_is_read() {
    let depth = 20_000;
    let opened = |n: usize| format!("{{{},\"children\":[", fields(&format!("m{n}"), ""));
    let nested = (0..depth).map(opened).collect::<String>() + &"]}".repeat(depth);
    for list in ["messages", "messagesTree"] {
        let lines = read(export(list, &format!("[{nested}]")).as_bytes());
        let read = conversations(&lines);
        assert_eq!((read.len(), messages(&lines).len()), (1, depth));
        assert!(parents_are_messages(read[0]));
        assert_eq!(skips(&lines).len() + warnings(&lines).len(), 0);
    }
}

#[test]
fn a_broken_message_deep_in_a_tree_is_skipped_alone() {
    let opened = |n: usize| format!("{{{},\"children\":[", fields(&format!("m{n}"), ""));
    let broken = r#"{"messageId":"odd","text":tru,"children":["#;
    let nested = (0..40).map(opened).collect::<String>() + broken + &opened(41) + &"]}".repeat(42);
    let lines = read(export("messages", &format!("[{nested}]")).as_bytes());
    assert_eq!(messages(&lines).len(), 41);
    let last = messages(&lines)[40];
    assert_eq!((last.id.as_str(), last.parent.as_deref()), ("m41", Some("m39")), "links lead over it");
    assert_eq!(skips(&lines)[0].locator, format!("{NAME}[0]#message-40"), "its locator is short");
}

#[test]
fn a_hundred_thousand_messages_are_read_and_more_are_refused() {
    let item = |n: usize| {
        // Later messages come first, so links lead forward.
        format!("{{{}}}", fields(&format!("m{n}"), &format!("m{}", n + 1)))
    };
    let lines = read(export("messages", &json_list(100_000, item)).as_bytes());
    assert_eq!(messages(&lines).len(), 100_000);
    let lines = read(export("messages", &json_list(100_001, item)).as_bytes());
    assert_eq!((messages(&lines).len(), skips(&lines).len()), (0, 1));
}

#[test]
fn parents_in_a_circle_are_cut_once() {
    let item = |n: usize| format!("{{{}}}", fields(&format!("m{n}"), &format!("m{}", (n + 1) % 5_000)));
    let lines = read(export("messages", &json_list(5_000, item)).as_bytes());
    assert_eq!((messages(&lines).len(), warnings(&lines).len()), (5_000, 1));
}

#[test]
fn messages_with_the_same_id_have_ids_of_their_own() {
    let item = |n: usize| format!(r#"{{"messageId":"a","isCreatedByUser":true,"text":"{n}"}}"#);
    let lines = read(export("messages", &json_list(10_000, item)).as_bytes());
    assert_eq!(messages(&lines).len(), 10_000);
    let item = |_: usize| format!("{{{}}}", fields("a", ""));
    let lines = read(export("messages", &json_list(10_000, item)).as_bytes());
    assert_eq!((messages(&lines).len(), warnings(&lines).len()), (1, 1));
}

#[test]
fn an_id_cannot_be_that_of_a_thought() {
    let first =
        r#"{"messageId":"a","isCreatedByUser":false,"text":"","content":[{"type":"think","think":"hm"}]}"#;
    let text = export("messages", &format!("[{first},{{{}}}]", fields("a:think:0", "a")));
    assert_eq!(messages(&read(text.as_bytes())).len(), 3);
}

#[test]
fn long_ids_do_not_multiply() {
    let id = "i".repeat(1_000_000);
    let parts = json_list(2_000, |n| format!(r#"{{"type":"think","think":"{n}"}}"#));
    let text = format!(r#"[{{"messageId":"{id}","isCreatedByUser":false,"text":"","content":{parts}}}]"#);
    let lines = read(export("messages", &text).as_bytes());
    assert_eq!(messages(&lines).len(), 2_001);
    let given: usize =
        lines.iter().map(|line| serde_json::to_string(line).map_or(0, |text| text.len())).sum();
    assert!(given < 4_000_000, "{given}");
}

#[test]
fn nesting_beyond_the_limit_skips_the_message_alone() {
    let text = export("messages", &format!(r#"[{{{}}},{{"messageId":"b","odd":$deep}}]"#, fields("a", "")));
    let lines = read(&nested_json(&text));
    assert_eq!((messages(&lines).len(), skips(&lines).len()), (1, 1));
}

#[test]
fn texts_full_of_marks_do_not_hang() {
    for text in [":::thinking".repeat(100_000), "<think>".repeat(100_000), ":::".repeat(300_000)] {
        let message = format!(r#"[{{"messageId":"a","isCreatedByUser":false,"text":"{text}"}}]"#);
        assert!(!messages(&read(export("messages", &message).as_bytes())).is_empty());
    }
}

#[test]
fn thousands_of_sources_are_read_once() {
    let page = |n: usize| format!(r#"{{"title":"p{n}","link":"https://example.org/{n}"}}"#);
    let pages = json_list(20_000, page);
    let files = format!(r#"[{{"type":"web_search","web_search":{{"organic":{pages}}}}}]"#);
    let message =
        format!(r#"[{{"messageId":"a","isCreatedByUser":false,"text":"x","attachments":{files}}}]"#);
    let lines = read(export("messages", &message).as_bytes());
    assert_eq!(messages(&lines)[0].citations.len(), 1_000);
}

#[test]
fn two_lists_of_the_same_name_are_both_read() {
    let (first, second) = (fields("a", ""), fields("b", "a"));
    let text = format!(r#"{{"conversationId":"c","messages":[{{{first}}}],"messages":[{{{second}}}]}}"#);
    let lines = read(text.as_bytes());
    assert_eq!((messages(&lines).len(), warnings(&lines).len()), (2, 1));
    assert!(warnings(&lines)[0].message.ends_with("both lists are read"), "{lines:?}");
}

#[test]
fn keys_written_with_escapes_lose_nothing() {
    let text = export(
        "messages",
        &format!(
            r#"[{{{},"\u0063hildren":[{{"text":"A message behind a strange key."}}]}}]"#,
            fields("a", "")
        ),
    );
    let lines = read(text.as_bytes());
    assert_eq!((messages(&lines).len(), warnings(&lines).len()), (1, 1));
}
