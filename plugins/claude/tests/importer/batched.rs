//! Exports with one archive for each category give the same records together and one by one.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, Line, testkit};
use satchel_plugin_claude::Claude;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

/// The files of each part, named as in an archive of their own.
fn parts() -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
    let files = testkit::fixture_files(FIXTURES).expect("the fixtures can be read");
    let mut parts: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
    for file in files.into_iter().filter(|file| file.fixture == "batched-folders") {
        let path = file.name.strip_prefix("september/").expect("the export is one folder");
        let (part, name) = path.split_once('/').unwrap_or(("", path));
        parts.entry(part.to_owned()).or_default().push((name.to_owned(), file.bytes));
    }
    parts
}

/// The records of the files, without locators. Paths are reduced to the part below `artifacts/`.
fn records(files: Vec<(String, Vec<u8>)>) -> Vec<String> {
    let produced = testkit::produce::<Claude>(&Bundle::from_files(files)).expect("it is read");
    let lines = produced.exports.into_iter().flat_map(|export| export.lines);
    let records =
        lines.filter(|line| matches!(line, Line::Conversation(_) | Line::Evidence(_) | Line::Account(_)));
    records
        .map(|line| without_locators(serde_json::to_value(line).expect("it is JSON")).to_string())
        .collect()
}

fn without_locators(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.remove("locator");
            for (name, member) in members.iter_mut() {
                let path =
                    member.as_str().filter(|_| name == "path").map(|path| path.rsplit("artifacts/").next());
                *member = match path.flatten() {
                    Some(path) => Value::from(path),
                    None => without_locators(member.take()),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_locators(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

#[test]
fn parts_read_separately_give_the_same_records() {
    let parts = parts();
    let all = parts.iter().flat_map(|(part, files)| {
        files
            .iter()
            .map(move |(name, bytes)| (format!("september/{part}/{name}").replace("//", "/"), bytes.clone()))
    });
    let mut together = records(all.collect());
    let mut alone: Vec<String> = parts.into_values().flat_map(records).collect();
    together.sort_unstable();
    alone.sort_unstable();
    assert!(together.len() > 8, "every category gives records");
    for part in ["reflection:", "{\"account\":"] {
        assert!(together.iter().any(|record| record.contains(part)), "{part}");
    }
    assert_eq!(together, alone);
}
