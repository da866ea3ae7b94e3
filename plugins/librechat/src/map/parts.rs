//! What a message consists of: its text, or the parts of its content.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Attachment, Citation, Leftover, ToolCall,
    json::{Object, Value, items},
};

use super::{AsideKind, calls, files, object::Parts, sources};
use crate::{raw, text};

/// What is kept of a part that is nothing but a text.
const WORDS: &str = r#"{"type":"text"}"#;
/// The types of parts; each has its value under a key of the same name.
const TYPES: [&str; 12] = [
    "text",
    "think",
    "text_delta",
    "tool_call",
    "image_file",
    "image_url",
    "video_url",
    "input_audio",
    "agent_update",
    "summary",
    "steer",
    "error",
];
/// Fields of parts that are kept and may contain natural language.
const KEPT: [&str; 11] = [
    "activity_label",
    "agent_update",
    "boundary",
    "files",
    "image_file",
    "image_url",
    "input_audio",
    "quotes",
    "reasoning_label",
    "tool_call",
    "video_url",
];

/// The pieces of one message, in order within each kind.
#[derive(Debug, Default)]
pub(super) struct Pieces<'a> {
    pub(super) texts: Vec<Cow<'a, str>>,
    /// Texts that become messages of their own before this one.
    pub(super) before: Vec<(AsideKind, Cow<'a, str>)>,
    pub(super) calls: Vec<ToolCall<'a>>,
    pub(super) attachments: Vec<Attachment<'a>>,
    pub(super) citations: Vec<Citation<'a>>,
    /// What remains of each piece as JSON text; it also gives the order of all pieces.
    remaining: Vec<Cow<'a, str>>,
}

impl<'a> Pieces<'a> {
    /// Takes the pieces of a message. Whatever is not used is kept in `raw.rest`. Types of parts that are not known are added to `unknown`.
    pub(super) fn read(
        raw: &mut raw::Message<'a>,
        by_model: bool,
        unknown: &mut BTreeSet<&'a str>,
        arena: &'a Arena,
    ) -> Self {
        let (text, content) = (std::mem::take(&mut raw.text), std::mem::take(&mut raw.content));
        let mut pieces = Self::of_content(content, &mut raw.rest, unknown, arena);
        match text {
            Value::Null | Value::Text("") => {}
            // The page shows the content; the text beside it is usually its copy.
            Value::Text(text) if !pieces.texts.is_empty() => {
                if !same_words(text, &pieces.texts.join("\n")) {
                    raw.rest.add_text("text", text);
                }
            }
            Value::Text(text) if by_model => pieces.add_answer(text),
            Value::Text(text) => pieces.add_words(text.into()),
            Value::Raw(_) => {
                raw.rest.note_unknown("text", text);
                raw.rest.add_json("text", &text.json());
            }
        }
        pieces
    }

    /// What remains of the pieces; none if there is only one text.
    pub(super) fn remaining_json(&self) -> Option<String> {
        let plain = match self.remaining.as_slice() {
            [] => true,
            [only] => only == WORDS,
            _ => false,
        };
        (!plain).then(|| format!("[{}]", self.remaining.join(",")))
    }

    fn of_content(
        content: Value<'a>,
        rest: &mut Leftover<'a>,
        unknown: &mut BTreeSet<&'a str>,
        arena: &'a Arena,
    ) -> Self {
        let mut pieces = Self::default();
        match content {
            Value::Null => {}
            Value::Text(text) => pieces.add_words(text.into()),
            Value::Raw(raw) if raw.starts_with('[') => {
                for part in items(raw, arena) {
                    pieces.add_part(part, rest, unknown, arena);
                }
            }
            Value::Raw(raw) => {
                rest.note_unknown("content", content);
                rest.add_json("content", raw);
            }
        }
        pieces
    }

    fn add_words(&mut self, text: Cow<'a, str>) {
        if !text.is_empty() {
            self.texts.push(text);
            self.remaining.push(WORDS.into());
        }
    }

