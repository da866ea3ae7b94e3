//! Checks every leaf of the fixtures against the field tables of `README.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use satchel_importer::{Bundle, Line, json::time_of_text, names, testkit};
use satchel_plugin_memu::MemU;
use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Fixtures that are not valid JSON on purpose; only their `expected.json` is checked.
const INVALID: [&str; 2] = ["broken-text", "truncated-file"];

/// The rule of each path, by heading of its table.
fn tables() -> BTreeMap<(String, String), String> {
    let text = fs::read_to_string(Path::new(ROOT).join("README.md")).expect("the README can be read");
    let (mut rows, mut heading) = (BTreeMap::new(), String::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            title.split(':').next().unwrap_or_default().clone_into(&mut heading);
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, paths, rule, _, _] = cells.as_slice() else { continue };
        for path in paths.split(',').filter_map(|path| path.trim().strip_prefix('`')?.strip_suffix('`')) {
            rows.insert((heading.clone(), path.to_owned()), (*rule).to_owned());
        }
    }
    rows
}

/// The heading of the table for an element.
fn heading(element: &Value) -> Option<&'static str> {
    let has = |key: &str| element.get(key).is_some();
    if has("content_type") {
        Some("Row of `memory_contents`")
    } else if has("message_count") {
        Some("Answer to a saved conversation")
    } else if has("messages") || has("conversation_data") || has("conversation_id") {
        Some("Conversation")
    } else if has("memory_id") || has("profile") || has("data") {
        Some("Memory")
    } else {
        None
    }
}

/// The records of a file with their locators: elements, lines, or items in the members of its root.
fn records(file: &str, text: &str) -> Vec<(String, Value)> {
    let whole: Result<Value, _> = serde_json::from_str(text);
    let values = match whole {
        Ok(Value::Array(items)) => items,
        Ok(value) => vec![value],
        Err(_) => text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect(),
    };
    let mut found = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        match (&value, heading(&value)) {
            (Value::Object(tables), None) => {
                for (name, rows) in tables {
                    let rows = rows.as_array().into_iter().flatten().enumerate();
                    found.extend(rows.map(|(at, row)| (format!("{file}.{name}[{at}]"), row.clone())));
                }
            }
            _ => found.push((format!("{file}[{index}]"), value)),
        }
    }
    found
}

/// A leaf and its path in a table.
struct Leaf {
    path: String,
    value: Value,
}

/// The leaves below `value`, without skipped ones.
fn leaves(value: &Value, path: &str, place: &str, skipped: &BTreeSet<String>, found: &mut Vec<Leaf>) {
    if skipped.contains(place) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(value, &path, &format!("{place}.{key}"), skipped, found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                leaves(item, &format!("{path}[]"), &format!("{place}[{at}]"), skipped, found);
            }
        }
        Value::Null => {}
        leaf => found.push(Leaf { path: path.to_owned(), value: leaf.clone() }),
    }
}

fn rule<'t>(tables: &'t BTreeMap<(String, String), String>, heading: &str, path: &str) -> Option<&'t str> {
    let path =
        path.strip_prefix("conversation_data.").filter(|rest| rest.starts_with("messages")).unwrap_or(path);
    let exact = tables.get(&(heading.to_owned(), path.to_owned()));
    let below = || {
        let (first, _) = path.split_once('.')?;
        tables.get(&(heading.to_owned(), format!("{first}.**")))
    };
    exact.or_else(below).map(String::as_str)
}

/// Every text, number and flag that was emitted.
fn emitted(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|value| emitted(value, texts)),
        Value::Array(items) => items.iter().for_each(|value| emitted(value, texts)),
        Value::String(text) => texts.push(text.clone()),
        Value::Null => {}
        Value::Number(_) | Value::Bool(_) => texts.push(value.to_string()),
    }
}

fn text(leaf: &Value) -> String {
    leaf.as_str().map_or_else(|| leaf.to_string(), ToOwned::to_owned)
}

fn holds(rule: &str, leaf: &Value, out: &[String]) -> bool {
    let has = |wanted: &str| out.iter().any(|text| text == wanted);
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).all(has);
    match rule {
        "same" | "verbatim" => has(&text(leaf)),
        "lines" => {
            let text = text(leaf);
            let inside: Option<Vec<String>> = serde_json::from_str(&text).ok();
            inside.map_or_else(|| lines(&text), |texts| texts.iter().all(|text| lines(text)))
        }
        "time" => {
            let time = leaf.as_str().and_then(time_of_text).map(|(micros, _)| micros.to_string());
            // A value that cannot be parsed as a time is stored unchanged.
            time.map_or_else(|| has(&text(leaf)), |time| has(&time))
        }
        "role" => has(&text(leaf)) || has(&text(leaf).to_lowercase()),
        "numbers" => {
            let text = text(leaf);
            // A value that is not a vector is stored unchanged.
            let Ok(inside) = serde_json::from_str::<Value>(&text) else { return has(&text) };
            let numbers = inside.as_array().cloned().unwrap_or_else(|| vec![inside]);
            numbers.iter().all(|number| out.iter().any(|text| text.parse::<f64>().ok() == number.as_f64()))
        }
        "messages" => {
            let inside: Value = serde_json::from_str(&text(leaf)).expect("messages are JSON");
            let mut found = Vec::new();
            leaves(&inside["messages"], "", "", &BTreeSet::new(), &mut found);
            found.iter().filter(|leaf| !leaf.path.ends_with("created_at")).all(|leaf| has(&text(&leaf.value)))
        }
        // The README names an unknown rule.
        _ => false,
    }
}

#[test]
#[expect(clippy::panic, reason = "the message names the place")]
fn every_leaf_of_every_fixture_is_mapped_as_documented() {
    let tables = tables();
    let mut checked = 0;
    for fixture in testkit::fixtures(&Path::new(ROOT).join("fixtures")).expect("there are fixtures") {
        let name = fixture.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if INVALID.contains(&name.as_str()) {
            continue;
        }
        let bundle = Bundle::from_folder(&fixture.join("input")).expect("the fixture can be listed");
        let produced = testkit::produce::<MemU>(&bundle).expect("the fixture is read");
        let mut out = Vec::new();
        emitted(&produced.to_json().expect("records are JSON"), &mut out);
        // Exports of other generations are refused.
        let read = produced.exports.iter().filter(|export| export.error.is_none());
        let skips = read.clone().flat_map(|export| &export.lines);
        let skipped: BTreeSet<String> = skips
            .filter_map(|line| if let Line::Skip(skip) = line { Some(skip.locator.clone()) } else { None })
            .collect();
        // Databases are checked in `database.rs`.
        let is_json = |file: &&String| names::is_json(file) || names::has_extension(file, "jsonl");
        for file in read.flat_map(|export| &export.detection.files).filter(is_json) {
            let text = fs::read_to_string(fixture.join("input").join(file)).expect("a file can be read");
            for (place, record) in records(file, &text) {
                let Some(heading) = heading(&record) else { continue };
                let mut found = Vec::new();
                leaves(&record, "", &place, &skipped, &mut found);
                for Leaf { path, value } in found {
                    let rule = rule(&tables, heading, &path)
                        .unwrap_or_else(|| panic!("{name}: {heading} has no row for {path:?}"));
                    assert!(holds(rule, &value, &out), "{name}: {path} = {value} is lost (rule {rule:?})");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 200, "{checked} leaves were checked");
}
