//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use std::time::{Duration, Instant};

use satchel_importer::{
    Line, broken_file_tests, names,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, messages, nested_json, run_file, skips, skips_of,
    },
};
use satchel_plugin_codex::Codex;

const NAME: &str = "rollout.jsonl";
const FORMAT: &str = "codex-importer/2025.09";
const META: &str = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","timestamp":"2026-01-01T00:00:00Z"}}"#;

/// The session files of all fixtures.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| {
        let session = names::has_extension(&file.name, "jsonl") || names::has_extension(&file.name, "json");
        session && !conversations(&read_as(&file.name, &file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, read_as)
}

fn read_as(name: &str, bytes: &[u8]) -> Vec<Line> {
    run_file::<Codex>(FORMAT, name, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

fn read(bytes: &[u8]) -> Vec<Line> {
    read_as(NAME, bytes)
}

/// A line with a message of the user.
fn message(text: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
    )
}

#[test]
fn files_of_all_layouts_are_broken() {
    let files = files();
    for (layout, start) in
        [("one object", r#"{"session":"#), ("bare", r#"{"id":"#), ("wrapped", r#"{"timestamp":"#)]
    {
        let squeezed = |bytes: &[u8]| String::from_utf8_lossy(bytes).split_whitespace().collect::<String>();
        assert!(files.files().iter().any(|file| squeezed(&file.bytes).starts_with(start)), "{layout}");
    }
}

broken_file_tests! { importer: Codex, format: FORMAT, files: files() }

#[test]
fn a_file_cut_at_random_is_reported_or_ends_between_two_lines() {
    files().cut_at_random(|cut| {
        let json = cut.left.trim_ascii_start().starts_with(b"{\n");
        let line_end =
            cut.left.ends_with(b"\n") || cut.left.ends_with(b"}") || cut.missing.starts_with(b"\n");
        assert!(cut.lines.is_empty() || cut.has_reports() || (line_end && !json), "{cut:?}");
    });
}

#[test]
fn messages_of_a_growing_file_keep_their_ids() {
    let lines: Vec<String> = std::iter::once(META.to_owned())
        .chain((0..40).map(|number| message(&format!("message {}", number % 7))))
        .collect();
    let ids = |count: usize| -> Vec<(String, Option<String>)> {
        let read = read(lines[..count].join("\n").as_bytes());
        messages(&read).into_iter().map(|message| (message.id.clone(), message.parent.clone())).collect()
    };
    let whole = ids(lines.len());
    for count in 2..lines.len() {
        assert_eq!(ids(count), whole[..count - 1]);
    }
}

/// A line of another type.
fn line(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-01-01T00:00:01Z","type":"{kind}","payload":{{{payload}}}}}"#)
}

fn event(kind: &str, fields: &str) -> String {
    line("event_msg", &format!(r#""type":"{kind}",{fields}"#))
}

fn answer(text: &str) -> String {
    let content = format!(r#""content":[{{"type":"output_text","text":"{text}"}}]"#);
    line("response_item", &format!(r#""type":"message","role":"assistant",{content}"#))
}

#[test]
fn the_tree_of_a_growing_file_stays() {
    let tokens = event(
        "token_count",
        r#""info":{"total_token_usage":{"a":$},"last_token_usage":{"output_tokens":$}}"#,
    );
    let mut lines = vec![META.to_owned()];
    // Lines at which no event waits for its item.
    let mut ends = Vec::new();
    for number in 0..12 {
        let words = format!("message {}", number % 3);
        let said = format!(r#""message":"{words}""#);
        lines.extend([message(&words), event("user_message", &said)]);
        ends.push(lines.len());
        // In some turns the answer is only an event, and its words are those of an item of another turn.
        lines.push(event("agent_message", &said));
        lines.extend((number % 2 == 0).then(|| answer(&words)));
        ends.push(lines.len());
        lines.push(tokens.replace('$', &(number + 1).to_string()));
        lines.extend((number % 4 == 3).then(|| event("thread_rolled_back", r#""num_turns":2"#)));
        ends.push(lines.len());
    }
    let tree = |count: usize| -> Vec<(String, Option<String>)> {
        let read = read(lines[..count].join("\n").as_bytes());
        messages(&read).into_iter().map(|message| (message.id.clone(), message.parent.clone())).collect()
    };
    let whole = tree(lines.len());
    assert_eq!(whole.len(), 24);
    for count in ends {
        let grown = tree(count);
        assert_eq!(grown, whole[..grown.len()], "{count} lines");
    }
}

#[test]
fn the_current_message_was_not_rolled_back() {
    let back = |turns: u32| event("thread_rolled_back", &format!(r#""num_turns":{turns}"#));
    let turns = [message("one"), answer("two"), message("three"), answer("four")].join("\n");
    let current = |turns: String| {
        let lines = read(format!("{META}\n{turns}").as_bytes());
        let record = conversations(&lines)[0].clone();
        assert_eq!(record.messages.len(), 4);
        record.current.map(|id| record.messages.iter().position(|message| message.id == id))
    };
    assert_eq!(current(turns.clone()), Some(Some(3)));
    assert_eq!(current(format!("{turns}\n{}", back(1))), Some(Some(1)));
    assert_eq!(current(format!("{turns}\n{}", back(2))), None, "no message is left");
}

#[test]
fn one_object_under_the_name_of_lines_is_read() {
    let text = r#"{"session":{"id":"s","timestamp":"2025-04-26T10:00:00Z"},"items":[{"type":"message","role":"user","content":"It is read."}]}"#;
    let lines = read(text.as_bytes());
    let record = conversations(&lines)[0];
    assert_eq!((record.id.as_str(), record.messages.len(), skips(&lines).len()), ("s", 1, 0));
    assert_eq!(record.current.as_ref(), Some(&record.messages[0].id));
}

#[test]
fn an_event_and_the_item_that_it_repeats_have_other_keys() {
    let item = line("response_item", r#""type":"agent_message","content":"x""#);
    let lines = read(format!("{META}\n{}\n{item}", event("agent_message", r#""message":"x""#)).as_bytes());
    let record = conversations(&lines)[0];
    assert_eq!(record.messages.len(), 1);
    assert_eq!(record.current.as_ref(), Some(&record.messages[0].id));
}

#[test]
fn values_that_are_not_understood_are_all_kept() {
    let images = event("user_message", r#""message":"Look.","images":["one",["two"]]"#);
    let late = r#"{"timestamp":"soon","type":"message","role":"user","content":"x"}"#;
    let lines = read(format!("{META}\n{images}\n{late}").as_bytes());
    let kept: Vec<_> =
        messages(&lines).into_iter().map(|message| format!("{:?}", message.raw_metadata)).collect();
    assert!(kept[0].contains("one") && kept[0].contains("two"), "{kept:?}");
    assert!(kept[1].contains("soon"), "{kept:?}");
}

#[test]
fn objects_with_many_fields_are_read_in_time() {
    let fields = |start: usize| -> String {
        let fields: Vec<_> = (start..start + 9_000).map(|at| format!(r#""f{at}":1"#)).collect();
        fields.join(",")
    };
    let meta = line("session_meta", &format!(r#""id":"s",{}"#, fields(0)));
    let output = line(
        "response_item",
        &format!(
            r#""type":"function_call_output","output":{{"content":"x",{}}},{}"#,
            fields(0),
            fields(9_000)
        ),
    );
    let begun = Instant::now();
    let lines = read([[meta].as_slice(), &vec![output; 5]].concat().join("\n").as_bytes());
    assert_eq!(messages(&lines).len(), 5);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn lines_and_ids_beyond_their_limits_are_not_read() {
    let long = message(&"x".repeat(16 * 1024 * 1024));
    let id = "i".repeat(300);
    let named =
        line("response_item", &format!(r#""type":"message","role":"user","id":"{id}","content":"x""#));
    let lines = read(format!("{META}\n{long}\n{named}").as_bytes());
    let messages = messages(&lines);
    assert_eq!((messages.len(), skips_of(&lines, RecordKind::Message)), (1, 1));
    assert!(messages[0].id.starts_with("natural:") && messages[0].provider_message_id.is_none());
    let items = format!(r#"{{"type":"message","role":"user","content":"{}"}}"#, "x".repeat(16 * 1024 * 1024));
    let text = format!(r#"{{"session":{{"id":"s","timestamp":"2025-04-26T10:00:00Z"}},"items":[{items}]}}"#);
    assert_eq!(skips_of(&read(text.as_bytes()), RecordKind::Message), 1);
}

#[test]
fn lines_beyond_the_limit_are_reported() {
    let line = r#"{"type":"event_msg","payload":{"type":"agent_message","message":"x"}}"#;
    let text = format!("{META}\n{}", format!("{line}\n").repeat(300_001));
    let lines = read(text.as_bytes());
    let record = conversations(&lines)[0];
    assert_eq!((record.messages.len(), skips_of(&lines, RecordKind::Message)), (299_999, 2));
    assert_eq!(record.current.as_ref(), record.messages.last().map(|last| &last.id));
}

#[test]
fn rollbacks_of_any_size_are_read() {
    let back = |turns: &str| {
        format!(r#"{{"type":"event_msg","payload":{{"type":"thread_rolled_back","num_turns":{turns}}}}}"#)
    };
    let turns = ["18446744073709551615", "-1", "1e99", "null", "{}", "0"].map(back);
    let lines: Vec<String> = turns.iter().flat_map(|back| [message("Begin again."), back.clone()]).collect();
    let lines = read(format!("{META}\n{}", lines.join("\n")).as_bytes());
    let record = conversations(&lines)[0];
    assert_eq!(record.messages.len(), 6);
    assert_eq!((&record.messages[0].parent, &record.messages[1].parent), (&None, &None));
    assert_eq!(record.messages[2].parent.as_ref(), Some(&record.messages[1].id));
}

#[test]
fn nesting_beyond_the_limit_skips_the_line_alone() {
    let deep =
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"x","odd":$deep}}"#;
    let text = format!("{META}\n{deep}\n{}", message("It is read."));
    let lines = read(&nested_json(&text));
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
}

#[test]
fn lists_beyond_the_limit_skip_the_line_alone() {
    let parts = [r#"{"type":"input_text","text":"x"}"#].repeat(10_001).join(",");
    let long = format!(
        r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{parts}]}}}}"#
    );
    let text = format!("{META}\n{long}\n{}", message("It is read."));
    let lines = read(text.as_bytes());
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
}

#[test]
fn padding_and_glued_lines_are_reported() {
    let torn = &message("torn")[..60];
    let [first, glued, last] = ["It is read.", "glued", "It is read too."].map(message);
    let lines = read(format!("{META}\n{first}\n\0\0\0\n{torn}{glued}\n{last}").as_bytes());
    assert_eq!(messages(&lines).len(), 2);
    assert!(!skips(&lines).is_empty());
}

#[test]
fn no_signature_of_an_address_is_emitted() {
    let all: Vec<_> = files().files().iter().map(|file| read_as(&file.name, &file.bytes)).collect();
    let all = format!("{all:?}");
    assert!(
        all.contains("images.example.org") && !all.contains("sig=secret"),
        "a fixture has secrets, and none is emitted"
    );
}
