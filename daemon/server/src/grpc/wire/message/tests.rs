//! Tests of round trips and truncation of messages.

use proptest::{collection::vec, option, prelude::*, sample::select};
use satchel_pam::{conversation::Role, raw::RawObject, time::Timestamp};
use satchel_proto::integers::unsigned;

use super::*;
use crate::grpc::wire::{
    WireError,
    conversation::role_from_wire,
    memory::not_empty,
    testing::{known_timestamp_from_wire, raw_from_wire},
};

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(".{1,12}")
}

fn object() -> impl Strategy<Value = RawObject> {
    select(vec!["{}", r#"{"a":[1,null]}"#, r#"{"b":1.50,"b2":"é"}"#])
        .prop_map(|text| RawObject::parse(text.to_owned()).unwrap_or_default())
}

fn content() -> impl Strategy<Value = Content> {
    let part = (select(PartKind::ALL), text(), text(), text(), text()).prop_map(
        |(kind, text, language, mime_type, reference)| Part { kind, text, language, mime_type, reference },
    );
    (select(ContentKind::ALL), text(), vec(part, 0..3)).prop_map(|(kind, text, parts)| Content {
        kind,
        text,
        parts,
    })
}

fn attachment() -> impl Strategy<Value = Attachment> {
    (select(AttachmentKind::ALL), text(), text(), option::of(0..=i64::MAX.unsigned_abs()), text(), text())
        .prop_map(|(kind, name, mime_type, size_bytes, reference, provider_id)| Attachment {
            kind,
            name,
            mime_type,
            size_bytes,
            reference,
            provider_id,
        })
}

fn call() -> impl Strategy<Value = ToolCall> {
    let input = prop_oneof![".{0,8}".prop_map(ToolInput::Text), object().prop_map(ToolInput::Object)];
    (text(), ".{1,8}", option::of(input), text()).prop_map(|(id, name, input, output)| ToolCall {
        id,
        name,
        input,
        output,
    })
}

fn message() -> impl Strategy<Value = Message> {
    let citation =
        (text(), text(), text()).prop_map(|(title, url, snippet)| Citation { title, url, snippet });
    let head = (".{1,12}", text(), select(Role::ALL), option::of(content()), 0..4_000_000_000_000_000_i64);
    let tree = (text(), vec(".{1,6}", 0..3), text(), any::<bool>(), option::of(0..=i64::MAX.unsigned_abs()));
    let rest = (vec(attachment(), 0..3), vec(citation, 0..3), vec(call(), 0..3), option::of(object()));
    (head, tree, rest).prop_map(|(head, tree, rest)| Message {
        id: head.0,
        provider_message_id: head.1,
        role: head.2,
        content: head.3,
        created_at: Timestamp::from_micros(head.4).unwrap_or(Timestamp::EPOCH),
        parent_id: tree.0,
        children_ids: tree.1,
        model: tree.2,
        is_thought: tree.3,
        token_count: tree.4,
        attachments: rest.0,
        citations: rest.1,
        tool_calls: rest.2,
        raw_metadata: rest.3,
    })
}

proptest! {
    #[test]
    fn a_message_survives_a_round_trip(message in message()) {
        prop_assert_eq!(message_from_wire(message_to_wire(message.clone())), Ok(message));
    }

    #[test]
    fn any_message_fits_in_a_row(message in message(), lengths in vec(0..900_000_usize, 4)) {
        let long = |index: usize| "x".repeat(lengths[index]);
        let call = ToolCall {
            id: None,
            name: "run".to_owned(),
            input: Some(ToolInput::Text(long(1))),
            output: Some(long(2)),
        };
        let citation = Citation { snippet: Some(long(3)), ..Citation::default() };
        let message = Message {
            content: Some(Content::text(long(0))),
            tool_calls: vec![call],
            citations: vec![citation],
            ..message
        };
        let shown = message_to_wire(message.clone());
        prop_assert!(shown.encoded_len() <= MAX_ROW_BYTES);
        prop_assert!(shown.abridged || message_from_wire(shown) == Ok(message));
    }
}

#[test]
fn an_abridged_message_is_refused() {
    let wire = v1::Message { abridged: true, ..v1::Message::default() };
    assert_eq!(message_from_wire(wire).err().map(|error| error.field), Some("abridged".to_owned()));
}

/// Reads a message from the wire.
fn message_from_wire(wire: v1::Message) -> Result<Message, WireError> {
    let v1::Message {
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
        raw_metadata_json,
        hidden: _,
        on_active_branch: _,
        abridged,
    } = wire;
    if abridged {
        return Err(WireError::new("abridged", "is set, so the message is incomplete"));
    }
    Ok(Message {
        id: not_empty("id", id)?,
        provider_message_id,
        role: role_from_wire("role", role)?,
        content: content.map(content_from_wire).transpose()?,
        created_at: known_timestamp_from_wire("created_at", created_at)?,
        parent_id,
        children_ids,
        model,
        is_thought,
        token_count: unsigned(token_count),
        attachments: attachments.into_iter().map(attachment_from_wire).collect::<Result<_, _>>()?,
        citations: citations.into_iter().map(citation_from_wire).collect(),
        tool_calls: tool_calls.into_iter().map(call_from_wire).collect::<Result<_, _>>()?,
        raw_metadata: raw_from_wire("raw_metadata_json", raw_metadata_json)?,
    })
}

fn content_from_wire(wire: v1::Content) -> Result<Content, WireError> {
    let v1::Content { kind, text, parts } = wire;
    Ok(Content {
        kind: content_kind_from_wire("content.kind", kind)?,
        text,
        parts: parts.into_iter().map(part_from_wire).collect::<Result<_, _>>()?,
    })
}

fn part_from_wire(wire: v1::ContentPart) -> Result<Part, WireError> {
    let v1::ContentPart { kind, text, language, mime_type, r#ref } = wire;
    Ok(Part {
        kind: part_kind_from_wire("content.parts.kind", kind)?,
        text,
        language,
        mime_type,
        reference: r#ref,
    })
}

fn attachment_from_wire(wire: v1::Attachment) -> Result<Attachment, WireError> {
    let v1::Attachment { kind, name, mime_type, size_bytes, r#ref, provider_id } = wire;
    let kind = attachment_kind_from_wire("attachments.kind", kind)?;
    Ok(Attachment { kind, name, mime_type, size_bytes: unsigned(size_bytes), reference: r#ref, provider_id })
}

fn citation_from_wire(wire: v1::Citation) -> Citation {
    let v1::Citation { title, url, snippet } = wire;
    Citation { title, url, snippet }
}

fn call_from_wire(wire: v1::ToolCall) -> Result<ToolCall, WireError> {
    let v1::ToolCall { id, name, output, input } = wire;
    let input = match input {
        None => None,
        Some(v1::tool_call::Input::InputText(text)) => Some(ToolInput::Text(text)),
        Some(v1::tool_call::Input::InputJson(json)) => {
            raw_from_wire("tool_calls.input_json", Some(json))?.map(ToolInput::Object)
        }
    };
    Ok(ToolCall { id, name, input, output })
}
