//! Checks the field table of the README against every leaf of every fixture.

use satchel_importer::testkit::{Emitted, FieldTable, FixtureError};
use satchel_plugin_jan::Jan;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let rules = [("file", file as fn(&Value, &Emitted) -> bool), ("think", think), ("json", json)];
    FieldTable::parse(include_str!("../../README.md"), root, &rules).check::<Jan>(FIXTURES)
}

#[test]
fn the_rules_can_fail() {
    let nothing = Emitted::default();
    let lost = Value::from("A lost text.");
    assert!(
        !file(&lost, &nothing) && !think(&lost, &nothing) && !json(&Value::from(r#"{"a":"b"}"#), &nothing)
    );
}

fn root(path: &str) -> Option<&'static str> {
    match path.rsplit('/').next() {
        Some("thread.json") => Some("thread"),
        Some("messages.jsonl") => Some("messages"),
        Some(name) if name.starts_with("Rye") => Some("export"),
        _ => None,
    }
}

/// The bytes of a file, its name, or its address. One file of the fixtures cannot be decoded.
fn file(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    let name = text.rsplit('/').next().unwrap_or_default();
    let data = text.split_once(";base64,").map_or(text, |(_, data)| data);
    emitted.holds(text)
        || data == "?!"
        || holds_bytes(&bytes(data), emitted)
        || (text.len() < 99 && emitted.holds(name))
}

/// A text with marks around its reasoning.
fn think(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    let inside = text.strip_prefix("<think>").unwrap_or(text);
    let (reasoning, answer) = inside.split_once("</think>").unwrap_or((inside, ""));
    emitted.holds(reasoning) && emitted.holds(answer.trim_start())
}

/// A text with an object, or the text of a document.
fn json(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    emitted.holds_json_in(value) || holds_bytes(text.as_bytes(), emitted)
}

fn holds_bytes(bytes: &[u8], emitted: &Emitted) -> bool {
    let listed = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join("\n");
    !listed.is_empty() && emitted.holds(&listed)
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
