//! The fields of one object. An importer takes those that it understands; the others go to `raw_metadata`.

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Value, time_of_text},
};

/// Fields of one object and items of one list; answers of agents have thousands of parts.
const MAX_LENGTH: usize = 100_000;
/// Bytes of an id. The host refuses a record with an id over 1 KiB; a longer id counts as absent and is kept as it is.
pub(crate) const MAX_ID: usize = 256;

/// The fields of an object that were not taken yet.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    fields: Vec<(&'a str, Value<'a>)>,
    arena: &'a Arena,
}

impl<'a> Fields<'a> {
    /// No fields.
    pub(crate) fn none(arena: &'a Arena) -> Self {
        Self { fields: Vec::new(), arena }
    }

    /// The fields of the JSON text of an object; any other value has none.
    pub(crate) fn parse(raw: &'a str, arena: &'a Arena) -> Result<Self, JsonError> {
        let mut found = Self::none(arena);
        let mut json = Parser::new(raw, arena);
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                check_length(found.fields.len(), &json)?;
                found.fields.push((key, Value::read(&mut json)?));
            }
            json.end()?;
        }
        Ok(found)
    }

    /// The fields of `value`; none if it is not an object.
    pub(crate) fn of(value: Value<'a>, arena: &'a Arena) -> Result<Option<Self>, JsonError> {
        let raw = value.raw().filter(|raw| raw.starts_with('{'));
        raw.map(|raw| Self::parse(raw, arena)).transpose()
    }

    pub(crate) fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// The last value of `key`.
    pub(crate) fn get(&self, key: &str) -> Value<'a> {
        self.fields.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value).unwrap_or_default()
    }

    /// Takes the last value of `key`.
    pub(crate) fn take(&mut self, key: &str) -> Value<'a> {
        let value = self.get(key);
        self.fields.retain(|(name, _)| *name != key);
        value
    }

    /// Takes the value of `key` if it is a text; none if it is empty.
    pub(crate) fn text(&mut self, key: &str) -> Option<&'a str> {
        match self.get(key) {
            Value::Text(_) => self.take(key).nonempty_text(),
            Value::Null | Value::Raw(_) => None,
        }
    }

    /// Takes the id at `key`; none if it is empty, not a text, or too long.
    pub(crate) fn id(&mut self, key: &str) -> Option<&'a str> {
        let fits = self.get(key).text().is_some_and(|id| id.len() <= MAX_ID);
        fits.then(|| self.text(key)).flatten()
    }

    /// Takes the time at `key`, in microseconds. A value that is no time stays.
    pub(crate) fn time(&mut self, key: &str) -> Option<i64> {
        let time = time(self.get(key))?;
        self.take(key);
        Some(time)
    }

    /// Takes the fields of the object at `key`; none if it is not an object.
    pub(crate) fn object(&mut self, key: &str) -> Result<Option<Self>, JsonError> {
        let found = Self::of(self.get(key), self.arena)?;
        if found.is_some() {
            self.take(key);
        }
        Ok(found)
    }

    /// Takes the items of the list at `key`; none if it is not a list.
    pub(crate) fn list(&mut self, key: &str) -> Result<Option<Vec<Value<'a>>>, JsonError> {
        let Some(raw) = self.get(key).raw().filter(|raw| raw.starts_with('[')) else { return Ok(None) };
        self.take(key);
        items(raw, self.arena).map(Some)
    }

    /// Removes fields that are not imported.
    pub(crate) fn leave_out(&mut self, keys: &[&str]) {
        self.fields.retain(|(name, _)| !keys.contains(name));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Adds a field.
    pub(crate) fn push(&mut self, key: &'a str, value: Value<'a>) {
        self.fields.push((key, value));
    }

    /// Takes the fields with these names.
    pub(crate) fn split(&mut self, keys: &[&str]) -> Self {
        let (taken, left) = self.fields.iter().copied().partition(|(name, _)| keys.contains(name));
        self.fields = left;
        Self { fields: taken, arena: self.arena }
    }

    /// The remaining fields. Those that are null or empty are left out; those that are not among `known` are noted.
    pub(crate) fn into_rest(self, known: &[&str]) -> Leftover<'a> {
        let mut rest = Leftover::default();
        self.add_to(&mut rest, known);
        rest
    }

    /// Adds the remaining fields.
    pub(crate) fn add_to(self, rest: &mut Leftover<'a>, known: &[&str]) {
        for (key, value) in self.iter() {
            add(rest, key, value);
            if !known.contains(&key) {
                rest.note_unknown(key, value);
            }
        }
    }

    /// The remaining fields that are neither null nor empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let empty = |value: &Value<'_>| matches!(value, Value::Null | Value::Raw("{}" | "[]"));
        self.fields.iter().copied().filter(move |(_, value)| !empty(value))
    }
}

/// The items of the JSON text of a list; none if it is another value.
pub(crate) fn items<'a>(raw: &'a str, arena: &'a Arena) -> Result<Vec<Value<'a>>, JsonError> {
    let mut found = Vec::new();
    let mut json = Parser::new(raw, arena);
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

/// The time in `value`, in microseconds: milliseconds as a number, or a date-time.
pub(crate) fn time(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Raw(raw) if raw.starts_with(|first: char| first.is_ascii_digit()) => time_of_text(raw),
        Value::Text(text) => time_of_text(text).filter(|(_, note)| note.is_none()),
        Value::Raw(_) | Value::Null => None,
    }
    .map(|(micros, _)| micros)
}

fn check_length(length: usize, json: &Parser<'_>) -> Result<(), JsonError> {
    if length < MAX_LENGTH {
        return Ok(());
    }
    Err(JsonError { offset: json.offset(), problem: "a list or an object is longer than the limit" })
}
