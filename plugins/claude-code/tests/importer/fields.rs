//! Checks the field table of the README against every leaf of every fixture.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use satchel_importer::{
    json::time_of_text,
    names,
    testkit::{Emitted, FieldTable, FixtureError, Rule},
};
use satchel_plugin_claude_code::ClaudeCode;
use serde_json::Value;

/// The bytes of a file are emitted as numbers; a document of text has its own bytes.
fn file(value: &Value, emitted: &Emitted) -> bool {
    let Some(text) = value.as_str() else { return false };
    let bytes = STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
    // Emitted numbers are listed in order, each on a line.
    emitted.holds(&bytes.iter().map(u8::to_string).collect::<Vec<_>>().join("\n"))
}

/// The types that decide what a value becomes; any other one is kept.
fn known_type(value: &Value, _: &Emitted) -> bool {
    const TYPES: [&str; 22] = [
        "user",
        "assistant",
        "system",
        "attachment",
        "progress",
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "image",
        "base64",
        "url",
        // The names of members of `last_lines`.
        "custom-title",
        "ai-title",
        "permission-mode",
        "last-prompt",
        "cost-state",
        "pr-link",
    ];
    value.as_str().is_some_and(|kind| TYPES.contains(&kind))
}

/// The answer of a tool once more.
fn repetition(value: &Value, emitted: &Emitted) -> bool {
    value.as_str().and_then(|text| text.strip_prefix("Error: ")).is_some_and(|text| emitted.holds(text))
}

/// The call that a progress line is about.
fn progress(value: &Value, _: &Emitted) -> bool {
    value.as_str() == Some("toolu_1")
}

/// What the fixture about typed texts leaves out.
fn queue(value: &Value, _: &Emitted) -> bool {
    ["enqueue", "dequeue", "remove", "popAll", "Wait, no."].iter().any(|left_out| value == left_out)
}

/// A line that is left out has no message.
fn kept_line(value: &Value, emitted: &Emitted) -> bool {
    let Some(text) = value.as_str() else { return false };
    let left_out = text.starts_with("p06") || text == "2026-05-02T10:00:06.250Z";
    let time = time_of_text(text).is_some_and(|(time, _)| emitted.holds_number(&time.to_string()));
    left_out || time || emitted.holds(text)
}

/// Of several titles, the last one counts.
fn last(value: &Value, _: &Emitted) -> bool {
    value == "Rye recipe test"
}

const RULES: [(&str, Rule); 7] = [
    ("line", kept_line),
    ("last", last),
    ("bytes or base64", file),
    ("type", known_type),
    ("repetition", repetition),
    ("progress", progress),
    ("queue", queue),
];

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<ClaudeCode>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

fn root(path: &str) -> Option<&'static str> {
    if names::has_extension(path, "jsonl") {
        Some("line")
    } else {
        path.ends_with(".meta.json").then_some("subagent")
    }
}
