//! Finds the first difference between two JSON values, and brings the output of importers into comparable forms.

use satchel_pam::record::Line;
use serde_json::{Map, Value};

/// Characters of a value that are shown.
const MAX_SHOWN: usize = 400;

/// Describes the first difference: where it is, and both sides. None if the values are equal.
pub fn first_difference(expected: &Value, actual: &Value) -> Option<String> {
    compare("", expected, actual)
}

/// The content of `expected.json` with the lines of each export grouped by kind, and the warnings sorted. The order between kinds says
/// nothing: in the sandbox a conversation is delivered once it is complete, after the warnings about its messages.
#[must_use]
pub fn by_kind(mut exports: Value) -> Value {
    for export in exports.as_array_mut().into_iter().flatten() {
        let Some(lines) = export.get_mut("lines") else { continue };
        if let Value::Array(all) = lines.take() {
            *lines = Value::Object(grouped(all));
        }
    }
    exports
}

fn grouped(lines: Vec<Value>) -> Map<String, Value> {
    let mut kinds = Map::new();
    for line in lines {
        let Value::Object(line) = line else { continue };
        for (kind, record) in line {
            let records = kinds.entry(kind).or_insert_with(|| Value::Array(Vec::new()));
            records.as_array_mut().into_iter().for_each(|records| records.push(record.clone()));
        }
    }
    if let Some(Value::Array(warnings)) = kinds.get_mut("warning") {
        warnings.sort_by_key(Value::to_string);
    }
    kinds
}

/// The lines as JSON without their locators, for runs in which the same records are in other places.
pub fn without_locators(lines: &[Line]) -> Value {
    let mut value = serde_json::to_value(lines).unwrap_or_default();
    let records = value.as_array_mut().into_iter().flatten();
    for record in records.filter_map(Value::as_object_mut).flat_map(|line| line.values_mut()) {
        if let Value::Object(record) = record {
            record.remove("locator");
        }
    }
    value
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exports(lines: Value) -> Value {
        by_kind(json!([{"format": "f", "lines": lines}]))
    }

    #[test]
    fn only_the_order_within_a_kind_counts_and_not_that_of_warnings() {
        let (one, two) = (json!({"conversation": {"id": "1"}}), json!({"conversation": {"id": "2"}}));
        let (odd, late) = (json!({"warning": {"message": "odd"}}), json!({"warning": {"message": "late"}}));
        let given = exports(json!([one, odd, late, two]));
        assert_eq!(given, exports(json!([late, one, two, odd])));
        let difference = first_difference(&given, &exports(json!([two, odd, late, one]))).unwrap_or_default();
        assert!(difference.starts_with("at /0/lines/conversation/0/id"), "{difference}");
        let difference = first_difference(&given, &exports(json!([one, odd, two]))).unwrap_or_default();
        assert!(difference.contains("/0/lines/warning/"), "{difference}");
    }
}
