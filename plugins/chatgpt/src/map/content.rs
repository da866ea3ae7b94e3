//! What a message says: its `content` of every type as text, code, references and sources.

use std::borrow::Cow;

use satchel_importer::{
    Arena, AttachmentKind, Citation, Leftover, Part, PartKind,
    address::{is_uri, unsigned},
    json::{Object, Value, items},
};

use super::citations;
use crate::raw::{self, Content, Metadata};

/// What was read from one `content`.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    /// Parts stay apart even if there is one only.
    pub(crate) multipart: bool,
    pub(crate) thought: bool,
    pub(crate) pointers: Vec<Pointer<'a>>,
    pub(crate) citations: Vec<Citation<'a>>,
    /// What of `content` has no place above.
    pub(crate) rest: Leftover<'a>,
}

/// A file that the content points at.
#[derive(Clone, Debug)]
pub(crate) struct Pointer<'a> {
    pub(crate) address: &'a str,
    pub(crate) kind: AttachmentKind,
    pub(crate) mime: Option<String>,
    pub(crate) size: Option<u64>,
}

/// Types that hold no words of the conversation; all of their content is kept beside it.
const SILENT: [&str; 5] = [
    "reasoning_recap",
    "computer_output",
    "user_editable_context",
    "model_editable_context",
    "app_pairing_content",
];

/// Types of which it is known what their fields are.
const KNOWN: [&str; 10] = [
    "text",
    "multimodal_text",
    "code",
    "execution_output",
    "tether_browsing_display",
    "tether_quote",
    "sonic_webpage",
    "system_error",
    "thoughts",
    "citable_code_output",
];

/// Reads `content` by its type; types not seen yet, and shapes not seen yet of the others, by the general rule.
pub(crate) fn said<'a>(content: &Content<'a>, metadata: &Metadata<'a>, arena: &'a Arena) -> Said<'a> {
    let mut said = Said::default();
    let fields = &content.fields;
    let kind = content.kind.unwrap_or("text");
    let taken: &[&str] = match kind {
        "text" | "multimodal_text" => {
            said.multipart = kind == "multimodal_text";
            said.read_parts(content, arena)
        }
        "code" => said.code(fields),
        "execution_output" => said.output(fields, metadata, arena),
        "tether_browsing_display" => said.first_of(fields, &["result", "summary"]),
        "tether_quote" | "sonic_webpage" => said.page(fields),
        "system_error" => said.first_of(fields, &["text", "name"]),
        "thoughts" => said.thoughts(content, arena),
        "citable_code_output" => said.connector(fields, arena),
        "computer_output" => said.screenshot(fields, arena),
        _ => &[],
    };
    said.thought |= kind == "reasoning_recap";
    if said.parts.is_empty() && !SILENT.contains(&kind) {
        let read = said.general(content);
        said.note_others(content, read);
    }
    said.keep_rest(content, taken);
    said
}

impl<'a> Said<'a> {
    fn add_text(&mut self, text: &'a str) {
        self.parts.push(Part { text: Some(Cow::Borrowed(text)), ..Part::default() });
    }

