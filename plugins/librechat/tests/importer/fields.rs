//! Checks the field table of `README.md` against every leaf of every fixture.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use satchel_importer::testkit::{Emitted, FieldTable, FixtureError, Rule};
use satchel_plugin_librechat::LibreChat;
use serde_json::Value;

const RULES: [(&str, Rule); 6] = [
    ("marks", marks),
    ("picture", picture),
    ("recording", recording),
    ("json", json),
    ("parent", parent),
    ("nested", nested),
];

/// Every line is emitted, without the marks around reasoning.
fn marks(text: &Value, emitted: &Emitted) -> bool {
    let marks = [":::thinking", ":::", "<think>", "</think>"];
    let mut lines = text.as_str().unwrap_or_default().lines().filter(|line| !marks.contains(line));
    lines.all(|line| emitted.holds(line.trim()))
}

fn numbers(data: &str, emitted: &Emitted) -> bool {
    let bytes = STANDARD.decode(data).unwrap_or_default();
    let numbers: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    !numbers.is_empty() && emitted.holds(&numbers.join("\n"))
}

/// The bytes of a picture are emitted as numbers.
fn picture(address: &Value, emitted: &Emitted) -> bool {
    let data = address.as_str().and_then(|address| address.split_once(";base64,"));
    data.is_some_and(|(_, data)| numbers(data, emitted))
}

/// The bytes of a recording are emitted as numbers.
fn recording(data: &Value, emitted: &Emitted) -> bool {
    numbers(data.as_str().unwrap_or_default(), emitted)
}

fn json(text: &Value, emitted: &Emitted) -> bool {
    emitted.holds_json_in(text)
}

/// The id of no message says that there is no parent.
fn parent(id: &Value, _: &Emitted) -> bool {
    id == "00000000-0000-0000-0000-000000000000"
}

/// The fields of a message inside another one.
fn nested(value: &Value, emitted: &Emitted) -> bool {
    value.is_number() || parent(value, emitted) || json(value, emitted) || marks(value, emitted)
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), |_| Some("export"), &RULES);
    table.check::<LibreChat>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
