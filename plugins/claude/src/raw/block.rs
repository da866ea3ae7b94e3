//! The blocks of a message's `content`.

use satchel_importer::{Arena, JsonError, Leftover, Parser, json::Kind};

use super::{json_text, read_items};

/// One block. Its type decides which fields are used; [`Block::into_json`] keeps the others.
#[derive(Debug, Default)]
pub(crate) struct Block<'a> {
    /// Its `type`.
    pub(crate) kind: &'a str,
    pub(crate) text: Option<&'a str>,
    pub(crate) thinking: Option<&'a str>,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) tool_use_id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) file_uuid: Option<&'a str>,
    /// JSON text, like the next three.
    pub(crate) input: Option<&'a str>,
    pub(crate) content: Option<&'a str>,
    pub(crate) citations: Option<&'a str>,
    pub(crate) summaries: Option<&'a str>,
    pub(crate) error: bool,
    /// The provider does not show it.
    pub(crate) hidden: bool,
    /// A prompt that the provider put in, and its source; both are kept too.
    pub(crate) prompt: Option<&'a str>,
    pub(crate) injection_source: Option<&'a str>,
    /// JSON text of an item that is neither an object nor a string.
    pub(crate) invalid: Option<&'a str>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Block<'a> {
    /// Reads the array that is next.
    pub(super) fn read_list(json: &mut Parser<'a>) -> Result<Vec<Self>, JsonError> {
        if json.enter_array()? { read_items(json, Self::read) } else { Ok(Vec::new()) }
    }

    /// The blocks that `text` holds as JSON, else one block of `text` itself.
    pub(super) fn from_text(text: &'a str, arena: &'a Arena) -> Vec<Self> {
        let mut json = Parser::new(text, arena);
        if text.trim_start().starts_with('[')
            && let Ok(blocks) = Self::read_list(&mut json)
            && json.end().is_ok()
        {
            return blocks;
        }
        if text.is_empty() { Vec::new() } else { vec![Self::plain(text)] }
    }

    /// A block of type `text`.
    pub(super) fn plain(text: &'a str) -> Self {
        Self { kind: "text", text: Some(text), ..Self::default() }
    }

    /// Reads the value that is next.
    pub(super) fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        if json.kind()? == Kind::String {
            return json.string().map(Self::plain);
        }
        let mut it = Self::default();
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                it.field(key, json)?;
            }
        } else {
            it.invalid = Some(json.raw_value()?);
        }
        Ok(it)
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "type" => self.kind = rest.text(key, json)?.unwrap_or_default(),
            "text" => self.text = rest.text(key, json)?,
            "thinking" => self.thinking = rest.text(key, json)?,
            "id" => self.id = rest.nonempty_text(key, json)?,
            "name" => self.name = rest.nonempty_text(key, json)?,
            "tool_use_id" => self.tool_use_id = rest.nonempty_text(key, json)?,
            "title" => self.title = rest.text(key, json)?,
            "file_uuid" => self.file_uuid = rest.nonempty_text(key, json)?,
            "input" => self.input = json_text(json)?,
            "content" => self.content = json_text(json)?,
            "citations" => self.citations = json_text(json)?.filter(|raw| *raw != "[]"),
            "summaries" => self.summaries = json_text(json)?,
            "hidden" | "thinking_hidden" => self.hidden |= rest.keep_and_read(key, json)?.is_true(),
            "prompt" => self.prompt = rest.keep_and_read(key, json)?.text(),
            "injection_source" => self.injection_source = rest.keep_and_read(key, json)?.text(),
            "is_error" => self.error = rest.keep_and_read(key, json)?.is_true(),
            "message" | "display_content" | "structured_content" | "meta" | "context"
            | "integration_name" => {
                rest.keep(key, json)?;
            }
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    /// The fields that were not taken since, and the type, as JSON text.
    pub(crate) fn into_json(mut self) -> std::borrow::Cow<'a, str> {
        let rest = &mut self.rest;
        let texts = [
            ("text", self.text),
            ("thinking", self.thinking),
            ("id", self.id),
            ("name", self.name),
            ("tool_use_id", self.tool_use_id),
            ("title", self.title),
            ("file_uuid", self.file_uuid),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                rest.add_text(key, text);
            }
        }
        let values = [
            ("input", self.input),
            ("content", self.content),
            ("citations", self.citations),
            ("summaries", self.summaries),
        ];
        for (key, raw) in values {
            if let Some(raw) = raw {
                rest.add_json(key, raw);
            }
        }
        if self.kind == "text" {
            if rest.is_empty() {
                return PLAIN_TEXT.into();
            }
            rest.add_json("type", "\"text\"");
        } else if !self.kind.is_empty() {
            rest.add_text("type", self.kind);
        }
        self.rest.into_json().unwrap_or("{}".into())
    }
}

/// What [`Block::into_json`] gives for a block of type `text` without other fields.
pub(crate) const PLAIN_TEXT: &str = r#"{"type":"text"}"#;
/// The same for a block whose text is empty, and so is no part of the content.
pub(crate) const EMPTY_TEXT: &str = r#"{"text":"","type":"text"}"#;
