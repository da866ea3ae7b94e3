//! Broken and hostile input: the importer neither panics nor emits inconsistent records.

use std::{collections::BTreeMap, iter};

use satchel_importer::{
    Claim, Evidence, Line, broken_file_tests,
    pam::{memory::Status, raw::RawObject},
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, evidence, json_list, messages, nested_json,
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
fn a_copy_with_more_fields_loses_nothing() {
    let first = format!(r#"{{{},"sender":"A","content":[{{"x":1}}],"model":null}}"#, fields("a", ""));
    let files = r#""files":[{"file_id":"f","filename":"a.pdf"}]"#;
    let copy =
        format!(r#"{{{},"sender":"B","content":[ {{"x": 1}} ],"model":"m",{files}}}"#, fields("a", ""));
    let lines = read(export("messages", &format!("[{first},{copy},{copy}]")).as_bytes());
    let read = messages(&lines)[0];
    assert_eq!((messages(&lines).len(), read.attachments.len(), read.model.as_deref()), (1, 1, Some("m")));
    let metadata = read.raw_metadata.as_ref().map(RawObject::as_str).unwrap_or_default();
    assert!(
        metadata.contains(r#""sender":"A""#) && metadata.contains(r#""copies":[{"sender":"B"}]"#),
        "{metadata}"
    );
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("sender")), "{lines:?}");
}

#[test]
fn many_copies_of_a_large_message_do_not_hang() {
    let many = json_list(200_000, |n| format!("{n}"));
    let large = format!(r#"{{{},"odd":{many}}}"#, fields("a", ""));
    let copies = format!(",{{{}}}", fields("a", "")).repeat(20_000);
    assert_eq!(messages(&read(export("messages", &format!("[{large}{copies}]")).as_bytes())).len(), 1);
}

#[test]
fn a_copy_gives_the_link_that_the_first_one_lacks() {
    let flat = r#"{"messageId":"a","isCreatedByUser":true,"text":"x"},{"messageId":"b","isCreatedByUser":true,"text":"y"}"#;
    let nested = r#"{"messageId":"a","isCreatedByUser":true,"text":"x","children":[{"messageId":"b","isCreatedByUser":true,"text":"y"}]}"#;
    let lines = read(export("messages", &format!("[{flat},{nested}]")).as_bytes());
    assert_eq!(messages(&lines)[1].parent.as_deref(), Some("a"));
    assert_eq!((messages(&lines).len(), warnings(&lines).len()), (2, 1));
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
fn long_ids_fit_the_host() {
    let id = "i".repeat(1_100);
    let text = format!(r#"{{"conversationId":"{id}","messages":[{{{}}}]}}"#, fields(&id, ""));
    let lines = read(text.as_bytes());
    let (read, message) = (conversations(&lines)[0], messages(&lines)[0]);
    assert!(read.id.len() < 256 && message.id.len() < 256);
    assert_eq!((&read.provider_conversation_id, &message.provider_message_id), (&None, &None));
    for (metadata, key) in [(&read.raw_metadata, "conversationId"), (&message.raw_metadata, "messageId")] {
        let kept = metadata.as_ref().map(RawObject::to_map).unwrap_or_default();
        assert_eq!(kept.get(key).and_then(|id| id.as_str()), Some(id.as_str()));
    }
}

/// The parent of each message, by its id.
fn parents(messages_json: &str) -> BTreeMap<String, Option<String>> {
    let lines = read(export("messages", messages_json).as_bytes());
    messages(&lines).iter().map(|message| (message.id.clone(), message.parent.clone())).collect()
}

/// Whether each message of `before` has its parent there above it in `after`, directly or not.
fn stays_below(before: &BTreeMap<String, Option<String>>, after: &BTreeMap<String, Option<String>>) -> bool {
    let above = |id: &String| after.get(id).cloned().flatten();
    before.iter().all(|(id, parent)| {
        let line = iter::successors(above(id), above).take(after.len());
        parent.as_ref().is_none_or(|parent| line.into_iter().any(|other| other == *parent))
    })
}

#[test]
fn an_answer_that_goes_on_stays_below_its_thoughts() {
    let answer = |parts: &str| {
        let answer = format!(
            r#"{{"messageId":"b","parentMessageId":"a","isCreatedByUser":false,"content":[{parts}]}}"#
        );
        parents(&format!("[{{{}}},{answer}]", fields("a", "")))
    };
    let think = |text: &str| format!(r#"{{"type":"think","think":"{text}"}}"#);
    let words = r#"{"type":"text","text":"done"}"#;
    let [none, one, two] =
        [words.to_owned(), think("1"), [think("1"), words.to_owned(), think("2")].join(",")]
            .map(|parts| answer(&parts));
    assert!(stays_below(&none, &one) && stays_below(&one, &two), "{none:?} {one:?} {two:?}");
}

#[test]
fn messages_without_links_stay_in_line_when_others_follow() {
    let message = |id: &str, by_user: bool, second: Option<u8>| {
        let time =
            second.map(|at| format!(r#","createdAt":"2026-01-01T00:00:{at:02}Z""#)).unwrap_or_default();
        format!(r#"{{"messageId":"{id}","isCreatedByUser":{by_user},"text":"x"{time}}}"#)
    };
    for (first, second) in [(Some(1), None), (Some(1), Some(1)), (Some(5), Some(6))] {
        let old = [message("a", false, first), message("b", true, second), message("c", true, Some(7))];
        let new = [old.clone().to_vec(), vec![message("d", false, Some(0))]].concat();
        let [before, after] = [&old[..], &new[..]].map(|list| parents(&format!("[{}]", list.join(","))));
        assert!(stays_below(&before, &after), "{before:?} {after:?}");
    }
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

/// An answer to `parent` that stored a memory, at a second of one day if it has a time.
fn remembers(id: &str, parent: &str, second: Option<u8>, key: &str, text: &str) -> String {
    let time = second.map(|at| format!(r#""createdAt":"2026-01-01T00:00:{at:02}Z","#)).unwrap_or_default();
    let memory = format!(r#"{{"memory":{{"type":"update","key":"{key}","value":"{text}"}}}}"#);
    format!(r#"{{{},{time}"attachments":[{memory}]}}"#, fields(id, parent))
}

/// The id, the text and the status of each memory in an export of these messages.
fn memories(messages: &[String]) -> Vec<(String, String, Option<Status>)> {
    let lines = read(export("messages", &format!("[{}]", messages.join(","))).as_bytes());
    let claim = |evidence: &Evidence| match &evidence.claim {
        Claim::Statement(item) => Some((evidence.id.clone(), item.content.clone(), item.status)),
        Claim::Snapshot { .. } | Claim::Edit { .. } => None,
    };
    evidence(&lines).into_iter().filter_map(claim).collect()
}

#[test]
fn the_memory_of_a_message_without_a_time_is_newer() {
    let bern = remembers("a", "", Some(1), "city", "Lives in Bern.");
    let before = memories(&[bern.clone(), remembers("b", "a", None, "city", "Lives in Basel.")]);
    let after = memories(&[bern, remembers("b", "a", Some(3), "city", "Lives in Basel.")]);
    assert_eq!(before, after, "the next export has the time");
    let states: Vec<_> = after.into_iter().map(|(_, _, status)| status).collect();
    assert_eq!(states, [Some(Status::Archived), Some(Status::Active)]);
}

#[test]
fn a_memory_behind_many_files_is_read() {
    let file = |n: usize| format!(r#"{{"file_id":"f{n}","filename":"a.pdf"}}"#);
    let files = format!(r#","files":{},"#, json_list(1_000, file));
    let message = remembers("a", "", None, "city", "Lives in Bern.").replacen(',', &files, 1);
    assert_eq!(memories(&[message]).len(), 1);
}

#[test]
fn long_names_of_memories_give_short_ids() {
    let (id, text, _) = memories(&[remembers("a", "", None, &"k".repeat(1_100), "Likes tea.")]).remove(0);
    assert!(id.len() < 256 && text == "Likes tea.", "{id}");
}

#[test]
fn hundreds_of_thousands_of_sources_do_not_hang() {
    let links = |n: usize| format!(r#"{{"link":"http://a/{n}"}}"#);
    let distinct = json_list(200_000, links);
    let repeated = json_list(200_000, |n| links(n % 999));
    let quotes = json_list(2_000, |_| r#"{"file_citation":{"quote":"q"}}"#.to_owned());
    let content = format!(r#""content":[{{"type":"text","text":{{"value":"x","annotations":{quotes}}}}}]"#);
    let searches = [repeated, distinct].map(|pages| format!(r#"{{"web_search":{{"organic":{pages}}}}}"#));
    let search = format!(r#"{{{},"attachments":[{}]}}"#, fields("a", ""), searches.join(","));
    let quoted = format!(r#"{{"messageId":"b","isCreatedByUser":false,{content}}}"#);
    let lines = read(export("messages", &format!("[{search},{quoted}]")).as_bytes());
    let counts: Vec<usize> = messages(&lines).iter().map(|message| message.citations.len()).collect();
    assert_eq!(counts, [1_000, 1_000]);
}

#[test]
fn parts_beyond_the_limit_are_kept_and_reported() {
    let parts = json_list(60_000, |n| format!(r#"{{"type":"think","think":"{n}"}}"#));
    let message = format!(r#"[{{"messageId":"a","isCreatedByUser":false,"content":{parts}}}]"#);
    let lines = read(export("messages", &message).as_bytes());
    assert_eq!((messages(&lines).len(), warnings(&lines).len()), (50_001, 1));
    let last = messages(&lines)[50_000].raw_metadata.as_ref().map(RawObject::as_str).unwrap_or_default();
    assert!(last.contains(r#""think":"59999""#));
}

#[test]
fn a_conversation_that_is_too_large_for_the_sandbox_is_skipped() {
    let file = format!(r#","files":[{{"filepath":"data:a/b;base64,{}"}}]"#, "AAAA".repeat(4 * 1024 * 1024));
    let text = export("messages", &format!("[{{{}{file}}}]", fields("a", "")));
    let lines = read(text.as_bytes());
    assert_eq!((messages(&lines).len(), skips(&lines).len()), (0, 1));
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
