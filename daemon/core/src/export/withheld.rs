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
pub(super) struct Texts(Vec<String>);

impl Texts {
    /// Collects the texts of a store at a revision.
    pub(super) fn of(store: &Store, revision: Revision) -> Result<Self, ExportError> {
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
    pub(super) fn leave_memory(&self, memory: &mut Memory) {
        if !self.0.is_empty() {
            self.clean_map(&mut memory.metadata);
        }
    }

    /// Removes the texts from the metadata of a conversation.
    pub(super) fn leave_header(&self, header: &mut ConversationHeader) {
        let Some(raw) = header.raw_metadata.as_ref().filter(|_| !self.0.is_empty()) else { return };
        let mut map = raw.to_map();
        if self.clean_map(&mut map) {
            header.raw_metadata = RawObject::from_map(&map).ok();
        }
    }

    /// Removes the texts from an object. Returns whether it contained any.
    pub(super) fn clean_map(&self, map: &mut Map<String, Value>) -> bool {
        let before = map.len();
        map.retain(|_, value| !self.said(value));
        let mut gone = map.len() < before;
        for value in map.values_mut() {
            gone |= self.clean(value);
        }
        gone
    }

    /// Recursion is bounded by the depth of the parsed document.
    fn clean(&self, value: &mut Value) -> bool {
        match value {
            Value::Object(map) => self.clean_map(map),
            Value::Array(items) => {
                let before = items.len();
                items.retain(|item| !self.said(item));
                let gone = items.len() < before;
                items.iter_mut().fold(gone, |gone, item| self.clean(item) || gone)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn said(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.in_text(text))
    }

    /// Returns whether a text contains one of the texts, as whole words.
    pub(super) fn in_text(&self, text: &str) -> bool {
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
    fn a_private_text_goes_wherever_it_stands_and_nothing_else_does() {
        let texts = Texts(vec!["owes 500".into(), "a".into()]);
        let Value::Object(mut map) = json!({
            "list": ["likes tea", "Lea  OWES 500 to Ben"],
            "joined": "- likes tea\n- owes 500",
            "deep": [{"text": "owes 500", "n": 1}],
        }) else {
            return;
        };
        assert!(texts.clean_map(&mut map));
        assert_eq!(Value::from(map.clone()), json!({"list": ["likes tea"], "deep": [{"n": 1}]}));
        assert!(!texts.clean_map(&mut map));
    }
}
