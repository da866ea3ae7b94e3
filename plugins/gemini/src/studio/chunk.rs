//! Reads one chunk of a prompt as a message.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use satchel_importer::{
    Arena, Attachment, AttachmentKind, Bundle, Citation, Content, Leftover, Message, Role, Source, ToolCall,
    ToolInput,
    address::unsigned_json,
    json::{Object, Value, objects, time_of_text},
    natural_key,
    tree::SIBLING_NUMBER,
};

use crate::{
    conversation_file::{citation, unique_id},
    files,
    redact::{keep_value, without_secrets},
};

/// The largest file that is taken out of a chunk, in bytes. The host accepts no more.
const MAX_FILE: usize = 16 * 1024 * 1024;

/// One chunk.
#[derive(Default)]
pub(super) struct Chunk<'a> {
    id: Option<&'a str>,
    role: Role,
    /// The role is in the file. Otherwise the assistant is assumed.
    pub(super) role_known: bool,
    text: Cow<'a, str>,
    time: Option<i64>,
    thought: bool,
    tokens: Option<u64>,
    /// The id of the chunk from which this one branches.
    pub(super) branch_parent: Option<&'a str>,
    files: Vec<File<'a>>,
    citations: Vec<Citation<'a>>,
    calls: Vec<ToolCall<'a>>,
    rest: Leftover<'a>,
}

/// A file that a chunk names or contains.
struct File<'a> {
    kind: Option<AttachmentKind>,
    name: Option<&'a str>,
    id: Option<&'a str>,
    mime: Option<&'a str>,
    size: Option<u64>,
    bytes: Option<Vec<u8>>,
    address: Option<String>,
}

