//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use std::time::{Duration, Instant};

use satchel_importer::{
    Line, broken_file_tests, names,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, messages, nested_json, run_file, skips, skips_of,
        warnings,
    },
};
use satchel_plugin_gemini_cli::GeminiCli;

const NAME: &str = "session.jsonl";
const FORMAT: &str = "gemini-cli-importer/2026.04";
pub(crate) const HEADER: &str =
    r#"{"sessionId":"s","projectHash":"p","startTime":"2026-01-01T00:00:00.000Z","kind":"main"}"#;

/// The chats of all fixtures.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| {
        let session = names::has_extension(&file.name, "jsonl") || names::has_extension(&file.name, "json");
        session && !conversations(&read_as(&file.name, &file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, read_as)
}

pub(crate) fn read_as(name: &str, bytes: &[u8]) -> Vec<Line> {
    run_file::<GeminiCli>(FORMAT, name, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

/// Reads a chat with these lines.
pub(crate) fn read(lines: &[String]) -> Vec<Line> {
    read_as(NAME, format!("{HEADER}\n{}\n", lines.join("\n")).as_bytes())
}

pub(crate) fn user(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:01.000Z","type":"user","content":[{{"text":"{text}"}}]}}"#
    )
}

/// An answer with other fields.
pub(crate) fn gemini(id: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:02.000Z","type":"gemini","content":"{text}"{more}}}"#
    )
}

pub(crate) fn tree(lines: &[Line]) -> Vec<(String, Option<String>)> {
    messages(lines).into_iter().map(|message| (message.id.clone(), message.parent.clone())).collect()
}

#[test]
fn files_of_all_layouts_are_broken() {
    let files = files();
    for extension in ["json", "jsonl"] {
        assert!(files.files().iter().any(|file| names::has_extension(&file.name, extension)), "{extension}");
    }
}

broken_file_tests! { importer: GeminiCli, format: FORMAT, files: files() }

#[test]
fn a_file_cut_at_random_is_reported_or_ends_between_two_lines() {
    files().cut_at_random(|cut| {
        let object = cut.left.trim_ascii_start().starts_with(b"{\n");
        let line_end =
            cut.left.ends_with(b"\n") || cut.left.ends_with(b"}") || cut.missing.starts_with(b"\n");
        assert!(cut.lines.is_empty() || cut.has_reports() || (line_end && !object), "{cut:?}");
    });
}

