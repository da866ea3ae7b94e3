//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use std::time::{Duration, Instant};

use satchel_importer::{
    Bundle, Importer as _, Line, Sink, broken_file_tests,
    names::has_extension,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, check_lines, conversations, messages, produce, run_file, skips,
        skips_of, warnings,
    },
};
use satchel_plugin_jan::Jan;

const NAME: &str = "messages.jsonl";
const FORMAT: &str = "jan-importer/2023.12";

/// The messages and exports of all fixtures.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| !conversations(&read_as(&file.name, &file.bytes)).is_empty();
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, read_as)
}

fn read_as(name: &str, bytes: &[u8]) -> Vec<Line> {
    run_file::<Jan>(FORMAT, name, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

fn read(lines: &[String]) -> Vec<Line> {
    read_as(NAME, lines.join("\n").as_bytes())
}

fn message(id: &str, role: &str, content: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","object":"thread.message","thread_id":"t","role":"{role}","content":[{content}]{more}}}"#
    )
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":{{"value":"{text}"}}}}"#)
}

fn prompt(id: &str) -> String {
    message(id, "user", &text("Hello."), "")
}

broken_file_tests! { importer: Jan, format: FORMAT, files: files() }

#[test]
fn a_file_cut_at_random_is_reported_or_ends_between_two_lines() {
    files().cut_at_random(|cut| {
        let line_end =
            cut.left.ends_with(b"\n") || cut.left.ends_with(b"}") || cut.missing.starts_with(b"\n");
        let line_end = line_end && has_extension(cut.name, "jsonl");
        assert!(cut.lines.is_empty() || cut.has_reports() || line_end || cut.misses_nothing(), "{cut:?}");
    });
}

#[test]
fn one_broken_line_costs_only_itself() {
    let deep = format!(r#"{{"role":"user","content":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for broken in ["7", "null", "[]", "{}", r#""text""#, r#"{"role":"user","content":["#, &deep] {
        let lines = read(&[prompt("a"), broken.to_owned(), prompt("b")]);
        assert_eq!(messages(&lines).len(), 2, "{broken}");
        assert_eq!(skips_of(&lines, RecordKind::Message), 1, "{broken}");
    }
}

#[test]
fn one_broken_part_or_call_costs_only_itself() {
    for broken in ["7", "[]", "null"] {
        let content = [text("One."), broken.to_owned(), text("Two.")].join(",");
        let lines = read(&[message("a", "assistant", &content, "")]);
        assert_eq!((messages(&lines).len(), skips(&lines).len()), (1, 1), "{broken}");
        let calls = format!(r#","metadata":{{"tool_calls":[{broken},{{"name":"ls"}}]}}"#);
        let lines = read(&[message("a", "assistant", &text("One."), &calls)]);
        assert_eq!((messages(&lines).len(), skips(&lines).len()), (2, 1), "{broken}");
    }
}

#[test]
fn messages_on_one_line_are_read() {
    let lines = read(&[format!("{}{} {}", prompt("a"), prompt("b"), prompt("c"))]);
    assert_eq!(messages(&lines).len(), 3);
    let lines = read(&[format!("{}{}x", prompt("a"), prompt("b"))]);
    assert_eq!((messages(&lines).len(), skips(&lines).len()), (2, 1));
}

#[test]
fn repeated_ids_are_told_apart_and_copies_skipped() {
    let other = message("a", "user", &text("Other words."), "");
    let lines = read(&[prompt("a"), prompt("a"), other.clone(), message("a~2", "user", &text("x"), "")]);
    let ids: Vec<&str> = messages(&lines).iter().map(|message| message.id.as_str()).collect();
    assert_eq!(&ids[..2], ["a", "a~2"]);
    assert!(ids[2].starts_with("natural:"));
    assert_eq!(skips(&lines).len(), 1);
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("same id")));
}

#[test]
fn links_in_circles_and_to_nothing_are_read() {
    let linked = |id: &str, parent: &str| {
        message(id, "user", &text("x"), &format!(r#","metadata":{{"parentId":"{parent}"}}"#))
    };
    let lines = read(&[linked("a", "a"), linked("b", "c"), linked("c", "b"), linked("d", "gone")]);
    check_lines(&lines).expect("every record makes sense");
    assert_eq!(messages(&lines).len(), 4);
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("circle")));
}

#[test]
fn files_are_looked_for_in_the_folder_of_the_thread_only() {
    let part =
        r#"{"type":"image","text":{"value":"x","annotations":["files/../../secret.json","/etc/hosts"]}}"#;
    let files = [
        ("t/messages.jsonl".to_owned(), message("a", "user", part, "")),
        ("secret.json".to_owned(), "{}".to_owned()),
        ("t/files/b.png".to_owned(), "x".to_owned()),
    ];
    let produced = produce::<Jan>(&Bundle::from_files(files)).expect("detection answers");
    let lines: Vec<Line> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    let found = &messages(&lines)[0].attachments;
    assert!(found.len() == 2 && found.iter().all(|file| file.source.is_none()));
    assert_eq!(warnings(&lines).len(), 2);
}

