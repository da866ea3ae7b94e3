//! Maps one message of the export to a record.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, Leftover, Message, Role,
    address::unsigned_json,
    json::{Object, Value},
};

use crate::{layout::Folders, raw};

mod chunks;
mod files;
mod sources;

/// A message, its files and a warning about it.
pub(crate) struct Mapped<'a> {
    pub(crate) message: Message<'a>,
    /// Paths of its files in the export.
    pub(crate) files: Vec<&'a str>,
    pub(crate) warning: Option<&'static str>,
}

/// Maps one message; its id and parent come from the order of the chat.
pub(crate) fn message<'a>(
    mut raw: raw::Message<'a>,
    id: &'a str,
    parent: Option<&'a str>,
    folders: &Folders<'a>,
    arena: &'a Arena,
) -> Mapped<'a> {
    let role = raw.role.and_then(role);
    let warning = role.is_none().then_some("it does not say who speaks; it is read as the assistant's");
    if let (Some(name), None) = (raw.role, role) {
        raw.rest.add_text("role", name);
    }
    let mut parts = chunks::Parts::default();
    for chunk in std::mem::take(&mut raw.chunks) {
        parts.add(chunk, folders, arena);
    }
    let mut attachments = std::mem::take(&mut parts.attachments);
    for (key, list) in [
        ("canvas", files::canvases(&raw.canvas, &mut attachments, arena)),
        ("files", files::files(&raw.files, &mut attachments, folders, arena)),
        ("contentChunks", parts.remaining_json()),
    ] {
        if let Some(list) = list {
            raw.rest.add_json(key, &list);
        }
    }
    let text = text(&parts, raw.content, &mut raw.rest);
    let message = Message {
        id: id.into(),
        provider_message_id: raw.id.map(Cow::Borrowed),
        role: role.unwrap_or(Role::Assistant),
        content: text.map(Content::Text),
        created_at: raw.created,
        parent: parent.map(Cow::Borrowed),
        model: raw.model.map(Cow::Borrowed),
        citations: parts.sources.cited(&parts.cited),
        tool_calls: parts.calls,
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        attachments: attachments.iter().map(|(attachment, _)| attachment.clone()).collect(),
        ..Message::default()
    };
    Mapped { message, files: attachments.into_iter().filter_map(|(_, path)| path).collect(), warning }
}

/// The text of the chunks, else the flat copy, which is kept if it differs.
fn text<'a>(
    parts: &chunks::Parts<'a>,
    content: Option<&'a str>,
    rest: &mut Leftover<'a>,
) -> Option<Cow<'a, str>> {
    let content = content.filter(|text| !text.is_empty());
    let of_chunks = parts.text();
    if let (Some(of_chunks), Some(content)) = (&of_chunks, content)
        && of_chunks != content
    {
        rest.add_text("content", content);
    }
    of_chunks.or(content.map(Cow::Borrowed))
}

fn role(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" => Some(Role::System),
        "tool" => Some(Role::Tool),
        _ => None,
    }
}

/// The object of a value; one without fields if it is none.
fn object<'a>(value: Value<'a>, arena: &'a Arena) -> Object<'a> {
    value.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default()
}
