//! The conversation document (PAM 1.0 §25): a graph of messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, value::RawValue};

use crate::{hash::Sha256Digest, names::names, raw::RawObject, time::Timestamp};

mod writer;

pub use writer::{SCHEMA, Writer};

names! {
    /// The author of a message (§25).
    Role {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// Instructions to the model.
        System = "system",
        /// A tool that the model called.
        Tool = "tool",
    }
}

names! {
    /// Which field holds the content of a message (§25).
    ContentKind {
        /// The field `text`.
        Text = "text",
        /// The field `parts`.
        Multipart = "multipart",
    }
}

names! {
    /// The kind of a part of a message (§25).
    PartKind {
        /// Text.
        Text = "text",
        /// An image.
        Image = "image",
        /// Source code.
        Code = "code",
        /// A file.
        File = "file",
        /// Audio.
        Audio = "audio",
        /// Video.
        Video = "video",
    }
}

names! {
    /// The kind of an attachment (§25).
    AttachmentKind {
        /// Any file.
        File = "file",
        /// An image.
        Image = "image",
        /// Audio.
        Audio = "audio",
        /// Video.
        Video = "video",
        /// A formatted document.
        Document = "document",
    }
}

/// A conversation document: [`ConversationHeader`] and its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// `major.minor`, the same as that of the store.
    pub schema_version: String,
    /// Everything but the messages.
    pub header: ConversationHeader,
    /// In chronological order, parents before children.
    pub messages: Vec<Message>,
    /// Fields that a later minor version added outside `raw_metadata`, by JSON path; not written.
    pub unknown: BTreeMap<String, Value>,
}

/// A conversation without its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationHeader {
    /// Not empty.
    pub id: String,
    /// Its origin.
    pub provider: Provider,
    /// Title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Times of creation and last change.
    pub temporal: ConversationTemporal,
    /// Participants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<Participant>,
    /// The model, if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Instructions to the assistant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_instruction: Option<String>,
    /// Whether the person archived it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_archived: bool,
    /// Tags of the form `[a-z0-9][a-z0-9_-]*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Fields of the provider that PAM does not define.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_metadata: Option<RawObject>,
    /// How it was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_metadata: Option<ImportMetadata>,
}

/// The provider of a conversation, and ids in its system (§25).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// `[a-z0-9_-]{2,32}`, the same name as in `provenance.platform`.
    pub name: String,
    /// Id of the conversation at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Id of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// Version of the export format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_format_version: Option<String>,
}

/// The times of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationTemporal {
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// A participant of a conversation (§25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// Role.
    pub role: Role,
    /// Displayed name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// A message: a node of the graph (§25). Serialises without empty fields; [`Writer`] writes every list and flag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Not empty; unique in the conversation.
    pub id: String,
    /// Id at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// The author of a message (§25).
    pub role: Role,
    /// Content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Time of the message.
    pub created_at: Timestamp,
    /// Id of the message that it answers; none for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Ids of the messages that answer it; several make a branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children_ids: Vec<String>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it is reasoning, not an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_thought: bool,
    /// Number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
    /// Attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Cited sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Calls of tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Fields of the provider that PAM does not define.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_metadata: Option<RawObject>,
}

/// The content of a message: a text or parts (§25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Which field holds the content.
    #[serde(rename = "type")]
    pub kind: ContentKind,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The parts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A part of a message (§25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Kind.
    #[serde(rename = "type")]
    pub kind: PartKind,
    /// The text, for text and code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Programming language, for code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// MIME type, for anything but text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Location of the bytes.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// A file attached to a message (§25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Kind.
    #[serde(rename = "type")]
    pub kind: AttachmentKind,
    /// File name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Location of the bytes.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Id at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// A source that a message cites (§25).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Citation {
    /// Title of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// URI of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Excerpt from the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}

/// A call of a tool by the assistant (§25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Not empty.
    pub name: String,
    /// Input of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<ToolInput>,
    /// Output of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// The input of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput {
    /// Text; lists and other JSON values that are not objects are given as JSON text.
    Text(String),
    /// A JSON object.
    Object(RawObject),
}

/// How a conversation was imported (§25).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportMetadata {
    /// Software that imported it, `name/x.y.z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importer: Option<String>,
    /// The importer and its version, such as `chatgpt-importer/2026.07`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importer_version: Option<String>,
    /// Time of the import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_at: Option<Timestamp>,
    /// Name of the imported file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_file: Option<String>,
    /// SHA-256 of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_checksum: Option<Sha256Digest>,
}

impl ConversationHeader {
    /// Creates a document of version [`crate::SCHEMA_VERSION`] with these messages.
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
    /// Content that is a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { kind: ContentKind::Text, text: Some(text.into()), parts: Vec::new() }
    }

    /// Content with several parts.
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

/// Decides by the first character, because serde's untagged enums would lose the text of the object.
impl<'de> Deserialize<'de> for ToolInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('"') {
            return serde_json::from_str(raw.get()).map(Self::Text).map_err(de::Error::custom);
        }
        RawObject::parse(Box::<str>::from(raw).into()).map(Self::Object).map_err(de::Error::custom)
    }
}
