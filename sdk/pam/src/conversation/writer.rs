//! Writes a conversation document message by message, with the key order and defaults of the official SDK.

use std::io::{self, Write};

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    Attachment, Citation, Content, ContentKind, Conversation, ConversationHeader, Message, Part, Role,
    ToolCall,
};
use crate::{pretty::Root, raw::RawObject, time::Timestamp};

/// The `schema` of a conversation document.
pub const SCHEMA: &str = "portable-ai-memory-conversation";

/// Writes a conversation document, one message at a time.
///
/// The output is not buffered; pass a buffered `W`. The document is complete only after [`Writer::finish`].
pub struct Writer<'h, W> {
    root: Root<W>,
    header: &'h ConversationHeader,
}

impl<'h, W: Write> Writer<'h, W> {
    /// Writes the beginning of the document.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn new(out: W, header: &'h ConversationHeader) -> io::Result<Self> {
        let mut root = Root::begin(out)?;
        root.field("schema", SCHEMA)?;
        root.field("schema_version", crate::SCHEMA_VERSION)?;
        root.field("id", &header.id)?;
        root.field("provider", &header.provider)?;
        root.optional("title", header.title.as_ref())?;
        root.field("temporal", &header.temporal)?;
        root.field("participants", &header.participants)?;
        root.begin_list("messages")?;
        Ok(Self { root, header })
    }

    /// Writes the next message.
    ///
    /// # Errors
    /// If the output fails.
    pub fn message(&mut self, message: &Message) -> io::Result<()> {
        self.root.item(&MessageDocument::of(message))
    }

    /// Writes the end of the document and returns the output, not flushed.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self) -> io::Result<W> {
        let header = self.header;
        self.root.end_list()?;
        self.root.optional("model", header.model.as_ref())?;
        self.root.optional("system_instruction", header.system_instruction.as_ref())?;
        self.root.field("is_archived", &header.is_archived)?;
        self.root.field("tags", &header.tags)?;
        self.root.field("raw_metadata", &RawDocument(header.raw_metadata.as_ref()))?;
        self.root.optional("import_metadata", header.import_metadata.as_ref())?;
        self.root.end()
    }
}

impl Conversation {
    /// Writes the document as JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let write = || {
            let mut writer = Writer::new(Vec::new(), &self.header)?;
            self.messages.iter().try_for_each(|message| writer.message(message))?;
            writer.finish()
        };
        // Writing into memory does not fail, and every field can be serialised.
        write().unwrap_or_default()
    }
}

/// A message, written with every list and flag.
#[derive(Serialize)]
struct MessageDocument<'m> {
    id: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_message_id: Option<&'m str>,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<ContentDocument<'m>>,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<&'m str>,
    children_ids: &'m [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'m str>,
    is_thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_count: Option<u64>,
    attachments: &'m [Attachment],
    citations: &'m [Citation],
    tool_calls: &'m [ToolCall],
    raw_metadata: RawDocument<'m>,
}

#[derive(Serialize)]
struct ContentDocument<'m> {
    #[serde(rename = "type")]
    kind: ContentKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'m str>,
    parts: &'m [Part],
}

/// A raw object, written as an empty object if absent.
struct RawDocument<'m>(Option<&'m RawObject>);

impl<'m> MessageDocument<'m> {
    fn of(message: &'m Message) -> Self {
        // Every field is named, so that a field added to the model fails to compile here.
        let Message {
            id,
            provider_message_id,
            role,
            content,
            created_at,
            parent_id,
            children_ids,
            model,
            is_thought,
            token_count,
            attachments,
            citations,
            tool_calls,
            raw_metadata,
        } = message;
        Self {
            id,
            provider_message_id: provider_message_id.as_deref(),
            role: *role,
            content: content.as_ref().map(ContentDocument::of),
            created_at: *created_at,
            parent_id: parent_id.as_deref(),
            children_ids,
            model: model.as_deref(),
            is_thought: *is_thought,
            token_count: *token_count,
            attachments,
            citations,
            tool_calls,
            raw_metadata: RawDocument(raw_metadata.as_ref()),
        }
    }
}

impl<'m> ContentDocument<'m> {
    fn of(content: &'m Content) -> Self {
        let Content { kind, text, parts } = content;
        Self { kind: *kind, text: text.as_deref(), parts }
    }
}

impl Serialize for RawDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(object) => object.serialize(serializer),
            None => serializer.serialize_map(Some(0))?.end(),
        }
    }
}
