//! Conversations as importers emit them: PAM's fields, borrowed from the element that is being read.
//!
//! The records mirror `satchel_pam::record`; see there and in `sdk/wit/importer.wit` for what each field means to the
//! host. Times are microseconds since the Unix epoch, UTC. Text is `Cow`, so both a slice of the element and a
//! built `String` fit (`.into()`).

use std::borrow::Cow;

use crate::{Arena, Parser, json::Kind};

#[cfg(not(target_arch = "wasm32"))]
mod record;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use record::{conversation_to_record, messages_to_records};

/// Who speaks (PAM `Message.role`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The person.
    #[default]
    User,
    /// The AI.
    Assistant,
    /// The instructions.
    System,
    /// A tool's answer.
    Tool,
}

/// PAM `ContentPart.type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// Prose.
    #[default]
    Text,
    /// An image.
    Image,
    /// Source text.
    Code,
    /// A file.
    File,
    /// Sound.
    Audio,
    /// Film.
    Video,
}

/// PAM `Attachment.type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttachmentKind {
    /// Any file.
    #[default]
    File,
    /// An image.
    Image,
    /// Sound.
    Audio,
    /// Film.
    Video,
    /// A text document.
    Document,
}

impl AttachmentKind {
    /// What a file is, by its MIME type, else by the ending of its name.
    pub fn of(mime: Option<&str>, name: Option<&str>) -> Self {
        match mime.map(|mime| mime.split_once('/').unwrap_or((mime, ""))) {
            Some(("image", _)) => Self::Image,
            Some(("audio", _)) => Self::Audio,
            Some(("video", _)) => Self::Video,
            Some(("text", _)) => Self::Document,
            Some(("application", sub)) if is_document(sub) => Self::Document,
            _ => {
                Self::of_ending(name.and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending))
            }
        }
    }

    fn of_ending(ending: &str) -> Self {
        match ending.to_ascii_lowercase().as_str() {
            "png" | "jpg" | "jpeg" | "gif" | "webp" | "svg" | "heic" | "bmp" => Self::Image,
            "mp3" | "wav" | "m4a" | "ogg" | "flac" => Self::Audio,
            "mp4" | "webm" | "mov" | "mkv" => Self::Video,
            "pdf" | "txt" | "md" | "csv" | "json" | "html" | "doc" | "docx" | "odt" | "rtf" | "xls"
            | "xlsx" | "ppt" | "pptx" => Self::Document,
            _ => Self::File,
        }
    }
}

fn is_document(sub: &str) -> bool {
    matches!(sub, "pdf" | "msword" | "rtf" | "json" | "epub+zip") || sub.contains("document")
}

/// One piece of a multipart message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part<'a> {
    /// What it is.
    pub kind: PartKind,
    /// Its text.
    pub text: Option<Cow<'a, str>>,
    /// Programming language, for code.
    pub language: Option<Cow<'a, str>>,
    /// MIME type.
    pub mime_type: Option<Cow<'a, str>>,
    /// PAM `ContentPart.ref`.
    pub reference: Option<Cow<'a, str>>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Text alone.
    Text(Cow<'a, str>),
    /// Pieces in order.
    Multipart(Vec<Part<'a>>),
}

impl<'a> Content<'a> {
    /// All texts in it, a line break between two; none if there are none.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Multipart(parts) => {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.as_deref()).collect();
                (!texts.is_empty()).then(|| Cow::Owned(texts.join("\n")))
            }
        }
    }
}

/// Where the bytes of an attachment are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// The name of a file of this export; the host stores its bytes.
    Path(Cow<'a, str>),
    /// The bytes themselves, at most 16 MiB.
    Bytes(Cow<'a, [u8]>),
    /// Elsewhere; kept as a reference, never fetched.
    Uri(Cow<'a, str>),
}

/// PAM `Attachment` and where its bytes are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// What it is.
    pub kind: AttachmentKind,
    /// File name.
    pub name: Option<Cow<'a, str>>,
    /// MIME type.
    pub mime_type: Option<Cow<'a, str>>,
    /// Bytes, as the provider states it.
    pub size_bytes: Option<u64>,
    /// PAM `Attachment.ref`; leave it empty where `source` names the bytes: the host sets it.
    pub reference: Option<Cow<'a, str>>,
    /// The provider's own id of the file.
    pub provider_id: Option<Cow<'a, str>>,
    /// Where its bytes are.
    pub source: Option<Source<'a>>,
}

/// PAM `Citation`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation<'a> {
    /// Title of the source.
    pub title: Option<Cow<'a, str>>,
    /// Address of the source.
    pub url: Option<Cow<'a, str>>,
    /// What is cited.
    pub snippet: Option<Cow<'a, str>>,
}

