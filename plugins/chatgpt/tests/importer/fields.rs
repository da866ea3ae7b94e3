//! Checks the field table of `README.md` against every leaf of every fixture.

use satchel_importer::testkit::{Emitted, FieldTable, FixtureError, Rule};
use satchel_plugin_chatgpt::ChatGpt;
use serde_json::Value;

const RULES: [(&str, Rule); 5] =
    [("role", role), ("words", words), ("if kept", if_kept), ("file", file), ("alike", alike)];

/// The first name in the paths of a file.
fn root(file: &str) -> Option<&'static str> {
    let name = file.rsplit('/').next().unwrap_or_default();
    Some(match name {
        "user.json" => "user",
        "user_settings.json" => "settings",
        "export_manifest.json" => "manifest",
        "conversation_asset_file_names.json" => "names",
        "library_files.json" => "library",
        "message_feedback.json" => "feedback",
        "model_comparisons.json" => "comparisons",
        "shared_conversations.json" => "shared",
        "group_chats.json" => "groups",
        "codex.json" => "codex",
        "memories.json" => "memories",
        _ if file.contains("textdocs/") => "textdoc",
        _ if name.starts_with("conversations") => "main",
        _ => return None,
    })
}

fn role(role: &Value, emitted: &Emitted) -> bool {
    let role = role.as_str().map(str::to_ascii_lowercase);
    role.is_some_and(|role| emitted.holds(if role == "function" { "tool" } else { &role }))
}

/// Every word is emitted; for JSON in a text, every word of its values.
fn words(value: &Value, emitted: &Emitted) -> bool {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inside @ (Value::Object(_) | Value::Array(_))) => words(&inside, emitted),
            Ok(_) | Err(_) => text.split_whitespace().all(|word| emitted.holds(word)),
        },
        Value::Array(items) => items.iter().all(|item| words(item, emitted)),
        Value::Object(members) => members.values().all(|member| words(member, emitted)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// A node without a message and a file that no message shows are left out.
fn if_kept(_: &Value, _: &Emitted) -> bool {
    true
}

/// The bytes of the file are an attachment.
fn file(_: &Value, emitted: &Emitted) -> bool {
    emitted.holds("textdocs/")
}

/// Like the same field in a list: words, a time, a role, or a root without a message.
fn alike(value: &Value, emitted: &Emitted) -> bool {
    value.is_number() || value == "client-created-root" || words(value, emitted)
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<ChatGpt>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
