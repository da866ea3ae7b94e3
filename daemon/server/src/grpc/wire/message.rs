//! Messages, the nodes of a conversation.

use prost::Message as _;
use satchel_pam::conversation::{
    Attachment, AttachmentKind, Citation, Content, ContentKind, Message, Part, PartKind, ToolCall, ToolInput,
};
use satchel_proto::{integers::signed, v1};

use super::{
    conversation::role_to_wire,
    memory::{MAX_ROW_BYTES, known_timestamp_to_wire},
    scalar::{enum_pair, truncate},
};

/// Length of all texts of an abridged message together, in bytes. The other half of a row is for the remaining fields.
const TRUNCATED_BYTES: usize = MAX_ROW_BYTES / 2;
/// Number of parts, files, sources, calls and children in an abridged message.
const TRUNCATED_ITEMS: usize = 1_000;

enum_pair!(part_kind_to_wire, part_kind_from_wire, PartKind, v1::PartKind, [
    Text => Text,
    Image => Image,
    Code => Code,
    File => File,
    Audio => Audio,
    Video => Video,
]);

enum_pair!(content_kind_to_wire, content_kind_from_wire, ContentKind, v1::ContentKind, [
    Text => Text,
    Multipart => Multipart,
]);

enum_pair!(attachment_kind_to_wire, attachment_kind_from_wire, AttachmentKind, v1::AttachmentKind, [
    File => File,
    Image => Image,
    Audio => Audio,
    Video => Video,
    Document => Document,
]);

/// Converts a message to the wire; the daemon's own fields stay empty.
#[must_use]
pub fn message_to_wire(message: Message) -> v1::Message {
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
    let mut wire = v1::Message {
        id,
        provider_message_id,
        role: role_to_wire(role),
        content: content.map(content_to_wire),
        created_at: known_timestamp_to_wire(created_at),
        parent_id,
        children_ids,
        model,
        is_thought,
        token_count: signed(token_count),
        attachments: attachments.into_iter().map(attachment_to_wire).collect(),
        citations: citations.into_iter().map(citation_to_wire).collect(),
        tool_calls: tool_calls.into_iter().map(call_to_wire).collect(),
        raw_metadata_json: raw_metadata.map(|raw| raw.as_str().to_owned()),
        hidden: false,
        on_active_branch: false,
        abridged: false,
    };
    abridge(&mut wire);
    wire
}

fn content_to_wire(content: Content) -> v1::Content {
    let Content { kind, text, parts } = content;
    v1::Content {
        kind: content_kind_to_wire(kind),
        text,
        parts: parts.into_iter().map(part_to_wire).collect(),
    }
}

fn part_to_wire(part: Part) -> v1::ContentPart {
    let Part { kind, text, language, mime_type, reference } = part;
    v1::ContentPart { kind: part_kind_to_wire(kind), text, language, mime_type, r#ref: reference }
}

fn attachment_to_wire(attachment: Attachment) -> v1::Attachment {
    let Attachment { kind, name, mime_type, size_bytes, reference, provider_id } = attachment;
    v1::Attachment {
        kind: attachment_kind_to_wire(kind),
        name,
        mime_type,
        size_bytes: signed(size_bytes),
        r#ref: reference,
        provider_id,
    }
}

fn citation_to_wire(citation: Citation) -> v1::Citation {
    let Citation { title, url, snippet } = citation;
    v1::Citation { title, url, snippet }
}

fn call_to_wire(call: ToolCall) -> v1::ToolCall {
    let ToolCall { id, name, input, output } = call;
    let input = input.map(|input| match input {
        ToolInput::Text(text) => v1::tool_call::Input::InputText(text),
        ToolInput::Object(object) => v1::tool_call::Input::InputJson(object.as_str().to_owned()),
    });
    v1::ToolCall { id, name, output, input }
}

/// Truncates a row that is too large, and marks it as abridged.
fn abridge(wire: &mut v1::Message) {
    if wire.encoded_len() <= MAX_ROW_BYTES {
        return;
    }
    wire.abridged = true;
    wire.raw_metadata_json = None;
    wire.children_ids.truncate(TRUNCATED_ITEMS);
    wire.attachments.truncate(TRUNCATED_ITEMS);
    wire.citations.truncate(TRUNCATED_ITEMS);
    wire.tool_calls.truncate(TRUNCATED_ITEMS);
    let mut budget = TRUNCATED_BYTES;
    let mut shorten = |text: &mut Option<String>| {
        *text = text.take().map(|text| truncate(text, budget));
        budget -= text.as_ref().map_or(0, String::len);
    };
    if let Some(content) = &mut wire.content {
        content.parts.truncate(TRUNCATED_ITEMS);
        shorten(&mut content.text);
        content.parts.iter_mut().for_each(|part| shorten(&mut part.text));
    }
    for call in &mut wire.tool_calls {
        // Truncated JSON is not valid JSON.
        call.input = match call.input.take() {
            Some(v1::tool_call::Input::InputText(text)) => {
                let mut text = Some(text);
                shorten(&mut text);
                text.map(v1::tool_call::Input::InputText)
            }
            Some(v1::tool_call::Input::InputJson(_)) | None => None,
        };
        shorten(&mut call.output);
    }
    wire.citations.iter_mut().for_each(|citation| shorten(&mut citation.snippet));
}

#[cfg(test)]
mod tests;
