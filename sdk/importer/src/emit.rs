//! Conversations as importers emit them, with text borrowed from the element that is being read.
//!
//! The fields are those of PAM, in `satchel_pam::record` and `sdk/wit/importer.wit`. Times are microseconds since the Unix
//! epoch, UTC. Text is `Cow`, so that `.into()` accepts a slice of the element and a `String`.

use std::borrow::Cow;

use crate::{Arena, Parser, json::Kind};

#[cfg(not(target_arch = "wasm32"))]
mod record;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use record::{conversation_to_record, messages_to_records};

/// The author of a message (PAM `Message.role`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The person.
    #[default]
    User,
    /// The model.
    Assistant,
    /// Instructions, such as a system prompt.
    System,
    /// The output of a tool.
    Tool,
}

/// PAM `ContentPart.type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// Text.
    #[default]
    Text,
    /// An image.
    Image,
    /// Source code.
    Code,
    /// A file.
    File,
    /// Audio.
    Audio,
    /// Video.
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
    /// Audio.
    Audio,
    /// Video.
    Video,
    /// A text document.
    Document,
}

impl AttachmentKind {
    /// The kind of a file by its MIME type, or else by the extension of its name.
    pub fn of(mime: Option<&str>, name: Option<&str>) -> Self {
        match mime.map(|mime| mime.split_once('/').unwrap_or((mime, ""))) {
            Some(("image", _)) => Self::Image,
            Some(("audio", _)) => Self::Audio,
            Some(("video", _)) => Self::Video,
            Some(("text", _)) => Self::Document,
            Some(("application", sub)) if is_document(sub) => Self::Document,
            _ => {
                let extension =
                    name.and_then(|name| name.rsplit_once('.')).map_or("", |(_, extension)| extension);
                Self::of_extension(extension)
            }
        }
    }

