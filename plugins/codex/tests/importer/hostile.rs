//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

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
        session && !conversations(&read(&file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<Codex>(FORMAT, NAME, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

/// A line with a message of the user.
fn message(text: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
    )
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
    let all: Vec<_> = files().files().iter().map(|file| read(&file.bytes)).collect();
    let all = format!("{all:?}");
    assert!(
        all.contains("images.example.org") && !all.contains("sig=secret"),
        "a fixture has secrets, and none is emitted"
    );
}
