//! What an answer consists of: texts, thoughts and tool calls, from its content or from its output items.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, Leftover, Parser, Role, ToolCall, ToolInput,
    json::{Object, Value, items},
};

use super::{files, output};
use crate::{
    raw,
    text::{Block, Details, split},
};

/// What is kept of a piece that is nothing but a text.
const WORDS: &str = r#"{"type":"message"}"#;

/// The pieces of one message, in order within each kind.
#[derive(Debug, Default)]
pub(super) struct Pieces<'a> {
    pub(super) texts: Vec<Cow<'a, str>>,
    pub(super) thoughts: Vec<Cow<'a, str>>,
    pub(super) calls: Vec<ToolCall<'a>>,
    pub(super) attachments: Vec<Attachment<'a>>,
    /// What remains of each piece as JSON text; it also gives the order of all pieces.
    pub(super) remaining: Vec<Cow<'a, str>>,
}

impl<'a> Pieces<'a> {
    /// Takes the pieces of a message. Whatever cannot be read is kept in `raw.rest`.
    pub(super) fn read(raw: &mut raw::Message<'a>, role: Role, arena: &'a Arena) -> Self {
        let content = std::mem::take(&mut raw.content);
        let output = std::mem::take(&mut raw.output);
        let of_content = Self::of_content(content, role, &mut raw.rest, arena);
        let mut pieces = match output::read(output, &mut raw.rest, arena) {
            Some(pieces) => pieces.joined(of_content, content, &mut raw.rest),
            None => of_content,
        };
        for (key, text) in std::mem::take(&mut raw.reasoning).into_iter().rev() {
            // Usually a copy.
            if !pieces.thoughts.iter().any(|thought| same_words(thought, text)) {
                pieces.thoughts.insert(0, text.into());
                pieces.remaining.insert(0, format!("{{\"type\":\"{key}\"}}").into());
            }
        }
        pieces
    }

    /// Whether it has neither a word nor a call.
    pub(super) fn is_silent(&self) -> bool {
        self.texts.is_empty() && self.calls.is_empty()
    }

    /// What remains of the pieces; none if there is only one text.
    pub(super) fn remaining_json(&self) -> Option<String> {
        let plain = match self.remaining.as_slice() {
            [] => true,
            [one] => one == WORDS && !self.texts.is_empty(),
            _ => false,
        };
        (!plain).then(|| format!("[{}]", self.remaining.join(",")))
    }

    /// The pieces of output items. The content is usually their copy; it is kept if it says something else, and used if the
    /// items have no text.
    fn joined(mut self, content: Self, value: Value<'a>, rest: &mut Leftover<'a>) -> Self {
        let words = |texts: &[Cow<'_, str>]| texts.join("\n");
        let copied = same_words(&words(&content.texts), &words(&self.texts));
        let covered =
            content.thoughts.len() <= self.thoughts.len() && content.calls.len() <= self.calls.len();
        if covered && self.texts.is_empty() {
            self.remaining.extend(content.texts.iter().map(|_| Cow::Borrowed(WORDS)));
            self.texts = content.texts;
        } else if !covered || !(copied || content.texts.is_empty()) {
            rest.add_json("content", &value.json());
        }
        self.attachments.extend(content.attachments);
        self
    }

    fn of_content(content: Value<'a>, role: Role, rest: &mut Leftover<'a>, arena: &'a Arena) -> Self {
        let mut pieces = Self::default();
        match content {
            Value::Text(text) if role == Role::Assistant => {
                for block in split(text) {
                    pieces.add_block(block, arena);
                }
            }
            Value::Text(text) => pieces.add_words(text),
            Value::Raw(raw) if raw.starts_with('[') => {
                for part in items(raw, arena) {
                    pieces.add_part(part, rest, arena);
                }
            }
            Value::Raw(raw) => {
                rest.note_unknown("content", content);
                rest.add_json("content", raw);
            }
            Value::Null => {}
        }
        pieces
    }

    fn add_words(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.texts.push(text.into());
            self.remaining.push(WORDS.into());
        }
    }

