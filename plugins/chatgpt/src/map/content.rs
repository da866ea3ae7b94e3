//! Maps the `content` of a message to text, code, references and sources.

use std::borrow::Cow;

use satchel_importer::{
    Arena, AttachmentKind, Citation, Leftover, Part, PartKind,
    address::{is_uri, unsigned},
    json::{Object, Value, items},
};

use super::citations::citation;
use crate::raw::{Content, Metadata};

/// The parts of one `content`.
#[derive(Debug, Default)]
pub(crate) struct MappedContent<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    /// A single part stays a part.
    pub(crate) multipart: bool,
    pub(crate) thought: bool,
    pub(crate) pointers: Vec<AssetPointer<'a>>,
    pub(crate) citations: Vec<Citation<'a>>,
    /// The fields of `content` without a place above.
    pub(crate) rest: Leftover<'a>,
}

/// A file that the content refers to.
#[derive(Clone, Debug)]
pub(crate) struct AssetPointer<'a> {
    pub(crate) address: &'a str,
    pub(crate) kind: AttachmentKind,
    pub(crate) mime: Option<String>,
    pub(crate) size: Option<u64>,
}

/// Types without text of the conversation.
const SILENT: [&str; 5] = [
    "reasoning_recap",
    "computer_output",
    "user_editable_context",
    "model_editable_context",
    "app_pairing_content",
];

/// Types whose fields are known.
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

/// Fields that may contain the text of an unknown type; the first one counts.
const TEXT_FIELDS: &[&str] = &["text", "result", "output_str", "content", "summary"];

/// Keys of fields whose whole value was taken.
type Taken = &'static [&'static str];

/// Maps `content` by its type. Unknown types, and known ones without the expected fields, are mapped by
/// [`MappedContent::add_fallback`].
pub(crate) fn map<'a>(content: &Content<'a>, metadata: &Metadata<'a>, arena: &'a Arena) -> MappedContent<'a> {
    let mut mapped = MappedContent::default();
    let fields = &content.fields;
    let kind = content.kind.unwrap_or("text");
    let taken: Taken = match kind {
        "text" | "multimodal_text" => {
            mapped.multipart = kind == "multimodal_text";
            mapped.add_parts(content, arena);
            &[]
        }
        "code" => mapped.add_code(fields),
        "execution_output" => mapped.add_output(fields, metadata, arena),
        "tether_browsing_display" => mapped.add_first(fields, &["result", "summary"]),
        "tether_quote" | "sonic_webpage" => mapped.add_page(fields),
        "system_error" => mapped.add_first(fields, &["text", "name"]),
        "thoughts" => mapped.add_thoughts(fields, arena),
        "citable_code_output" => mapped.add_connector_output(fields, arena),
        "computer_output" => {
            let screenshot = fields.object("screenshot", arena);
            mapped.pointers.extend(asset_pointer(&screenshot, AttachmentKind::Image));
            &[]
        }
        _ => &[],
    };
    mapped.thought |= kind == "reasoning_recap";
    if mapped.parts.is_empty() && !SILENT.contains(&kind) {
        mapped.add_fallback(content);
    }
    mapped.keep_rest(content, taken);
    mapped
}

impl<'a> MappedContent<'a> {
    fn add_texts(&mut self, texts: impl IntoIterator<Item = &'a str>) {
        let part = |text| Part { text: Some(Cow::Borrowed(text)), ..Part::default() };
        self.parts.extend(texts.into_iter().map(part));
    }

    /// Adds the first of these fields that is a text.
    fn add_first(&mut self, fields: &Object<'a>, keys: Taken) -> Taken {
        for (at, key) in keys.iter().enumerate() {
            if let Some(text) = fields.text(key) {
                self.add_texts([text]);
                return keys.get(at..=at).unwrap_or_default();
            }
        }
        &[]
    }

