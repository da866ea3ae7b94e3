//! Messages and their fragments.

use std::borrow::Cow;

use satchel_importer::{JsonError, Leftover, Parser, json::Value};

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    pub(crate) created: Option<i64>,
    pub(crate) model: Option<&'a str>,
    pub(crate) fragments: Vec<Fragment<'a>>,
    /// The list of files.
    pub(crate) files: Value<'a>,
    /// Older exports have the next three.
    pub(crate) role: Option<&'a str>,
    pub(crate) content: Option<&'a str>,
    pub(crate) reasoning: Option<&'a str>,
    pub(crate) rest: Leftover<'a>,
}

/// One piece of a message.
#[derive(Debug, Default)]
pub(crate) struct Fragment<'a> {
    /// Its `type`.
    pub(crate) kind: &'a str,
    pub(crate) content: Value<'a>,
    pub(crate) results: Value<'a>,
    /// A list of files.
    pub(crate) files: Value<'a>,
    /// The item, if it is not an object.
    pub(crate) invalid: Option<Value<'a>>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Message<'a> {
    /// Reads the next value; none if it is not an object.
    pub(super) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "fragments" => it.read_fragments(key, json)?,
                "inserted_at" => it.created = rest.time(key, json)?,
                "model" => it.model = rest.nonempty_text(key, json)?,
                "files" => it.files = Value::read(json)?,
                "role" => it.role = rest.nonempty_text(key, json)?,
                "content" => it.content = rest.text(key, json)?,
                "reasoning_content" => it.reasoning = rest.text(key, json)?,
                _ => rest.keep_unknown(key, json)?,
            }
        }
        Ok(Some(it))
    }

    fn read_fragments(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.fragments.clear();
        if self.rest.array(key, json)? {
            while json.item()? {
                self.fragments.push(Fragment::read(json)?);
            }
        }
        Ok(())
    }
}

impl<'a> Fragment<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        if !json.enter_object()? {
            it.invalid = Some(Value::read(json)?);
            return Ok(it);
        }
        while let Some(key) = json.key()? {
            match key {
                "type" => it.kind = it.rest.text(key, json)?.unwrap_or_default(),
                "content" => it.content = Value::read(json)?,
                "results" => it.results = Value::read(json)?,
                "files" => it.files = Value::read(json)?,
                _ => it.rest.keep(key, json)?,
            }
        }
        Ok(it)
    }

    /// Its type and the values that were not taken, as JSON text; a taken value is `Null` by now.
    pub(crate) fn remaining_json(mut self) -> Cow<'a, str> {
        if let Some(invalid) = self.invalid {
            return invalid.json();
        }
        if !self.kind.is_empty() {
            self.rest.add_text("type", self.kind);
        }
        for (key, value) in [("content", self.content), ("results", self.results), ("files", self.files)] {
            if value != Value::Null {
                self.rest.add_json(key, &value.json());
            }
        }
        self.rest.into_json().unwrap_or("{}".into())
    }
}
