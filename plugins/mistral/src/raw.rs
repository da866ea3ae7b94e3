//! The export's own structures. Any field may be absent, null or of another type.

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Object, Value},
};

/// Chunks, canvases or files of one message; real ones have tens.
const MAX_LIST: usize = 10_000;

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) chat: Option<&'a str>,
    pub(crate) role: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) model: Option<&'a str>,
    /// A flat copy of the text.
    pub(crate) content: Option<&'a str>,
    pub(crate) chunks: Vec<Value<'a>>,
    pub(crate) canvas: Vec<Value<'a>>,
    pub(crate) files: Vec<Value<'a>>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Message<'a> {
    /// Reads one element; none if it is not an object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "id" => it.id = rest.nonempty_text(key, json)?,
                "chatId" => it.chat = rest.nonempty_text(key, json)?,
                "role" => it.role = rest.text(key, json)?,
                "createdAt" => it.created = rest.time(key, json)?,
                "model" => it.model = rest.nonempty_text(key, json)?,
                "content" => it.content = rest.text(key, json)?,
                "contentChunks" => it.chunks = list(key, json, rest)?,
                "canvas" => it.canvas = list(key, json, rest)?,
                "files" => it.files = list(key, json, rest)?,
                _ => rest.keep(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }
}

fn list<'a>(
    key: &'a str,
    json: &mut Parser<'a>,
    rest: &mut Leftover<'a>,
) -> Result<Vec<Value<'a>>, JsonError> {
    let mut items = Vec::new();
    if rest.array(key, json)? {
        while json.item()? {
            if items.len() == MAX_LIST {
                return Err(JsonError { offset: json.offset(), problem: "a list is longer than the limit" });
            }
            items.push(Value::read(json)?);
        }
    }
    Ok(items)
}

/// The fields of an object except those of `taken` and those that are null.
pub(crate) fn without<'a>(object: &Object<'a>, taken: &[&str]) -> Leftover<'a> {
    let mut rest = Leftover::default();
    for (key, value) in object.fields().filter(|(key, _)| !taken.contains(key)) {
        match value {
            Value::Null => {}
            Value::Text(text) => rest.add_text(key, text),
            Value::Raw(raw) => rest.add_json(key, raw),
        }
    }
    rest
}
