//! The fields of an object, which are taken out one after the other until only those are left that nothing else has read.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Value, time_of_text},
};

/// Members of one object and items of one list. The largest messages of real sessions have some hundreds.
const MAX_LENGTH: usize = 50_000;
/// Bytes of an id. A longer text is no id, and stays among the fields.
const MAX_ID: usize = 256;

/// The fields that are left, in the order of the file.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    list: Vec<(&'a str, Value<'a>)>,
    arena: &'a Arena,
}

impl<'a> Fields<'a> {
    /// Reads the object at `json`; a value of another type has no fields.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut fields = Self { list: Vec::new(), arena: json.arena() };
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                check_length(fields.list.len(), json)?;
                fields.list.push((key, Value::read(json)?));
            }
        }
        Ok(fields)
    }

    /// Reads the text of an object.
    pub(crate) fn parse(raw: &'a str, arena: &'a Arena) -> Result<Self, JsonError> {
        Self::read(&mut Parser::new(raw, arena))
    }

    pub(crate) fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// The value of `key`; if the key is repeated, its last value.
    pub(crate) fn get(&self, key: &str) -> Value<'a> {
        self.list.iter().rev().find(|(own, _)| *own == key).map(|(_, value)| *value).unwrap_or_default()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key) != Value::Null
    }

    /// Removes `key` and returns its value.
    pub(crate) fn take(&mut self, key: &str) -> Value<'a> {
        let value = self.get(key);
        self.list.retain(|(own, _)| *own != key);
        value
    }

    /// Removes `key` if its value is a text. An empty text counts as none.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<&'a str> {
        self.get(key).text()?;
        self.take(key).nonempty_text()
    }

    /// Removes `key` if its value can be an id.
    pub(crate) fn take_id(&mut self, key: &str) -> Option<&'a str> {
        self.get(key).nonempty_text().filter(|id| id.len() <= MAX_ID)?;
        self.take_text(key)
    }

    /// Removes `key` if its value is this text.
    pub(crate) fn leave_out(&mut self, key: &str, text: &str) {
        if self.get(key).text() == Some(text) {
            self.take(key);
        }
    }

    /// The object at `key`; without fields if there is none.
    pub(crate) fn object(&self, key: &str) -> Result<Self, JsonError> {
        Self::parse(self.get(key).raw().unwrap_or("null"), self.arena)
    }

    /// Removes the object at `key`. A value of another type stays.
    pub(crate) fn take_object(&mut self, key: &str) -> Result<Option<Self>, JsonError> {
        let Some(raw) = self.get(key).raw().filter(|raw| raw.starts_with('{')) else { return Ok(None) };
        self.take(key);
        Self::parse(raw, self.arena).map(Some)
    }

    /// Removes the list at `key`. A value of another type stays.
    pub(crate) fn take_list(&mut self, key: &str) -> Result<Option<Vec<Value<'a>>>, JsonError> {
        let Some(raw) = self.get(key).raw().filter(|raw| raw.starts_with('[')) else { return Ok(None) };
        self.take(key);
        items(raw, self.arena).map(Some)
    }

    /// Appends a field with this JSON text, unless it is an empty object or list.
    pub(crate) fn push_json(&mut self, key: &'a str, json: &str) {
        if !matches!(json, "{}" | "[]") {
            self.list.push((key, Value::Raw(self.arena.alloc_str(json))));
        }
    }

    /// Removes the time at `key`, in microseconds. A text without an offset stays, because it is read as one in UTC.
    pub(crate) fn take_time(&mut self, key: &str) -> Option<i64> {
        let value = self.get(key);
        let (micros, note) = time_of_text(value.text().or(value.raw())?)?;
        if note.is_none() {
            self.take(key);
        }
        Some(micros)
    }

    /// The fields that are left and have a value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.list.iter().copied().filter(|(_, value)| !matches!(value, Value::Null | Value::Raw("{}" | "[]")))
    }

    /// The fields that are left, as the text of an object.
    pub(crate) fn into_json(self) -> String {
        let mut rest = Leftover::default();
        self.iter().for_each(|(key, value)| add(&mut rest, key, value));
        rest.into_json().map_or_else(|| "{}".to_owned(), Cow::into_owned)
    }

    /// Adds the fields that are left to `rest`, which notes those that are not among `known` and hold natural language.
    pub(crate) fn add_to(&self, rest: &mut Leftover<'a>, known: &[&str]) {
        for (key, value) in self.iter() {
            add(rest, key, value);
            if !known.contains(&key) {
                rest.note_unknown(key, value);
            }
        }
    }

    /// The first field that is not among `known`.
    pub(crate) fn unknown(&self, known: &[&str]) -> Option<&'a str> {
        self.iter().map(|(key, _)| key).find(|key| !known.contains(key))
    }

    /// The first field that is not among `known` and holds natural language.
    pub(crate) fn unread(&self, known: &[&str]) -> Option<&'a str> {
        let mut rest = Leftover::default();
        let unknown = self.iter().filter(|(key, _)| !known.contains(key));
        unknown.for_each(|(key, value)| rest.note_unknown(key, value));
        rest.unread()
    }
}

/// The items of the text of a list; none if it is a value of another type.
pub(crate) fn items<'a>(raw: &'a str, arena: &'a Arena) -> Result<Vec<Value<'a>>, JsonError> {
    let mut json = Parser::new(raw, arena);
    let mut found = Vec::new();
    if json.enter_array()? {
        while json.item()? {
            check_length(found.len(), &json)?;
            found.push(Value::read(&mut json)?);
        }
    }
    Ok(found)
}

/// Adds a value as it is.
pub(crate) fn add<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>) {
    match value {
        Value::Null => {}
        Value::Text(text) => rest.add_text(key, text),
        Value::Raw(raw) => rest.add_json(key, raw),
    }
}

/// Joins JSON texts to the text of a list. A list in which no item says anything is empty.
pub(crate) fn list_of(values: &[String]) -> String {
    if values.iter().all(|value| value == "{}") {
        return "[]".to_owned();
    }
    format!("[{}]", values.join(","))
}

fn check_length(length: usize, json: &Parser<'_>) -> Result<(), JsonError> {
    if length < MAX_LENGTH {
        return Ok(());
    }
    Err(JsonError { offset: json.offset(), problem: "an object or a list in it has too many members" })
}
