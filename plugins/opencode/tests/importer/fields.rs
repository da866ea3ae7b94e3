//! Checks the field table of the README against every leaf of every fixture.

use satchel_importer::testkit::{Emitted, FieldTable, FixtureError};
use satchel_plugin_opencode::OpenCode;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
/// The folders of a storage, and what their files are called in the table. Those of one project are inside of `session`.
const FOLDERS: [(&str, &str); 7] = [
    ("message/", "message"),
    ("part/", "part"),
    ("project/7", "project"),
    ("todo/", "tasks"),
    ("session_diff/", "changes"),
    ("session/", "session"),
    ("", "export"),
];

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let rules = [("file", file as fn(&Value, &Emitted) -> bool), ("said", said)];
    FieldTable::parse(include_str!("../../README.md"), root, &rules).check::<OpenCode>(FIXTURES)
}

#[test]
fn the_rules_can_fail() {
    let nothing = Emitted::default();
    assert!(!file(&Value::from("data:image/gif;base64,R0lG"), &nothing));
    assert!(!file(&Value::from("file:///a.gif"), &nothing) && !said(&Value::from("A lost text."), &nothing));
}

fn root(path: &str) -> Option<&'static str> {
    let is_in =
        |folder: &str| folder.is_empty() || path.starts_with(folder) || path.contains(&format!("/{folder}"));
    FOLDERS.into_iter().find(|(folder, _)| is_in(folder)).map(|(_, root)| root)
}

/// An address without its signature, or the bytes of a file. One file of the fixtures cannot be decoded.
fn file(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    let Some((_, data)) = text.split_once(";base64,") else { return false };
    let listed = bytes(data).iter().map(u8::to_string).collect::<Vec<_>>().join("\n");
    (!listed.is_empty() && emitted.holds(&listed)) || data == "?!"
}

/// A mark that decides what becomes of a text, or a text.
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
