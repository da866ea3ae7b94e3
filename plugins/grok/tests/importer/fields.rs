//! Checks the field table of `README.md` against every leaf of every fixture.

use satchel_importer::testkit::{Emitted, FieldTable, FixtureError, Rule};
use satchel_plugin_grok::Grok;
use serde_json::Value;

const RULES: [(&str, Rule); 2] = [("role", role), ("last frame", last_frame)];

/// The prefix of the paths of a file in the table.
fn root(file: &str) -> Option<&'static str> {
    match file.rsplit('/').next() {
        Some("prod-mc-auth-mgmt-api.json") => Some("account"),
        Some("prod-mc-billing.json") => Some("billing"),
        Some("prod-grok-backend.json" | "my grok chats.json") => Some("main"),
        _ => None,
    }
}

fn role(sender: &Value, emitted: &Emitted) -> bool {
    let role = if sender == "human" { "user" } else { "assistant" };
    emitted.holds(role)
}

fn last_frame(card: &Value, emitted: &Emitted) -> bool {
    let card: Option<Value> = card.as_str().and_then(|text| serde_json::from_str(text).ok());
    card.is_some_and(|card| card["id"].as_str().is_some_and(|id| emitted.holds(id)))
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<Grok>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
