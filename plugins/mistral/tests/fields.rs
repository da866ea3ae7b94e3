//! The field table of the README, held against every leaf of every fixture.

use std::path::Path;

use satchel_importer::{
    names,
    testkit::{Emitted, FieldTable},
};
use satchel_plugin_mistral::Mistral;
use serde_json::Value;

#[test]
fn what_the_table_says_of_each_field_is_so() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let table = FieldTable::parse(include_str!("../README.md"), root, &[("json", json), ("bytes", bytes)]);
    let faults = table.faults::<Mistral>(&folder).expect("the fixtures can be read");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn root(path: &str) -> Option<&'static str> {
    (names::is_json(path) && !path.contains("-files/")).then_some("chat")
}

/// A text of JSON is emitted as the object that it holds.
fn json(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    let Ok(Value::Object(object)) = serde_json::from_str(text) else { return false };
    object.values().filter_map(Value::as_str).all(|text| emitted.holds(text))
}

/// A text is emitted as the numbers of its bytes.
fn bytes(value: &Value, emitted: &Emitted) -> bool {
    let bytes: Vec<String> =
        value.as_str().unwrap_or_default().bytes().map(|byte| byte.to_string()).collect();
    emitted.holds(&bytes.join("\n"))
}
