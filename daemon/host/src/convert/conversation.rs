//! Conversations and messages.

use satchel_pam::{
    conversation::{
        Attachment, AttachmentKind, Citation, Content, ContentKind, Part, PartKind, Participant, Role,
        ToolCall, ToolInput,
    },
    record::{AttachmentRecord, ConversationRecord, MessageRecord, Source},
};

use super::raw_object;
use crate::{bindings::satchel::importer::types as wit, collect::RecordNotes};

/// Converts a conversation without its messages, which arrive separately.
pub(crate) fn conversation(conversation: wit::Conversation, notes: &mut RecordNotes) -> ConversationRecord {
    let wit::Conversation {
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
    ConversationRecord {
        id,
        provider_conversation_id,
        account,
        export_format_version,
        title,
        created_at,
        updated_at,
        participants: participants.into_iter().map(participant).collect(),
        model,
        system_instruction,
        is_archived,
        tags,
        current,
        raw_metadata: raw_object("raw_metadata", raw_metadata, notes),
        locator,
        messages: Vec::new(),
    }
}

pub(crate) fn message(message: wit::Message, notes: &mut RecordNotes) -> MessageRecord {
    let wit::Message {
        id,
        provider_message_id,
        role,
        content,
        created_at,
        parent,
        model,
        is_thought,
        token_count,
        attachments,
        citations,
        tool_calls,
        raw_metadata,
    } = message;
    MessageRecord {
        provider_message_id,
        role: role_from_wit(role),
        content: content.map(content_from_wit),
        created_at,
        parent,
        model,
        is_thought,
        token_count,
        attachments: attachments.into_iter().map(attachment).collect(),
        citations: citations.into_iter().map(citation).collect(),
        tool_calls: tool_calls.into_iter().map(|call| tool_call(call, notes)).collect(),
        raw_metadata: raw_object("raw_metadata", raw_metadata, notes),
        id,
    }
}

fn participant(participant: wit::Participant) -> Participant {
    let wit::Participant { role, name, provider_id } = participant;
    Participant { role: role_from_wit(role), name, provider_id }
}

fn role_from_wit(role: wit::Role) -> Role {
    match role {
        wit::Role::User => Role::User,
        wit::Role::Assistant => Role::Assistant,
        wit::Role::System => Role::System,
        wit::Role::Tool => Role::Tool,
    }
}

fn content_from_wit(content: wit::Content) -> Content {
    let wit::Content { kind, text, parts } = content;
    let kind = match kind {
        wit::ContentKind::Text => ContentKind::Text,
        wit::ContentKind::Multipart => ContentKind::Multipart,
    };
    Content { kind, text, parts: parts.into_iter().map(part).collect() }
}

fn part(part: wit::ContentPart) -> Part {
    let wit::ContentPart { kind, text, language, mime_type, ref_ } = part;
    let kind = match kind {
        wit::PartKind::Text => PartKind::Text,
        wit::PartKind::Image => PartKind::Image,
        wit::PartKind::Code => PartKind::Code,
        wit::PartKind::File => PartKind::File,
        wit::PartKind::Audio => PartKind::Audio,
        wit::PartKind::Video => PartKind::Video,
    };
    Part { kind, text, language, mime_type, reference: ref_ }
}

fn attachment(attachment: wit::Attachment) -> AttachmentRecord {
    let wit::Attachment { kind, name, mime_type, size_bytes, ref_, provider_id, source } = attachment;
    let kind = match kind {
        wit::AttachmentKind::File => AttachmentKind::File,
        wit::AttachmentKind::Image => AttachmentKind::Image,
        wit::AttachmentKind::Audio => AttachmentKind::Audio,
        wit::AttachmentKind::Video => AttachmentKind::Video,
        wit::AttachmentKind::Document => AttachmentKind::Document,
    };
    let source = source.map(|source| match source {
        wit::Source::Path(path) => Source::Path(path),
        wit::Source::Bytes(bytes) => Source::Bytes(bytes),
        wit::Source::Uri(uri) => Source::Uri(uri),
    });
    AttachmentRecord {
        attachment: Attachment { kind, name, mime_type, size_bytes, reference: ref_, provider_id },
        source,
    }
}

fn citation(citation: wit::Citation) -> Citation {
    let wit::Citation { title, url, snippet } = citation;
    Citation { title, url, snippet }
}

fn tool_call(call: wit::ToolCall, notes: &mut RecordNotes) -> ToolCall {
    let wit::ToolCall { id, name, input, output } = call;
    let input = input.and_then(|input| match input {
        wit::ToolInput::Text(text) => Some(ToolInput::Text(text)),
        wit::ToolInput::Object(text) => {
            raw_object("the input of a tool call", Some(text), notes).map(ToolInput::Object)
        }
    });
    ToolCall { id, name, input, output }
}
