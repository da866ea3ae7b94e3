//! The fields of one object, which an importer takes one by one so that the rest can be kept.

use std::borrow::Cow;

use super::{JsonError, Leftover, Parser, Value, time_of_text};
use crate::Arena;
pub use reader::{FieldReader, ValueFields, parse_items};

mod reader;

/// Bytes of an id that [`Fields::id`] and [`Fields::take_id`] accept. The host refuses a record whose id is over 1 KiB, and
/// importers add to the ids of exports.
pub const MAX_ID_BYTES: usize = 256;
/// The JSON text of an object without fields.
pub const EMPTY_OBJECT: &str = "{}";

/// The fields of one object, in the order of the export.
///
/// An importer takes the fields that it understands. Those that are left go to `raw_metadata`: [`Fields::add_to`],
/// [`Fields::into_rest`] and [`Fields::into_json`] leave out those that are empty, which means null, `{}` and `[]`. If a key is
/// repeated, its last value counts. A value of an unexpected type stays among the fields.
///
/// Use it for objects whose fields depend on each other; [`Leftover`] reads fields in the order of the export without collecting
/// them, and [`super::Object`] reads the head of an object that is invalid further on.
///
/// ```
/// use satchel_importer::{Arena, Fields};
/// # fn main() -> Result<(), satchel_importer::JsonError> {
/// let arena = Arena::new();
/// let mut fields = Fields::parse(r#"{"id":"m1","text":"Tea?","model":{"name":"x"},"seed":7}"#, &arena)?;
/// assert_eq!((fields.take_id("id"), fields.take_text("text")), (Some("m1"), Some("Tea?")));
/// if let Some(mut model) = fields.take_object("model")? {
///     assert_eq!(model.take_text("name"), Some("x"));
///     fields.push_json("model", &model.into_json());
/// }
/// assert_eq!(fields.into_json(), r#"{"seed":7}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    list: Vec<(&'a str, Value<'a>)>,
    arena: &'a Arena,
    /// Reads the objects and arrays inside.
    reader: FieldReader,
}

/// Reads objects of up to [`FieldReader::MAX_MEMBERS`] fields. [`FieldReader`] reads them with another limit.
impl<'a> Fields<'a> {
    /// No fields.
    #[must_use]
    pub fn none(arena: &'a Arena) -> Self {
        FieldReader::new().none(arena)
    }

    /// Takes the next value. If it is not an object, there are no fields.
    ///
    /// # Errors
    /// If it is not valid JSON, or has too many fields.
    pub fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        FieldReader::new().read(json)
    }

    /// Reads the JSON text of an object. Another value has no fields, and is not checked further than its first byte.
    ///
    /// # Errors
    /// If it is not valid JSON, has too many fields, or text follows the object.
    pub fn parse(raw: &'a str, arena: &'a Arena) -> Result<Self, JsonError> {
        FieldReader::new().parse(raw, arena)
    }

    /// Reads `value` if it is an object.
    ///
    /// # Errors
    /// Those of [`Fields::parse`].
    pub fn of(value: Value<'a>, arena: &'a Arena) -> Result<Option<Self>, JsonError> {
        FieldReader::new().of(value, arena)
    }
}

/// Looks at fields.
impl<'a> Fields<'a> {
    /// The arena that the fields were read with. You may allocate in it too.
    pub fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// The last value of `key`; [`Value::Null`] if there is none.
    pub fn get(&self, key: &str) -> Value<'a> {
        self.list.iter().rev().find(|(own, _)| *own == key).map(|(_, value)| *value).unwrap_or_default()
    }

    /// Whether `key` has a value other than null.
    pub fn has(&self, key: &str) -> bool {
        self.get(key) != Value::Null
    }

    /// The value of `key` if it can be an id: a text that is not empty and has at most [`MAX_ID_BYTES`].
    pub fn id(&self, key: &str) -> Option<&'a str> {
        self.get(key).nonempty_text().filter(|id| id.len() <= MAX_ID_BYTES)
    }

    /// The object at `key`; without fields if the value is not an object.
    ///
    /// # Errors
    /// If the object has too many fields.
    pub fn object(&self, key: &str) -> Result<Self, JsonError> {
        let found = self.reader.of(self.get(key), self.arena)?;
        Ok(found.unwrap_or_else(|| self.reader.none(self.arena)))
    }

    /// The fields that are left and are not empty.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.iter_all().filter(|(_, value)| !self.reader.is_empty(*value))
    }

    /// The fields that are left, also those that are empty.
    pub fn iter_all(&self) -> impl ExactSizeIterator<Item = (&'a str, Value<'a>)> {
        self.list.iter().copied()
    }
}

