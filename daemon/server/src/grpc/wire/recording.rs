//! Messages to be recorded.

use satchel_core::recording::{MAX_MESSAGES_PER_CALL, NewMessage};
use satchel_pam::conversation::{Content, ContentKind, Part};
use satchel_proto::v1;

use super::{
    WireError, conversation::role_from_wire, message::part_kind_from_wire, scalar::optional_time_from_wire,
};

/// Reads the messages of a call.
///
/// # Errors
/// Too many messages, unknown roles and kinds of parts, texts beside parts, and times that cannot be read.
pub fn messages_from_wire(wire: Vec<v1::NewMessage>) -> Result<Vec<NewMessage>, WireError> {
    if wire.len() > MAX_MESSAGES_PER_CALL {
        let problem = format!(
            "has {} messages, at most {MAX_MESSAGES_PER_CALL} are allowed in one call; append the others with further calls",
            wire.len()
        );
        return Err(WireError::new("messages", problem));
    }
    let message = |(at, message)| {
        message_from_wire(message).map_err(|error| error.in_field(&format!("messages[{at}]")))
    };
    wire.into_iter().enumerate().map(message).collect()
}

fn message_from_wire(wire: v1::NewMessage) -> Result<NewMessage, WireError> {
    let v1::NewMessage { role, text, parts, created_at, name, model, client_id } = wire;
    let content = if parts.is_empty() {
        Content { kind: ContentKind::Text, text: Some(text), parts: Vec::new() }
    } else if text.is_empty() {
        let part = |(at, part)| {
            part_from_wire(part).map_err(|error: WireError| error.in_field(&format!("parts[{at}]")))
        };
        let parts = parts.into_iter().enumerate().map(part).collect::<Result<_, _>>()?;
        Content { kind: ContentKind::Multipart, text: None, parts }
    } else {
        return Err(WireError::new("text", "must be empty if the message has parts"));
    };
    Ok(NewMessage {
        role: role_from_wire("role", role)?,
        content,
        created_at: optional_time_from_wire("created_at", created_at)?,
        name,
        model,
        client_id,
    })
}

fn part_from_wire(wire: v1::ContentPart) -> Result<Part, WireError> {
    let v1::ContentPart { kind, text, language, mime_type, r#ref } = wire;
    Ok(Part { kind: part_kind_from_wire("kind", kind)?, text, language, mime_type, reference: r#ref })
}

#[cfg(test)]
mod tests {
    use satchel_pam::conversation::{PartKind, Role};

    use super::*;

    fn message() -> v1::NewMessage {
        v1::NewMessage { role: v1::Role::User.into(), text: "x".to_owned(), ..v1::NewMessage::default() }
    }

    #[test]
    fn every_field_is_read() {
        let created_at = Some(prost_types::Timestamp { seconds: 1, nanos: 2_000 });
        let part = v1::ContentPart {
            kind: v1::PartKind::Code.into(),
            text: Some("fn".to_owned()),
            language: Some("rust".to_owned()),
            mime_type: Some("text/rust".to_owned()),
            r#ref: Some("https://example.org".to_owned()),
        };
        let wire = v1::NewMessage {
            text: String::new(),
            parts: vec![part],
            created_at,
            name: "n".to_owned(),
            model: "m".to_owned(),
            client_id: "c".to_owned(),
            ..message()
        };
        let part = Part {
            kind: PartKind::Code,
            text: Some("fn".to_owned()),
            language: Some("rust".to_owned()),
            mime_type: Some("text/rust".to_owned()),
            reference: Some("https://example.org".to_owned()),
        };
        let expected = NewMessage {
            role: Role::User,
            content: Content { kind: ContentKind::Multipart, text: None, parts: vec![part] },
            created_at: Some(1_000_002),
            name: "n".to_owned(),
            model: "m".to_owned(),
            client_id: "c".to_owned(),
        };
        assert_eq!(messages_from_wire(vec![wire]), Ok(vec![expected]));
    }

    #[test]
    fn errors_name_the_message_and_its_field() {
        let field = |bad: v1::NewMessage| {
            let read = messages_from_wire(vec![message(), bad]);
            read.map_err(|error| error.field).err().unwrap_or_default()
        };
        assert_eq!(field(v1::NewMessage { role: 0, ..message() }), "messages[1].role");
        let part = v1::ContentPart::default();
        assert_eq!(field(v1::NewMessage { parts: vec![part.clone()], ..message() }), "messages[1].text");
        let parts = v1::NewMessage { parts: vec![part], text: String::new(), ..message() };
        assert_eq!(field(parts), "messages[1].parts[0].kind");
        let created_at = Some(prost_types::Timestamp { seconds: 1, nanos: 1 });
        assert_eq!(field(v1::NewMessage { created_at, ..message() }), "messages[1].created_at");
    }
}