    fn add_block(&mut self, block: Block<'a>, arena: &'a Arena) {
        match block {
            Block::Words(text) => self.add_words(text),
            Block::Think(text) => self.add_thought(text.into(), r#"{"type":"think"}"#.into()),
            Block::Details(details) => match details.kind() {
                "reasoning" => {
                    self.add_thought(details.quoted().into(), remaining(&details, &[]));
                }
                "code_interpreter" => self.add_code(&details),
                _ => self.add_call(&details, arena),
            },
        }
    }

    pub(super) fn add_thought(&mut self, text: Cow<'a, str>, remaining: Cow<'a, str>) {
        if !text.trim().is_empty() {
            self.thoughts.push(text);
        }
        self.remaining.push(remaining);
    }

    fn add_code(&mut self, details: &Details<'a>) {
        let code = details.code().map(|(_, code)| ToolInput::Text(code.into()));
        let output = details.attribute("output");
        let language = details.code().map(|(language, _)| ("lang", language));
        self.remaining.push(remaining_with(details, &["output"], language));
        self.calls.push(ToolCall { id: None, name: "code_interpreter".into(), input: code, output });
    }

    fn add_call(&mut self, details: &Details<'a>, arena: &'a Arena) {
        // Before version 0.6 a block had all calls of one turn in `content`, and their results in `results`.
        let (input, result) = match details.attribute("content") {
            Some(calls) => (Some(calls), details.attribute("results")),
            None => (details.attribute("arguments"), details.attribute("result")),
        };
        let body = details.body.trim();
        let of_body = || (!body.is_empty()).then(|| crate::text::unescape(body));
        let rest = result.is_some().then_some(("body", body)).filter(|(_, body)| !body.is_empty());
        let taken = ["id", "name", "arguments", "result", "content", "results"];
        self.remaining.push(remaining_with(details, &taken, rest));
        let input = input.map(|text| ToolInput::of_text(arena.alloc_str(&decoded(&text, arena)), arena));
        self.calls.push(ToolCall {
            id: details.attribute("id"),
            name: details.attribute("name").unwrap_or("tool_calls".into()),
            input,
            output: result.map(|text| Cow::Owned(decoded(&text, arena).into_owned())).or_else(of_body),
        });
    }

    /// One part of a content that is a list, as in `OpenAI`'s interface.
    fn add_part(&mut self, part: Value<'a>, rest: &mut Leftover<'a>, arena: &'a Arena) {
        let object = part.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
        if let Some(text) = part.nonempty_text().or_else(|| object.text("text")) {
            self.add_words(text);
        } else if let Some(picture) = files::picture_of_part(&object, arena) {
            self.attachments.push(picture);
        } else if part != Value::Null {
            rest.note_unknown("content", part);
            self.remaining.push(part.json());
        }
    }
}

/// The text in a JSON string, which is how attributes are encoded; any other text is unchanged.
fn decoded<'t>(text: &'t str, arena: &'t Arena) -> Cow<'t, str> {
    let inside = text.starts_with('"').then(|| Parser::new(text, arena).string().ok()).flatten();
    Cow::Borrowed(inside.unwrap_or(text))
}

fn remaining<'a>(details: &Details<'a>, taken: &[&str]) -> Cow<'a, str> {
    remaining_with(details, taken, None)
}

/// The attributes of a block that are not `taken`, and one more field.
fn remaining_with<'a>(details: &Details<'a>, taken: &[&str], more: Option<(&'a str, &str)>) -> Cow<'a, str> {
    let mut rest = Leftover::default();
    for (name, value) in
        details.attributes().filter(|(name, value)| !taken.contains(name) && !value.is_empty())
    {
        rest.add_text(name, &value);
    }
    if let Some((name, value)) = more {
        rest.add_text(name, value);
    }
    rest.into_json().unwrap_or("{}".into())
}

/// Whether two texts have the same characters, apart from white space.
fn same_words(one: &str, other: &str) -> bool {
    let letters = |text: &'_ str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>();
    one == other || letters(one) == letters(other)
}
