//! Finds the first difference between two JSON values.

use serde_json::{Map, Value};

/// Characters of a value that are shown.
const MAX_SHOWN: usize = 400;

/// Describes the first difference: where it is, and both sides. None if the values are equal.
pub fn first_difference(expected: &Value, actual: &Value) -> Option<String> {
    compare("", expected, actual)
}

fn compare(place: &str, expected: &Value, actual: &Value) -> Option<String> {
    match (expected, actual) {
        (Value::Array(expected), Value::Array(actual)) => compare_arrays(place, expected, actual),
        (Value::Object(expected), Value::Object(actual)) => compare_objects(place, expected, actual),
        _ if expected == actual => None,
        _ => Some(describe(place, Some(expected), Some(actual))),
    }
}

fn compare_arrays(place: &str, expected: &[Value], actual: &[Value]) -> Option<String> {
    (0..expected.len().max(actual.len())).find_map(|index| {
        let place = format!("{place}/{index}");
        compare_entries(&place, expected.get(index), actual.get(index))
    })
}

fn compare_objects(
    place: &str,
    expected: &Map<String, Value>,
    actual: &Map<String, Value>,
) -> Option<String> {
    let keys = expected.keys().chain(actual.keys().filter(|key| !expected.contains_key(*key)));
    keys.into_iter()
        .find_map(|key| compare_entries(&format!("{place}/{key}"), expected.get(key), actual.get(key)))
}

fn compare_entries(place: &str, expected: Option<&Value>, actual: Option<&Value>) -> Option<String> {
    match (expected, actual) {
        (Some(expected), Some(actual)) => compare(place, expected, actual),
        _ => Some(describe(place, expected, actual)),
    }
}

fn describe(place: &str, expected: Option<&Value>, actual: Option<&Value>) -> String {
    let show = |value: Option<&Value>| {
        value
            .map_or_else(|| "nothing".to_owned(), |value| value.to_string().chars().take(MAX_SHOWN).collect())
    };
    format!("at {place}\n  expected {}\n  produced {}", show(expected), show(actual))
}
