//! Values of objects that are too rare or too odd for a struct of their own.

use std::borrow::Cow;

use super::{JsonError, Kind, Parser, leftover::quote};
use crate::Arena;

/// One value: a text decoded, anything else as it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value<'a> {
    /// `null`, or an absent key.
    #[default]
    Null,
    /// A string.
    Text(&'a str),
    /// A number, a flag, an array or an object as JSON text.
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

    /// The text, if it is one.
    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Raw(_) => None,
        }
    }

    /// The text, if it is one that says something.
    pub fn words(self) -> Option<&'a str> {
        self.text().filter(|text| !text.is_empty())
    }

    /// The JSON text of anything but a string and null.
    pub fn raw(self) -> Option<&'a str> {
        match self {
            Self::Raw(raw) => Some(raw),
            Self::Null | Self::Text(_) => None,
        }
    }

    /// Its JSON text, whatever it is.
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

    /// The number, if it is a whole one from 0.
    pub fn as_u64(self) -> Option<u64> {
        self.raw()?.parse().ok()
    }
}

/// The fields of one object, in order.
#[derive(Debug, Default)]
pub struct Object<'a>(Vec<(&'a str, Value<'a>)>);

impl<'a> Object<'a> {
    /// Reads the text of one JSON object, such as [`Parser::raw_value`] gives; anything else has no fields, and a text
    /// that breaks off has those before.
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

    /// The last value of `key`; null if there is none.
    pub fn get(&self, key: &str) -> Value<'a> {
        self.0.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value).unwrap_or_default()
    }

    /// The text of `key`, if it says something.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).words()
    }

    /// The object of `key`; one without fields if it is none.
    #[must_use]
    pub fn object(&self, key: &str, arena: &'a Arena) -> Self {
        self.get(key).raw().map(|raw| Self::parse(raw, arena)).unwrap_or_default()
    }

    /// The objects in the list of `key`.
    pub fn objects(&self, key: &str, arena: &'a Arena) -> Vec<Self> {
        self.get(key).raw().map(|raw| objects(raw, arena)).unwrap_or_default()
    }

    /// The items in the list of `key`.
    pub fn items(&self, key: &str, arena: &'a Arena) -> Vec<Value<'a>> {
        self.get(key).raw().map(|raw| items(raw, arena)).unwrap_or_default()
    }

    /// Whether it has no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a field.
    pub fn push(&mut self, key: &'a str, value: Value<'a>) {
        self.0.push((key, value));
    }

    /// All fields, in order; a key that stands twice comes twice.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.0.iter().copied()
    }
}

/// The items of a list given as JSON text; nothing if it is no list.
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

/// The objects among the items of a list given as JSON text.
pub fn objects<'a>(raw: &'a str, arena: &'a Arena) -> Vec<Object<'a>> {
    let objects = items(raw, arena).into_iter().filter_map(Value::raw).filter(|raw| raw.starts_with('{'));
    objects.map(|raw| Object::parse(raw, arena)).collect()
}

/// The texts among the items of a list given as JSON text.
pub fn texts<'a>(raw: &'a str, arena: &'a Arena) -> Vec<&'a str> {
    items(raw, arena).into_iter().filter_map(Value::text).collect()
}
