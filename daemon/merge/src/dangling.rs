//! References of a memory to records that do not exist. PAM's validators reject them, but nothing that was imported may
//! be lost.
//!
//! An export keeps them beside the memory, in `metadata`, and the importer restores them.

use satchel_pam::memory::Memory;
use serde_json::{Map, Value};

/// The key of `metadata` for Satchel's own entries.
const SATCHEL_KEY: &str = "satchel";
/// The key, inside it, of the references, by field name.
const KEY: &str = "dangling";
const SUPERSEDED_BY: &str = "superseded_by";
const EMBEDDING_REF: &str = "embedding_ref";

/// References that cannot be written to their own fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DanglingRefs {
    /// `temporal.superseded_by`.
    pub superseded_by: Option<String>,
    /// `embedding_ref`.
    pub embedding_ref: Option<String>,
}

impl DanglingRefs {
    /// Stores the references in the memory's metadata.
    pub fn store_in(self, memory: &mut Memory) {
        let Self { superseded_by, embedding_ref } = self;
        let named = [(SUPERSEDED_BY, superseded_by), (EMBEDDING_REF, embedding_ref)];
        let refs: Map<String, Value> =
            named.into_iter().filter_map(|(key, id)| Some((key.to_owned(), Value::String(id?)))).collect();
        if refs.is_empty() {
            return;
        }
        let entries = memory.metadata.entry(SATCHEL_KEY).or_insert_with(|| Value::Object(Map::new()));
        // If another producer has a value that is not an object under this key, that value stays and the references are
        // lost.
        if let Value::Object(entries) = entries {
            entries.insert(KEY.to_owned(), Value::Object(refs));
        }
    }

    /// Moves the references from the metadata back to their fields, unless a field has another value by now.
    pub fn restore(memory: &mut Memory) {
        let Some(Value::Object(entries)) = memory.metadata.get_mut(SATCHEL_KEY) else { return };
        let Some(Value::Object(refs)) = entries.remove(KEY) else { return };
        if entries.is_empty() {
            memory.metadata.remove(SATCHEL_KEY);
        }
        let text = |key: &str| refs.get(key).and_then(Value::as_str).map(str::to_owned);
        let successor = &mut memory.temporal.superseded_by;
        *successor = successor.take().or_else(|| text(SUPERSEDED_BY));
        memory.embedding_ref = memory.embedding_ref.take().or_else(|| text(EMBEDDING_REF));
    }
}
