//! Takes the fields of an object one by one, so that the rest of them can be kept.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Value, time_of_text},
    natural_key,
};

/// Members of one object and items of one list. Objects of real sessions have fewer than a hundred.
const MAX_LENGTH: usize = 50_000;
/// Bytes of an id. A longer one counts as absent, and is kept like any other field.
const MAX_ID: usize = 256;

/// The fields of an object that were not taken yet, in order.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    list: Vec<(&'a str, Value<'a>)>,
    arena: &'a Arena,
}

impl<'a> Fields<'a> {
    /// Reads the object at `json`. Any other value has no fields. If a key is repeated, its last value counts.
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

    /// Reads the JSON text of an object.
    pub(crate) fn parse(raw: &'a str, arena: &'a Arena) -> Result<Self, JsonError> {
        Self::read(&mut Parser::new(raw, arena))
    }

    pub(crate) fn arena(&self) -> &'a Arena {
        self.arena
    }

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

    /// Removes `key` if its value is a text, and returns the text unless it is empty.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<&'a str> {
        self.get(key).text()?;
        self.take(key).nonempty_text()
    }

    /// Returns the value of `key` if it can be an id.
    pub(crate) fn id(&self, key: &str) -> Option<&'a str> {
        self.get(key).nonempty_text().filter(|id| id.len() <= MAX_ID)
    }

    /// Removes `key` if its value can be an id, and returns it.
    pub(crate) fn take_id(&mut self, key: &str) -> Option<&'a str> {
        self.id(key)?;
        self.take_text(key)
    }

    /// Removes `key` if its value is this text.
    pub(crate) fn leave_out(&mut self, key: &str, text: &str) {
        if self.get(key).text() == Some(text) {
            self.take(key);
        }
    }

    /// Returns the object at `key`; without fields if the value is not an object.
    pub(crate) fn object(&self, key: &str) -> Result<Self, JsonError> {
        Self::parse(self.get(key).raw().unwrap_or("null"), self.arena)
    }

    /// Removes `key` if its value is an object, and returns it.
    pub(crate) fn take_object(&mut self, key: &str) -> Result<Option<Self>, JsonError> {
        let Some(raw) = self.get(key).raw().filter(|raw| raw.starts_with('{')) else { return Ok(None) };
        self.take(key);
        Self::parse(raw, self.arena).map(Some)
    }

    /// Replaces the value of `key` by an object.
    pub(crate) fn put(&mut self, key: &'a str, object: Self) {
        let at = self.list.iter().position(|(own, _)| *own == key);
        let value = Value::Raw(self.arena.alloc_str(&object.into_json()));
        match at {
            Some(at) => self.list.insert(at, (key, value)),
            None => self.list.push((key, value)),
        }
    }

    /// Changes each value that is an object, in one walk: there may be many.
    pub(crate) fn change_objects(&mut self, change: impl Fn(&mut Self)) -> Result<(), JsonError> {
        for (_, value) in &mut self.list {
            let Some(raw) = value.raw().filter(|raw| raw.starts_with('{')) else { continue };
            let mut object = Self::parse(raw, self.arena)?;
            let length = object.list.len();
            change(&mut object);
            if object.list.len() < length {
                *value = Value::Raw(self.arena.alloc_str(&object.into_json()));
            }
        }
        Ok(())
    }

    /// Appends a field.
    pub(crate) fn push(&mut self, key: &'a str, value: Value<'a>) {
        self.list.push((key, value));
    }

    /// The time in milliseconds at `key`, in microseconds.
    pub(crate) fn time(&self, key: &str) -> Option<i64> {
        time_of_text(self.get(key).raw()?).map(|(micros, _)| micros)
    }

    /// The fields that are left, without those that are null or empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.list.iter().copied().filter(|(_, value)| !matches!(value, Value::Null | Value::Raw("{}" | "[]")))
    }

    /// The fields that are left, as the text of an object.
    pub(crate) fn into_json(self) -> String {
        let mut rest = Leftover::default();
        self.iter().for_each(|(key, value)| add(&mut rest, key, value));
        rest.into_json().map_or_else(|| "{}".to_owned(), Cow::into_owned)
    }

    /// Adds the fields that are left to others. A text in one that is not among `known` is noted.
    pub(crate) fn add_to(&self, rest: &mut Leftover<'a>, known: &[&str]) {
        for (key, value) in self.iter() {
            add(rest, key, value);
            if !known.contains(&key) {
                rest.note_unknown(key, value);
            }
        }
    }

    /// The first field that is not among `known` and holds natural language.
    pub(crate) fn unread(&self, known: &[&str]) -> Option<&'a str> {
        let mut rest = Leftover::default();
        self.iter()
            .filter(|(key, _)| !known.contains(key))
            .for_each(|(key, value)| rest.note_unknown(key, value));
        rest.unread()
    }
}

/// The id that the name of a file gives; a name may be longer than an id.
pub(crate) fn id_of_name(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_ID { Cow::Borrowed(name) } else { Cow::Owned(natural_key(&[Some(name)])) }
}

/// The items of the JSON text of a list; none if it is another value.
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

/// The JSON text of one value, checked as a whole.
pub(crate) fn value(text: &str, arena: &Arena) -> Result<String, JsonError> {
    let mut json = Parser::new(text, arena);
    let raw = json.raw_value()?.to_owned();
    json.end()?;
    Ok(raw)
}

/// Adds a value without a change.
pub(crate) fn add<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>) {
    match value {
        Value::Null => {}
        Value::Text(text) => rest.add_text(key, text),
        Value::Raw(raw) => rest.add_json(key, raw),
    }
}

/// Joins the texts of JSON values to the text of a list.
pub(crate) fn list_of<'v>(values: impl Iterator<Item = impl AsRef<str> + 'v>) -> String {
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

fn check_length(length: usize, json: &Parser<'_>) -> Result<(), JsonError> {
    if length < MAX_LENGTH {
        return Ok(());
    }
    Err(JsonError { offset: json.offset(), problem: "an object or a list in it has too many members" })
}