    fn add_code(&mut self, fields: &Object<'a>) -> Taken {
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

    /// Some exports leave `text` empty and have the same output in `aggregate_result`.
    fn add_output(&mut self, fields: &Object<'a>, metadata: &Metadata<'a>, arena: &'a Arena) -> Taken {
        let taken = self.add_first(fields, &["text"]);
        let Some(aggregate) = metadata.aggregate.map(|raw| Object::parse(raw, arena)) else { return taken };
        for message in aggregate.objects("messages", arena) {
            self.pointers.extend(message.text("image_url").map(image));
            self.add_texts(message.text("text").filter(|_| taken.is_empty()));
        }
        if self.parts.is_empty() {
            self.add_texts(aggregate.text("final_expression_output"));
        }
        taken
    }

    fn add_page(&mut self, fields: &Object<'a>) -> Taken {
        let text = fields.text("text");
        self.add_texts(text);
        let snippet = fields.text("snippet").or(text.filter(|text| text.len() <= LONGEST_SNIPPET));
        self.citations.extend(citation(fields.text("title"), fields.text("url"), snippet));
        // The id of a file is no URL and stays in the metadata.
        if fields.text("url").is_some_and(is_uri) {
            &["text", "title", "url", "snippet"]
        } else {
            &["text", "title", "snippet"]
        }
    }

    fn add_connector_output(&mut self, fields: &Object<'a>, arena: &'a Arena) -> Taken {
        let about = fields.object("metadata", arena);
        self.citations.extend(citation(about.text("display_title"), about.text("display_url"), None));
        self.add_first(fields, &["output_str"])
    }

    fn add_thoughts(&mut self, fields: &Object<'a>, arena: &'a Arena) -> Taken {
        self.thought = true;
        let list = match fields.get("thoughts") {
            Value::Text(text) => {
                self.add_texts([text]);
                return &["thoughts"];
            }
            Value::Raw(raw) => raw,
            Value::Null => return &[],
        };
        let left: Vec<_> = items(list, arena).into_iter().map(|item| self.add_thought(item, arena)).collect();
        if left.is_empty() {
            return &[];
        }
        self.keep_list("thoughts", &left);
        &["thoughts"]
    }

    /// Adds the text of one thought and returns its other fields as JSON text.
    fn add_thought(&mut self, item: Value<'a>, arena: &'a Arena) -> Cow<'a, str> {
        let raw = match item {
            Value::Raw(raw) => raw,
            Value::Text(text) => {
                self.add_texts([text]);
                return Cow::Borrowed("null");
            }
            Value::Null => return Cow::Borrowed("null"),
        };
        let item = Object::parse(raw, arena);
        let taken = self.add_first(&item, &["content", "summary"]);
        self.note_fields(&item, |key| !matches!(key, "content" | "summary" | "chunks"));
        let mut left = Leftover::default();
        keep_fields(&item, taken, &mut left);
        left.into_json().unwrap_or(if raw.starts_with('{') { "{}".into() } else { raw.into() })
    }

    /// Adds the texts of the parts, or else the first of [`TEXT_FIELDS`]. Of an unknown type, notes the other fields.
    fn add_fallback(&mut self, content: &Content<'a>) {
        self.add_texts(content.parts.iter().filter_map(Value::text));
        let taken = if self.parts.is_empty() { self.add_first(&content.fields, TEXT_FIELDS) } else { &[] };
        if content.kind.is_some_and(|kind| !KNOWN.contains(&kind)) {
            self.note_fields(&content.fields, |key| !taken.contains(&key));
        }
    }

    fn add_parts(&mut self, content: &Content<'a>, arena: &'a Arena) {
        if content.parts.iter().all(|part| part.raw().is_none()) {
            return self.add_texts(content.parts.iter().filter_map(Value::text));
        }
        // The list with each text replaced by the number of its PAM part.
        let mut layout: Vec<Cow<'_, str>> = Vec::new();
        for part in content.parts.iter() {
            layout.push(match part {
                Value::Null => "null".into(),
                Value::Text(_) => self.parts.len().to_string().into(),
                Value::Raw(raw) => raw.into(),
            });
            self.add_texts(part.text());
            if let Value::Raw(raw) = part {
                self.add_object(raw, arena);
            }
        }
        self.keep_list("parts", &layout);
    }

