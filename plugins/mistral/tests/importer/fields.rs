//! Checks the field table of the README against every leaf of every fixture.

use satchel_importer::{
    names,
    testkit::{Emitted, FieldTable, FixtureError},
};
use satchel_plugin_mistral::Mistral;
use serde_json::Value;

/// A string of JSON is emitted as an object.
fn json(value: &Value, emitted: &Emitted) -> bool {
    value.as_str().is_some_and(|text| text.trim_start().starts_with('{')) && emitted.holds_json_in(value)
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &[("json", json)]);
    table.check::<Mistral>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

fn root(path: &str) -> Option<&'static str> {
    (names::is_json(path) && !path.contains("-files/")).then_some("chat")
}