/// What a tool was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput<'a> {
    /// Plain text.
    Text(Cow<'a, str>),
    /// The text of one JSON object ([`crate::Parser::raw_value`]).
    Object(Cow<'a, str>),
}

impl<'a> ToolInput<'a> {
    /// The object that `text` is the JSON of, else the text itself.
    pub fn of_text(text: &'a str, arena: &'a Arena) -> Self {
        let mut json = Parser::new(text, arena);
        match (json.kind(), json.raw_value(), json.end()) {
            (Ok(Kind::Object), Ok(raw), Ok(())) => Self::Object(Cow::Borrowed(raw)),
            _ => Self::Text(Cow::Borrowed(text)),
        }
    }

    /// What the JSON value `raw` holds: objects and strings are what PAM takes; others are handed over as their text.
    pub fn of_json(raw: &'a str, arena: &'a Arena) -> Self {
        if raw.starts_with('{') {
            return Self::Object(raw.into());
        }
        Self::Text(Parser::new(raw, arena).string().unwrap_or(raw).into())
    }
}

/// PAM `ToolCall`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall<'a> {
    /// The provider's id of the call.
    pub id: Option<Cow<'a, str>>,
    /// Which tool.
    pub name: Cow<'a, str>,
    /// What it was asked.
    pub input: Option<ToolInput<'a>>,
    /// What it answered.
    pub output: Option<Cow<'a, str>>,
}

/// One node of a conversation (PAM `Message`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// The node's key, unique inside the conversation.
    pub id: Cow<'a, str>,
    /// PAM `provider_message_id`; none if the provider gives none.
    pub provider_message_id: Option<Cow<'a, str>>,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Option<Content<'a>>,
    /// Microseconds; none: the host takes the nearest dated message's.
    pub created_at: Option<i64>,
    /// The `id` of the parent node; none, or one that never comes: a root.
    pub parent: Option<Cow<'a, str>>,
    /// The model that answered.
    pub model: Option<Cow<'a, str>>,
    /// Reasoning, not an answer.
    pub is_thought: bool,
    /// Tokens.
    pub token_count: Option<u64>,
    /// Files.
    pub attachments: Vec<Attachment<'a>>,
    /// Sources.
    pub citations: Vec<Citation<'a>>,
    /// Calls, with their output.
    pub tool_calls: Vec<ToolCall<'a>>,
    /// The text of a JSON object with what has no place above ([`crate::Leftover`]).
    pub raw_metadata: Option<Cow<'a, str>>,
    /// A field of its source that is not known and holds natural language; a warning names it ([`crate::Leftover::unread`]).
    pub unread: Option<Cow<'a, str>>,
}

/// Someone who took part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Participant<'a> {
    /// In which role.
    pub role: Role,
    /// Name.
    pub name: Option<Cow<'a, str>>,
    /// The provider's id.
    pub provider_id: Option<Cow<'a, str>>,
}

/// A conversation without its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation<'a> {
    /// The key of the conversation, unique in the account.
    pub id: Cow<'a, str>,
    /// PAM `provider.conversation_id`.
    pub provider_conversation_id: Option<Cow<'a, str>>,
    /// PAM `provider.account_id`.
    pub account: Option<Cow<'a, str>>,
    /// PAM `provider.export_format_version`.
    pub export_format_version: Option<Cow<'a, str>>,
    /// The title as it stood.
    pub title: Option<Cow<'a, str>>,
    /// Microseconds.
    pub created_at: Option<i64>,
    /// Microseconds.
    pub updated_at: Option<i64>,
    /// Who took part.
    pub participants: Vec<Participant<'a>>,
    /// The model of the conversation.
    pub model: Option<Cow<'a, str>>,
    /// PAM `system_instruction`.
    pub system_instruction: Option<Cow<'a, str>>,
    /// Whether the person archived it.
    pub is_archived: bool,
    /// `[a-z0-9][a-z0-9_-]*` each.
    pub tags: Vec<Cow<'a, str>>,
    /// The `id` of the leaf that the person last saw; none: the newest leaf.
    pub current: Option<Cow<'a, str>>,
    /// The text of a JSON object with what has no place above.
    pub raw_metadata: Option<Cow<'a, str>>,
    /// Where it stood in the export ([`crate::Element::locator`]).
    pub locator: Cow<'a, str>,
}