    fn add_object(&mut self, raw: &'a str, arena: &'a Arena) {
        let part = Object::parse(raw, arena);
        let kind = match part.text("content_type").unwrap_or_default() {
            "image_asset_pointer" => AttachmentKind::Image,
            "audio_asset_pointer" => AttachmentKind::Audio,
            "video_container_asset_pointer" => AttachmentKind::Video,
            "real_time_user_audio_video_asset_pointer" => return self.add_real_time(&part, arena),
            _ if part.text("asset_pointer").is_some() => AttachmentKind::File,
            _ => {
                if self.add_first(&part, TEXT_FIELDS).is_empty() {
                    self.note_fields(&part, |_| true);
                }
                return;
            }
        };
        self.add_pointer(asset_pointer(&part, kind));
    }

    fn add_real_time(&mut self, part: &Object<'a>, arena: &'a Arena) {
        let pointer = |key, kind| asset_pointer(&part.object(key, arena), kind);
        self.add_pointer(pointer("audio_asset_pointer", AttachmentKind::Audio));
        self.add_pointer(pointer("video_container_asset_pointer", AttachmentKind::Video));
        for frame in part.items("frames_asset_pointers", arena) {
            self.add_pointer(match frame {
                Value::Text(address) => Some(image(address)),
                Value::Raw(raw) => asset_pointer(&Object::parse(raw, arena), AttachmentKind::Image),
                Value::Null => None,
            });
        }
    }

    fn add_pointer(&mut self, pointer: Option<AssetPointer<'a>>) {
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

    /// Keeps the fields that were not taken, with the type in front unless it is plain text.
    fn keep_rest(&mut self, content: &Content<'a>, taken: &[&str]) {
        let plain = content.kind.is_none_or(|kind| kind == "text");
        if let Some(kind) = content.kind.filter(|_| !plain) {
            self.rest.add_text("content_type", kind);
        }
        keep_fields(&content.fields, taken, &mut self.rest);
        if plain || matches!(content.kind, Some("multimodal_text" | "code" | "thoughts")) {
            self.note_fields(&content.fields, |key| {
                !taken.contains(&key) && !matches!(key, "language" | "response_format_name")
            });
        }
        let read = plain || content.kind == Some("multimodal_text");
        if !read && !content.parts.is_empty() {
            self.keep_list("parts", &content.parts.iter().map(Value::json).collect::<Vec<_>>());
        }
    }

    fn keep_list(&mut self, key: &'a str, items: &[Cow<'_, str>]) {
        self.rest.add_json(key, &format!("[{}]", items.join(",")));
    }

    /// Notes the first of the `unknown` fields with natural language.
    fn note_fields(&mut self, fields: &Object<'a>, unknown: impl Fn(&str) -> bool) {
        let unknown = fields.fields().filter(|(key, _)| unknown(key));
        unknown.for_each(|(key, value)| self.rest.note_unknown(key, value));
    }
}

/// Bytes of the longest text that is also the snippet of its citation; longer ones are whole pages.
const LONGEST_SNIPPET: usize = 1000;

fn image(address: &str) -> AssetPointer<'_> {
    AssetPointer { address, kind: AttachmentKind::Image, mime: None, size: None }
}

fn asset_pointer<'a>(part: &Object<'a>, kind: AttachmentKind) -> Option<AssetPointer<'a>> {
    let address = part.text("asset_pointer")?;
    let simple = |format: &&str| format.len() <= 8 && format.bytes().all(|b| b.is_ascii_alphanumeric());
    let format = part.text("format").filter(simple).filter(|_| kind == AttachmentKind::Audio);
    Some(AssetPointer {
        address,
        kind,
        mime: format.map(|format| format!("audio/{format}")),
        size: part.get("size_bytes").as_u64(),
    })
}

fn keep_fields<'a>(fields: &Object<'a>, taken: &[&str], rest: &mut Leftover<'a>) {
    let left = fields.fields().filter(|(key, value)| !taken.contains(key) && *value != Value::Null);
    left.for_each(|(key, value)| rest.add_json(key, &value.json()));
}
