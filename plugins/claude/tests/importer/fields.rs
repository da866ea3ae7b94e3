//! Checks every leaf of every fixture against the field table of `README.md`.

use satchel_importer::testkit::{Emitted, FieldTable, FixtureError, Rule};
use satchel_plugin_claude::Claude;
use serde_json::Value;

const RULES: [(&str, Rule); 7] = [
    ("role", role),
    ("parent", parent),
    ("block", block),
    ("lines", lines),
    ("JSON in a text", |text, emitted| emitted.holds_json_in(text)),
    ("wrapped", wrapped),
    ("item", item),
];

/// The root of the paths of a file in the table.
fn root(file: &str) -> Option<&'static str> {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    match (folder.rsplit('/').next().unwrap_or_default(), name) {
        ("conversations", _) => Some("chat"),
        ("design_chats", _) => Some("design"),
        ("projects", _) => Some("project"),
        ("memories", _) => Some("memory"),
        ("reflections", _) => Some("reflection"),
        (_, "My chat about bread.json") => Some("chat"),
        (_, "conversations.json" | "holiday.json") => Some("chats"),
        (_, "projects.json") => Some("projects"),
        (_, "memories.json") => Some("memories"),
        (_, "users.json") => Some("users"),
        (_, "login_history.json") => Some("login_history"),
        (_, "artifact.json") => Some("artifact"),
        (_, "comments.json") => Some("comments"),
        (_, "artifact_comments.json") => Some("artifact_comments"),
        (_, name) if name.starts_with("manifest-") => Some("manifest"),
        // Pages of artifacts are attached unchanged.
        _ => None,
    }
}

fn role(sender: &Value, emitted: &Emitted) -> bool {
    let role = if sender == "human" { "user" } else { "assistant" };
    emitted.holds(role)
}

fn parent(parent: &Value, _: &Emitted) -> bool {
    parent == "00000000-0000-4000-8000-000000000000"
}

fn block(kind: &Value, emitted: &Emitted) -> bool {
    match kind.as_str() {
        Some("tool_call") => emitted.holds("tool_use"),
        kind => kind == Some("token_budget"),
    }
}

fn lines(text: &Value, emitted: &Emitted) -> bool {
    let words = |line: &str| {
        let line =
            line.trim().trim_matches('*').trim_end_matches(':').trim_start_matches('-').trim().to_owned();
        let mark = line.strip_prefix('[').and_then(|line| line.split_once(']'));
        mark.map_or(line.clone(), |(_, words)| words.trim().to_owned())
    };
    let all: Vec<&str> =
        text.as_str().unwrap_or_default().lines().filter(|line| !line.trim().is_empty()).collect();
    let heading = |line: &str| line.trim().starts_with("**") && line.trim().ends_with("**");
    // A heading without text below it is dropped.
    let bare = |at: usize| heading(all[at]) && all.get(at + 1).is_none_or(|next| heading(next));
    let held = |at: usize| all[at].starts_with('#') || bare(at) || emitted.holds(&words(all[at]));
    text.is_string() && (0..all.len()).all(held)
}

/// The conversation in a wrapper; `chats` checks the fields themselves, so a time only has to look like one.
fn wrapped(value: &Value, emitted: &Emitted) -> bool {
    let time = value.as_str().is_some_and(|text| text.ends_with('Z') || text.ends_with("+00:00"));
    time || parent(value, emitted) || (value == "human" && emitted.holds("user"))
}

fn item(kind: &Value, _: &Emitted) -> bool {
    kind == "text"
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<Claude>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
