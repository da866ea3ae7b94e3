//! Removes the texts of memories that must not be exported from the metadata of other records.
//!
//! Some importers keep a provider's list, or an answer, whole next to one of its entries, so that it is exported the
//! way it was imported. The text of one memory is then part of the metadata of another memory, or of a conversation.
//! Messages are not changed: they belong to the conversation.

use satchel_pam::{conversation::ConversationHeader, memory::Memory, raw::RawObject, text::normalise};
use satchel_store::{MemoryOrder, MemoryQuery, Revision, Store};
use serde_json::{Map, Value};

use super::{ExportError, PAGE, pages};

/// The texts of all memories that must not be exported, in the normalised form that is used to compare texts.
#[derive(Debug, Default)]
pub(super) struct PrivateTexts(Vec<String>);

impl PrivateTexts {
    /// Collects the texts of a store at a revision.
    pub(super) fn load(store: &Store, revision: Revision) -> Result<Self, ExportError> {
        let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
        let mut texts = Vec::new();
        pages(
            |after| Ok(store.memories(&query, after, PAGE, revision)?),
            |record| {
                if !record.memory.exportable() {
                    texts.push(normalise(&record.memory.content));
                }
                Ok(())
            },
        )?;
        Ok(Self(texts))
    }

    /// Removes the texts from the metadata of a memory.
    pub(super) fn redact_memory_texts(&self, memory: &mut Memory) {
        if !self.0.is_empty() {
            self.redact_map(&mut memory.metadata);
        }
    }

    /// Removes the texts from the metadata of a conversation.
    pub(super) fn redact_header_texts(&self, header: &mut ConversationHeader) {
        let Some(raw) = header.raw_metadata.as_ref().filter(|_| !self.0.is_empty()) else { return };
        let mut map = raw.to_map();
        if self.redact_map(&mut map) {
            header.raw_metadata = RawObject::from_map(&map).ok();
        }
    }

    /// Removes the texts from an object. Returns whether it contained any.
    pub(super) fn redact_map(&self, map: &mut Map<String, Value>) -> bool {
        let before = map.len();
        map.retain(|_, value| !self.contains_private_text(value));
        let mut removed = map.len() < before;
        for value in map.values_mut() {
            removed |= self.redact_value(value);
        }
        removed
    }

    /// Recursion is bounded by the depth of the parsed document.
    fn redact_value(&self, value: &mut Value) -> bool {
        match value {
            Value::Object(map) => self.redact_map(map),
            Value::Array(items) => {
                let before = items.len();
                items.retain(|item| !self.contains_private_text(item));
                let removed = items.len() < before;
                items.iter_mut().fold(removed, |removed, item| self.redact_value(item) || removed)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn contains_private_text(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.occur_in(text))
    }

    /// Returns whether a text contains one of the texts, as whole words.
    pub(super) fn occur_in(&self, text: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let text = normalise(text);
        self.0.iter().any(|private| {
            text.match_indices(private.as_str()).any(|(at, found)| {
                let before = text[..at].chars().next_back();
                let after = text[at + found.len()..].chars().next();
                !before.into_iter().chain(after).any(char::is_alphanumeric)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_private_text_is_removed_everywhere_and_nothing_else_is() {
        let texts = PrivateTexts(vec!["owes 500".into(), "a".into()]);
        let Value::Object(mut map) = json!({
            "list": ["likes tea", "Lea  OWES 500 to Ben"],
            "joined": "- likes tea\n- owes 500",
            "deep": [{"text": "owes 500", "n": 1}],
        }) else {
            return;
        };
        assert!(texts.redact_map(&mut map));
        assert_eq!(Value::from(map.clone()), json!({"list": ["likes tea"], "deep": [{"n": 1}]}));
        assert!(!texts.redact_map(&mut map));
    }
}
