//! Checks the field table of `README.md` against every leaf of every fixture.

use satchel_importer::testkit::{Emitted, FieldTable, FixtureError, Rule};
use satchel_plugin_snapchat::Snapchat;
use serde_json::Value;

const RULES: [(&str, Rule); 5] =
    [("clock", clock), ("type", kind), ("lines", lines), ("role", role), ("media", media)];

/// The prefix of the paths of a file in the table.
fn root(file: &str) -> Option<&'static str> {
    match file.rsplit('/').next() {
        Some("snapchat_ai.json") => Some("ai"),
        Some("chat_history.json") => Some("chats"),
        Some("account.json") => Some("account"),
        _ => None,
    }
}

fn clock(time: &Value, emitted: &Emitted) -> bool {
    let millis =
        time.as_i64().is_some_and(|millis| millis == 0 || emitted.holds(&(millis * 1000).to_string()));
    let text = time.as_str().and_then(|text| text.strip_suffix(" UTC"));
    let micros = text.and_then(|text| satchel_importer::json::time_of_text(&format!("{text}Z")));
    // Beside milliseconds a second says nothing more.
    millis || micros.is_some_and(|(micros, _)| emitted.holds(&(micros / 1_000_000).to_string()))
}

fn kind(kind: &Value, _: &Emitted) -> bool {
    matches!(kind.as_str(), Some("CHAT" | "TEXT"))
}

fn lines(text: &Value, emitted: &Emitted) -> bool {
    text.as_str().is_some_and(|text| text.lines().all(|line| emitted.holds(line)))
}

fn role(_: &Value, emitted: &Emitted) -> bool {
    emitted.holds("user") && emitted.holds("assistant")
}

fn media(ids: &Value, emitted: &Emitted) -> bool {
    ids.as_str().is_some_and(|ids| ids.split('|').all(|id| emitted.holds(id.trim())))
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<Snapchat>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
