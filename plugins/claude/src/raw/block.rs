//! The blocks of a message's `content`.

use satchel_importer::{Arena, JsonError, Leftover, Parser, json::Kind};

use super::{check_length, json_text};

/// One block. Which fields count depends on its type; [`Block::put_back`] keeps those that do not.
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
    /// JSON text, as the next three.
    pub(crate) input: Option<&'a str>,
    pub(crate) content: Option<&'a str>,
    pub(crate) citations: Option<&'a str>,
    pub(crate) summaries: Option<&'a str>,
    pub(crate) error: bool,
    /// Not to be shown, though the block is kept.
    pub(crate) hidden: bool,
    /// The words of a prompt that the provider put in, and where they come from; both are kept too.
    pub(crate) prompt: Option<&'a str>,
    pub(crate) injection_source: Option<&'a str>,
    /// The whole of an item that is neither object nor string, as JSON text.
    pub(crate) odd: Option<&'a str>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Block<'a> {
    /// Reads the array that is next.
    pub(super) fn read_list(json: &mut Parser<'a>) -> Result<Vec<Self>, JsonError> {
        let mut blocks = Vec::new();
        if json.enter_array()? {
            while json.item()? {
                blocks.push(Self::read(json)?);
                check_length(blocks.len(), json)?;
            }
        }
        Ok(blocks)
    }

    /// The blocks that `text` holds as JSON, else the text itself as one block.
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

    /// A block of text alone.
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
            it.odd = Some(json.raw_value()?);
        }
        Ok(it)
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "type" => self.kind = rest.text(key, json)?.unwrap_or_default(),
            "text" => self.text = rest.text(key, json)?,
            "thinking" => self.thinking = rest.text(key, json)?,
            "id" => self.id = rest.words(key, json)?,
            "name" => self.name = rest.words(key, json)?,
            "tool_use_id" => self.tool_use_id = rest.words(key, json)?,
            "title" => self.title = rest.text(key, json)?,
            "file_uuid" => self.file_uuid = rest.words(key, json)?,
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

    /// Keeps what was read and not taken since, and gives all that is kept as JSON text with the type in it.
    pub(crate) fn put_back(mut self) -> std::borrow::Cow<'a, str> {
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

/// What is kept of a block of which nothing but the text is known.
pub(crate) const PLAIN_TEXT: &str = r#"{"type":"text"}"#;
/// A block that says nothing; where the list of blocks is kept, it stands apart from those whose text went to the content.
pub(crate) const NO_TEXT: &str = r#"{"text":"","type":"text"}"#;
