//! Conversations (PAM 1.0 §25): who said what, as a graph of messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, value::RawValue};

use crate::{hash::Sha256Digest, names::names, raw::RawObject, time::Timestamp};

mod writer;

pub use writer::{SCHEMA, Writer};

names! {
    /// Who speaks.
    Role {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// The frame that somebody set.
        System = "system",
        /// A tool that the model called.
        Tool = "tool",
    }
}

names! {
    /// Which of a content's two fields counts.
    ContentKind {
        /// `text`.
        Text = "text",
        /// `parts`.
        Multipart = "multipart",
    }
}

names! {
    /// What a part of a message is.
    PartKind {
        /// Prose.
        Text = "text",
        /// A picture.
        Image = "image",
        /// A program text.
        Code = "code",
        /// A file.
        File = "file",
        /// A sound.
        Audio = "audio",
        /// A film.
        Video = "video",
    }
}

names! {
    /// What a file beside a message is.
    AttachmentKind {
        /// Anything.
        File = "file",
        /// A picture.
        Image = "image",
        /// A sound.
        Audio = "audio",
        /// A film.
        Video = "video",
        /// A text with layout.
        Document = "document",
    }
}

/// A conversation document: [`ConversationHeader`] and its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// `1.0`, as the memory store's.
    pub schema_version: String,
    /// Everything but the messages.
    pub header: ConversationHeader,
    /// In chronological order, parents before children.
    pub messages: Vec<Message>,
    /// What a later minor version added outside `raw_metadata`, by JSON path; not written.
    pub unknown: BTreeMap<String, Value>,
}

/// A conversation without its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationHeader {
    /// Not empty.
    pub id: String,
    /// Where it comes from.
    pub provider: Provider,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// From when to when.
    pub temporal: ConversationTemporal,
    /// Who took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<Participant>,
    /// The model, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The frame that was set for the assistant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_instruction: Option<String>,
    /// Whether the person archived it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_archived: bool,
    /// `[a-z0-9][a-z0-9_-]*` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The provider's fields that have no place above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_metadata: Option<RawObject>,
    /// How it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_metadata: Option<ImportMetadata>,
}

/// The source of a conversation and its ids there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// `[a-z0-9_-]{2,32}`; the same names as `provenance.platform`.
    pub name: String,
    /// The conversation's id there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The account's id there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// Which layout the export had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_format_version: Option<String>,
}

/// The times of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationTemporal {
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// Somebody in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// As what.
    pub role: Role,
    /// The name shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// One node of the graph. Serialises without what is empty; [`Writer`] writes every list and flag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Not empty; unique in the conversation.
    pub id: String,
    /// The id at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// When.
    pub created_at: Timestamp,
    /// What it answers; none: a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// What answers it; more than one: a branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children_ids: Vec<String>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning, not an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_thought: bool,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The provider's fields that have no place above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_metadata: Option<RawObject>,
}

/// What is said: a text, or parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Which field counts.
    #[serde(rename = "type")]
    pub kind: ContentKind,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The parts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: PartKind,
    /// Of text and code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Programming language of code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Of anything but text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Where the bytes are.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// A file beside a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: AttachmentKind,
    /// File name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Where the bytes are.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The id at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// A source that a message names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Citation {
    /// Title of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}

/// A call of a tool by the assistant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Not empty.
    pub name: String,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<ToolInput>,
    /// What it gave back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// What a tool was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput {
    /// A text; also lists and other JSON that is no object, as JSON text.
    Text(String),
    /// Named values.
    Object(RawObject),
}

/// How a conversation was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportMetadata {
    /// `name/x.y.z` of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importer: Option<String>,
    /// Which reader, such as `chatgpt-importer/2026.07`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importer_version: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_at: Option<Timestamp>,
    /// The file it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_file: Option<String>,
    /// SHA-256 of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_checksum: Option<Sha256Digest>,
}

impl ConversationHeader {
    /// The document of this header and its messages, of the schema version that we write.
    #[must_use]
    pub fn into_document(self, messages: Vec<Message>) -> Conversation {
        Conversation {
            schema_version: crate::SCHEMA_VERSION.to_owned(),
            header: self,
            messages,
            unknown: BTreeMap::new(),
        }
    }
}

impl Content {
    /// Content that is one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { kind: ContentKind::Text, text: Some(text.into()), parts: Vec::new() }
    }

    /// Content of several parts.
    #[must_use]
    pub fn multipart(parts: Vec<Part>) -> Self {
        Self { kind: ContentKind::Multipart, text: None, parts }
    }
}

impl Serialize for ToolInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Object(object) => object.serialize(serializer),
        }
    }
}

/// By the first character, since a buffered (untagged) value would lose the object's text.
impl<'de> Deserialize<'de> for ToolInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('"') {
            return serde_json::from_str(raw.get()).map(Self::Text).map_err(de::Error::custom);
        }
        RawObject::parse(Box::<str>::from(raw).into()).map(Self::Object).map_err(de::Error::custom)
    }
}
