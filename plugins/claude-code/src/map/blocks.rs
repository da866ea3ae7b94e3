//! Collects what the blocks of a message hold.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, Citation, Leftover, Part, ToolCall, ToolInput,
    json::{Object, Value, items},
};

use super::attachment;
use crate::raw::{Block, BlockKind};

/// The contents of a line.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) parts: Vec<Part<'a>>,
    /// Each with the index of its block.
    pub(super) thoughts: Vec<(usize, &'a str)>,
    pub(super) is_thought: bool,
    pub(super) calls: Vec<ToolCall<'a>>,
    pub(super) attachments: Vec<Attachment<'a>>,
    pub(super) citations: Vec<Citation<'a>>,
    /// What tools answered, which is in the parts too.
    pub(super) results: Vec<&'a str>,
    /// The number of blocks that are answers of tools.
    answers: usize,
    /// The number of other blocks.
    others: usize,
    /// An unknown field with natural language.
    pub(super) unread: Option<&'a str>,
    /// JSON text of the remaining fields of each block, in order.
    rest: Vec<Cow<'a, str>>,
    has_rest: bool,
}

impl<'a> Parts<'a> {
    /// Adds one block; `only` tells that the message has no other.
    pub(super) fn add(&mut self, index: usize, mut block: Block<'a>, only: bool, arena: &'a Arena) {
        let what = block.what();
        *(if what == BlockKind::Result { &mut self.answers } else { &mut self.others }) += 1;
        // What is not understood may hold text.
        let unnamed = block.kind.is_none() && what != BlockKind::Other;
        self.unread = self.unread.or(block.rest.unread()).or(unnamed.then_some("content"));
        match what {
            BlockKind::Text => {
                if let Some(text) = block.text.take().filter(|text| !text.is_empty()) {
                    self.add_text(text);
                }
            }
            BlockKind::Thinking => {
                // The text of many thoughts is empty.
                self.is_thought |= only;
                if let Some(text) =
                    block.thinking.take().or(block.text.take()).filter(|text| !text.is_empty())
                {
                    self.add_thought(index, text, only);
                }
            }
            BlockKind::Call => self.add_call(&mut block, arena),
            BlockKind::Result => self.add_result(&mut block, arena),
            BlockKind::File => self.add_file(&mut block, arena),
            BlockKind::Other => {
                if let Some(text) = block.text.take().filter(|text| !text.is_empty()) {
                    self.add_text(text);
                }
            }
        }
        self.keep(block, what, only);
    }

    pub(super) fn add_text(&mut self, text: &'a str) {
        self.parts.push(Part { text: Some(text.into()), ..Part::default() });
    }