    fn first_of(&mut self, fields: &Object<'a>, keys: &'static [&'static str]) -> &'static [&'static str] {
        for (at, key) in keys.iter().enumerate() {
            if let Some(text) = fields.text(key) {
                self.add_text(text);
                return keys.get(at..=at).unwrap_or_default();
            }
        }
        &[]
    }

    fn code(&mut self, fields: &Object<'a>) -> &'static [&'static str] {
        let Some(text) = fields.text("text") else { return &[] };
        let language = fields.text("language").filter(|language| *language != "unknown");
        self.parts.push(Part {
            kind: PartKind::Code,
            text: Some(Cow::Borrowed(text)),
            language: language.map(Cow::Borrowed),
            ..Part::default()
        });
        if language.is_some() { &["text", "language"] } else { &["text"] }
    }

    /// Some exports blank `text` and leave the same output in `aggregate_result`.
    fn output(
        &mut self,
        fields: &Object<'a>,
        metadata: &Metadata<'a>,
        arena: &'a Arena,
    ) -> &'static [&'static str] {
        let taken = self.first_of(fields, &["text"]);
        let Some(aggregate) = metadata.aggregate.map(|raw| Object::parse(raw, arena)) else { return taken };
        for message in aggregate.objects("messages", arena) {
            if let Some(address) = message.text("image_url") {
                self.pointers.push(Pointer { address, kind: AttachmentKind::Image, mime: None, size: None });
            }
            if let Some(text) = message.text("text").filter(|_| taken.is_empty()) {
                self.add_text(text);
            }
        }
        if self.parts.is_empty()
            && let Some(text) = aggregate.text("final_expression_output")
        {
            self.add_text(text);
        }
        taken
    }

    fn page(&mut self, fields: &Object<'a>) -> &'static [&'static str] {
        let text = fields.text("text");
        if let Some(text) = text {
            self.add_text(text);
        }
        let snippet = fields.text("snippet").or(text.filter(|text| text.len() <= LONGEST_SNIPPET));
        self.citations.extend(citations::citation(fields.text("title"), fields.text("url"), snippet));
        // An address that is a file's id is no URL: it stays where it was.
        if fields.text("url").is_some_and(is_uri) {
            &["text", "title", "url", "snippet"]
        } else {
            &["text", "title", "snippet"]
        }
    }

    fn connector(&mut self, fields: &Object<'a>, arena: &'a Arena) -> &'static [&'static str] {
        let about = fields.object("metadata", arena);
        self.citations.extend(citations::citation(
            about.text("display_title"),
            about.text("display_url"),
            None,
        ));
        self.first_of(fields, &["output_str"])
    }

    fn screenshot(&mut self, fields: &Object<'a>, arena: &'a Arena) -> &'static [&'static str] {
        let shot = fields.object("screenshot", arena);
        self.pointers.extend(pointer(&shot, AttachmentKind::Image));
        &[]
    }

    fn thoughts(&mut self, content: &Content<'a>, arena: &'a Arena) -> &'static [&'static str] {
        self.thought = true;
        let list = match content.fields.get("thoughts") {
            Value::Text(text) => {
                self.add_text(text);
                return &["thoughts"];
            }
            Value::Raw(raw) => raw,
            Value::Null => return &[],
        };
        let mut left = String::new();
        for item in items(list, arena) {
            left.push(if left.is_empty() { '[' } else { ',' });
            left.push_str(&self.thought_item(item, arena));
        }
        if left.is_empty() {
            return &[];
        }
        left.push(']');
        self.rest.add_json("thoughts", &left);
        &["thoughts"]
    }

