//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use std::time::{Duration, Instant};

use satchel_importer::{
    Bundle, Line, broken_file_tests,
    names::has_extension,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, messages, nested_json, produce, run_file, skips,
        skips_of, warnings,
    },
};
use satchel_plugin_goose::Goose;

pub(crate) const LINES: &str = "goose-importer/2025.01";
pub(crate) const EXPORT: &str = "goose-importer/2025.10";
pub(crate) const SESSION: &str = r#"{"working_dir":"/x","description":"T","message_count":2}"#;

/// The sessions of all fixtures, apart from those in databases.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| {
        let is_text = has_extension(&file.name, "json") || has_extension(&file.name, "jsonl");
        is_text && !conversations(&read_as(&file.name, &file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, read_as)
}

pub(crate) fn read_as(name: &str, bytes: &[u8]) -> Vec<Line> {
    let format = if has_extension(name, "jsonl") { LINES } else { EXPORT };
    run_file::<Goose>(format, name, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

/// Reads a session with these messages, once as lines.
pub(crate) fn read(messages: &[String]) -> Vec<Line> {
    read_as("a.jsonl", format!("{SESSION}\n{}\n", messages.join("\n")).as_bytes())
}

/// Reads a session with these messages as an export.
pub(crate) fn read_export(messages: &[String], more: &str) -> Vec<Line> {
    let export = format!(
        r#"{{"id":"s","working_dir":"/x","name":"T","session_type":"user","extension_data":{{}},"conversation":[{}]{more}}}"#,
        messages.join(",")
    );
    read_as("a.json", export.as_bytes())
}

pub(crate) fn message(role: &str, at: u64, parts: &str) -> String {
    format!(r#"{{"role":"{role}","created":{at},"content":[{parts}]}}"#)
}

pub(crate) fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

pub(crate) fn ids(lines: &[Line]) -> Vec<String> {
    messages(lines).into_iter().map(|message| message.id.clone()).collect()
}

broken_file_tests! { importer: Goose, format: LINES, files: files() }

#[test]
fn a_file_cut_at_random_is_reported_or_ends_between_two_lines() {
    files().cut_at_random(|cut| {
        let left = cut.left.trim_ascii_end();
        let between = has_extension(cut.name, "jsonl") && left.ends_with(b"}");
        assert!(cut.lines.is_empty() || cut.has_reports() || between || cut.misses_nothing(), "{cut:?}");
    });
}

#[test]
fn values_of_other_types_are_kept_or_reported() {
    for content in ["7", "true", "{}", "\"Words in a text.\"", "[[]]", "[null]", "{\"type\":\"text\"}"] {
        let lines = read(&[
            message("user", 1, &text("It is read.")),
            format!(r#"{{"role":"assistant","created":2,"content":{content}}}"#),
        ]);
        assert!(messages(&lines).len() == 2 || !skips(&lines).is_empty(), "{content}");
    }
    let lines = read(&[r#"{"role":7,"created":{},"content":[]}"#.to_owned(), message("user", 1, &text("x"))]);
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
}

#[test]
fn a_part_that_cannot_be_read_costs_only_itself() {
    let fields: Vec<String> = (0..50_001).map(|number| format!(r#""f{number}":1"#)).collect();
    let big = format!(r#"{{"type":"text","text":"big",{}}}"#, fields.join(","));
    let parts = [text("one"), big, "7".to_owned(), text("two")].join(",");
    let lines = read(&[message("user", 1, &parts)]);
    assert_eq!(skips_of(&lines, RecordKind::Message), 2);
    assert_eq!(satchel_importer::testkit::text(messages(&lines)[0]), "one\ntwo");
}

#[test]
fn lines_beyond_the_limit_and_deep_ones_are_skipped_alone() {
    let long = message("user", 1, &text(&"x".repeat(16 * 1024 * 1024)));
    let next = message("user", 2, &text("It is read."));
    for lines in [read(&[long.clone(), next.clone()]), read_export(&[long, next.clone()], "")] {
        assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
    }
    let deep = r#"{"role":"user","created":1,"content":[{"type":"text","text":"x","odd":$deep}]}"#;
    let lines = read_as("a.jsonl", &nested_json(&format!("{SESSION}\n{deep}\n{next}\n")));
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
}

#[test]
fn a_session_without_an_id_is_reported() {
    for id in ["7", "\"\"", "null", &format!("\"{}\"", "i".repeat(300))] {
        let export = format!(
            r#"{{"id":{id},"working_dir":"/x","session_type":"user","extension_data":{{}},"conversation":[{}]}}"#,
            message("user", 1, &text("x"))
        );
        let lines = read_as("a.json", export.as_bytes());
        assert!(messages(&lines).is_empty(), "{id}");
    }
}

#[test]
fn fields_of_a_session_that_are_too_long_are_named() {
    let long = "x ".repeat(600 * 1024);
    let more = format!(r#","recipe":{{"instructions":"{long}"}},"novelty":"{long}","message_count":1"#);
    let lines = read_export(&[message("user", 1, &text("x"))], &more);
    let said: Vec<&str> = warnings(&lines).iter().map(|warning| warning.message.as_str()).collect();
    assert!(said.iter().any(|said| said.contains("recipe")), "{said:?}");
    assert!(said.iter().any(|said| said.contains("novelty")), "{said:?}");
}

#[test]
fn fields_of_a_session_that_cannot_be_read_are_named() {
    let own = message("user", 1, &text("x"));
    for name in ["recipe", "novelty"] {
        let export = format!(
            r#"{{"id":"s","working_dir":"/x","session_type":"user","message_count":1,"conversation":[{own}],"{name}":{{"env":1,"deep":$deep}}}}"#
        );
        let lines = read_as("a.json", &nested_json(&export));
        let named = warnings(&lines).iter().any(|warning| warning.message.contains(name));
        assert!(messages(&lines).len() == 1 && named, "{name}: {:?}", warnings(&lines));
    }
    let fields: Vec<String> = (0..50_001).map(|at| format!(r#""f{at}":1"#)).collect();
    let head = format!(r#"{{"description":"T","message_count":1,"model_config":{{{}}}}}"#, fields.join(","));
    let lines = read_as("a.jsonl", format!("{head}\n{own}\n").as_bytes());
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("model_config")));
    assert_eq!(conversations(&lines)[0].title.as_deref(), Some("T"));
    let head = nested_json(r#"{"description":"T","message_count":1,"recipe":$deep}"#);
    let lines = read_as("a.jsonl", &[head, format!("\n{own}\n{own}\n").into_bytes()].concat());
    assert_eq!((messages(&lines).len(), skips(&lines).len()), (2, 1));
}

#[test]
fn many_fields_of_a_session_are_read_in_time_and_counted() {
    let fields: Vec<String> = (0..49_000).map(|at| format!(r#""f{at}":{at}"#)).collect();
    let head = format!(r#"{{"description":"T","message_count":1,{}}}"#, fields.join(","));
    let begun = Instant::now();
    let lines = read_as("a.jsonl", format!("{head}\n{}\n", message("user", 1, &text("x"))).as_bytes());
    assert_eq!(messages(&lines).len(), 1);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    let long = "x".repeat(300 * 1024);
    let fields: Vec<String> = (0..40).map(|at| format!(r#""f{at}":"{long}""#)).collect();
    let head = format!(r#"{{"description":"T","message_count":1,{}}}"#, fields.join(","));
    let lines = read_as("a.jsonl", format!("{head}\n{}\n", message("user", 1, &text("x"))).as_bytes());
    let said: Vec<&str> = warnings(&lines).iter().map(|warning| warning.message.as_str()).collect();
    assert!(said.iter().any(|said| said.starts_with("27 fields")), "{said:?}");
}

#[test]
fn an_id_in_the_first_line_is_kept() {
    let head = r#"{"id":"another","description":"T","message_count":1}"#;
    let lines = read_as("a.jsonl", format!("{head}\n{}\n", message("user", 1, &text("x"))).as_bytes());
    let chat = &conversations(&lines)[0];
    assert_eq!(chat.id, "a");
    assert!(format!("{chat:?}").contains("another"));
}

#[test]
fn sessions_behind_an_export_are_reported() {
    let one = |id: &str| {
        format!(
            r#"{{"id":"{id}","working_dir":"/x","session_type":"user","message_count":1,"conversation":[{}]}}"#,
            message("user", 1, &text("x"))
        )
    };
    let lines = read_as("a.json", format!("{}\n{}\n", one("a"), one("b")).as_bytes());
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Conversation)), (1, 1));
}

#[test]
fn children_before_the_messages_are_told_apart() {
    let own = message("user", 1, &text("own"));
    let child = format!(r#"{{"id":"c","conversation":[{},7]}}"#, message("user", 2, &text("of a child")));
    let export = format!(
        r#"{{"child_sessions":[{child},{{"id":"s"}},7],"id":"s","working_dir":"/x","total_tokens":1,"session_type":"user","conversation":[{own}]}}"#
    );
    let lines = read_as("a.json", export.as_bytes());
    let found: Vec<(&str, usize)> =
        conversations(&lines).iter().map(|chat| (chat.id.as_str(), chat.messages.len())).collect();
    assert_eq!(found, [("s", 1), ("c", 1)]);
    assert_eq!(skips_of(&lines, RecordKind::Conversation), 2);
    assert_eq!(skips_of(&lines, RecordKind::Message), 1);
}

#[test]
fn long_outputs_beyond_the_limit_are_named() {
    let content = "x".repeat(9 * 1024 * 1024);
    let list: Vec<String> =
        (0..3).map(|at| format!(r#"{{"path":"/t/{at}.txt","content":"{content}"}}"#)).collect();
    let result = r#"{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"see: /t/0.txt and '/t/1.txt', /t/2.txt"}]}}"#;
    let lines = read_export(&[message("user", 1, result)], &format!(r#","artifacts":[{}]"#, list.join(",")));
    assert_eq!(messages(&lines)[0].attachments.len(), 2);
    assert_eq!(skips_of(&lines, RecordKind::File), 1);
}

#[test]
fn many_messages_that_are_alike_are_read_in_time() {
    let all = vec![message("user", 1, &text("Yes.")); 40_000];
    let begun = Instant::now();
    let lines = read(&all);
    let mut found = ids(&lines);
    assert_eq!(found.len(), 40_000);
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 40_000);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn many_parts_and_texts_of_a_result_are_read_in_time() {
    let parts = vec![text("x"); 40_000].join(",");
    let contents: Vec<String> = (0..40_000).map(|at| text(&at.to_string())).collect();
    let result = format!(
        r#"{{"type":"toolResponse","id":"c","toolResult":{{"status":"success","value":[{}]}}}}"#,
        contents.join(",")
    );
    let calls = vec![r#"{"type":"toolRequest","id":"c","toolCall":{}}"#; 40_000].join(",");
    let begun = Instant::now();
    let lines =
        read(&[message("user", 1, &parts), message("user", 2, &result), message("assistant", 3, &calls)]);
    assert_eq!(messages(&lines).len(), 40_002);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn a_session_with_too_many_messages_says_so() {
    let all: Vec<String> = (0..100_003).map(|at| message("user", at, "")).collect();
    let lines = read(&all);
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (100_000, 3));
}

#[test]
fn memories_that_are_too_long_are_reported() {
    let bundle = Bundle::from_files([
        ("goose/memory/a.txt", "x".repeat(1024 * 1024 + 1)),
        ("goose/memory/b.txt", "It is read.".to_owned()),
        (
            "goose/memory/c.txt",
            format!("# {}\nIt has tags.", (0..100).map(|at| format!("t{at}")).collect::<Vec<_>>().join(" ")),
        ),
    ]);
    let produced = produce::<Goose>(&bundle).expect("detection answers");
    let lines: Vec<Line> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    assert_eq!(satchel_importer::testkit::evidence(&lines).len(), 2);
    assert_eq!(warnings(&lines).len(), 1);
    assert_eq!(skips_of(&lines, RecordKind::Memory), 1);
}

#[test]
fn every_session_behind_an_export_is_reported() {
    let session = r#"{"id":"20251014_2","conversation":[]}"#;
    let export = format!(
        r#"{{"id":"s","working_dir":"/x","name":"T","session_type":"user","extension_data":{{}},"conversation":[{}]}}"#,
        message("user", 1, &text("x"))
    );
    let many = format!("{export}\n{}", format!("{session}\n").repeat(200));
    let lines = read_as("a.json", many.as_bytes());
    assert_eq!(skips_of(&lines, RecordKind::Conversation), 200);
}

#[test]
fn a_first_line_that_is_neither_a_session_nor_a_message_is_reported() {
    let odd = r#"{"role":7,"content":[{"type":"text","text":"Where is the rake?"}]}"#;
    let call = r#"{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"ls","arguments":{}}}}"#;
    let file = format!("{odd}\n{}\n{}\n", message("user", 1, &text("x")), message("assistant", 2, call));
    let lines = read_as("a.jsonl", file.as_bytes());
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (2, 1));
}

#[test]
fn warnings_beyond_the_limit_are_mentioned() {
    let parts: Vec<String> = (0..200).map(|at| format!(r#"{{"type":"kind{at}","text":"x"}}"#)).collect();
    let lines = read(&[message("user", 1, &parts.join(","))]);
    let given = warnings(&lines);
    assert_eq!(given.len(), 65);
    assert!(given.iter().any(|warning| warning.message.contains("not listed")), "{given:?}");
}

#[test]
fn the_last_of_many_fields_is_named_if_it_is_too_long() {
    let fields: Vec<String> = (0..12).map(|at| format!(r#""f{at}":1"#)).collect();
    let more = format!(r#",{},"novelty":"{}""#, fields.join(","), "x ".repeat(600 * 1024));
    let lines = read_export(&[message("user", 1, &text("x"))], &more);
    let named = warnings(&lines).iter().filter(|warning| warning.message.contains("novelty")).count();
    assert_eq!(named, 1, "{:?} {:?}", warnings(&lines), skips(&lines));
}

#[test]
fn an_image_in_any_kind_of_base64_is_read() {
    for data in ["R0lGOA", "R0lG\\nOA==", "_-8", "R0lGOA=="] {
        let part = format!(r#"{{"type":"image","mimeType":"image/gif","data":"{data}"}}"#);
        let lines = read(&[message("user", 1, &part)]);
        assert!(messages(&lines)[0].attachments[0].source.is_some(), "{data}");
    }
}

#[test]
fn long_outputs_without_number_are_bounded_and_counted() {
    let files: Vec<String> = (0..11_010).map(|at| format!(r#"{{"path":"{at}","content":"x"}}"#)).collect();
    let more = format!(r#","artifacts":[{}]"#, files.join(","));
    let lines = read_export(&[message("user", 1, &text("x"))], &more);
    let skipped = skips(&lines);
    // Ten thousand that no result names, a thousand that are too many, and the rest in one.
    assert_eq!(skipped.len(), 11_001);
    assert!(skipped.iter().any(|skip| skip.reason.starts_with("10 more files")));
}
