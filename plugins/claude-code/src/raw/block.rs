//! The blocks of a message's `content`.

use std::borrow::Cow;

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Kind, Value},
};

/// Blocks of one message; real ones have tens.
const MAX_BLOCKS: usize = 10_000;

/// What a block is, by its type or, if it has none that is known, by its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    Thinking,
    /// A call of a tool, of the client or of the server.
    Call,
    /// What a tool answered.
    Result,
    /// A picture or a document.
    File,
    #[default]
    Other,
}

/// One block. [`Block::into_json`] gives the fields that were not taken.
#[derive(Debug, Default)]
pub(crate) struct Block<'a> {
    /// Its `type`.
    pub(crate) kind: Option<&'a str>,
    pub(crate) text: Option<&'a str>,
    pub(crate) thinking: Option<&'a str>,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) tool_use_id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) input: Value<'a>,
    pub(crate) content: Value<'a>,
    pub(crate) source: Value<'a>,
    pub(crate) rest: Leftover<'a>,
}

/// The blocks of a message, or another value in their place.
type Blocks<'a> = Result<Vec<Block<'a>>, Value<'a>>;

/// Takes the field of a block with this key.
type TakeField<'a> = fn(&mut Block<'a>, &'a str, &mut Parser<'a>) -> Result<(), JsonError>;

/// Reads the blocks of a message: a text, a list, or one block. Any other value is returned.
pub(crate) fn blocks<'a>(json: &mut Parser<'a>) -> Result<Blocks<'a>, JsonError> {
    blocks_with(json, Block::field)
}

/// Like [`blocks`], but reads only what the first pass needs: the texts, and what tells answers of tools from other blocks. Those answers
/// are most of a session.
pub(crate) fn block_heads<'a>(json: &mut Parser<'a>) -> Result<Blocks<'a>, JsonError> {
    blocks_with(json, Block::head_field)
}

fn blocks_with<'a>(json: &mut Parser<'a>, take: TakeField<'a>) -> Result<Blocks<'a>, JsonError> {
    match json.kind()? {
        Kind::String => {
            let text = json.string()?;
            Ok(Ok(if text.is_empty() { Vec::new() } else { vec![Block::plain(text)] }))
        }
        Kind::Object => Block::read(json, take).map(|block| Ok(vec![block])),
        Kind::Array => {
            json.enter_array()?;
            let mut blocks = Vec::new();
            while json.item()? {
                if blocks.len() == MAX_BLOCKS {
                    return Err(JsonError {
                        offset: json.offset(),
                        problem: "a message has more blocks than the limit",
                    });
                }
                blocks.push(Block::read(json, take)?);
            }
            Ok(Ok(blocks))
        }
        Kind::Null | Kind::Bool | Kind::Number => Value::read(json).map(Err),
    }
}

impl<'a> Block<'a> {
    fn plain(text: &'a str) -> Self {
        Self { kind: Some("text"), text: Some(text), ..Self::default() }
    }

    fn read(json: &mut Parser<'a>, take: TakeField<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        match json.kind()? {
            Kind::String => return json.string().map(Self::plain),
            Kind::Object => {}
            Kind::Null | Kind::Bool | Kind::Number | Kind::Array => {
                // Kept under a key that blocks do not have.
                it.rest.keep_unknown("value", json)?;
                return Ok(it);
            }
        }
        json.enter_object()?;
        while let Some(key) = json.key()? {
            take(&mut it, key, json)?;
        }
        Ok(it)
    }

    fn head_field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        match key {
            "type" | "text" | "tool_use_id" => self.field(key, json),
            _ => json.skip_value(),
        }
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "type" => self.kind = rest.nonempty_text(key, json)?,
            "text" => self.text = rest.text(key, json)?,
            "thinking" => self.thinking = rest.text(key, json)?,
            "id" => self.id = rest.nonempty_text(key, json)?,
            "name" => self.name = rest.nonempty_text(key, json)?,
            "tool_use_id" => self.tool_use_id = rest.nonempty_text(key, json)?,
            "title" => self.title = rest.nonempty_text(key, json)?,
            "input" => self.input = Value::read(json)?,
            "content" => self.content = Value::read(json)?,
            "source" => self.source = Value::read(json)?,
            // Only the provider can read them: proofs that a thought is its own, and thoughts that it encrypted.
            "signature" | "data" if json.kind()? == Kind::String => json.skip_value()?,
            "citations" | "caller" | "is_error" | "cache_control" => rest.keep(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    /// What it is.
    pub(crate) fn what(&self) -> BlockKind {
        match self.kind {
            Some("text") => BlockKind::Text,
            Some("thinking" | "redacted_thinking") => BlockKind::Thinking,
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => BlockKind::Call,
            Some("image" | "document") => BlockKind::File,
            Some(kind) if kind.ends_with("tool_result") => BlockKind::Result,
            _ if self.tool_use_id.is_some() => BlockKind::Result,
            _ if self.name.is_some() && self.input != Value::Null => BlockKind::Call,
            _ if self.thinking.is_some() => BlockKind::Thinking,
            _ if self.text.is_some() => BlockKind::Text,
            _ => BlockKind::Other,
        }
    }

    /// The fields that were not taken, as JSON text; none if there are only the type and the fields that were.
    pub(crate) fn into_json(mut self) -> Option<Cow<'a, str>> {
        let rest = &mut self.rest;
        let texts = [
            ("text", self.text),
            ("thinking", self.thinking),
            ("id", self.id),
            ("name", self.name),
            ("tool_use_id", self.tool_use_id),
            ("title", self.title),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                rest.add_text(key, text);
            }
        }
        for (key, value) in [("input", self.input), ("content", self.content), ("source", self.source)] {
            if value != Value::Null {
                rest.add_json(key, &value.json());
            }
        }
        self.rest.into_json()
    }
}

#[cfg(test)]
mod tests {
    use satchel_importer::Arena;

    use super::*;

    /// The texts, and whether there is an answer of a tool; none if it cannot be read.
    fn head(blocks: Result<Blocks<'_>, JsonError>) -> Option<(Vec<Option<&str>>, bool)> {
        let blocks = blocks.ok()?.unwrap_or_default();
        let answers = blocks.iter().any(|block| block.what() == BlockKind::Result);
        Some((blocks.iter().map(|block| block.text).collect(), answers))
    }

    #[test]
    fn both_passes_find_the_same_texts_and_answers() {
        for text in [
            r#"[{"type":"text","text":"a"},{"content":"x\n","tool_use_id":"t","type":"tool_result"},"b",7]"#,
            r#"[{"tool_use_id":"t","name":"Read","input":{}},{"thinking":"x","text":null}]"#,
            r#"[{"type":"tool_use","tool_use_id":"t"},{"type":"new","name":"x","input":1,"text":"a","text":"b"}]"#,
            r#"{"type":"mcp_tool_result","content":[{"type":"text","text":"inside"}],"text":["no text"]}"#,
            r#"[{"content":"\x"}]"#,
            r#"[{"content":[1,}]"#,
            r#""alone""#,
            "7",
            "[",
        ] {
            let arena = Arena::new();
            let all = head(blocks(&mut Parser::new(text, &arena)));
            assert_eq!(head(block_heads(&mut Parser::new(text, &arena))), all, "{text}");
        }
    }
}