    /// Adds the text of an answer, which may begin with reasoning.
    fn add_answer(&mut self, text: &'a str) {
        let Some((thought, words)) = text::reasoning(text) else { return self.add_words(text.into()) };
        if !thought.is_empty() {
            self.before.push((AsideKind::Thought, thought.into()));
            self.remaining.push(r#"{"type":"think"}"#.into());
        }
        self.add_words(words.into());
    }

    fn add_part(
        &mut self,
        value: Value<'a>,
        rest: &mut Leftover<'a>,
        unknown: &mut BTreeSet<&'a str>,
        arena: &'a Arena,
    ) {
        let Some(mut part) = Parts::of(value, arena) else { return self.add_loose(value, rest) };
        let stated = part.get("type").nonempty_text();
        let kind = stated.or_else(|| TYPES.into_iter().find(|key| part.get(key) != Value::Null));
        let before = self.count();
        if !self.add_known(kind.unwrap_or_default(), &mut part, rest, arena) {
            // A type that is not known may have its words at the usual place.
            self.texts.extend(part.words("text", rest, arena).map(Cow::Borrowed));
            unknown.extend(kind);
        }
        match part.left(&KEPT, rest) {
            Some(left) => self.remaining.push(left),
            None if self.count() > before => self.remaining.push("{}".into()),
            None => {}
        }
    }

    /// Adds an item of the content that is not an object.
    fn add_loose(&mut self, value: Value<'a>, rest: &mut Leftover<'a>) {
        match value {
            // Lists have holes where parts of a stream did not arrive.
            Value::Null => {}
            Value::Text(text) => self.add_words(text.into()),
            Value::Raw(_) => {
                rest.note_unknown("content", value);
                self.remaining.push(value.json());
            }
        }
    }

    /// Adds a part of a type that is known; false if it is not.
    fn add_known(
        &mut self,
        kind: &'a str,
        part: &mut Parts<'a>,
        rest: &mut Leftover<'a>,
        arena: &'a Arena,
    ) -> bool {
        let words = |part: &mut Parts<'a>, rest: &mut Leftover<'a>| {
            part.words(kind, rest, arena).or_else(|| part.words("text", rest, arena))
        };
        match kind {
            "text" => self.add_cited(part, rest, arena),
            "text_delta" | "error" => self.texts.extend(words(part, rest).map(Cow::Borrowed)),
            "think" => {
                let thought = part.words(kind, rest, arena).map(text::unmarked);
                self.push_before(AsideKind::Thought, thought.map(Cow::Borrowed));
            }
            "steer" => {
                let words = part.words(kind, rest, arena).map(Cow::Borrowed);
                self.push_before(AsideKind::Steer, words);
            }
            "summary" => {
                let summary = summary(part, rest, arena);
                self.push_before(AsideKind::Summary, summary);
            }
            "tool_call" => self.add_call(part, rest, arena),
            "image_file" => {
                let file = part.inside(kind, &files::KEPT, rest, arena, files::attachment);
                self.attachments.extend(file.flatten());
            }
            "image_url" | "video_url" => self.add_address(part, kind, rest, arena),
            "input_audio" => {
                let recording = part.inside(kind, &[], rest, arena, recording);
                self.attachments.extend(recording.flatten());
            }
            "agent_update" | "activity_label" => {}
            _ => return false,
        }
        true
    }

    /// How many records there are.
    fn count(&self) -> usize {
        self.texts.len() + self.before.len() + self.calls.len() + self.attachments.len()
    }

    /// Adds the words of a text, and the quotes that it cites.
    fn add_cited(&mut self, part: &mut Parts<'a>, rest: &mut Leftover<'a>, arena: &'a Arena) {
        let inside = part.get("text").raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
        for annotation in inside.objects("annotations", arena) {
            let quote = annotation.object("file_citation", arena).text("quote");
            self.citations.extend(quote.and_then(|quote| sources::citation(None, None, Some(quote))));
        }
        self.texts.extend(part.words("text", rest, arena).map(Cow::Borrowed));
    }

    fn push_before(&mut self, kind: AsideKind, text: Option<Cow<'a, str>>) {
        self.before.extend(text.filter(|text| !text.is_empty()).map(|text| (kind, text)));
    }

    fn add_call(&mut self, part: &mut Parts<'a>, rest: &mut Leftover<'a>, arena: &'a Arena) {
        let Some(tool) = Parts::of(part.get("tool_call"), arena) else { return };
        let (call, left) = calls::read(tool, rest, arena);
        self.calls.push(call);
        part.replace("tool_call", left);
    }

    /// Adds the picture or film of a part: `{"image_url": {"url": …}}` or `{"image_url": …}`.
    fn add_address(&mut self, part: &mut Parts<'a>, key: &'a str, rest: &mut Leftover<'a>, arena: &'a Arena) {
        if let Some(found) = part.get(key).nonempty_text().and_then(files::at_address) {
            part.take(key);
            self.attachments.push(found);
            return;
        }
        let read = |inner: &mut Parts<'a>| {
            let found = inner.get("url").nonempty_text().and_then(files::at_address)?;
            inner.take("url");
            Some(found)
        };
        self.attachments.extend(part.inside(key, &[], rest, arena, read).flatten());
    }
}

/// A recording whose bytes are in the part.
fn recording<'a>(inside: &mut Parts<'a>) -> Option<Attachment<'a>> {
    let data = inside.get("data").nonempty_text()?;
    let found = files::recording(data, inside.get("format").nonempty_text())?;
    inside.take("data");
    Some(found)
}

/// The text of a summary: a text, or a list of texts.
fn summary<'a>(part: &mut Parts<'a>, rest: &mut Leftover<'a>, arena: &'a Arena) -> Option<Cow<'a, str>> {
    let content = part.get("content");
    let listed = content.raw().map(|raw| items(raw, arena)).unwrap_or_default();
    let texts: Vec<&str> = listed
        .iter()
        .filter_map(|item| item.text().or_else(|| Object::parse(item.raw()?, arena).text("text")))
        .collect();
    if !texts.is_empty() && texts.len() == listed.len() {
        part.take("content");
        return Some(texts.concat().into());
    }
    ["content", "summary", "text"].into_iter().find_map(|key| part.words(key, rest, arena)).map(Cow::Borrowed)
}

/// Whether two texts have the same characters, apart from white space.
fn same_words(one: &str, other: &str) -> bool {
    one.chars().filter(|c| !c.is_whitespace()).eq(other.chars().filter(|c| !c.is_whitespace()))
}
