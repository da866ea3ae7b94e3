//! The fields of an object, from which those with a meaning are taken, so that the rest can be kept.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Value, time_of_text},
};

/// Members of one object, and items of one list. Those of real chats have fewer than a thousand.
const MAX_LENGTH: usize = 50_000;

/// Fields of an object in their order.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    list: Vec<(&'a str, Value<'a>)>,
    arena: &'a Arena,
}

impl<'a> Fields<'a> {
    /// Reads the next value; one that is no object has no fields.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut list = Vec::new();
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                check_length(list.len(), json)?;
                list.push((key, Value::read(json)?));
            }
        }
        Ok(Self { list, arena: json.arena() })
    }

    /// Reads the JSON text of an object.
    pub(crate) fn parse(raw: &'a str, arena: &'a Arena) -> Result<Self, JsonError> {
        Self::read(&mut Parser::new(raw, arena))
    }

    /// Reads a value if it is an object.
    pub(crate) fn of(value: Value<'a>, arena: &'a Arena) -> Result<Option<Self>, JsonError> {
        object_text(value).map(|raw| Self::parse(raw, arena)).transpose()
    }

    pub(crate) fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// The last value of `key`.
    pub(crate) fn get(&self, key: &str) -> Value<'a> {
        self.list.iter().rev().find(|(own, _)| *own == key).map(|(_, value)| *value).unwrap_or_default()
    }

    /// Removes `key`, and returns its last value.
    pub(crate) fn take(&mut self, key: &str) -> Value<'a> {
        let value = self.get(key);
        self.list.retain(|(own, _)| *own != key);
        value
    }

    /// Removes `key` if its value is a text; an empty one counts as absent.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<&'a str> {
        self.get(key).text()?;
        self.take(key).nonempty_text()
    }

    /// Removes `key` if its value is an object.
    pub(crate) fn take_object(&mut self, key: &str) -> Result<Option<Self>, JsonError> {
        let found = Self::of(self.get(key), self.arena)?;
        if found.is_some() {
            self.take(key);
        }
        Ok(found)
    }

    /// Removes `key` if its value is a list, and returns the items.
    pub(crate) fn take_list(&mut self, key: &str) -> Result<Option<Vec<Value<'a>>>, JsonError> {
        let Some(raw) = self.get(key).raw().filter(|raw| raw.starts_with('[')) else { return Ok(None) };
        self.take(key);
        items(raw, self.arena).map(Some)
    }

    /// Removes `key`, and returns the items if its value is a list; any other value is the only item.
    pub(crate) fn take_items(&mut self, key: &str) -> Result<Vec<Value<'a>>, JsonError> {
        Ok(match self.take_list(key)? {
            Some(items) => items,
            None if is_empty(self.get(key)) => Vec::new(),
            None => vec![self.take(key)],
        })
    }

    /// The object at `key`, without fields if there is none.
    pub(crate) fn object(&self, key: &str) -> Result<Self, JsonError> {
        let found = Self::of(self.get(key), self.arena)?;
        Ok(found.unwrap_or(Self { list: Vec::new(), arena: self.arena }))
    }

    /// Appends a field.
    pub(crate) fn push(&mut self, key: &'a str, value: Value<'a>) {
        self.list.push((key, value));
    }

    /// Appends a field with JSON text.
    pub(crate) fn push_json(&mut self, key: &'a str, json: &str) {
        self.push(key, Value::Raw(self.arena.alloc_str(json)));
    }

    /// The fields that say something.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.list.iter().copied().filter(|(_, value)| !is_empty(*value))
    }

    /// Adds the fields to `rest`. Those that are not among `known` are noted as unknown.
    pub(crate) fn add_to(&self, rest: &mut Leftover<'a>, known: &[&str]) {
        for (key, value) in self.iter() {
            match value {
                Value::Null => {}
                Value::Text(text) => rest.add_text(key, text),
                Value::Raw(raw) => rest.add_json(key, raw),
            }
            if !known.contains(&key) {
                rest.note_unknown(key, value);
            }
        }
    }

    /// The first field that is not among `known` and holds natural language.
    pub(crate) fn unread(&self, known: &[&str]) -> Option<&'a str> {
        let mut rest = Leftover::default();
        for (key, value) in self.iter().filter(|(key, _)| !known.contains(key)) {
            rest.note_unknown(key, value);
        }
        rest.unread()
    }

    /// The JSON text of an object with the fields.
    pub(crate) fn into_json(self) -> String {
        let mut rest = Leftover::default();
        self.add_to(&mut rest, &[]);
        rest.into_json().map_or_else(|| EMPTY.to_owned(), Cow::into_owned)
    }
}

/// The JSON text of an object without fields.
pub(crate) const EMPTY: &str = "{}";

/// A time in microseconds; zero says that there is none yet.
pub(crate) fn time_of(value: Value<'_>) -> Option<i64> {
    let text = match value {
        Value::Null => return None,
        Value::Text(text) => text,
        Value::Raw(raw) => raw,
    };
    time_of_text(text).map(|(micros, _)| micros).filter(|micros| *micros > 0)
}

/// The text of a value that is an object.
pub(crate) fn object_text(value: Value<'_>) -> Option<&str> {
    value.raw().filter(|raw| raw.starts_with('{'))
}

/// The items of the JSON text of a list.
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

/// The JSON text of a list of these JSON texts.
pub(crate) fn list_of(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

fn is_empty(value: Value<'_>) -> bool {
    matches!(value, Value::Null | Value::Text("") | Value::Raw(EMPTY | "[]"))
}

fn check_length(length: usize, json: &Parser<'_>) -> Result<(), JsonError> {
    if length < MAX_LENGTH {
        return Ok(());
    }
    Err(JsonError { offset: json.offset(), problem: "a list or an object in it has too many members" })
}
