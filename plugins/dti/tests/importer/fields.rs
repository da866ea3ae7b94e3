//! Checks the field table of `README.md` against every leaf of every fixture.

use satchel_importer::{
    names,
    testkit::{Emitted, FieldTable, FixtureError, Rule},
};
use satchel_plugin_dti::Dti;
use serde_json::Value;

const RULES: [(&str, Rule); 5] =
    [("sender", sender), ("identifier", identifier), ("type", kind), ("name", name), ("address", address)];

/// The role stands for the only AI and for everybody with a mail address or a telephone number.
fn sender(name: &Value, emitted: &Emitted) -> bool {
    match name.as_str() {
        Some("AI") => emitted.holds("assistant"),
        Some(name) if name.contains('@') => emitted.holds("user"),
        Some(name) => name.starts_with('+') || emitted.holds(name),
        None => false,
    }
}

fn kind(kind: &Value, emitted: &Emitted) -> bool {
    kind == "email" && emitted.holds("user")
}

/// A mail address in place of a name is not emitted.
fn name(text: &Value, emitted: &Emitted) -> bool {
    let text = text.as_str().unwrap_or_default();
    emitted.holds(text) != text.contains('@')
}

fn address(text: &Value, emitted: &Emitted) -> bool {
    let (address, query) = text.as_str().and_then(|text| text.split_once('?')).unwrap_or_default();
    emitted.holds(address) && !emitted.holds(query)
}

/// Mail addresses and telephone numbers are not emitted.
fn identifier(text: &Value, emitted: &Emitted) -> bool {
    let text = text.as_str().unwrap_or_default();
    let private = text.contains('@') || text.starts_with('+');
    private && !emitted.holds(text)
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let root = |path: &str| names::is_json(path).then_some("history");
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<Dti>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
