//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests, names,
    pam::record::{MessageRecord, RecordKind},
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, messages, nested_json, run_file, skips_of,
    },
};
use satchel_plugin_claude_code::ClaudeCode;

const NAME: &str = "5e551000-0000-4000-8000-000000000099.jsonl";
const FORMAT: &str = "claude-code-importer/2026.08";

/// The sessions of all fixtures.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| {
        names::has_extension(&file.name, "jsonl") && !conversations(&read(&file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<ClaudeCode>(FORMAT, NAME, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

broken_file_tests! { importer: ClaudeCode, format: FORMAT, files: files() }

#[test]
fn a_session_that_is_cut_off_gives_only_messages_that_the_whole_one_has() {
    files().cut_at_random(|cut| {
        // A text that was typed while the model worked may have its own line only later.
        let typed = |message: &&MessageRecord| {
            message.raw_metadata.as_ref().is_some_and(|raw| raw.as_str().contains("\"operation\""))
        };
        let new: Vec<_> = cut.new_messages().into_iter().filter(|message| !typed(message)).collect();
        assert!(new.is_empty(), "{new:?}");
    });
}

#[test]
fn half_a_line_is_reported_and_is_no_message() {
    let whole = r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}"#;
    let next = r#"{"type":"user","uuid":"b","parentUuid":"a","sessionId":"s","message":{"role":"user","content":"there"}}"#;
    for cut in 1..next.len() {
        let lines = read(format!("{whole}\n{}", &next[..cut]).as_bytes());
        assert_eq!(messages(&lines).len(), 1, "{lines:?}");
        assert!(skips_of(&lines, RecordKind::Message) > 0, "{lines:?}");
    }
}

#[test]
fn a_hundred_thousand_lines_are_read() {
    let line = |at: usize| {
        let parent = at.checked_sub(1).map_or("null".to_owned(), |at| format!("\"u{at}\""));
        format!(
            r#"{{"type":"user","uuid":"u{at}","parentUuid":{parent},"sessionId":"s","message":{{"role":"user","content":"x"}}}}"#
        )
    };
    let lines: Vec<String> = (0..100_000).map(line).collect();
    let lines = read(lines.join("\n").as_bytes());
    let record = conversations(&lines)[0];
    assert_eq!(record.messages.len(), 100_000);
    assert_eq!(record.messages[99_999].parent.as_deref(), Some("u99998"));
}

#[test]
fn lines_beyond_the_limit_are_reported() {
    let line = r#"{"type":"mode","mode":"normal","sessionId":"s"}"#;
    let first = r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}"#;
    let text = format!("{first}\n{}", format!("{line}\n").repeat(200_010));
    let lines = read(text.as_bytes());
    assert_eq!(messages(&lines).len(), 1);
    assert_eq!(skips_of(&lines, RecordKind::Message), 11);
}

#[test]
fn nesting_beyond_the_limit_skips_the_line_alone() {
    let good = |id: &str| {
        format!(
            r#"{{"type":"user","uuid":"{id}","sessionId":"s","message":{{"role":"user","content":"x"}}}}"#
        )
    };
    let deep = r#"{"type":"user","uuid":"deep","sessionId":"s","message":{"role":"user","content":$deep}}"#;
    let text = format!("{}\n{deep}\n{}\n", good("a"), good("b"));
    let lines = read(&nested_json(&text));
    assert_eq!(messages(&lines).len(), 2);
    assert!(skips_of(&lines, RecordKind::Message) > 0);
}

#[test]
fn texts_in_fields_of_an_unexpected_type_are_reported() {
    let session = |fields: &str| {
        format!(
            r#"{{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","timestamp":"2026-05-01T08:00:00Z",{fields}}}"#
        )
    };
    let prose = r#"{"note":"Please water the garden this evening."}"#;
    for (field, fields) in [
        ("content", format!(r#""message":{{"role":"user","content":{prose}}}"#)),
        ("type", format!(r#""message":{{"role":"user","content":"hi","type":{prose}}}"#)),
        ("message", format!(r#""content":"hi","message":[{prose}]"#)),
        ("attachment", format!(r#""message":{{"role":"user","content":"hi"}},"attachment":[{prose}]"#)),
    ] {
        let lines = read(session(&fields).as_bytes());
        let warned =
            |line: &Line| matches!(line, Line::Warning(warning) if warning.message.contains("holds text"));
        let skipped = skips_of(&lines, RecordKind::Message) > 0;
        assert!(lines.iter().any(warned) || skipped, "{field}: {lines:?}");
    }
}