    fn of_extension(extension: &str) -> Self {
        match extension.to_ascii_lowercase().as_str() {
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

/// One part of a multipart message (PAM `ContentPart`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part<'a> {
    /// The kind of content.
    pub kind: PartKind,
    /// Its text.
    pub text: Option<Cow<'a, str>>,
    /// The programming language of code.
    pub language: Option<Cow<'a, str>>,
    /// MIME type.
    pub mime_type: Option<Cow<'a, str>>,
    /// PAM `ContentPart.ref`.
    pub reference: Option<Cow<'a, str>>,
}

/// The content of a message (PAM `MessageContent`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Plain text.
    Text(Cow<'a, str>),
    /// Parts in order.
    Multipart(Vec<Part<'a>>),
}

impl<'a> Content<'a> {
    /// One text as plain text, and several as parts in their order; none if there are no texts.
    pub fn of_texts<T: Into<Cow<'a, str>>>(texts: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut texts: Vec<Cow<'a, str>> = texts.into_iter().map(Into::into).collect();
        if texts.len() < 2 {
            return texts.pop().map(Self::Text);
        }
        let part = |text| Part { text: Some(text), ..Part::default() };
        Some(Self::Multipart(texts.into_iter().map(part).collect()))
    }

    /// All texts, joined by line breaks; none if there are none.
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
    /// The path of a file of this export; the host stores its bytes.
    Path(Cow<'a, str>),
    /// The bytes themselves, at most 16 MiB.
    Bytes(Cow<'a, [u8]>),
    /// An external address; stored as a reference, never fetched.
    Uri(Cow<'a, str>),
}

/// PAM `Attachment`, and where its bytes are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// The kind of file.
    pub kind: AttachmentKind,
    /// File name.
    pub name: Option<Cow<'a, str>>,
    /// MIME type.
    pub mime_type: Option<Cow<'a, str>>,
    /// Size in bytes, as stated by the provider.
    pub size_bytes: Option<u64>,
    /// PAM `Attachment.ref`. Leave it empty if there is a `source`: the host sets it.
    pub reference: Option<Cow<'a, str>>,
    /// The provider's id of the file.
    pub provider_id: Option<Cow<'a, str>>,
    /// Where its bytes are.
    pub source: Option<Source<'a>>,
}

/// PAM `Citation`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation<'a> {
    /// The title of the source.
    pub title: Option<Cow<'a, str>>,
    /// The address of the source.
    pub url: Option<Cow<'a, str>>,
    /// The cited text.
    pub snippet: Option<Cow<'a, str>>,
}

/// The input of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput<'a> {
    /// Plain text.
    Text(Cow<'a, str>),
    /// The text of one JSON object ([`crate::Parser::raw_value`]).
    Object(Cow<'a, str>),
}

impl<'a> ToolInput<'a> {
    /// [`ToolInput::Object`] if `text` is the JSON of one object, otherwise [`ToolInput::Text`].
    pub fn of_text(text: &'a str, arena: &'a Arena) -> Self {
        let mut json = Parser::new(text, arena);
        match (json.kind(), json.raw_value(), json.end()) {
            (Ok(Kind::Object), Ok(raw), Ok(())) => Self::Object(Cow::Borrowed(raw)),
            _ => Self::Text(Cow::Borrowed(text)),
        }
    }

    /// The JSON value `raw`: an object as it is, a string decoded, any other value as its JSON text.
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
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// Its input.
    pub input: Option<ToolInput<'a>>,
    /// Its output.
    pub output: Option<Cow<'a, str>>,
}

/// One node of a conversation (PAM `Message`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// The node's key, unique within the conversation.
    pub id: Cow<'a, str>,
    /// PAM `provider_message_id`; none if the provider has no such id.
    pub provider_message_id: Option<Cow<'a, str>>,
    /// The author.
    pub role: Role,
    /// The content.
    pub content: Option<Content<'a>>,
    /// Microseconds. If it is none, the host uses the time of the nearest dated message.
    pub created_at: Option<i64>,
    /// The `id` of the parent node. The message is a root if this is none or names a node that is never emitted.
    pub parent: Option<Cow<'a, str>>,
    /// The model that wrote it.
    pub model: Option<Cow<'a, str>>,
    /// Whether it is reasoning rather than an answer.
    pub is_thought: bool,
    /// The number of tokens.
    pub token_count: Option<u64>,
    /// Attached or generated files.
    pub attachments: Vec<Attachment<'a>>,
    /// Cited sources.
    pub citations: Vec<Citation<'a>>,
    /// Tool calls with their output.
    pub tool_calls: Vec<ToolCall<'a>>,
    /// The text of a JSON object with the fields that have no place above, verbatim ([`crate::Leftover`]).
    pub raw_metadata: Option<Cow<'a, str>>,
    /// The name of an unknown field that contains natural language. The receipt has a warning that names it
    /// ([`crate::Leftover::unread`]).
    pub unread: Option<Cow<'a, str>>,
}

/// A participant of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Participant<'a> {
    /// The role.
    pub role: Role,
    /// The name.
    pub name: Option<Cow<'a, str>>,
    /// The provider's id.
    pub provider_id: Option<Cow<'a, str>>,
}

/// A conversation without its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation<'a> {
    /// The key of the conversation, unique within the account.
    pub id: Cow<'a, str>,
    /// PAM `provider.conversation_id`.
    pub provider_conversation_id: Option<Cow<'a, str>>,
    /// PAM `provider.account_id`.
    pub account: Option<Cow<'a, str>>,
    /// PAM `provider.export_format_version`.
    pub export_format_version: Option<Cow<'a, str>>,
    /// The title.
    pub title: Option<Cow<'a, str>>,
    /// Microseconds.
    pub created_at: Option<i64>,
    /// Microseconds.
    pub updated_at: Option<i64>,
    /// The participants.
    pub participants: Vec<Participant<'a>>,
    /// The model of the conversation.
    pub model: Option<Cow<'a, str>>,
    /// PAM `system_instruction`.
    pub system_instruction: Option<Cow<'a, str>>,
    /// Whether the person archived it.
    pub is_archived: bool,
    /// Each matches `[a-z0-9][a-z0-9_-]*`.
    pub tags: Vec<Cow<'a, str>>,
    /// The `id` of the leaf that the person viewed last; none: the newest leaf.
    pub current: Option<Cow<'a, str>>,
    /// The text of a JSON object with the fields that have no place above, verbatim.
    pub raw_metadata: Option<Cow<'a, str>>,
    /// Its place in the export, for receipts ([`crate::Element::locator`]).
    pub locator: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_is_plain_and_several_are_parts() {
        assert_eq!(Content::of_texts(Vec::<String>::new()), None);
        assert_eq!(Content::of_texts(["a"]), Some(Content::Text("a".into())));
        let part = |text: &'static str| Part { text: Some(text.into()), ..Part::default() };
        assert_eq!(Content::of_texts(["a", "b"]), Some(Content::Multipart(vec![part("a"), part("b")])));
    }
}