/// A session in which each answer is written four times, with a step back and a checkpoint.
fn growing() -> Vec<String> {
    let mut lines = Vec::new();
    for number in 0..12 {
        let id = format!("g-{number}");
        let call = format!(r#""id":"c-{number}","name":"look","args":{{"at":{}}}"#, number % 3);
        let result = format!(
            r#"[{{"functionResponse":{{"id":"c-{number}","response":{{"output":"leaf {number}"}}}}}}]"#
        );
        let thought = r#","thoughts":[{"subject":"Looking","description":"At the plant.","timestamp":"2026-01-01T00:00:01.500Z"}]"#;
        let tokens = format!(r#"{thought},"tokens":{{"input":9,"output":{number}}}"#);
        let asked = format!(r#"{tokens},"toolCalls":[{{{call},"status":"executing"}}]"#);
        let answered = format!(r#"{tokens},"toolCalls":[{{{call},"status":"success","result":{result}}}]"#);
        lines.push(user(&format!("u-{number}"), "Look."));
        for more in [thought, &tokens, &asked, &answered] {
            lines.push(gemini(&id, "I look.", more));
        }
        lines.push(format!(r#"{{"id":"r-{number}","type":"user","content":{result}}}"#));
        lines.push(r#"{"$set":{"lastUpdated":"2026-01-01T00:00:03.000Z"}}"#.to_owned());
        if number % 4 == 3 {
            lines.push(format!(r#"{{"$rewindTo":"u-{}"}}"#, number - 1));
        }
        if number % 5 == 4 {
            let masked = answered.replace("leaf", "<tool_output_masked>");
            let kept = [user(&format!("s-{number}"), "<state_snapshot>x"), gemini(&id, "I look.", &masked)];
            lines.push(format!(r#"{{"$set":{{"messages":[{}]}}}}"#, kept.join(",")));
        }
    }
    lines
}

#[test]
fn the_tree_of_a_growing_file_stays() {
    let lines = growing();
    let whole = read(&lines);
    let all = tree(&whole);
    assert_eq!(all.len(), 12 * 5 + 2);
    assert!(skips(&whole).is_empty() && warnings(&whole).is_empty());
    for count in 1..lines.len() {
        let grown = tree(&read(&lines[..count]));
        assert_eq!(grown, all[..grown.len()], "{count} lines");
    }
}

#[test]
fn what_was_imported_stays_as_it_was_but_for_tokens() {
    let lines = growing();
    let whole = read(&lines);
    let all = messages(&whole);
    for count in 1..lines.len() {
        let read = read(&lines[..count]);
        for (before, after) in messages(&read).into_iter().zip(&all) {
            assert_eq!(
                (&before.content, before.role, &before.tool_calls),
                (&after.content, after.role, &after.tool_calls)
            );
            assert_eq!((before.created_at, &before.model), (after.created_at, &after.model));
        }
    }
}

#[test]
fn the_current_message_was_not_taken_back() {
    let current = |more: &[&str]| {
        let mut lines =
            vec![user("a", "one"), gemini("b", "two", ""), user("c", "three"), gemini("d", "four", "")];
        lines.extend(more.iter().map(|line| (*line).to_owned()));
        let lines = read(&lines);
        assert_eq!(messages(&lines).len(), 4);
        conversations(&lines)[0].current.clone()
    };
    assert_eq!(current(&[]).as_deref(), Some("d"));
    assert_eq!(current(&[r#"{"$rewindTo":"c"}"#]).as_deref(), Some("b"));
    assert_eq!(current(&[r#"{"$rewindTo":"a"}"#]), None);
    assert_eq!(current(&[r#"{"$rewindTo":"c"}"#, r#"{"$rewindTo":"c"}"#]), None, "it is not there any more");
}

#[test]
fn that_there_are_more_unknown_types_is_said() {
    let lines: Vec<String> = (0..100)
        .map(|at| gemini(&format!("m{at}"), "Hi", "").replace("\"gemini\"", &format!("\"novelty{at}\"")))
        .collect();
    let read = read(&lines);
    let given = warnings(&read);
    let last = given.last().map(|warning| warning.message.clone()).unwrap_or_default();
    assert!(given.len() == 65 && last.starts_with("there are more"), "{} {last}", given.len());
}

#[test]
fn a_torn_line_costs_only_itself() {
    let torn = &user("t", "torn")[..50];
    let lines = [user("a", "It is read."), torn.to_owned(), user("b", "It is read too.")];
    let read = read(&lines);
    assert_eq!((messages(&read).len(), skips_of(&read, RecordKind::Message)), (2, 1));
}

#[test]
fn ids_that_are_no_ids_are_replaced() {
    let long = "i".repeat(300);
    let lines = [user(&long, "one"), user("", "two"), user("a:thought:1", "three"), user("a", "four")];
    let thought = gemini("a", "", r#","thoughts":[{"description":"five"}]"#);
    let read = read(&[lines.as_slice(), &[thought]].concat());
    let ids: Vec<String> = tree(&read).into_iter().map(|(id, _)| id).collect();
    assert!(ids[0].starts_with("natural:") && ids[1].starts_with("natural:"), "{ids:?}");
    assert_eq!(ids[2..], ["a:thought:1", "a", "a:thought:1:2"]);
}

#[test]
fn lines_beyond_the_limit_and_deep_ones_are_skipped_alone() {
    let long = user("a", &"x".repeat(16 * 1024 * 1024));
    let read_all = read(&[long.clone(), user("b", "It is read.")]);
    assert_eq!((messages(&read_all).len(), skips_of(&read_all, RecordKind::Message)), (1, 1));
    let deep = r#"{"id":"d","type":"user","content":"x","odd":$deep}"#;
    let read_deep = read_as(NAME, &nested_json(&format!("{HEADER}\n{deep}\n{}\n", user("b", "It is read."))));
    assert_eq!((messages(&read_deep).len(), skips_of(&read_deep, RecordKind::Message)), (1, 1));
    let saved =
        format!(r#"{},"messages":[{long},{}]}}"#, HEADER.trim_end_matches('}'), user("b", "It is read."));
    let read_saved = read_as("session.json", saved.as_bytes());
    assert_eq!((messages(&read_saved).len(), skips_of(&read_saved, RecordKind::Message)), (1, 1));
}

#[test]
fn a_session_behind_another_one_is_reported() {
    let one =
        |id: &str| format!(r#"{},"messages":[{}]}}"#, HEADER.trim_end_matches('}'), user(id, "It is read."));
    let read = read_as("session.json", format!("{}\n{}\n", one("a"), one("b")).as_bytes());
    assert_eq!((messages(&read).len(), skips_of(&read, RecordKind::Conversation)), (1, 1));
}

#[test]
fn many_steps_back_and_checkpoints_are_read_in_time() {
    let mut lines: Vec<String> = (0..4_000).map(|number| user(&format!("u-{number}"), "x")).collect();
    lines.extend((0..4_000).map(|number| format!(r#"{{"$rewindTo":"u-{}"}}"#, 4_000 - number)));
    lines.extend((0..4_000).map(|_| r#"{"$rewindTo":"nothing"}"#.to_owned()));
    let again: Vec<String> = (0..4_000).map(|number| user(&format!("v-{number}"), "x")).collect();
    let checkpoint = format!(r#"{{"$set":{{"messages":[{}]}}}}"#, again.join(","));
    lines.extend(vec![checkpoint; 5]);
    let begun = Instant::now();
    let read = read(&lines);
    assert_eq!(messages(&read).len(), 8_000);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn of_many_long_tokens_only_the_output_is_kept() {
    let tokens = format!(r#","tokens":{{"output":7,"more":"{}"}}"#, "x".repeat(4_000));
    let lines: Vec<String> = (0..2_200).map(|number| gemini(&format!("g-{number}"), "x", &tokens)).collect();
    let read = read(&lines);
    let messages = messages(&read);
    assert!(messages.iter().all(|message| message.token_count == Some(7)));
    let whole = messages.iter().filter(|message| message.raw_metadata.is_some()).count();
    assert!((2_000..2_200).contains(&whole) && warnings(&read).len() == 1, "{whole}");
}

#[test]
fn many_calls_in_two_lists_are_compared_in_time() {
    let list = |letter: char, part: fn(String) -> String| {
        let ids = (0..20_000).map(|number| part(format!(r#"{{"id":"{letter}{number}"}}"#)));
        ids.collect::<Vec<_>>().join(",")
    };
    let parts = list('a', |call| format!(r#"{{"functionCall":{call}}}"#));
    let line = format!(
        r#"{{"id":"g","type":"gemini","content":[{parts}],"toolCalls":[{}]}}"#,
        list('b', |call| call)
    );
    let begun = Instant::now();
    let read = read(&[line]);
    assert_eq!(messages(&read).len(), 40_000);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn one_call_many_times_is_read_in_time() {
    let call = r#"{"id":"c","name":"look","args":{},"status":"success","result":"x"}"#;
    let calls = vec![call; 4_000].join(",");
    let begun = Instant::now();
    let read = read(&[gemini("g", "x", &format!(r#","toolCalls":[{calls}]"#))]);
    assert_eq!(messages(&read).len(), 3);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}