#[test]
fn threads_with_the_same_id_are_both_read() {
    let head = r#"{"id":"t","object":"thread","title":"T","assistants":[],"created":1}"#;
    let files = ["a/", "b/"].into_iter().flat_map(|folder| {
        [(format!("{folder}thread.json"), head.to_owned()), (format!("{folder}messages.jsonl"), prompt("a"))]
    });
    let produced = produce::<Jan>(&Bundle::from_files(files)).expect("detection answers");
    let lines: Vec<Line> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    let ids: Vec<&str> = conversations(&lines).iter().map(|thread| thread.id.as_str()).collect();
    assert_eq!(ids, ["t", "t#2"]);
    assert_eq!(warnings(&lines).len(), 1);
}

#[test]
fn many_messages_parts_and_equal_ids_are_read_in_time() {
    let chain = |id: usize| format!(r#","metadata":{{"parentId":"m{}"}}"#, id - 1);
    let mut lines: Vec<String> =
        (1..30_000).map(|id| message(&format!("m{id}"), "user", &text("x"), &chain(id))).collect();
    lines.reverse();
    lines.extend((0..20_000).map(|number| message("same", "user", &text(&number.to_string()), "")));
    lines.extend((0..20_000).map(|_| message("", "user", &text("same"), "")));
    let calls = vec![r#"{"type":"tool_call","tool_name":"ls","output":"x"}"#; 10_000].join(",");
    lines.push(message("calls", "assistant", &calls, ""));
    let begun = Instant::now();
    let found = read(&lines);
    assert_eq!(messages(&found).len(), 29_999 + 40_000 + 20_000);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn files_of_other_programs_are_left_alone() {
    let api = prompt("a").replace(r#""thread_id""#, r#""run_id":null,"thread_id""#);
    for (name, other) in [
        (NAME, String::new()),
        (NAME, "[]".to_owned()),
        (NAME, api),
        (NAME, prompt("a").replace("thread.message", "message")),
        ("other.jsonl", prompt("a")),
        ("thread.json", r#"{"id":"t","title":"T","created":1,"posts":[]}"#.to_owned()),
        ("thread.json", r#"{"object":"thread","created_at":1}"#.to_owned()),
        ("a.json", r#"{"title":"T","messages":[{"id":"a","role":"user","content":[]}]}"#.to_owned()),
        (
            "a.json",
            format!(
                r#"{{"exported_at":"x","source":"y","messages":[{}]}}"#,
                prompt("a").replace("value", "text")
            ),
        ),
    ] {
        let bundle = Bundle::from_files([(name, other.clone())]);
        assert!(Jan::detect(&bundle).expect("detection answers").is_empty(), "{other}");
        assert!(Jan::run(FORMAT, &bundle, &mut Sink::collecting()).is_err(), "{other}");
    }
}

#[test]
fn large_files_of_others_are_left_after_a_few_bytes() {
    let long = "x".repeat(4 * 1024 * 1024);
    let other = format!(r#"{{"title":"T","create_time":1,"mapping":{{"a":"{long}"}}}}"#);
    let bundle = Bundle::from_files([("conversations.json", other)]);
    assert!(Jan::detect(&bundle).expect("detection answers").is_empty());
    assert!(bundle.bytes_read() < 64 * 1024, "{}", bundle.bytes_read());
    let picture = format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{long}"}}}}"#);
    let own = Bundle::from_files([(NAME, message("a", "user", &picture, ""))]);
    assert_eq!(Jan::detect(&own).expect("detection answers").len(), 1);
}

#[test]
fn many_documents_of_one_prompt_are_read_in_time() {
    let names: Vec<String> = (0..60_000).map(|at| format!("- file_id: {at}, name: n{at}.txt")).collect();
    let words = format!("Read.\\n[ATTACHED_FILES]\\n{}\\n[/ATTACHED_FILES]", names.join("\\n"));
    let documents: Vec<String> =
        (0..40_000).map(|at| format!(r#"{{"name":"n{}.txt","content":"x"}}"#, 59_999 - at)).collect();
    let more = format!(r#","metadata":{{"inline_file_contents":[{}]}}"#, documents.join(","));
    let begun = Instant::now();
    let lines = read(&[message("a", "user", &text(&words), &more)]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let found = messages(&lines);
    let with_text = found[0].attachments.iter().filter(|file| file.source.is_some()).count();
    assert_eq!((found[0].attachments.len(), with_text), (60_000, 40_000));
}

#[test]
fn documents_with_the_same_name_get_their_texts_in_order() {
    let words = "Read.\\n[ATTACHED_FILES]\\n- file_id: 1, name: a.txt\\n- file_id: 2, name: a.txt\\n[/ATTACHED_FILES]";
    let more = r#","metadata":{"inline_file_contents":[{"name":"a.txt","content":"one"},{"name":"a.txt","content":"two"},{"name":"b.txt","content":"three"}]}"#;
    let lines = read(&[message("a", "user", &text(words), more)]);
    let files: Vec<(Option<String>, bool)> = messages(&lines)[0]
        .attachments
        .iter()
        .map(|file| (file.attachment.provider_id.clone(), file.source.is_some()))
        .collect();
    assert_eq!(files, [(Some("1".to_owned()), true), (Some("2".to_owned()), true), (None, true)]);
}

#[test]
fn an_address_that_is_too_long_is_counted() {
    let part = |length| {
        let address = format!("https://example.org/{}", "x".repeat(length));
        format!(r#"{{"type":"image_url","image_url":{{"url":"{address}"}}}}"#)
    };
    let given = |length| warnings(&read(&[message("a", "user", &part(length), "")])).len();
    assert_eq!((given(100), given(5_000)), (0, 1));
}

#[test]
fn messages_beyond_the_limit_of_a_line_are_reported() {
    let lines = read(&[(0..2_000).map(|at| prompt(&format!("m{at}"))).collect::<Vec<_>>().concat()]);
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1_000, 1));
}

#[test]
fn warnings_beyond_the_limit_are_mentioned() {
    let lines: Vec<String> =
        (0..200).map(|at| message(&format!("m{at}"), &format!("role{at}"), &text("x"), "")).collect();
    let lines = read(&lines);
    let given = warnings(&lines);
    assert!(given.iter().any(|warning| warning.message.contains("not listed")), "{given:?}");
}

#[test]
fn the_fields_of_an_empty_thought_are_kept() {
    let empty =
        r#"{"type":"text","text":{"value":"<think></think>"},"note":"What the person should know of it."}"#;
    let call = r#"{"type":"tool_call","tool_call_id":"c","tool_name":"ls","input":{}}"#;
    for behind in [text("One."), call.to_owned(), String::new()] {
        let content: Vec<&str> = [empty, &behind].into_iter().filter(|part| !part.is_empty()).collect();
        let lines = read(&[message("a", "assistant", &content.join(","), "")]);
        let found = messages(&lines);
        // The next part still has the id of the message.
        assert_eq!((found.len(), found[0].id.as_str()), (1, "a"), "{behind}");
        let kept = found[0].raw_metadata.as_ref().map_or("", |rest| rest.as_str());
        assert!(kept.contains("should know"), "{behind}: {kept}");
        assert!(warnings(&lines).iter().any(|warning| warning.message.contains("note")), "{behind}");
    }
}

#[test]
fn a_picture_whose_address_is_a_text_is_an_attachment() {
    let picture = r#"{"type":"image_url","image_url":"data:image/gif;base64,R0lG"}"#;
    let lines = read(&[message("a", "user", picture, "")]);
    assert!(messages(&lines)[0].attachments[0].source.is_some());
}

#[test]
fn messages_that_repeat_an_earlier_one_are_bounded() {
    let count = 200_010;
    let lines = read(&vec![prompt("a"); count]);
    assert_eq!((messages(&lines).len(), skips(&lines).len()), (1, count - 1));
    let reasons = |reason: &str| skips(&lines).iter().filter(|skip| skip.reason.contains(reason)).count();
    assert_eq!((reasons("is the same"), reasons("too many")), (199_999, 10));
}

#[test]
fn fields_of_an_export_are_bounded_and_named() {
    let field = |at: usize| format!(r#""f{at}":"{}""#, "x".repeat(1024 * 1024));
    let fields: Vec<String> = (0..40).map(field).collect();
    let long = format!(r#""long":"{}""#, "x".repeat(5 * 1024 * 1024));
    let export = format!(
        r#"{{"exported_at":"2026-01-01T00:00:00Z","title":"T","messages":[{}],{},{long}}}"#,
        prompt("a"),
        fields.join(",")
    );
    let lines = run_file::<Jan>("jan-importer/2026.02", "e.json", export.as_bytes())
        .checked_lines(Unclaimed::ReadOrRefused);
    assert_eq!(messages(&lines).len(), 1);
    let left_out: Vec<&str> = warnings(&lines)
        .iter()
        .map(|warning| warning.message.as_str())
        .filter(|message| message.contains("left out"))
        .collect();
    // 15 of 1 MiB fit, with their names; 25 and the long one do not.
    assert_eq!(left_out.len(), 17, "{left_out:?}");
    assert!(left_out.last().is_some_and(|message| message.starts_with("10 more")), "{left_out:?}");
}
