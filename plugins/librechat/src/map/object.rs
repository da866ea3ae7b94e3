//! Objects of which some fields are used and the others are kept.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Leftover,
    json::{Object, Value},
};

/// An object that is taken apart.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    fields: Object<'a>,
    taken: Vec<&'a str>,
    /// JSON of what is left of fields that were used in part.
    partly: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Parts<'a> {
    /// The fields of an object; none for any other value.
    pub(super) fn of(value: Value<'a>, arena: &'a Arena) -> Option<Self> {
        let raw = value.raw().filter(|raw| raw.starts_with('{'))?;
        Some(Self { fields: Object::parse(raw, arena), ..Self::default() })
    }

    /// The value of `key`, which stays.
    pub(super) fn get(&self, key: &str) -> Value<'a> {
        self.fields.get(key)
    }

    /// Marks `key` as used.
    pub(super) fn take(&mut self, key: &'a str) {
        self.taken.push(key);
    }

    /// Uses the value of `key` if it is a text that is not empty.
    pub(super) fn text(&mut self, key: &'a str) -> Option<&'a str> {
        let text = self.get(key).nonempty_text();
        if text.is_some() {
            self.take(key);
        }
        text
    }

    /// Uses the value of `key` if it is a whole number.
    pub(super) fn count(&mut self, key: &'a str) -> Option<u64> {
        let count = self.get(key).as_u64();
        if count.is_some() {
            self.take(key);
        }
        count
    }

    /// Uses the object at `key`. What `read` leaves of it stays under the key.
    pub(super) fn inside<T>(
        &mut self,
        key: &'a str,
        known: &[&str],
        rest: &mut Leftover<'a>,
        arena: &'a Arena,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let mut inner = Self::of(self.get(key), arena)?;
        let result = read(&mut inner);
        let left = inner.left(known, rest);
        self.replace(key, left);
        Some(result)
    }

    /// Uses a text at `key`, or the `value` of an object there, as assistants of `OpenAI` have it.
    pub(super) fn words(
        &mut self,
        key: &'a str,
        rest: &mut Leftover<'a>,
        arena: &'a Arena,
    ) -> Option<&'a str> {
        const KNOWN: [&str; 3] = ["annotations", "agentId", "groupId"];
        let value = self.get(key);
        if value.text().is_some() {
            self.take(key);
            return value.nonempty_text();
        }
        self.inside(key, &KNOWN, rest, arena, |inner| inner.text("value"))?
    }

    /// Marks `key` as used, except for what is `left` of it.
    pub(super) fn replace(&mut self, key: &'a str, left: Option<Cow<'a, str>>) {
        self.take(key);
        self.partly.extend(left.map(|left| (key, left)));
    }

    /// The fields that were not used, as the text of a JSON object; none if there are none. Fields that are not `known` and contain natural
    /// language are noted in `rest`.
    pub(super) fn left(self, known: &[&str], rest: &mut Leftover<'a>) -> Option<Cow<'a, str>> {
        let mut left = Leftover::default();
        for (key, value) in self.fields.fields().filter(|(key, _)| !self.taken.contains(key)) {
            if matches!(value, Value::Null | Value::Text("") | Value::Raw("{}" | "[]")) {
                continue;
            }
            if !known.contains(&key) {
                rest.note_unknown(key, value);
            }
            left.add_json(key, &value.json());
        }
        for (key, json) in self.partly {
            left.add_json(key, &json);
        }
        left.into_json()
    }
}
