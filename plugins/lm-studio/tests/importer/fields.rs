//! Checks the field table of the README against every leaf of every fixture.

use satchel_importer::{
    names::is_json,
    testkit::{Emitted, FieldTable, FixtureError},
};
use satchel_plugin_lm_studio::LmStudio;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let rules = [("time", time as fn(&Value, &Emitted) -> bool), ("joined", joined)];
    FieldTable::parse(include_str!("../../README.md"), root, &rules).check::<LmStudio>(FIXTURES)
}

#[test]
fn the_rules_can_fail() {
    let nothing = Emitted::default();
    assert!(!time(&Value::from(1_767_700_000_000_u64), &nothing));
    assert!(!joined(&Value::from("A lost text."), &nothing));
}

fn root(path: &str) -> Option<&'static str> {
    match path {
        path if path.ends_with(".metadata.json") => Some("description"),
        path if is_json(path) => Some("chat"),
        _ => None,
    }
}

/// Milliseconds or seconds, which are stored in microseconds; zero is no time.
fn time(value: &Value, emitted: &Emitted) -> bool {
    let number = value.as_u64().unwrap_or_default();
    let micros = if number > 100_000_000_000 { number * 1000 } else { number * 1_000_000 };
    number == 0 || emitted.holds(&micros.to_string())
}

/// A piece of a longer text.
fn joined(value: &Value, emitted: &Emitted) -> bool {
    value.as_str().is_some_and(|text| emitted.holds(text))
}
