//! A thought of the model, which may have several parts.

use satchel_importer::{Fields, Role, json::Value};

use super::Draft;
use crate::fields::FIELD_READER;
/// Fields that are known and kept.
const KEPT: [&str; 4] = ["generatedTitle", "id", "metadata", "reasoningDurationMs"];
/// Fields of all parts that are kept together; parts with more of them are kept one by one.
const MAX_FIELDS: usize = 64;

/// A thought while it is read.
pub(super) struct Thought<'a> {
    id: Option<&'a str>,
    text: String,
    /// The other fields of its parts.
    fields: Fields<'a>,
    /// Fields that an earlier part has with another value, of each part as JSON text.
    others: Vec<String>,
    unread: bool,
}

impl<'a> Thought<'a> {
    pub(super) fn new(id: Option<&'a str>, text: String, fields: Fields<'a>) -> Self {
        Self { id, text, fields, others: Vec::new(), unread: false }
    }

    /// Whether a part with this id belongs to it.
    pub(super) fn goes_on(&self, id: Option<&str>) -> bool {
        id.is_some() && self.id == id
    }

    /// Adds a part.
    pub(super) fn add(&mut self, text: &str, part: Fields<'a>) {
        self.text.push_str(text);
        let mut others = FIELD_READER.none(part.arena());
        for (key, value) in part.iter() {
            match self.fields.get(key) {
                Value::Null if self.fields.iter_all().len() < MAX_FIELDS => self.fields.push(key, value),
                own if own == value => {}
                _ => others.push(key, value),
            }
        }
        let others = others.into_rest(&KEPT);
        self.unread |= others.unread().is_some();
        self.others.extend(others.into_json().map(Into::into));
    }

    /// Its message.
    pub(super) fn finish(self) -> Draft<'a> {
        let mut draft = Draft::new(Role::Assistant);
        draft.message.is_thought = true;
        draft.set_text(self.text);
        draft.rest = self.fields.into_rest(&KEPT);
        if !self.others.is_empty() {
            draft.rest.add_json("parts", &format!("[{}]", self.others.join(",")));
        }
        if self.unread {
            draft.rest.mark_unread("parts");
        }
        draft
    }
}
