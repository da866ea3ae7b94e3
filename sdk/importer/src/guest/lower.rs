//! Converts conversations to the types of the bindings. Text is borrowed; lists are allocated in an arena.

use std::borrow::Cow;

use super::bindings::{exports::satchel::importer::plugin, satchel::importer::types as wit};
use crate::{
    Arena, Attachment, AttachmentKind, Citation, Content, Conversation, Detection, ErrorKind, ImportError,
    Message, Part, PartKind, Participant, RecordKind, Role, Source, ToolCall, ToolInput,
};

pub(super) fn conversation<'b>(conversation: &'b Conversation, arena: &'b Arena) -> wit::Conversation<'b> {
    // All fields are named so that a new one does not compile until it is converted.
    let Conversation {
        id,
        provider_conversation_id,
        account,
        export_format_version,
        title,
        created_at,
        updated_at,
        participants,
        model,
        system_instruction,
        is_archived,
        tags,
        current,
        raw_metadata,
        locator,
    } = conversation;
    wit::Conversation {
        id,
        provider_conversation_id: provider_conversation_id.as_deref(),
        account: account.as_deref(),
        export_format_version: export_format_version.as_deref(),
        title: title.as_deref(),
        created_at: *created_at,
        updated_at: *updated_at,
        participants: list(participants, arena, participant),
        model: model.as_deref(),
        system_instruction: system_instruction.as_deref(),
        is_archived: *is_archived,
        tags: list(tags, arena, |tag: &Cow<str>| &**tag),
        current: current.as_deref(),
        raw_metadata: raw_metadata.as_deref(),
        locator,
    }
}

pub(super) fn messages<'b>(messages: &'b [Message], arena: &'b Arena) -> &'b [wit::Message<'b>] {
    list(messages, arena, |each| message(each, arena))
}

fn message<'b>(message: &'b Message, arena: &'b Arena) -> wit::Message<'b> {
    let Message {
        id,
        provider_message_id,
        role: author,
        content: source,
        created_at,
        parent,
        model,
        is_thought,
        token_count,
        attachments,
        citations,
        tool_calls,
        raw_metadata,
        // The sink emits a warning for it.
        unread: _,
    } = message;
    wit::Message {
        id,
        provider_message_id: provider_message_id.as_deref(),
        role: role(*author),
        content: source.as_ref().map(|source| content(source, arena)),
        created_at: *created_at,
        parent: parent.as_deref(),
        model: model.as_deref(),
        is_thought: *is_thought,
        token_count: *token_count,
        attachments: list(attachments, arena, attachment),
        citations: list(citations, arena, citation),
        tool_calls: list(tool_calls, arena, tool_call),
        raw_metadata: raw_metadata.as_deref(),
    }
}

fn participant<'b>(participant: &'b Participant) -> wit::Participant<'b> {
    let Participant { role: of, name, provider_id } = participant;
    wit::Participant { role: role(*of), name: name.as_deref(), provider_id: provider_id.as_deref() }
}

fn content<'b>(content: &'b Content, arena: &'b Arena) -> wit::Content<'b> {
    match content {
        Content::Text(text) => wit::Content { kind: wit::ContentKind::Text, text: Some(text), parts: &[] },
        Content::Multipart(parts) => {
            wit::Content { kind: wit::ContentKind::Multipart, text: None, parts: list(parts, arena, part) }
        }
    }
}

fn part<'b>(part: &'b Part) -> wit::ContentPart<'b> {
    let Part { kind, text, language, mime_type, reference } = part;
    wit::ContentPart {
        kind: match kind {
            PartKind::Text => wit::PartKind::Text,
            PartKind::Image => wit::PartKind::Image,
            PartKind::Code => wit::PartKind::Code,
            PartKind::File => wit::PartKind::File,
            PartKind::Audio => wit::PartKind::Audio,
            PartKind::Video => wit::PartKind::Video,
        },
        text: text.as_deref(),
        language: language.as_deref(),
        mime_type: mime_type.as_deref(),
        ref_: reference.as_deref(),
    }
}

fn attachment<'b>(attachment: &'b Attachment) -> wit::Attachment<'b> {
    let Attachment { kind, name, mime_type, size_bytes, reference, provider_id, source } = attachment;
    wit::Attachment {
        kind: match kind {
            AttachmentKind::File => wit::AttachmentKind::File,
            AttachmentKind::Image => wit::AttachmentKind::Image,
            AttachmentKind::Audio => wit::AttachmentKind::Audio,
            AttachmentKind::Video => wit::AttachmentKind::Video,
            AttachmentKind::Document => wit::AttachmentKind::Document,
        },
        name: name.as_deref(),
        mime_type: mime_type.as_deref(),
        size_bytes: *size_bytes,
        ref_: reference.as_deref(),
        provider_id: provider_id.as_deref(),
        source: source.as_ref().map(|source| match source {
            Source::Path(path) => wit::Source::Path(path),
            Source::Bytes(bytes) => wit::Source::Bytes(bytes),
            Source::Uri(uri) => wit::Source::Uri(uri),
        }),
    }
}

fn citation<'b>(citation: &'b Citation) -> wit::Citation<'b> {
    let Citation { title, url, snippet } = citation;
    wit::Citation { title: title.as_deref(), url: url.as_deref(), snippet: snippet.as_deref() }
}

fn tool_call<'b>(call: &'b ToolCall) -> wit::ToolCall<'b> {
    let ToolCall { id, name, input, output } = call;
    wit::ToolCall {
        id: id.as_deref(),
        name,
        input: input.as_ref().map(|input| match input {
            ToolInput::Text(text) => wit::ToolInput::Text(text),
            ToolInput::Object(object) => wit::ToolInput::Object(object),
        }),
        output: output.as_deref(),
    }
}

fn role(role: Role) -> wit::Role {
    match role {
        Role::User => wit::Role::User,
        Role::Assistant => wit::Role::Assistant,
        Role::System => wit::Role::System,
        Role::Tool => wit::Role::Tool,
    }
}

pub(super) fn record_kind(kind: RecordKind) -> wit::RecordKind {
    match kind {
        RecordKind::Conversation => wit::RecordKind::Conversation,
        RecordKind::Message => wit::RecordKind::Message,
        RecordKind::Memory => wit::RecordKind::Memory,
        RecordKind::File => wit::RecordKind::File,
    }
}

pub(super) fn detection(detection: Detection) -> plugin::Detection {
    let Detection { format, confidence, files, account } = detection;
    plugin::Detection { format, confidence, files, account }
}

pub(super) fn error(error: ImportError) -> wit::ImportError {
    let ImportError { kind, message, locator } = error;
    let kind = match kind {
        ErrorKind::NotThisFormat => wit::ErrorKind::NotThisFormat,
        ErrorKind::UnsupportedVersion => wit::ErrorKind::UnsupportedVersion,
        ErrorKind::Malformed => wit::ErrorKind::Malformed,
        ErrorKind::Limit => wit::ErrorKind::Limit,
        ErrorKind::Io => wit::ErrorKind::Io,
        ErrorKind::Cancelled => wit::ErrorKind::Cancelled,
        ErrorKind::Internal => wit::ErrorKind::Internal,
    };
    wit::ImportError { kind, message, locator }
}

/// The converted items, in the arena.
pub(super) fn list<'b, T, U>(items: &'b [T], arena: &'b Arena, lower: impl FnMut(&'b T) -> U) -> &'b [U] {
    if items.is_empty() { &[] } else { arena.alloc_slice_fill_iter(items.iter().map(lower)) }
}
