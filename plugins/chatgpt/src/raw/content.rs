//! A message's `content`.

use satchel_importer::{
    JsonError, Parser,
    json::{Kind, Object, Value},
};

/// A message's `content` of any type.
#[derive(Debug, Default)]
pub(crate) struct Content<'a> {
    pub(crate) kind: Option<&'a str>,
    pub(crate) parts: Parts<'a>,
    /// All other fields.
    pub(crate) fields: Object<'a>,
}

/// The list `parts`, in which an empty text counts as null. Nearly always it is one text, which needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Parts<'a> {
    first: Option<Value<'a>>,
    more: Vec<Value<'a>>,
}

impl<'a> Content<'a> {
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        match json.kind()? {
            Kind::Object => it.read_object(json)?,
            Kind::String => {
                let text = json.string()?;
                it = Self::from_text(text, json);
            }
            Kind::Null => json.skip_value()?,
            Kind::Bool | Kind::Number | Kind::Array => it.fields.push("value", Value::Raw(json.raw_value()?)),
        }
        Ok(it)
    }

    /// The text, if it is the only part and field.
    pub(crate) fn plain_text(&self) -> Option<&'a str> {
        match self.parts.first {
            Some(Value::Text(text)) if self.parts.more.is_empty() && self.fields.is_empty() => {
                self.kind.is_none_or(|kind| kind == "text").then_some(text)
            }
            _ => None,
        }
    }

    /// Some exports have the object as JSON in a string; any other string is the text itself.
    fn from_text(text: &'a str, json: &Parser<'a>) -> Self {
        let mut inside = Parser::new(text, json.arena());
        let mut it = Self::default();
        let object =
            inside.kind() == Ok(Kind::Object) && it.read_object(&mut inside).is_ok() && inside.end().is_ok();
        if !object {
            it = Self::default();
            it.parts.push(Value::Text(text));
        }
        it
    }

    fn read_object(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        json.enter_object()?;
        while let Some(key) = json.key()? {
            match key {
                "content_type" if json.kind()? == Kind::String => self.kind = Some(json.string()?),
                "parts" if json.enter_array()? => self.read_parts(json)?,
                _ => {
                    let value = Value::read(json)?;
                    if value != Value::Null {
                        self.fields.push(key, value);
                    }
                }
            }
        }
        Ok(())
    }

    fn read_parts(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.parts = Parts::default();
        while json.item()? {
            self.parts.push(Value::read(json)?);
        }
        Ok(())
    }
}

impl<'a> Parts<'a> {
    fn push(&mut self, part: Value<'a>) {
        let part = if part == Value::Text("") { Value::Null } else { part };
        match self.first {
            None => self.first = Some(part),
            Some(_) => self.more.push(part),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        self.first.into_iter().chain(self.more.iter().copied())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}
