//! Checks the field table of the README against every leaf of every fixture.

use std::{collections::BTreeSet, sync::LazyLock};

use satchel_importer::{
    address::unsigned,
    names,
    testkit::{Emitted, FieldTable, FixtureError, fixture_files, round_trip::time_of},
};
use satchel_plugin_codex::Codex;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
/// Values of the sessions whose history was copied, of names and branches that were replaced, and of items that are left out.
const REPLACED: [&str; 6] =
    ["2026-04-01T08:00:00.000Z", "/home/rosa/old", "0.120.0", "Ponds", "side", "rs_9"];

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let rules = [
        ("json", json as fn(&Value, &Emitted) -> bool),
        ("line", line),
        ("session", session),
        ("encrypted", encrypted),
        ("file", file),
        ("setting", setting),
        ("tokens", tokens),
    ];
    let table = FieldTable::parse(include_str!("../../README.md"), root, &rules);
    table.check::<Codex>(FIXTURES)
}

#[test]
fn the_rules_can_fail() {
    let nothing = Emitted::default();
    let lost = Value::from("run the tests");
    assert!(!encrypted(&lost, &nothing), "a plain text is lost");
    let time = times_of_messages().into_iter().find(|time| time_of(time).is_some());
    assert!(!line(&Value::from(time), &nothing), "the time of a message is lost");
}

fn root(path: &str) -> Option<&'static str> {
    let roots = [("json", "saved"), ("jsonl", "rollout")];
    roots.into_iter().find(|(extension, _)| names::has_extension(path, extension)).map(|(_, root)| root)
}

/// A text with an object is emitted as that object.
fn json(value: &Value, emitted: &Emitted) -> bool {
    value.as_str().is_some_and(|text| text.trim_start().starts_with('{')) && emitted.holds_json_in(value)
}

/// The time of a message is emitted in microseconds; another line needs none.
fn line(value: &Value, emitted: &Emitted) -> bool {
    static SPOKEN: LazyLock<BTreeSet<String>> = LazyLock::new(times_of_messages);
    let text = value.as_str().unwrap_or_default();
    time_of(text).is_some_and(|micros| emitted.holds_number(&micros.to_string()) || !SPOKEN.contains(text))
}

/// The times of the lines with a text of the person or the model.
fn times_of_messages() -> BTreeSet<String> {
    let files = fixture_files(FIXTURES).expect("the fixtures can be read");
    let text = files.iter().map(|file| String::from_utf8_lossy(&file.bytes)).collect::<Vec<_>>().join("\n");
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let spoken = |line: &Value| {
        let payload = &line["payload"];
        payload["type"] == "message" && payload["content"].as_array().is_some_and(|parts| !parts.is_empty())
    };
    let times: BTreeSet<String> =
        lines.filter(spoken).filter_map(|line| line["timestamp"].as_str().map(ToOwned::to_owned)).collect();
    assert!(times.len() > 30, "most fixtures have messages");
    times
}

/// The value of another session is dropped; a time is emitted in microseconds.
fn session(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    let time = time_of(text).is_some_and(|micros| emitted.holds_number(&micros.to_string()));
    time || REPLACED.contains(&text)
}

/// An encrypted text is left out; a test for secrets checks that none is emitted.
fn encrypted(value: &Value, _: &Emitted) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("gAAAA"))
}

/// An address, or the bytes of a file. One file of the fixtures cannot be decoded.
fn file(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    let base64 = text.split_once(',').map_or(text, |(_, base64)| base64);
    let listed = bytes(base64).iter().map(u8::to_string).collect::<Vec<_>>().join("\n");
    emitted.holds(&unsigned(text)) || emitted.holds(&listed) || text.ends_with("Script completed")
}

/// Decodes Base64.
fn bytes(text: &str) -> Vec<u8> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = text.chars().filter_map(|letter| LETTERS.find(letter));
    let bits: Vec<bool> =
        sextets.flat_map(|value| (0..6).rev().map(move |bit| value >> bit & 1 == 1)).collect();
    bits.as_chunks::<8>()
        .0
        .iter()
        .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
        .collect()
}

/// The setting of a turn.
fn setting(value: &Value, _: &Emitted) -> bool {
    value == "auto"
}

/// Every answer of the fixtures has tokens.
fn tokens(value: &Value, emitted: &Emitted) -> bool {
    emitted.holds_number(&value.to_string())
}