/// Takes fields.
impl<'a> Fields<'a> {
    /// Removes `key`, and returns its last value.
    pub fn take(&mut self, key: &str) -> Value<'a> {
        let value = self.get(key);
        self.list.retain(|(own, _)| *own != key);
        value
    }

    /// Removes `key` if its value is a text, and returns the text unless it is empty.
    pub fn take_text(&mut self, key: &str) -> Option<&'a str> {
        self.get(key).text()?;
        self.take(key).nonempty_text()
    }

    /// Removes `key` if its value can be an id, as in [`Fields::id`], and returns the id.
    pub fn take_id(&mut self, key: &str) -> Option<&'a str> {
        let id = self.id(key)?;
        self.take(key);
        Some(id)
    }

    /// Removes `key` if its value is an object, and returns the fields of the object.
    ///
    /// # Errors
    /// If the object has too many fields. The key stays.
    pub fn take_object(&mut self, key: &str) -> Result<Option<Self>, JsonError> {
        let found = self.reader.of(self.get(key), self.arena)?;
        if found.is_some() {
            self.take(key);
        }
        Ok(found)
    }

    /// Removes `key` if its value is an array, and returns the items.
    ///
    /// # Errors
    /// If the array has too many items. The key stays.
    pub fn take_array(&mut self, key: &str) -> Result<Option<Vec<Value<'a>>>, JsonError> {
        let Some(raw) = self.get(key).array() else { return Ok(None) };
        let items = self.reader.items(raw, self.arena)?;
        self.take(key);
        Ok(Some(items))
    }

    /// Like [`Fields::take_array`], with the fields of the items that are objects: faster than to read them behind that.
    ///
    /// # Errors
    /// Those of [`Fields::take_array`].
    pub fn take_array_fields(&mut self, key: &str) -> Result<Option<Vec<ValueFields<'a>>>, JsonError> {
        let Some(raw) = self.get(key).array() else { return Ok(None) };
        let items = self.reader.item_fields(raw, self.arena)?;
        self.take(key);
        Ok(Some(items))
    }

    /// Removes `key` if its value is a time, and returns the time in microseconds since the Unix epoch, as
    /// [`Leftover::time`] does: a date-time without an offset is read as UTC and stays among the fields.
    pub fn take_time(&mut self, key: &str) -> Option<i64> {
        let value = self.get(key);
        let (micros, note) = time_of_text(value.text().or(value.raw())?)?;
        if note.is_none() {
            self.take(key);
        }
        Some(micros)
    }

    /// Removes `keys`.
    pub fn remove(&mut self, keys: &[&str]) {
        self.list.retain(|(own, _)| !keys.contains(own));
    }

    /// Removes `key` if its value is this text.
    pub fn remove_text(&mut self, key: &str, text: &str) {
        if self.get(key).text() == Some(text) {
            self.take(key);
        }
    }

    /// Takes all fields with these keys.
    #[must_use]
    pub fn split_off(&mut self, keys: &[&str]) -> Self {
        let (taken, left) = self.iter_all().partition(|(own, _)| keys.contains(own));
        self.list = left;
        Self { list: taken, arena: self.arena, reader: self.reader }
    }
}

/// Puts fields back, and keeps those that are left.
impl<'a> Fields<'a> {
    /// Appends a field.
    pub fn push(&mut self, key: &'a str, value: Value<'a>) {
        self.list.push((key, value));
    }

    /// Appends a field whose value is the JSON text of an object, an array, a number or a boolean.
    pub fn push_json(&mut self, key: &'a str, json: &str) {
        self.push(key, Value::Raw(self.arena.alloc_str(json)));
    }

    /// Adds the fields that are left to `rest`. Those that are not among `known` are noted with
    /// [`Leftover::note_unknown`].
    pub fn add_to(&self, rest: &mut Leftover<'a>, known: &[&str]) {
        for (key, value) in self.iter() {
            rest.add_value(key, value);
            if !known.contains(&key) {
                rest.note_unknown(key, value);
            }
        }
    }

    /// The fields that are left, as [`Fields::add_to`] adds them.
    pub fn into_rest(self, known: &[&str]) -> Leftover<'a> {
        let mut rest = Leftover::default();
        self.add_to(&mut rest, known);
        rest
    }

    /// The first field that is left, is not empty, and is not among `known`.
    pub fn unknown(&self, known: &[&str]) -> Option<&'a str> {
        self.iter().map(|(key, _)| key).find(|key| !known.contains(key))
    }

    /// The first field that is not among `known` and contains natural language, for [`crate::Message::unread`].
    pub fn unread(&self, known: &[&str]) -> Option<&'a str> {
        let mut rest = Leftover::default();
        for (key, value) in self.iter().filter(|(key, _)| !known.contains(key)) {
            rest.note_unknown(key, value);
        }
        rest.unread()
    }

    /// The fields that are left, as the JSON text of an object; [`EMPTY_OBJECT`] if there are none.
    pub fn into_json(self) -> String {
        let mut rest = Leftover::default();
        self.iter().for_each(|(key, value)| rest.add_value(key, value));
        rest.into_json().map_or_else(|| EMPTY_OBJECT.to_owned(), Cow::into_owned)
    }
}

/// Joins JSON texts to the JSON text of an array.
pub fn array_of(values: impl IntoIterator<Item: AsRef<str>>) -> String {
    let mut list = String::from("[");
    for value in values {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(value.as_ref());
    }
    list.push(']');
    list
}

#[cfg(test)]
mod tests;
