//! What the chunks of a message come to: its text, calls, sources and files.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Citation, Leftover, Source, ToolCall, ToolInput, address,
    json::{Object, Value},
};

use super::{files, list, object, sources::Sources};
use crate::{layout::Folders, raw::without};

/// Bytes of an address. What is longer holds the file itself, and stays where it stood.
const MAX_ADDRESS: usize = 4096;

/// The chunks of one message.
#[derive(Default)]
pub(super) struct Speech<'a> {
    texts: Vec<&'a str>,
    pub(super) calls: Vec<ToolCall<'a>>,
    pub(super) attachments: Vec<(Attachment<'a>, Option<&'a str>)>,
    sources: Sources<'a>,
    cited: Vec<Value<'a>>,
    /// What is left of each chunk, in order, as JSON text.
    kept: Vec<Cow<'a, str>>,
    /// Something is left that the text does not show.
    telling: bool,
}

impl<'a> Speech<'a> {
    pub(super) fn add(&mut self, chunk: Value<'a>, folders: &Folders<'a>, arena: &'a Arena) {
        let fields = object(chunk, arena);
        let Some(kind) = fields.get("type").text() else {
            self.keep(chunk.json(), true);
            return;
        };
        match (kind, fields.get("text").text()) {
            ("text", Some(text)) => self.say(text, &fields),
            ("tool_call", _) => self.call(&fields, arena),
            ("reference", _) => {
                self.cited.extend(fields.items("referenceIds", arena));
                self.keep(chunk.json(), true);
            }
            ("image_url", _) => self.show(&fields, arena),
            ("file_reference", _) => {
                let (file, rest) = files::referenced(&fields, folders);
                self.attachments.extend(file);
                self.keep_rest(rest);
            }
            _ => self.keep(chunk.json(), true),
        }
    }

    /// The texts, put together as they were before the provider took them apart.
    pub(super) fn text(&self) -> Option<Cow<'a, str>> {
        match self.texts.as_slice() {
            [] => None,
            [text] => Some(Cow::Borrowed(text)),
            texts => Some(Cow::Owned(texts.concat())),
        }
    }

    pub(super) fn citations(&self) -> Vec<Citation<'a>> {
        self.sources.cited(&self.cited)
    }

    /// The list of what is left; none if every chunk was plain text in one piece.
    pub(super) fn kept(&self) -> Option<String> {
        if self.telling || self.kept.len() > 1 { list(&self.kept) } else { None }
    }

    /// A piece of the text; its length in bytes (UTF-8) tells where in the whole it stands.
    fn say(&mut self, text: &'a str, fields: &Object<'a>) {
        self.texts.push(text);
        let rest = without(fields, &["text"]);
        self.telling |= fields.fields().count() > 2;
        let mut rest = rest;
        rest.add_json("length", &text.len().to_string());
        self.keep(rest.into_json().unwrap_or_default(), false);
    }

    fn call(&mut self, fields: &Object<'a>, arena: &'a Arena) {
        let input = match fields.get("publicArguments") {
            Value::Null => None,
            Value::Text(text) => Some(ToolInput::of_text(text, arena)),
            Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        };
        let output = match fields.get("publicResult") {
            Value::Null => None,
            Value::Text(text) => Some(text),
            Value::Raw(raw) => Some(raw),
        };
        if let Some(output) = output {
            self.sources.collect(output, arena);
        }
        let name = fields.get("name").words();
        self.calls.push(ToolCall {
            id: fields.get("id").words().map(Cow::Borrowed),
            name: name.unwrap_or("tool").into(),
            input,
            output: output.map(Cow::Borrowed).map(address::unsigned_json),
        });
        let mut taken = vec!["publicArguments", "publicResult"];
        taken.extend(name.is_some().then_some("name"));
        self.keep_rest(without(fields, &taken));
    }

    /// An image that the provider made; only its address is in the export.
    fn show(&mut self, fields: &Object<'a>, arena: &'a Arena) {
        let key = if fields.get("imageUrl") == Value::Null { "image_url" } else { "imageUrl" };
        let nested = fields.object(key, arena);
        let url = fields.text(key).or_else(|| nested.text("url"));
        let usable = |url: &&str| url.len() <= MAX_ADDRESS && address::is_uri(url);
        let Some(url) = url.filter(usable) else {
            self.keep_rest(without(fields, &[]));
            return;
        };
        let attachment = Attachment {
            kind: AttachmentKind::Image,
            source: Some(Source::Uri(address::unsigned(url))),
            ..Attachment::default()
        };
        self.attachments.push((attachment, None));
        let taken: &[&str] = if nested.is_empty() { &[key] } else { &[] };
        self.keep_rest(without(fields, taken));
    }

    fn keep_rest(&mut self, rest: Leftover<'a>) {
        self.keep(rest.into_json().unwrap_or("{}".into()), true);
    }

    fn keep(&mut self, json: Cow<'a, str>, telling: bool) {
        self.kept.push(json);
        self.telling |= telling;
    }
}
