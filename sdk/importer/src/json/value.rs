//! Reads rare or irregular objects as lists of values.

use std::borrow::Cow;

use super::{JsonError, Kind, Parser, leftover::quote};
use crate::Arena;

/// One value: a decoded string, or the JSON text of any other value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value<'a> {
    /// `null`, or an absent key.
    #[default]
    Null,
    /// A string.
    Text(&'a str),
    /// The JSON text of a number, a boolean, an array or an object.
    Raw(&'a str),
}

impl<'a> Value<'a> {
    /// Takes the next value.
    pub fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        Ok(match json.kind()? {
            Kind::Null => {
                json.skip_value()?;
                Self::Null
            }
            Kind::String => Self::Text(json.string()?),
            Kind::Bool | Kind::Number | Kind::Array | Kind::Object => Self::Raw(json.raw_value()?),
        })
    }

    /// The text, if it is a string.
    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Raw(_) => None,
        }
    }

    /// The text, if it is a string and not empty.
    pub fn nonempty_text(self) -> Option<&'a str> {
        self.text().filter(|text| !text.is_empty())
    }

    /// The JSON text, if it is neither a string nor null.
    pub fn raw(self) -> Option<&'a str> {
        match self {
            Self::Raw(raw) => Some(raw),
            Self::Null | Self::Text(_) => None,
        }
    }

    /// The JSON text, if it is an object.
    pub fn object(self) -> Option<&'a str> {
        self.raw().filter(|raw| raw.starts_with('{'))
    }

    /// The JSON text, if it is an array.
    pub fn array(self) -> Option<&'a str> {
        self.raw().filter(|raw| raw.starts_with('['))
    }

    /// The JSON text of any value.
    pub fn json(self) -> Cow<'a, str> {
        match self {
            Self::Null => Cow::Borrowed("null"),
            Self::Raw(raw) => Cow::Borrowed(raw),
            Self::Text(text) => {
                let mut json = String::new();
                quote(text, &mut json);
                Cow::Owned(json)
            }
        }
    }

    /// Whether it is `true`.
    pub fn is_true(self) -> bool {
        self == Self::Raw("true")
    }

    /// The number, if it is a non-negative integer.
    pub fn as_u64(self) -> Option<u64> {
        self.raw()?.parse().ok()
    }
}

/// The fields of an object, in order.
#[derive(Debug, Default)]
pub struct Object<'a>(Vec<(&'a str, Value<'a>)>);

impl<'a> Object<'a> {
    /// Reads the text of a JSON object, such as that of [`Parser::raw_value`]. Any other value has no fields; invalid JSON has
    /// the fields before the error.
    pub fn parse(raw: &'a str, arena: &'a Arena) -> Self {
        let mut fields = Vec::new();
        let mut json = Parser::new(raw, arena);
        let mut read = || -> Result<(), JsonError> {
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    fields.push((key, Value::read(&mut json)?));
                }
            }
            Ok(())
        };
        read().unwrap_or_default();
        Self(fields)
    }

    /// The last value of `key`; [`Value::Null`] if there is none.
    pub fn get(&self, key: &str) -> Value<'a> {
        self.0.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value).unwrap_or_default()
    }

    /// The text of `key`, if it is a string and not empty.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).nonempty_text()
    }

    /// The object at `key`; without fields if it is not an object.
    #[must_use]
    pub fn object(&self, key: &str, arena: &'a Arena) -> Self {
        self.get(key).raw().map(|raw| Self::parse(raw, arena)).unwrap_or_default()
    }

    /// The objects in the array at `key`.
    pub fn objects(&self, key: &str, arena: &'a Arena) -> Vec<Self> {
        self.get(key).raw().map(|raw| objects(raw, arena)).unwrap_or_default()
    }

    /// The items of the array at `key`.
    pub fn items(&self, key: &str, arena: &'a Arena) -> Vec<Value<'a>> {
        self.get(key).raw().map(|raw| items(raw, arena)).unwrap_or_default()
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a field.
    pub fn push(&mut self, key: &'a str, value: Value<'a>) {
        self.0.push((key, value));
    }

    /// All fields in order, including repeated keys.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.0.iter().copied()
    }
}

/// The items of an array given as JSON text; none if it is not an array.
pub fn items<'a>(raw: &'a str, arena: &'a Arena) -> Vec<Value<'a>> {
    let mut found = Vec::new();
    let mut json = Parser::new(raw, arena);
    let mut read = || -> Result<(), JsonError> {
        if json.enter_array()? {
            while json.item()? {
                found.push(Value::read(&mut json)?);
            }
        }
        Ok(())
    };
    read().unwrap_or_default();
    found
}

/// The objects in an array given as JSON text.
pub fn objects<'a>(raw: &'a str, arena: &'a Arena) -> Vec<Object<'a>> {
    let objects = items(raw, arena).into_iter().filter_map(Value::raw).filter(|raw| raw.starts_with('{'));
    objects.map(|raw| Object::parse(raw, arena)).collect()
}

/// The strings in an array given as JSON text.
pub fn texts<'a>(raw: &'a str, arena: &'a Arena) -> Vec<&'a str> {
    items(raw, arena).into_iter().filter_map(Value::text).collect()
}
