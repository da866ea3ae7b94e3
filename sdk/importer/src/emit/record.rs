//! Converts emitted conversations to `satchel_pam::record`, for the native sink.

use std::borrow::Cow;

use satchel_pam::{
    conversation as pam,
    raw::RawObject,
    record::{AttachmentRecord, ConversationRecord, MessageRecord, Source as SourceRecord},
};

use super::{
    Attachment, AttachmentKind, Citation, Content, Conversation, Message, Part, PartKind, Participant, Role,
    Source, ToolCall, ToolInput,
};
use crate::ImportError;

pub(crate) fn conversation_to_record(
    conversation: &Conversation,
    messages: &[Message],
) -> Result<ConversationRecord, ImportError> {
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
    Ok(ConversationRecord {
        id: id.to_string(),
        provider_conversation_id: owned(provider_conversation_id.as_ref()),
        account: owned(account.as_ref()),
        export_format_version: owned(export_format_version.as_ref()),
        title: owned(title.as_ref()),
        created_at: *created_at,
        updated_at: *updated_at,
        participants: participants.iter().map(participant_to_record).collect(),
        model: owned(model.as_ref()),
        system_instruction: owned(system_instruction.as_ref()),
        is_archived: *is_archived,
        tags: tags.iter().map(ToString::to_string).collect(),
        current: owned(current.as_ref()),
        raw_metadata: raw_object(raw_metadata.as_ref(), "raw_metadata", locator)?,
        locator: locator.to_string(),
        messages: messages_to_records(messages)?,
    })
}

pub(crate) fn messages_to_records(messages: &[Message]) -> Result<Vec<MessageRecord>, ImportError> {
    messages.iter().map(message_to_record).collect()
}

fn message_to_record(message: &Message) -> Result<MessageRecord, ImportError> {
    let Message {
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
        // The sink emits a warning for it.
        unread: _,
    } = message;
    Ok(MessageRecord {
        id: id.to_string(),
        provider_message_id: owned(provider_message_id.as_ref()),
        role: role_to_record(*role),
        content: content.as_ref().map(content_to_record),
        created_at: *created_at,
        parent: owned(parent.as_ref()),
        model: owned(model.as_ref()),
        is_thought: *is_thought,
        token_count: *token_count,
        attachments: attachments.iter().map(attachment_to_record).collect(),
        citations: citations.iter().map(citation_to_record).collect(),
        tool_calls: tool_calls.iter().map(|call| tool_call_to_record(call, id)).collect::<Result<_, _>>()?,
        raw_metadata: raw_object(raw_metadata.as_ref(), "raw_metadata", id)?,
    })
}

fn participant_to_record(participant: &Participant) -> pam::Participant {
    let Participant { role, name, provider_id } = participant;
    pam::Participant {
        role: role_to_record(*role),
        name: owned(name.as_ref()),
        provider_id: owned(provider_id.as_ref()),
    }
}

fn role_to_record(role: Role) -> pam::Role {
    match role {
        Role::User => pam::Role::User,
        Role::Assistant => pam::Role::Assistant,
        Role::System => pam::Role::System,
        Role::Tool => pam::Role::Tool,
    }
}

fn content_to_record(content: &Content) -> pam::Content {
    match content {
        Content::Text(text) => pam::Content::text(text.as_ref()),
        Content::Multipart(parts) => pam::Content::multipart(parts.iter().map(part_to_record).collect()),
    }
}

fn part_to_record(part: &Part) -> pam::Part {
    let Part { kind, text, language, mime_type, reference } = part;
    pam::Part {
        kind: match kind {
            PartKind::Text => pam::PartKind::Text,
            PartKind::Image => pam::PartKind::Image,
            PartKind::Code => pam::PartKind::Code,
            PartKind::File => pam::PartKind::File,
            PartKind::Audio => pam::PartKind::Audio,
            PartKind::Video => pam::PartKind::Video,
        },
        text: owned(text.as_ref()),
        language: owned(language.as_ref()),
        mime_type: owned(mime_type.as_ref()),
        reference: owned(reference.as_ref()),
    }
}

fn attachment_to_record(attachment: &Attachment) -> AttachmentRecord {
    let Attachment { kind, name, mime_type, size_bytes, reference, provider_id, source } = attachment;
    let attachment = pam::Attachment {
        kind: match kind {
            AttachmentKind::File => pam::AttachmentKind::File,
            AttachmentKind::Image => pam::AttachmentKind::Image,
            AttachmentKind::Audio => pam::AttachmentKind::Audio,
            AttachmentKind::Video => pam::AttachmentKind::Video,
            AttachmentKind::Document => pam::AttachmentKind::Document,
        },
        name: owned(name.as_ref()),
        mime_type: owned(mime_type.as_ref()),
        size_bytes: *size_bytes,
        reference: owned(reference.as_ref()),
        provider_id: owned(provider_id.as_ref()),
    };
    let source = source.as_ref().map(|source| match source {
        Source::Path(path) => SourceRecord::Path(path.to_string()),
        Source::Bytes(bytes) => SourceRecord::Bytes(bytes.to_vec()),
        Source::Uri(uri) => SourceRecord::Uri(uri.to_string()),
    });
    AttachmentRecord { attachment, source }
}

fn citation_to_record(citation: &Citation) -> pam::Citation {
    let Citation { title, url, snippet } = citation;
    pam::Citation { title: owned(title.as_ref()), url: owned(url.as_ref()), snippet: owned(snippet.as_ref()) }
}

fn tool_call_to_record(call: &ToolCall, message: &str) -> Result<pam::ToolCall, ImportError> {
    let ToolCall { id, name, input, output } = call;
    let input = match input {
        Some(ToolInput::Text(text)) => Some(pam::ToolInput::Text(text.to_string())),
        Some(ToolInput::Object(object)) => {
            raw_object(Some(object), "the input of a tool call", message)?.map(pam::ToolInput::Object)
        }
        None => None,
    };
    Ok(pam::ToolCall {
        id: owned(id.as_ref()),
        name: name.to_string(),
        input,
        output: owned(output.as_ref()),
    })
}

fn owned(text: Option<&Cow<str>>) -> Option<String> {
    text.map(ToString::to_string)
}

/// An invalid object is an error of the importer. It ends the run, as it does in the host.
fn raw_object(text: Option<&Cow<str>>, field: &str, locator: &str) -> Result<Option<RawObject>, ImportError> {
    let parse = |text: &Cow<str>| {
        let fault = |error| ImportError::internal(format!("{field} {error}")).at(locator);
        RawObject::parse(text.to_string()).map_err(fault)
    };
    text.map(parse).transpose()
}
