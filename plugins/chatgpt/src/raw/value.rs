//! Values of objects that are too rare or too odd for a struct of their own.

use satchel_importer::{Arena, JsonError, Parser, json::Kind};

/// One value: a text decoded, anything else as it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    #[default]
    Null,
    Text(&'a str),
    /// A number, a flag, an array or an object as JSON text.
    Raw(&'a str),
}

impl<'a> Value<'a> {
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        Ok(match json.kind()? {
            Kind::Null => {
                json.skip_value()?;
                Self::Null
            }
            Kind::String => Self::Text(json.string()?),
            Kind::Bool | Kind::Number | Kind::Array | Kind::Object => Self::Raw(json.raw_value()?),
        })
    }

    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Raw(_) => None,
        }
    }

    /// A text that says something.
    pub(crate) fn words(self) -> Option<&'a str> {
        self.text().filter(|text| !text.is_empty())
    }

    pub(crate) fn raw(self) -> Option<&'a str> {
        match self {
            Self::Raw(raw) => Some(raw),
            Self::Null | Self::Text(_) => None,
        }
    }

    pub(crate) fn is_true(self) -> bool {
        self == Self::Raw("true")
    }

    pub(crate) fn number(self) -> Option<u64> {
        self.raw()?.parse().ok()
    }
}

/// The fields of one object, in order.
#[derive(Debug, Default)]
pub(crate) struct Object<'a>(Vec<(&'a str, Value<'a>)>);

impl<'a> Object<'a> {
    /// Reads JSON text that was checked before; anything but an object has no fields.
    pub(crate) fn parse(raw: &'a str, arena: &'a Arena) -> Self {
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
        // A value that raw_value gave is valid, so what was read until an error is all there is.
        read().unwrap_or_default();
        Self(fields)
    }

    /// The last value of `key`.
    pub(crate) fn get(&self, key: &str) -> Value<'a> {
        self.0.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value).unwrap_or_default()
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).words()
    }

    pub(crate) fn object(&self, key: &str, arena: &'a Arena) -> Self {
        self.get(key).raw().map(|raw| Self::parse(raw, arena)).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, key: &'a str, value: Value<'a>) {
        self.0.push((key, value));
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.0.iter().copied()
    }
}

/// The items of a list given as JSON text; nothing if it is no list.
pub(crate) fn items<'a>(raw: &'a str, arena: &'a Arena) -> Vec<Value<'a>> {
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

/// The texts of a list given as JSON text.
pub(crate) fn texts<'a>(raw: &'a str, arena: &'a Arena) -> Vec<&'a str> {
    items(raw, arena).into_iter().filter_map(Value::text).collect()
}
