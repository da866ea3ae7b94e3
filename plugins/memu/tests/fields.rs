//! The field tables of `README.md`, applied to every leaf of the fixtures.

use std::{collections::BTreeMap, fs, path::Path};

use satchel_importer::{Bundle, json::time_of_text, testkit};
use satchel_plugin_memu::MemU;
use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Fixtures in which something is wrong on purpose; what becomes of it stands in their `expected.json`.
const ODD: [&str; 8] = [
    "broken-text",
    "entries-that-are-none",
    "lists-of-the-api",
    "messages-of-every-kind",
    "other-generations-are-refused",
    "other-providers-are-left-alone",
    "rows-that-say-too-little",
    "truncated-file",
];

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

/// Which table an element belongs to.
fn heading(element: &Value) -> Option<&'static str> {
    let has = |key: &str| element.get(key).is_some();
    if has("content_type") {
        Some("Row of `memory_contents`")
    } else if has("message_count") {
        Some("Answer to a saved conversation")
    } else if has("messages") || has("conversation_data") {
        Some("Conversation")
    } else if has("memory_id") || has("profile") || has("data") {
        Some("Memory")
    } else {
        None
    }
}

/// The records of a file: elements, lines, or what stands in the members of its root.
fn records(text: &str) -> Vec<Value> {
    let whole: Result<Value, _> = serde_json::from_str(text);
    let values = match whole {
        Ok(Value::Array(items)) => items,
        Ok(value) => vec![value],
        Err(_) => text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect(),
    };
    values
        .into_iter()
        .flat_map(|value| match (&value, heading(&value)) {
            (Value::Object(tables), None) => {
                tables.values().filter_map(Value::as_array).flatten().cloned().collect()
            }
            _ => vec![value],
        })
        .collect()
}

fn leaves(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                leaves(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, &format!("{path}[]"), found)),
        Value::Null => {}
        leaf => found.push((path.to_owned(), leaf.clone())),
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

/// Every text, number and flag that came out.
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
            time.is_some_and(|time| has(&time))
        }
        "role" => has(&text(leaf)),
        "numbers" => {
            let text = text(leaf);
            let inside: Value = serde_json::from_str(&text).expect("a vector is JSON");
            let numbers = inside.as_array().cloned().unwrap_or_else(|| vec![inside]);
            numbers.iter().all(|number| out.iter().any(|text| text.parse::<f64>().ok() == number.as_f64()))
        }
        "messages" => {
            let inside: Value = serde_json::from_str(&text(leaf)).expect("messages are JSON");
            let mut found = Vec::new();
            leaves(&inside["messages"], "", &mut found);
            found.iter().filter(|(path, _)| !path.ends_with("created_at")).all(|(_, leaf)| has(&text(leaf)))
        }
        // A mistake in the README.
        _ => false,
    }
}

#[test]
#[expect(clippy::panic, reason = "the message names the place")]
fn every_leaf_of_every_fixture_is_kept_as_the_readme_says() {
    let tables = tables();
    let mut checked = 0;
    for fixture in testkit::fixtures(&Path::new(ROOT).join("fixtures")).expect("there are fixtures") {
        let name = fixture.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if ODD.contains(&name.as_str()) {
            continue;
        }
        let bundle = Bundle::from_folder(&fixture.join("input")).expect("the fixture can be listed");
        let produced = testkit::produce::<MemU>(&bundle).expect("the fixture is read");
        let mut out = Vec::new();
        emitted(&produced.to_json().expect("records are JSON"), &mut out);
        for path in produced.exports.iter().flat_map(|export| &export.detection.files) {
            let text = fs::read_to_string(fixture.join("input").join(path)).expect("a file can be read");
            for record in records(&text) {
                let Some(heading) = heading(&record) else { continue };
                let mut found = Vec::new();
                leaves(&record, "", &mut found);
                for (path, leaf) in found {
                    let rule = rule(&tables, heading, &path)
                        .unwrap_or_else(|| panic!("{name}: {heading} has no row for {path:?}"));
                    assert!(holds(rule, &leaf, &out), "{name}: {path} = {leaf} is lost (rule {rule:?})");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 200, "{checked} leaves were checked");
}
