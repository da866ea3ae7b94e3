//! Lists the fields to which concurrent edits gave different values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    MemoryField, UserEdits,
    fields::field_value,
    register::{EditedMemory, PatchStep},
};
use crate::causality::OriginId;

/// A field of a memory for which several values are left. An edit of the field whose author has seen all of them
/// settles it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldConflict {
    /// The memory's id.
    pub memory: String,
    /// The field.
    pub field: MemoryField,
    /// At least two different values. Of a field that shows one of them, the first is shown.
    pub values: Vec<ConflictingValue>,
}

/// One of several values of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct ConflictingValue {
    /// The value as in a PAM document; for a field that consists of several keys, an object of these.
    pub value: Value,
    /// The edits that gave this value, the newest first.
    pub edits: Vec<ConflictingEdit>,
}

/// An edit that gave a field one of several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictingEdit {
    /// The edit.
    pub edit_id: String,
    /// When it was made according to the clock of its author, in microseconds.
    pub at: i64,
    /// The store in which it was made; `None` if that was before the store began to number its edits.
    pub origin: Option<OriginId>,
}

impl UserEdits {
    /// Returns every field for which several different values are left, ordered by memory, then by field.
    #[must_use]
    pub fn conflicts(&self) -> Vec<FieldConflict> {
        let of_memory = |(id, memory): (&String, &EditedMemory)| -> Vec<FieldConflict> {
            let conflict = |field| conflict(id, field, &memory.values(field));
            memory.fields().filter_map(conflict).collect()
        };
        self.patches.iter().flat_map(of_memory).collect()
    }
}

fn conflict(memory: &str, field: MemoryField, steps: &[&PatchStep]) -> Option<FieldConflict> {
    if steps.len() < 2 {
        return None;
    }
    let mut values: Vec<ConflictingValue> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for step in steps {
        let value = field_value(field, &step.patch.to);
        let place = *known.entry(value.to_string()).or_insert(values.len());
        if place == values.len() {
            values.push(ConflictingValue { value, edits: Vec::new() });
        }
        values[place].edits.push(ConflictingEdit {
            edit_id: step.edit_id.clone(),
            at: step.at,
            origin: step.origin,
        });
    }
    (values.len() > 1).then(|| FieldConflict { memory: memory.to_owned(), field, values })
}
