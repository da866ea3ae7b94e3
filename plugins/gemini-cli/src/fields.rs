//! Takes the fields of an object one after the other, so that what is left over can be kept.

use satchel_importer::{Arena, JsonError, Leftover, Parser, json::Value};

use crate::digest::digest;

/// Fields of an object and items of a list. The largest of real sessions have some hundreds.
const MAX_LENGTH: usize = 50_000;
/// Bytes of an id. A longer one counts as absent and is kept as another field.
const MAX_ID: usize = 256;
/// Fields that are kept although nothing else is made of them. They say something about a message and are not a part of the talk, so a
/// text in them is no reason for a warning.
const KEPT: [&str; 18] = [
    "agentId",
    "call_id",
    "description",
    "directories",
    "displayName",
    "id",
    "kind",
    "memoryScratchpad",
    "mimeType",
    "name",
    "projectHash",
    "renderOutputAsMarkdown",
    "resultDisplay",
    "status",
    "timestamp",
    "tokens",
    "type",
    "videoMetadata",
];

/// The fields of one object that were not taken yet.
pub(crate) struct Fields<'a> {
    list: Vec<(&'a str, Value<'a>)>,
    arena: &'a Arena,
}

impl<'a> Fields<'a> {
    /// No fields.
    pub(crate) fn none(arena: &'a Arena) -> Self {
        Self { list: Vec::new(), arena }
    }

    /// Reads the object at `json`; any other value has no fields.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut fields = Self::none(json.arena());
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                check_length(fields.list.len(), json)?;
                fields.list.push((key, Value::read(json)?));
            }
        }
        Ok(fields)
    }

    /// Reads the JSON text of an object; any other value has no fields.
    pub(crate) fn parse(raw: &'a str, arena: &'a Arena) -> Result<Self, JsonError> {
        Self::read(&mut Parser::new(raw, arena))
    }

    pub(crate) fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// The value of `key`; the last one if it is repeated.
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

    /// Removes `key` if its value is a text, and returns that unless it is empty.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<&'a str> {
        self.get(key).text()?;
        self.take(key).nonempty_text()
    }

    /// Removes `key` if its value can be an id, and returns that.
    pub(crate) fn take_id(&mut self, key: &str) -> Option<&'a str> {
        self.get(key).nonempty_text().filter(|id| id.len() <= MAX_ID)?;
        self.take_text(key)
    }

    /// Removes `key` if its value is an object, and returns the fields of that.
    pub(crate) fn take_object(&mut self, key: &str) -> Result<Option<Self>, JsonError> {
        let Some(raw) = self.get(key).raw().filter(|raw| raw.starts_with('{')) else { return Ok(None) };
        self.take(key);
        Self::parse(raw, self.arena).map(Some)
    }

    /// Adds a field.
    pub(crate) fn push(&mut self, key: &'a str, value: Value<'a>) {
        self.list.push((key, value));
    }

    /// The fields that are left, without those that are null or empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.list.iter().copied().filter(|(_, value)| !matches!(value, Value::Null | Value::Raw("{}" | "[]")))
    }

    /// Adds the fields that are left to others, for `raw_metadata`. A text in one that is not known is noted.
    pub(crate) fn add_to(&self, rest: &mut Leftover<'a>) {
        for (key, value) in self.iter() {
            add(rest, key, value);
            if !KEPT.contains(&key) {
                rest.note_unknown(key, value);
            }
        }
    }

    /// A digest of the fields that are left, are not known, and hold a text; 0 if there are none.
    pub(crate) fn unknown(&self) -> u64 {
        let unknown = self.iter().filter(|(key, value)| {
            let mut rest = Leftover::default();
            rest.note_unknown(key, *value);
            rest.unread().is_some() && !KEPT.contains(key)
        });
        unknown.fold(0, |all, (key, value)| all ^ digest(&format!("{key} {}", value.json())))
    }
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

/// Adds a value without a change.
pub(crate) fn add<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>) {
    match value {
        Value::Null => {}
        Value::Text(text) => rest.add_text(key, text),
        Value::Raw(raw) => rest.add_json(key, raw),
    }
}

fn check_length(length: usize, json: &Parser<'_>) -> Result<(), JsonError> {
    if length < MAX_LENGTH {
        return Ok(());
    }
    Err(JsonError { offset: json.offset(), problem: "an object or a list in it has too many members" })
}
