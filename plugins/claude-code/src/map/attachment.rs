//! What the program attaches to a conversation, and files inside of lines.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use satchel_importer::{
    Arena, Attachment, AttachmentKind, Leftover, Parser, Role, Source,
    address::{is_uri, unsigned},
    json::{Object, Value},
};

use super::blocks::Parts;
use crate::raw::{Line, blocks};

/// The largest file inside a line, in bytes. The host accepts no larger one; its text stays in the message's metadata.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// A text that the person typed while the model worked.
const QUEUED: &str = "queued_command";

/// Adds an `attachment`; returns the role of what it says.
pub(super) fn add<'a>(raw: &'a str, line: &mut Line<'a>, parts: &mut Parts<'a>, arena: &'a Arena) -> Role {
    let attachment = Object::parse(raw, arena);
    if attachment.text("type") != Some(QUEUED) {
        // Reminders, lists of tools and the like, which the person does not see.
        line.hidden = true;
        let known = attachment.text("type").is_some();
        if !known {
            line.rest.note_unknown("attachment", Value::Raw(raw));
        }
        line.rest.add_json("attachment", raw);
        return Role::System;
    }
    let read = match attachment.get("prompt") {
        Value::Text(text) => {
            parts.add_text(text);
            true
        }
        Value::Raw(list) => add_blocks(list, parts, arena),
        Value::Null => false,
    };
    let mut rest = Leftover::default();
    for (key, value) in attachment.fields().filter(|(key, _)| !(read && *key == "prompt")) {
        if key != "type" {
            rest.note_unknown(key, value);
        }
        rest.add_json(key, &value.json());
    }
    parts.unread = parts.unread.or(rest.unread());
    line.rest.add_json("attachment", &rest.into_json().unwrap_or("{}".into()));
    Role::User
}

/// Adds a list of blocks; false if it is none.
fn add_blocks<'a>(list: &'a str, parts: &mut Parts<'a>, arena: &'a Arena) -> bool {
    let mut json = Parser::new(list, arena);
    let Ok(Ok(blocks)) = blocks(&mut json) else { return false };
    for (index, block) in blocks.into_iter().enumerate() {
        parts.add(index, block, false, arena);
    }
    true
}

/// The file that a `source` holds or names.
pub(super) fn of_source<'a>(source: &Object<'a>, name: Option<&'a str>) -> Option<Attachment<'a>> {
    let mime = source.text("media_type");
    let found = match (source.text("type"), source.text("data"), source.text("url")) {
        (Some("text"), Some(text), _) if text.len() <= MAX_BYTES => Source::Bytes(text.as_bytes().into()),
        (kind, Some(data), _) if kind != Some("text") && data.len() / 4 * 3 <= MAX_BYTES => {
            Source::Bytes(STANDARD.decode(data.trim()).ok()?.into())
        }
        (_, None, Some(address)) if is_uri(address) => Source::Uri(unsigned(address)),
        _ => return None,
    };
    Some(Attachment {
        kind: AttachmentKind::of(mime, name),
        name: name.map(Cow::Borrowed),
        mime_type: mime.map(Cow::Borrowed),
        source: Some(found),
        ..Attachment::default()
    })
}
