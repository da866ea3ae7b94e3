//! JSON maps written in key order, whatever map type `serde_json` was built with.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Whether nothing of a memory's metadata would be written.
pub(crate) fn is_empty(metadata: &Map<String, Value>) -> bool {
    metadata.values().all(Value::is_null)
}

/// For `serialize_with` of a memory's metadata: keys in code point order; nulls at the top level left out, as in
/// normal form.
pub(crate) fn metadata<S: Serializer>(
    metadata: &Map<String, Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let entries = metadata.iter().filter(|(_, value)| !value.is_null());
    serializer.collect_map(entries.map(|(key, value)| (key, Ordered(value))).collect::<BTreeMap<_, _>>())
}

fn map<S: Serializer>(map: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(map.iter().map(|(key, value)| (key, Ordered(value))).collect::<BTreeMap<_, _>>())
}

struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(entries) => map(entries, serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Ordered)),
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                scalar.serialize(serializer)
            }
        }
    }
}