impl<'a> Chunk<'a> {
    /// Reads one chunk. Returns the reason if it is none.
    pub(super) fn read(value: Value<'a>, arena: &'a Arena) -> Result<Self, &'static str> {
        let raw = value.raw().filter(|raw| raw.starts_with('{')).ok_or("it is not an object")?;
        let mut chunk = Self { role: Role::Assistant, ..Self::default() };
        let object = Object::parse(raw, arena);
        let mut parts = None;
        for (key, value) in object.fields() {
            if key == "parts" { parts = value.raw() } else { chunk.take(key, value, arena) }
        }
        chunk.take_parts(parts, arena);
        Ok(chunk)
    }

    /// The text of the field `text` of a user's chunk.
    pub(super) fn user_text(&self) -> Option<&'a str> {
        match &self.text {
            Cow::Borrowed(text) if self.role == Role::User && !text.is_empty() => Some(text),
            _ => None,
        }
    }

    pub(super) fn time(&self) -> Option<i64> {
        self.time
    }

    pub(super) fn set_sibling_number(&mut self, number: usize) {
        self.rest.add_json(SIBLING_NUMBER, &number.to_string());
    }

    fn take(&mut self, key: &'a str, value: Value<'a>, arena: &'a Arena) {
        match (key, value) {
            ("id", Value::Text(id)) if !id.is_empty() => self.id = Some(id),
            ("role", Value::Text(role)) => {
                let known = match role {
                    "user" => Some(Role::User),
                    "model" | "assistant" => Some(Role::Assistant),
                    "system" => Some(Role::System),
                    "tool" | "function" => Some(Role::Tool),
                    _ => None,
                };
                match known {
                    Some(known) => (self.role, self.role_known) = (known, true),
                    None => keep_value(&mut self.rest, key, value, arena),
                }
            }
            ("text", Value::Text(text)) => self.text = Cow::Borrowed(text),
            ("createTime", Value::Text(text)) => {
                self.time = time_of_text(text).map(|(micros, _)| micros);
                if self.time.is_none() {
                    keep_value(&mut self.rest, key, value, arena);
                }
            }
            ("isThought", Value::Raw("true")) => self.thought = true,
            ("isThought", Value::Raw("false")) => {}
            ("tokenCount", value) if value.as_u64().is_some() => self.tokens = value.as_u64(),
            ("branchParent", Value::Raw(raw)) if raw.starts_with('{') => {
                self.branch_parent = Object::parse(raw, arena).text("id");
                keep_value(&mut self.rest, key, value, arena);
            }
            ("executableCode" | "codeExecutionResult", Value::Raw(raw)) if raw.starts_with('{') => {
                self.take_code(key, raw, arena);
            }
            ("grounding" | "groundingMetadata", Value::Raw(raw)) => {
                self.take_grounding(&Object::parse(raw, arena), arena);
                keep_value(&mut self.rest, key, value, arena);
            }
            ("citations", Value::Raw(raw)) => {
                let sources = objects(raw, arena);
                self.citations.extend(sources.iter().filter_map(citation));
                keep_value(&mut self.rest, key, value, arena);
            }
            (_, Value::Raw(raw)) if raw.starts_with('{') && is_file(key) => {
                self.take_file(key, value, raw, arena);
            }
            _ => keep_value(&mut self.rest, key, value, arena),
        }
    }

    /// Takes the parts of the chunk. Keeps them if they hold more than the chunk.
    fn take_parts(&mut self, raw: Option<&'a str>, arena: &'a Arena) {
        let Some(raw) = raw else { return };
        let parts = objects(raw, arena);
        let (mut texts, mut redundant) = (Vec::new(), raw.starts_with('['));
        for part in &parts {
            for (key, value) in part.fields() {
                match (key, value) {
                    ("text", Value::Text(text)) => texts.push(text),
                    ("thought", Value::Raw("true" | "false")) => {}
                    ("executableCode" | "codeExecutionResult", Value::Raw(code))
                        if self.calls.is_empty() || redundant =>
                    {
                        self.take_code(key, code, arena);
                    }
                    (_, Value::Raw(file)) if file.starts_with('{') && is_file(key) => {
                        self.take_file(key, value, file, arena);
                    }
                    _ => redundant = false,
                }
            }
        }
        let joined = texts.concat();
        if self.text.is_empty() {
            self.text = match texts.as_slice() {
                [text] => Cow::Borrowed(text),
                _ => Cow::Owned(joined),
            };
        } else if self.text != joined && !joined.is_empty() {
            redundant = false;
        }
        if !redundant && raw != "[]" {
            self.rest.add_json("parts", &without_secrets(raw, arena));
        }
    }

    /// Takes code that the model ran, or its result, as a tool call.
    fn take_code(&mut self, key: &'a str, raw: &'a str, arena: &'a Arena) {
        let mut call = ToolCall { name: Cow::Borrowed("code_execution"), ..ToolCall::default() };
        if key == "executableCode" {
            call.input = Some(ToolInput::of_json(raw, arena));
            return self.calls.push(call);
        }
        self.rest.add_json(key, raw);
        call.output = Some(Cow::Borrowed(Object::parse(raw, arena).text("output").unwrap_or_default()));
        match self.calls.last_mut().filter(|call| call.output.is_none()) {
            Some(open) => open.output = call.output,
            None => self.calls.push(call),
        }
    }

    fn take_grounding(&mut self, grounding: &Object<'a>, arena: &'a Arena) {
        for chunk in grounding.objects("groundingChunks", arena) {
            let source = ["web", "retrievedContext", "maps"]
                .iter()
                .map(|key| chunk.object(key, arena))
                .find(|source| !source.is_empty());
            self.add_citation(&source.unwrap_or(chunk));
        }
        for key in ["groundingSources", "corroborationSegments"] {
            grounding.objects(key, arena).iter().for_each(|source| self.add_citation(source));
        }
    }

    /// Adds a citation unless its address is known.
    fn add_citation(&mut self, source: &Object<'a>) {
        let Some(citation) = citation(source) else { return };
        let known = self.citations.iter().any(|known| known.url.is_some() && known.url == citation.url);
        if !known {
            self.citations.push(citation);
        }
    }

    /// `driveDocument {id, name, mimeType, sizeBytes}`, `inlineFile {mimeType, data}`, `youtubeVideo {id}` and the like.
    fn take_file(&mut self, key: &'a str, value: Value<'a>, raw: &'a str, arena: &'a Arena) {
        let object = Object::parse(raw, arena);
        let data = object.text("data");
        let bytes =
            data.filter(|data| data.len() / 4 * 3 <= MAX_FILE).and_then(|data| STANDARD.decode(data).ok());
        let mime = object.text("mimeType");
        let id = object.text("id").or_else(|| object.text("fileId"));
        let youtube = key == "youtubeVideo";
        let address = id.filter(|_| youtube).map(|id| format!("https://www.youtube.com/watch?v={id}"));
        let uri = ["fileUri", "uri", "url"].iter().find_map(|key| object.text(key)).map(ToOwned::to_owned);
        let taken = |key: &str| match key {
            "id" | "mimeType" | "name" | "sizeBytes" => true,
            "data" => bytes.is_some(),
            _ => false,
        };
        let has_more = object.fields().any(|(key, _)| !taken(key));
        if has_more && data.is_none() {
            keep_value(&mut self.rest, key, value, arena);
        } else if has_more {
            // The data is kept only if it was not taken.
            let mut rest = Leftover::default();
            object
                .fields()
                .filter(|(key, _)| !taken(key))
                .for_each(|(key, value)| keep_value(&mut rest, key, value, arena));
            if let Some(rest) = rest.into_json() {
                self.rest.add_json(key, &rest);
            }
        }
        let size = object.get("sizeBytes");
        self.files.push(File {
            kind: attachment_kind(key),
            name: object.text("name"),
            id,
            mime,
            size: size.as_u64().or_else(|| size.text().and_then(|text| text.parse().ok())),
            bytes,
            address: address.or(uri),
        });
    }

    pub(super) fn into_message(
        self,
        id: String,
        parent: Option<String>,
        model: Option<&'a str>,
        folders: &[String],
        bundle: &Bundle,
    ) -> Message<'a> {
        let attachments = self.files.into_iter().map(|file| file.into_attachment(folders, bundle)).collect();
        Message {
            id: Cow::Owned(id),
            provider_message_id: self.id.map(Cow::Borrowed),
            role: self.role,
            content: (!self.text.is_empty()).then_some(Content::Text(self.text)),
            created_at: self.time,
            parent: parent.map(Cow::Owned),
            model: model.filter(|_| self.role == Role::Assistant).map(Cow::Borrowed),
            is_thought: self.thought,
            token_count: self.tokens,
            attachments,
            citations: self.citations,
            tool_calls: self.calls,
            unread: self.rest.unread().map(Cow::Borrowed),
            raw_metadata: self.rest.into_json().map(unsigned_json),
        }
    }

    /// A key for chunks without an id: a hash of role, time and content.
    fn content_key(&self) -> String {
        let role = format!("{:?}", self.role);
        let time = self.time.map(|time| time.to_string());
        let file = self.files.first().and_then(|file| file.id);
        natural_key(&[
            Some(&role),
            time.as_deref(),
            Some(&self.text),
            file,
            self.thought.then_some("thought"),
        ])
    }
}

