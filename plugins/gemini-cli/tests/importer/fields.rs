//! Checks the field table of the README against every leaf of every fixture.

use satchel_importer::{
    address::unsigned,
    names,
    testkit::{Emitted, FieldTable, FixtureError, round_trip::time_of},
};
use satchel_plugin_gemini_cli::GeminiCli;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
/// Ids of messages that hold nothing, or nothing new.
const WITHOUT_PIECES: [&str; 4] = ["g", "i-1", "r-1", "r-2"];
/// Times of messages that hold nothing new.
const TIMES: [&str; 9] = [
    "2026-05-04T10:00:04.200Z",
    "2026-05-04T10:00:09.090Z",
    "2026-05-04T10:01:04.005Z",
    "2026-05-04T10:06:04.000Z",
    "2026-05-04T10:06:04.002Z",
    "2026-05-04T10:12:03.000Z",
    "2026-05-04T10:12:05.000Z",
    "2026-05-04T10:12:13.000Z",
    "2026-05-04T10:19:04.000Z",
];

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let rules = [
        ("latest", latest as fn(&Value, &Emitted) -> bool),
        ("again", again),
        ("tokens", tokens),
        ("file", file),
        ("words", words),
    ];
    FieldTable::parse(include_str!("../../README.md"), root, &rules).check::<GeminiCli>(FIXTURES)
}

#[test]
fn the_rules_can_fail() {
    let nothing = Emitted::default();
    assert!(!again(&Value::from("u-9"), &nothing) && !words(&Value::from("A lost text."), &nothing));
    assert!(!again(&Value::from("2026-05-04T10:00:01.250Z"), &nothing), "the time of a message is lost");
    assert!(!file(&Value::from("AAEC"), &nothing) && !tokens(&Value::from(1), &nothing));
}

fn root(path: &str) -> Option<&'static str> {
    let roots = [("json", "saved"), ("jsonl", "log")];
    roots.into_iter().find(|(extension, _)| names::has_extension(path, extension)).map(|(_, root)| root)
}

/// A time that is the latest one or an earlier one; a word is kept.
fn latest(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    time_of(text).is_some() || emitted.holds(text)
}

/// What is written again may be in the first version only.
fn again(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    let time = time_of(text).is_some_and(|micros| emitted.holds_number(&micros.to_string()));
    time || emitted.holds(text)
        || WITHOUT_PIECES.contains(&text)
        || TIMES.contains(&text)
        || text.starts_with("<tool_output_masked>")
}

/// The first tokens of some answers of the fixtures are replaced.
fn tokens(value: &Value, emitted: &Emitted) -> bool {
    emitted.holds_number(&value.to_string())
        || (emitted.holds("u-1:2") && value.as_u64().is_some_and(|count| count < 10))
}

/// An address, or the bytes of a file. One file of the fixtures cannot be decoded.
fn file(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    let listed = bytes(text).iter().map(u8::to_string).collect::<Vec<_>>().join("\n");
    emitted.holds(&unsigned(text)) || (!listed.is_empty() && emitted.holds(&listed)) || text == "not base64!"
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

/// The text, or the lines of a thought that is listed with its subject.
fn words(value: &Value, emitted: &Emitted) -> bool {
    let text = value.as_str().unwrap_or_default();
    emitted.holds(text) || text.lines().all(|line| emitted.holds(line.replace("**", "").trim()))
}
