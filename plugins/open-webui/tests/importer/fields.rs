//! Checks the field table of `README.md` against every leaf of every fixture.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use satchel_importer::testkit::{Emitted, FieldTable, FixtureError, Rule};
use satchel_plugin_open_webui::OpenWebUi;
use serde_json::Value;

const RULES: [(&str, Rule); 5] =
    [("tree", tree), ("blocks", blocks), ("picture", picture), ("listed", listed), ("json", json)];

/// The prefix of the paths of a file in the table. Chats alone have the same fields at another place.
fn root(file: &str) -> Option<&'static str> {
    (!file.contains("alone")).then_some("main")
}

/// Only the ids of stubs may be missing.
fn tree(id: &Value, _: &Emitted) -> bool {
    id.as_str() == Some("stub")
}

/// Every line of words is emitted, without marks of quotation and decoded; tags are not.
fn blocks(text: &Value, emitted: &Emitted) -> bool {
    let decode = |line: &str| {
        let pairs = [("&quot;", "\""), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
        pairs.iter().fold(line.to_owned(), |line, (name, character)| line.replace(name, character))
    };
    let tags = ["<details", "<summary", "</details", "<think>", "</think>", "```"];
    let mut lines = text
        .as_str()
        .unwrap_or_default()
        .lines()
        .filter(|line| !tags.iter().any(|tag| line.starts_with(tag)));
    lines.all(|line| {
        let line = decode(line);
        emitted.holds(line.trim_start_matches('>').trim())
    })
}

/// The bytes of a picture are emitted as numbers.
fn picture(address: &Value, emitted: &Emitted) -> bool {
    let data = address.as_str().and_then(|address| address.split_once(";base64,"));
    let bytes = data.and_then(|(_, data)| STANDARD.decode(data).ok()).unwrap_or_default();
    let numbers: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    !numbers.is_empty() && emitted.holds(&numbers.join("\n"))
}

/// The fields of a message in a list, also of the copy of one in the tree.
fn listed(value: &Value, emitted: &Emitted) -> bool {
    let plain_part = matches!(value.as_str(), Some("output_text" | "summary_text" | "input_text"));
    plain_part
        || json(value, emitted)
        || tree(value, emitted)
        || picture(value, emitted)
        || blocks(value, emitted)
}

fn json(text: &Value, emitted: &Emitted) -> bool {
    emitted.holds_json_in(text)
}

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<OpenWebUi>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