impl<'a> File<'a> {
    fn into_attachment(self, folders: &[String], bundle: &Bundle) -> Attachment<'a> {
        let mut attachment = match (self.name, self.bytes.is_some()) {
            (Some(name), false) => {
                let mut found = files::attachment(bundle, folders, Cow::Borrowed(name), None, None);
                // The name is no reference unless the export holds the file.
                found.reference = None;
                found
            }
            (name, _) => Attachment { name: name.map(Cow::Borrowed), ..Attachment::default() },
        };
        attachment.kind = self.kind.unwrap_or_else(|| AttachmentKind::of(self.mime, self.name));
        attachment.mime_type = self.mime.map(Cow::Borrowed);
        attachment.size_bytes = self.size;
        attachment.provider_id = self.id.map(Cow::Borrowed);
        if let Some(bytes) = self.bytes {
            attachment.source = Some(Source::Bytes(Cow::Owned(bytes)));
        } else if attachment.source.is_none() {
            attachment.source = self.address.map(|address| Source::Uri(Cow::Owned(address)));
        }
        attachment
    }
}

/// An id for each chunk: its own, or a hash of its content. Repeated ids are numbered.
pub(super) fn ids<'c, 'a: 'c>(chunks: impl Iterator<Item = &'c Chunk<'a>>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let id = |chunk: &Chunk<'a>| chunk.id.map_or_else(|| chunk.content_key(), ToOwned::to_owned);
    chunks.map(|chunk| unique_id(id(chunk), &mut counts)).collect()
}

fn is_file(key: &str) -> bool {
    ["drive", "inline"].iter().any(|start| key.starts_with(start))
        || matches!(key, "youtubeVideo" | "fileData")
}

fn attachment_kind(key: &str) -> Option<AttachmentKind> {
    let kinds = [
        ("Image", AttachmentKind::Image),
        ("Audio", AttachmentKind::Audio),
        ("Video", AttachmentKind::Video),
        ("Document", AttachmentKind::Document),
    ];
    kinds.into_iter().find(|(end, _)| key.ends_with(end)).map(|(_, kind)| kind)
}
