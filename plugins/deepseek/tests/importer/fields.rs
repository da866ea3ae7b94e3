//! Checks the field table of `README.md` against every leaf of every fixture.

use satchel_importer::testkit::{Emitted, FieldTable, FixtureError, Rule};
use satchel_plugin_deepseek::DeepSeek;
use serde_json::Value;

const RULES: [(&str, Rule); 2] = [("tree", tree), ("kind", kind)];

/// The prefix of the paths of a file in the table.
fn root(file: &str) -> Option<&'static str> {
    match file.rsplit('/').next() {
        Some("conversations.json") => Some("main"),
        Some("user.json") => Some("user"),
        _ => None,
    }
}

/// Only the ids of nodes without a message may be missing.
fn tree(id: &Value, _: &Emitted) -> bool {
    matches!(id.as_str(), Some("root" | "gap"))
}

fn kind(kind: &Value, emitted: &Emitted) -> bool {
    match kind.as_str() {
        Some("REQUEST") => emitted.holds("user"),
        Some("RESPONSE") => emitted.holds("assistant"),
        _ => false,
    }
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<DeepSeek>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
