//! Where two JSON values differ first.

use serde_json::{Map, Value};

/// Longest text of a value that is shown, in characters.
const SHOWN: usize = 400;

/// The place of the first difference and both sides, in words; none if the values are equal.
pub fn first_difference(expected: &Value, actual: &Value) -> Option<String> {
    differ("", expected, actual)
}

fn differ(place: &str, expected: &Value, actual: &Value) -> Option<String> {
    match (expected, actual) {
        (Value::Array(expected), Value::Array(actual)) => differ_in_array(place, expected, actual),
        (Value::Object(expected), Value::Object(actual)) => differ_in_object(place, expected, actual),
        _ if expected == actual => None,
        _ => Some(describe(place, Some(expected), Some(actual))),
    }
}

fn differ_in_array(place: &str, expected: &[Value], actual: &[Value]) -> Option<String> {
    (0..expected.len().max(actual.len())).find_map(|index| {
        let place = format!("{place}/{index}");
        either(&place, expected.get(index), actual.get(index))
    })
}

fn differ_in_object(
    place: &str,
    expected: &Map<String, Value>,
    actual: &Map<String, Value>,
) -> Option<String> {
    let keys = expected.keys().chain(actual.keys().filter(|key| !expected.contains_key(*key)));
    keys.into_iter().find_map(|key| either(&format!("{place}/{key}"), expected.get(key), actual.get(key)))
}

fn either(place: &str, expected: Option<&Value>, actual: Option<&Value>) -> Option<String> {
    match (expected, actual) {
        (Some(expected), Some(actual)) => differ(place, expected, actual),
        _ => Some(describe(place, expected, actual)),
    }
}

fn describe(place: &str, expected: Option<&Value>, actual: Option<&Value>) -> String {
    let show = |value: Option<&Value>| {
        value.map_or_else(|| "nothing".to_owned(), |value| value.to_string().chars().take(SHOWN).collect())
    };
    format!("at {place}\n  expected {}\n  produced {}", show(expected), show(actual))
}
