//! The `message` of a line, in the form of the provider's API.

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Kind, Value},
};

use super::{Block, KeepUnexpected as _, blocks};

/// A message, or a part of it: the blocks of one answer come on lines of their own.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    pub(crate) role: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) blocks: Vec<Block<'a>>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Message<'a> {
    /// Reads the value that is next; another value than an object is returned.
    pub(super) fn read(json: &mut Parser<'a>) -> Result<Result<Self, Value<'a>>, JsonError> {
        if json.kind()? != Kind::Object {
            return Value::read(json).map(Err);
        }
        let mut it = Self::default();
        json.enter_object()?;
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "role" => it.role = rest.nonempty_text(key, json)?,
                "model" => it.model = rest.nonempty_text(key, json)?,
                "content" => match blocks(json)? {
                    Ok(blocks) => it.blocks = blocks,
                    Err(other) => rest.keep_unexpected(key, other),
                },
                "usage" => {
                    let usage = rest.keep_and_read(key, json)?;
                    it.output_tokens =
                        usage.raw().and_then(|raw| output_tokens(&mut Parser::new(raw, json.arena())));
                }
                // Each message has the same one.
                "type" => {
                    if let kept @ (Value::Text(_) | Value::Raw(_)) = Value::read(json)?
                        && kept != Value::Text("message")
                    {
                        rest.keep_unexpected(key, kept);
                    }
                }
                "id" | "stop_reason" | "stop_sequence" | "container" | "context_management"
                | "diagnostics" => {
                    rest.keep(key, json)?;
                }
                _ => rest.keep_unknown(key, json)?,
            }
        }
        Ok(Ok(it))
    }
}

fn output_tokens(json: &mut Parser<'_>) -> Option<u64> {
    let mut tokens = None;
    let mut read = || -> Result<(), JsonError> {
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                if key == "output_tokens" && json.kind()? == Kind::Number {
                    tokens = json.number()?.as_u64();
                }
            }
        }
        Ok(())
    };
    // The value was checked when it was kept.
    read().unwrap_or_default();
    tokens
}
