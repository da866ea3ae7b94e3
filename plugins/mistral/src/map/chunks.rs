//! The chunks of a message: text, calls, sources and files.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Leftover, Source, ToolCall, ToolInput, address,
    json::{Object, Value},
};

use super::{files, object, sources::Sources};
use crate::{layout::Folders, raw::without};

/// Bytes of an address. A longer one contains the file itself and stays in the metadata.
const MAX_ADDRESS: usize = 4096;

/// The contents of the chunks of one message.
#[derive(Default)]
pub(super) struct Parts<'a> {
    texts: Vec<&'a str>,
    pub(super) calls: Vec<ToolCall<'a>>,
    pub(super) attachments: Vec<(Attachment<'a>, Option<&'a str>)>,
    pub(super) sources: Sources<'a>,
    pub(super) cited: Vec<Value<'a>>,
    /// What remains of each chunk, in order, as JSON text.
    remaining: Vec<Cow<'a, str>>,
    /// Something remains that the text does not have.
    informative: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn add(&mut self, chunk: Value<'a>, folders: &Folders<'a>, arena: &'a Arena) {
        let fields = object(chunk, arena);
        let Some(kind) = fields.get("type").text() else {
            self.keep(chunk.json(), true);
            return;
        };
        match (kind, fields.get("text").text()) {
            ("text", Some(text)) => self.add_text(text, &fields),
            ("tool_call", _) => self.add_call(&fields, arena),
            ("reference", _) => {
                self.cited.extend(fields.items("referenceIds", arena));
                self.keep(chunk.json(), true);
            }
            ("image_url", _) => self.add_image(&fields, arena),
            ("file_reference", _) => {
                let (file, rest) = files::reference(&fields, folders);
                self.attachments.extend(file);
                self.keep_rest(rest);
            }
            _ => self.keep(chunk.json(), true),
        }
    }

    /// The texts of all chunks, joined.
    pub(super) fn text(&self) -> Option<Cow<'a, str>> {
        match self.texts.as_slice() {
            [] => None,
            [text] => Some(Cow::Borrowed(text)),
            texts => Some(Cow::Owned(texts.concat())),
        }
    }

    /// What remains of the chunks as JSON text; none if nothing does or if the only chunk was a plain text.
    pub(super) fn remaining_json(&self) -> Option<String> {
        (self.informative || self.remaining.len() > 1).then(|| format!("[{}]", self.remaining.join(",")))
    }

    /// Adds a part of the text. Its length in bytes (UTF-8) is kept, so that its place in the whole text is known.
    fn add_text(&mut self, text: &'a str, fields: &Object<'a>) {
        self.texts.push(text);
        let mut rest = without(fields, &["text"]);
        self.informative |= fields.fields().count() > 2;
        rest.add_json("length", &text.len().to_string());
        self.keep(rest.into_json().unwrap_or_default(), false);
    }

    fn add_call(&mut self, fields: &Object<'a>, arena: &'a Arena) {
        let input = match fields.get("publicArguments") {
            Value::Null => None,
            Value::Text(text) => Some(ToolInput::of_text(text, arena)),
            Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        };
        let result = fields.get("publicResult");
        let output = result.text().or(result.raw());
        if let Some(output) = output {
            self.sources.collect(output, arena);
        }
        let name = fields.get("name").nonempty_text();
        self.calls.push(ToolCall {
            id: fields.get("id").nonempty_text().map(Cow::Borrowed),
            name: name.unwrap_or("tool").into(),
            input,
            output: output.map(Cow::Borrowed).map(address::unsigned_json),
        });
        let mut taken = vec!["publicArguments", "publicResult"];
        taken.extend(name.is_some().then_some("name"));
        self.keep_rest(without(fields, &taken));
    }

    /// Adds a generated image; the export has only its address.
    fn add_image(&mut self, fields: &Object<'a>, arena: &'a Arena) {
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

    fn keep(&mut self, json: Cow<'a, str>, informative: bool) {
        self.remaining.push(json);
        self.informative |= informative;
    }
}
