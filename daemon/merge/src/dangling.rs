//! References of a memory that lead nowhere: PAM's validators refuse them, and nothing that was imported is to be lost.
//!
//! An export keeps them beside the memory, in `metadata`; whoever reads it puts them back.

use satchel_pam::memory::Memory;
use serde_json::{Map, Value};

/// Where `metadata` keeps what is Satchel's.
const OWN: &str = "satchel";
/// In it: the references, by the names of their fields.
const KEY: &str = "dangling";
const SUPERSEDED_BY: &str = "superseded_by";
const EMBEDDING_REF: &str = "embedding_ref";

/// References that cannot stand where they belong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dangling {
    /// `temporal.superseded_by`.
    pub superseded_by: Option<String>,
    /// `embedding_ref`.
    pub embedding_ref: Option<String>,
}

impl Dangling {
    /// Keeps them in the memory's metadata.
    pub fn put(self, memory: &mut Memory) {
        let Self { superseded_by, embedding_ref } = self;
        let named = [(SUPERSEDED_BY, superseded_by), (EMBEDDING_REF, embedding_ref)];
        let kept: Map<String, Value> =
            named.into_iter().filter_map(|(key, id)| Some((key.to_owned(), Value::String(id?)))).collect();
        if kept.is_empty() {
            return;
        }
        let own = memory.metadata.entry(OWN).or_insert_with(|| Value::Object(Map::new()));
        // Somebody else's value under this name stays, and the references are lost to it.
        if let Value::Object(own) = own {
            own.insert(KEY.to_owned(), Value::Object(kept));
        }
    }

    /// Puts what the metadata keeps where it belongs, if nothing else stands there by now.
    pub fn restore(memory: &mut Memory) {
        let Some(Value::Object(own)) = memory.metadata.get_mut(OWN) else { return };
        let Some(Value::Object(kept)) = own.remove(KEY) else { return };
        if own.is_empty() {
            memory.metadata.remove(OWN);
        }
        let text = |key: &str| kept.get(key).and_then(Value::as_str).map(str::to_owned);
        let successor = &mut memory.temporal.superseded_by;
        *successor = successor.take().or_else(|| text(SUPERSEDED_BY));
        memory.embedding_ref = memory.embedding_ref.take().or_else(|| text(EMBEDDING_REF));
    }
}