    /// Whether it holds nothing that was said or done.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
            && self.calls.is_empty()
            && self.attachments.is_empty()
            && self.thoughts.is_empty()
    }

    /// Whether it holds answers of tools and nothing else.
    pub(super) fn only_results(&self) -> bool {
        self.others == 0 && self.answers > 0
    }

    /// The JSON text of a list; none if every block is what the other fields of the message say.
    pub(super) fn remaining_json(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        (self.has_rest || rest.len() > 1 && self.is_mixed()).then(|| format!("[{}]", rest.join(",")))
    }

    /// Whether the order of its blocks is not that of its parts.
    fn is_mixed(&self) -> bool {
        let kinds = [!self.parts.is_empty(), !self.calls.is_empty(), !self.attachments.is_empty()];
        kinds.into_iter().filter(|has| *has).count() > 1 || !self.thoughts.is_empty()
    }

    /// A thought is a message of its own, so that it is not read as the answer.
    fn add_thought(&mut self, index: usize, text: &'a str, only: bool) {
        if only {
            self.add_text(text);
        } else {
            self.thoughts.push((index, text));
        }
    }

    fn add_call(&mut self, block: &mut Block<'a>, arena: &'a Arena) {
        let input = match std::mem::take(&mut block.input) {
            Value::Null => None,
            Value::Text(text) => Some(ToolInput::of_text(text, arena)),
            Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        };
        self.calls.push(ToolCall {
            id: block.id.take().map(Cow::Borrowed),
            name: block.name.take().unwrap_or("unknown").into(),
            input,
            output: None,
        });
    }

    fn add_result(&mut self, block: &mut Block<'a>, arena: &'a Arena) {
        match std::mem::take(&mut block.content) {
            Value::Null => {}
            Value::Text(text) => self.add_output(text),
            Value::Raw(raw) if raw.starts_with('[') => self.add_outputs(raw, block, arena),
            // A result of the server's own tools may be an object.
            Value::Raw(raw) => self.add_output(raw),
        }
    }

    fn add_output(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.results.push(text);
            self.add_text(text);
        }
    }

    /// Adds the items of an answer: texts and files; anything else stays in the block.
    fn add_outputs(&mut self, raw: &'a str, block: &mut Block<'a>, arena: &'a Arena) {
        let mut kept = Vec::new();
        for item in items(raw, arena) {
            let object = item.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
            match (object.text("type"), object.text("text"), object.get("source")) {
                (Some("text"), Some(text), _) => {
                    self.add_output(text);
                    // Citations and the like.
                    let others = object.fields().any(|(key, _)| !matches!(key, "type" | "text"));
                    kept.extend(others.then(|| without_text(&object)));
                }
                (_, _, source) if source != Value::Null && self.add_source(source, None, arena) => {}
                _ => {
                    block.rest.note_unknown("content", item);
                    kept.push(item.json());
                }
            }
        }
        if !kept.is_empty() {
            block.rest.add_json("content", &format!("[{}]", kept.join(",")));
        }
        self.unread = self.unread.or(block.rest.unread());
    }

    fn add_file(&mut self, block: &mut Block<'a>, arena: &'a Arena) {
        let title = block.title;
        if self.add_source(block.source, title, arena) {
            block.source = Value::Null;
            block.title = None;
        }
    }

    /// Adds a file by its source; false if that says neither what it contains nor where it is.
    fn add_source(&mut self, source: Value<'a>, name: Option<&'a str>, arena: &'a Arena) -> bool {
        let Some(raw) = source.raw() else { return false };
        let attachment = attachment::of_source(&Object::parse(raw, arena), name);
        let found = attachment.is_some();
        self.attachments.extend(attachment);
        found
    }

    /// Keeps the fields of a block that have no other place.
    fn keep(&mut self, mut block: Block<'a>, what: BlockKind, only: bool) {
        let usual = matches!(
            (what, block.kind),
            (BlockKind::Text, Some("text"))
                | (BlockKind::Thinking, Some("thinking"))
                | (BlockKind::Call, Some("tool_use"))
                | (BlockKind::Result, Some("tool_result"))
                | (BlockKind::File, Some("image"))
        );
        let kind = block.kind;
        let fields = std::mem::take(&mut block).into_json();
        self.has_rest |= fields.is_some() || (!usual && kind.is_some());
        let mut all = Leftover::default();
        if let Some(kind) = kind {
            all.add_text("type", kind);
        }
        let own = all.into_json().unwrap_or("{}".into());
        self.rest.push(match fields {
            Some(fields) if only && usual => fields,
            Some(fields) if kind.is_none() => fields,
            Some(fields) => {
                format!("{},{}", own.trim_end_matches('}'), fields.trim_start_matches('{')).into()
            }
            None => Cow::Owned(own.into_owned()),
        });
    }
}

fn without_text<'a>(object: &Object<'a>) -> Cow<'a, str> {
    let mut rest = Leftover::default();
    for (key, value) in object.fields().filter(|(key, _)| *key != "text") {
        rest.add_json(key, &value.json());
    }
    rest.into_json().unwrap_or("{}".into())
}
