//! Checks the field table of the README against every leaf of every fixture.

use satchel_importer::{
    json::time_of_text,
    names,
    testkit::{Emitted, FieldTable, FixtureError, Rule},
};
use satchel_plugin_perplexity::Perplexity;
use serde_json::Value;

const RULES: [(&str, Rule); 2] = [("steps", steps), ("as alone", as_alone)];

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<Perplexity>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

fn root(path: &str) -> Option<&'static str> {
    names::is_json(path).then_some("thread")
}

/// Whether every text and number in it is emitted, also of JSON in strings; addresses without signatures.
fn steps(value: &Value, emitted: &Emitted) -> bool {
    match value {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_))) => steps(&inner, emitted),
            _ => emitted.holds(text.split("?X-Amz-Signature").next().unwrap_or_default()),
        },
        Value::Number(number) => emitted.holds(&number.to_string()),
        Value::Array(items) => items.iter().all(|item| steps(item, emitted)),
        Value::Object(members) => members.values().all(|member| steps(member, emitted)),
        Value::Null | Value::Bool(_) => true,
    }
}

fn as_alone(value: &Value, emitted: &Emitted) -> bool {
    let time = || value.as_str().and_then(time_of_text).is_some_and(|(at, _)| emitted.holds(&at.to_string()));
    steps(value, emitted) || time()
}