    /// Takes the words of one thought and returns what else it holds.
    fn thought_item(&mut self, item: Value<'a>, arena: &'a Arena) -> Cow<'a, str> {
        let raw = match item {
            Value::Raw(raw) => raw,
            Value::Text(text) => {
                self.add_text(text);
                return Cow::Borrowed("null");
            }
            Value::Null => return Cow::Borrowed("null"),
        };
        let item = Object::parse(raw, arena);
        let taken = self.first_of(&item, &["content", "summary"]);
        let known = |key: &str| matches!(key, "content" | "summary" | "chunks");
        item.fields()
            .filter(|(key, _)| !known(key))
            .for_each(|(key, value)| self.rest.note_unknown(key, value));
        let mut left = Leftover::default();
        keep_fields(&item, taken, &mut left);
        left.into_json().unwrap_or(if raw.starts_with('{') { "{}".into() } else { raw.into() })
    }

    /// For types not seen yet: the texts of the parts, else the first text where texts are found in the others; tells where that was.
    fn general(&mut self, content: &Content<'a>) -> Option<&'static str> {
        for part in content.parts.iter() {
            if let raw::Part::Text(text) = part {
                self.add_text(text);
            }
        }
        if !self.parts.is_empty() {
            return None;
        }
        self.first_of(&content.fields, &["text", "result", "output_str", "content", "summary"])
            .first()
            .copied()
    }

    /// Notes what else may be words in content of a type not seen yet, of which only `read` was read.
    fn note_others(&mut self, content: &Content<'a>, read: Option<&str>) {
        if content.kind.is_none_or(|kind| KNOWN.contains(&kind)) {
            return;
        }
        let others = content.fields.fields().filter(|(key, _)| Some(*key) != read);
        others.for_each(|(key, value)| self.rest.note_unknown(key, value));
    }

    fn read_parts(&mut self, content: &Content<'a>, arena: &'a Arena) -> &'static [&'static str] {
        let plain = |part: raw::Part<'_>| !matches!(part, raw::Part::Raw(_));
        if content.parts.iter().all(plain) {
            for part in content.parts.iter() {
                if let raw::Part::Text(text) = part {
                    self.add_text(text);
                }
            }
            return &[];
        }
        // Which text stood where among the objects: its number in PAM's parts.
        let mut layout = String::new();
        for part in content.parts.iter() {
            layout.push(if layout.is_empty() { '[' } else { ',' });
            match part {
                raw::Part::Nothing => layout.push_str("null"),
                raw::Part::Text(text) => {
                    layout.push_str(&self.parts.len().to_string());
                    self.add_text(text);
                }
                raw::Part::Raw(raw) => {
                    layout.push_str(raw);
                    self.object_part(raw, arena);
                }
            }
        }
        layout.push(']');
        self.rest.add_json("parts", &layout);
        &[]
    }

    fn object_part(&mut self, raw: &'a str, arena: &'a Arena) {
        let part = Object::parse(raw, arena);
        match part.text("content_type").unwrap_or_default() {
            "image_asset_pointer" => self.add_pointer(pointer(&part, AttachmentKind::Image)),
            "audio_asset_pointer" => self.add_pointer(pointer(&part, AttachmentKind::Audio)),
            "video_container_asset_pointer" => self.add_pointer(pointer(&part, AttachmentKind::Video)),
            "real_time_user_audio_video_asset_pointer" => self.real_time_part(&part, arena),
            _ if part.text("asset_pointer").is_some() => {
                self.add_pointer(pointer(&part, AttachmentKind::File));
            }
            _ => {
                if self.first_of(&part, &["text", "result", "output_str", "content", "summary"]).is_empty() {
                    part.fields().for_each(|(key, value)| self.rest.note_unknown(key, value));
                }
            }
        }
    }

    fn real_time_part(&mut self, part: &Object<'a>, arena: &'a Arena) {
        self.add_pointer(pointer(&part.object("audio_asset_pointer", arena), AttachmentKind::Audio));
        self.add_pointer(pointer(
            &part.object("video_container_asset_pointer", arena),
            AttachmentKind::Video,
        ));
        for frame in part.items("frames_asset_pointers", arena) {
            self.add_pointer(match frame {
                Value::Text(address) => {
                    Some(Pointer { address, kind: AttachmentKind::Image, mime: None, size: None })
                }
                Value::Raw(raw) => pointer(&Object::parse(raw, arena), AttachmentKind::Image),
                Value::Null => None,
            });
        }
    }

    fn add_pointer(&mut self, pointer: Option<Pointer<'a>>) {
        let Some(pointer) = pointer else { return };
        let kind = match pointer.kind {
            AttachmentKind::Image => PartKind::Image,
            AttachmentKind::Audio => PartKind::Audio,
            AttachmentKind::Video => PartKind::Video,
            AttachmentKind::File | AttachmentKind::Document => PartKind::File,
        };
        self.parts.push(Part {
            kind,
            mime_type: pointer.mime.clone().map(Cow::Owned),
            reference: Some(unsigned(pointer.address)),
            ..Part::default()
        });
        self.pointers.push(pointer);
    }

    /// Keeps what was not taken, with the type in front unless all of it is plain text.
    fn keep_rest(&mut self, content: &Content<'a>, taken: &[&str]) {
        let plain = content.kind.is_none_or(|kind| kind == "text");
        if let Some(kind) = content.kind.filter(|_| !plain) {
            self.rest.add_text("content_type", kind);
        }
        keep_fields(&content.fields, taken, &mut self.rest);
        if plain || matches!(content.kind, Some("multimodal_text" | "code" | "thoughts")) {
            let known =
                |key: &str| taken.contains(&key) || matches!(key, "language" | "response_format_name");
            let unknown = content.fields.fields().filter(|(key, _)| !known(key));
            unknown.for_each(|(key, value)| self.rest.note_unknown(key, value));
        }
        let read = plain || content.kind == Some("multimodal_text");
        if !read && !content.parts.is_empty() {
            self.rest.add_json("parts", &verbatim(&content.parts.iter().collect::<Vec<_>>()));
        }
    }
}

/// Bytes of a page's text that are repeated as the citation's snippet; longer texts are whole pages.
const LONGEST_SNIPPET: usize = 1000;

fn pointer<'a>(part: &Object<'a>, kind: AttachmentKind) -> Option<Pointer<'a>> {
    let address = part.text("asset_pointer")?;
    let simple = |format: &&str| format.len() <= 8 && format.bytes().all(|b| b.is_ascii_alphanumeric());
    let format = part.text("format").filter(simple).filter(|_| kind == AttachmentKind::Audio);
    Some(Pointer {
        address,
        kind,
        mime: format.map(|format| format!("audio/{format}")),
        size: part.get("size_bytes").as_u64(),
    })
}

fn keep_fields<'a>(fields: &Object<'a>, taken: &[&str], rest: &mut Leftover<'a>) {
    for (key, value) in fields.fields().filter(|(key, _)| !taken.contains(key)) {
        match value {
            Value::Null => {}
            Value::Text(text) => rest.add_text(key, text),
            Value::Raw(raw) => rest.add_json(key, raw),
        }
    }
}

/// The parts as JSON text again.
fn verbatim(parts: &[raw::Part<'_>]) -> String {
    let values = parts.iter().map(|part| match part {
        raw::Part::Nothing => Value::Null.json(),
        raw::Part::Text(text) => Value::Text(text).json(),
        raw::Part::Raw(raw) => Value::Raw(raw).json(),
    });
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}
