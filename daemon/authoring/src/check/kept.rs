//! Counts which fields of the records were filled.

use std::collections::BTreeMap;

use satchel_pam::record::Line;
use serde_json::{Map, Value};

/// How many values each field of each kind of record has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptFields(BTreeMap<(String, String), u64>);

impl KeptFields {
    /// Returns the kind of record, the field and the number of values, sorted by kind and field.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.0.iter().map(|((kind, field), count)| (kind.as_str(), field.as_str(), *count))
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for ((kind, field), count) in &other.0 {
            *self.0.entry((kind.clone(), field.clone())).or_default() += count;
        }
    }

    fn add(&mut self, kind: &str, field: &str, count: usize) {
        if count > 0 {
            *self.0.entry((kind.to_owned(), field.to_owned())).or_default() += count as u64;
        }
    }

    /// Counts the fields of a record. The messages of a conversation and the items of evidence are records of their own.
    fn add_record(&mut self, kind: &str, record: &Map<String, Value>) {
        for (field, value) in record {
            match (kind, field.as_str(), value) {
                ("conversation", "messages", Value::Array(messages)) => {
                    messages
                        .iter()
                        .filter_map(Value::as_object)
                        .for_each(|one| self.add_record("message", one));
                }
                ("evidence", "claim", claim) => self.add_items(claim),
                (_, _, value) => self.add(kind, field, values(value)),
            }
        }
    }

    /// Counts the items of a claim, wherever they are in it: an item is what has content and a type.
    fn add_items(&mut self, claim: &Value) {
        match claim {
            Value::Object(members) if members.contains_key("memory_type") => {
                self.add_record("memory", members);
            }
            Value::Object(members) => members.values().for_each(|member| self.add_items(member)),
            Value::Array(items) => items.iter().for_each(|item| self.add_items(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Counts the fields of the record in a line. Skips and warnings keep nothing.
pub(super) fn count_kept(line: &Line, kept: &mut KeptFields) {
    if matches!(line, Line::Skip(_) | Line::Warning(_)) {
        return;
    }
    let Ok(Value::Object(line)) = serde_json::to_value(line) else { return };
    for (kind, record) in &line {
        record.as_object().into_iter().for_each(|record| kept.add_record(kind, record));
    }
}

/// The number of values in a field: of a list its items, of an empty value none.
fn values(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::String(text) => usize::from(!text.is_empty()),
        Value::Array(items) => items.len(),
        Value::Object(members) => usize::from(!members.is_empty()),
        Value::Bool(_) | Value::Number(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_counted_by_kind_and_field() -> serde_json::Result<()> {
        let lines = [
            json!({"conversation": {"id": "c", "title": "", "locator": "a[0]", "messages": [
                {"id": "m1", "role": "user", "citations": [{"url": "https://a.example"}, {"url": "https://b.example"}]},
                {"id": "m2", "role": "assistant", "model": "x"}]}}),
            json!({"evidence": {"id": "e", "extraction_method": "api_export", "locator": "a[1]", "claim":
                {"snapshot": {"series": "s", "items": [{"content": "Keeps bees.", "memory_type": "fact"}]}}}}),
            json!({"warning": {"locator": "a[2]", "message": "odd"}}),
        ];
        let mut kept = KeptFields::default();
        for line in lines {
            count_kept(&serde_json::from_value(line)?, &mut kept);
        }
        let mut twice = kept.clone();
        twice.add_all(&kept);
        let count = |fields: &KeptFields, kind: &str, field: &str| {
            fields.rows().find(|row| (row.0, row.1) == (kind, field)).map_or(0, |row| row.2)
        };
        for (kind, field, expected) in [
            ("conversation", "id", 1),
            ("conversation", "title", 0),
            ("message", "role", 2),
            ("message", "citations", 2),
            ("message", "model", 1),
            ("evidence", "id", 1),
            ("memory", "content", 1),
            ("warning", "message", 0),
        ] {
            assert_eq!(count(&kept, kind, field), expected, "{kind} {field}");
            assert_eq!(count(&twice, kind, field), 2 * expected, "{kind} {field}");
        }
        Ok(())
    }
}
