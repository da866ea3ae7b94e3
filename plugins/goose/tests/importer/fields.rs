//! Checks the field table of the README against every leaf of every fixture.

use satchel_importer::{
    names,
    testkit::{Emitted, FieldTable, FixtureError, round_trip::time_of},
};
use satchel_plugin_goose::Goose;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let rules = [
        ("file", file as fn(&Value, &Emitted) -> bool),
        ("moment", moment),
        ("said", said),
        ("attached", attached),
    ];
    FieldTable::parse(include_str!("../../README.md"), root, &rules).check::<Goose>(FIXTURES)
}

#[test]
fn the_rules_can_fail() {
    let nothing = Emitted::default();
    assert!(!file(&Value::from("R0lG"), &nothing) && !said(&Value::from("A lost text."), &nothing));
    assert!(!moment(&Value::from(1_752_484_503), &nothing) && !attached(&Value::from("Menu"), &nothing));
}

fn root(path: &str) -> Option<&'static str> {
    let roots = [("json", "export"), ("jsonl", "line")];
    roots.into_iter().find(|(extension, _)| names::has_extension(path, extension)).map(|(_, root)| root)
}

/// The bytes of a file. One file of the fixtures cannot be decoded.
fn file(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    holds_bytes(&bytes(text), emitted) || text == "not base64!"
}

/// The content of a file that is attached. One file of the fixtures is named by no result.
fn attached(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    holds_bytes(text.as_bytes(), emitted) || text == "No result names this."
}

fn holds_bytes(bytes: &[u8], emitted: &Emitted) -> bool {
    let listed = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join("\n");
    !listed.is_empty() && emitted.holds(&listed)
}

/// A time in seconds, in milliseconds, or in a text.
fn moment(value: &Value, emitted: &Emitted) -> bool {
    let micros = match value.as_i64() {
        Some(number) if number > 20_000_000_000 => Some(number * 1_000),
        Some(number) => Some(number * 1_000_000),
        None => value.as_str().and_then(time_of),
    };
    micros.is_some_and(|micros| emitted.holds_number(&micros.to_string()))
}

/// A word that decides what becomes of a part, or a text.
fn said(value: &Value, emitted: &Emitted) -> bool {
    value.as_str().is_some_and(|text| emitted.holds(text))
}

/// Decodes Base64.
fn bytes(text: &str) -> Vec<u8> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = text.chars().filter_map(|letter| LETTERS.find(letter));
    let bits: Vec<bool> =
        sextets.flat_map(|value| (0..6).rev().map(move |bit| value >> bit & 1 == 1)).collect();
    let byte = |bits: &[bool; 8]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    bits.as_chunks::<8>().0.iter().map(byte).collect()
}
