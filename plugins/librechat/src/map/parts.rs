//! What a message consists of: its text, or the parts of its content.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, JsonError, Leftover, Parser, ToolCall,
    json::{Object, Value, items},
};

use super::{
    AsideKind,
    agents::Agents,
    calls, files,
    message::Noted,
    object::Parts,
    sources::{self, Citations},
};
use crate::{raw, text};

/// Parts of one conversation that are read. Real ones have thousands at most; each may become a message of a few hundred bytes.
const MAX_PARTS: usize = 50_000;
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
    pub(super) citations: Citations<'a>,
    /// What remains of each piece as JSON text; it also gives the order of all pieces.
    remaining: Vec<Cow<'a, str>>,
    /// The answers of other agents, each with the agent's id.
    pub(super) others: Vec<(&'a str, Pieces<'a>)>,
}

impl<'a> Pieces<'a> {
    /// Takes the pieces of a message. Whatever is not used is kept in `raw.rest`. Types of parts that are not known are noted.
    pub(super) fn read(
        raw: &mut raw::Message<'a>,
        by_model: bool,
        noted: &mut Noted<'a>,
        arena: &'a Arena,
    ) -> Self {
        let (text, content) = (std::mem::take(&mut raw.text), std::mem::take(&mut raw.content));
        let agents = by_model.then(Agents::default);
        let mut pieces = Self::of_content(content, agents, &mut raw.rest, noted, arena);
        match text {
            Value::Null | Value::Text("") => {}
            // The page shows the content; the text beside it is usually its copy.
            Value::Text(text) if pieces.all_texts().next().is_some() => {
                let own = pieces.texts.iter().map(AsRef::as_ref);
                if !same_words(text, own) && !same_words(text, pieces.all_texts()) {
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

    /// The texts of all agents.
    fn all_texts(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().flat_map(|(_, other)| &other.texts);
        self.texts.iter().chain(others).map(AsRef::as_ref)
    }

    /// The pieces of a list of parts. With `agents`, those that others wrote beside the first one are put into `others`.
    fn of_content(
        content: Value<'a>,
        agents: Option<Agents<'a>>,
        rest: &mut Leftover<'a>,
        noted: &mut Noted<'a>,
        arena: &'a Arena,
    ) -> Self {
        let mut pieces = Self::default();
        match content {
            Value::Null => {}
            Value::Text(text) => pieces.add_words(text.into()),
            Value::Raw(raw) if raw.starts_with('[') => {
                let mut json = Parser::new(raw, arena);
                let read = pieces.read_list(&mut json, agents, rest, noted);
                // The list was checked when it was read.
                if !read.unwrap_or_default() {
                    rest.mark_unread("content");
                    rest.add_json("content", raw);
                }
            }
            Value::Raw(raw) => {
                rest.note_unknown("content", content);
                rest.add_json("content", raw);
            }
        }
        pieces
    }

    /// Reads the parts in a list; false if there are too many.
    fn read_list(
        &mut self,
        json: &mut Parser<'a>,
        mut agents: Option<Agents<'a>>,
        rest: &mut Leftover<'a>,
        noted: &mut Noted<'a>,
    ) -> Result<bool, JsonError> {
        let arena = json.arena();
        json.enter_array()?;
        while json.item()? {
            noted.parts += 1;
            if noted.parts > MAX_PARTS {
                return Ok(false);
            }
            let item = Value::read(json)?;
            let Some(part) = Parts::of(item, arena) else {
                self.add_loose(item, rest);
                continue;
            };
            let place = agents.as_mut().and_then(|agents| agents.place(&part));
            match place.and_then(|place| self.of_other(place, &part)) {
                Some(other) => other.add_part(part, rest, noted, arena),
                None => self.add_part(part, rest, noted, arena),
            }
        }
        Ok(true)
    }

    /// The pieces of the other agent with the number `place`, who wrote `part`.
    fn of_other(&mut self, place: usize, part: &Parts<'a>) -> Option<&mut Self> {
        if place == self.others.len() {
            let agent = part.get("agentId").text().unwrap_or_default();
            self.others.push((agent, Self::default()));
        }
        self.others.get_mut(place).map(|(_, other)| other)
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
        mut part: Parts<'a>,
        rest: &mut Leftover<'a>,
        noted: &mut Noted<'a>,
        arena: &'a Arena,
    ) {
        let stated = part.get("type").nonempty_text();
        let kind = stated.or_else(|| TYPES.into_iter().find(|key| part.get(key) != Value::Null));
        let before = self.count();
        if !self.add_known(kind.unwrap_or_default(), &mut part, rest, arena) {
            // A type that is not known may have its words at the usual place.
            self.texts.extend(part.words("text", rest, arena).map(Cow::Borrowed));
            noted.unknown.extend(kind);
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
            self.citations.add(quote.and_then(|quote| sources::citation(None, None, Some(quote))));
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

/// Whether a text has the same characters as others together, apart from white space.
fn same_words<'t>(one: &str, others: impl Iterator<Item = &'t str>) -> bool {
    one.chars().filter(|c| !c.is_whitespace()).eq(others.flat_map(str::chars).filter(|c| !c.is_whitespace()))
}
