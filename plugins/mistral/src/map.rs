//! From one message of the provider to one of ours. Pure: raw → PAM.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, Message, Role,
    address::unsigned_json,
    json::{Object, Value},
};

use crate::{layout::Folders, raw};

mod chunks;
mod files;
mod sources;

/// A message, and what was odd about it.
pub(crate) struct Mapped<'a> {
    pub(crate) message: Message<'a>,
    /// Paths of the files that it has.
    pub(crate) used: Vec<&'a str>,
    pub(crate) warning: Option<&'static str>,
}

/// Maps one message, whose id and parent are known from the order of the chat.
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
    let mut speech = chunks::Speech::default();
    for chunk in std::mem::take(&mut raw.chunks) {
        speech.add(chunk, folders, arena);
    }
    let mut attachments = std::mem::take(&mut speech.attachments);
    for (key, list) in [
        ("canvas", files::canvases(&raw.canvas, &mut attachments, arena)),
        ("files", files::files(&raw.files, &mut attachments, folders, arena)),
        ("contentChunks", speech.kept()),
    ] {
        if let Some(list) = list {
            raw.rest.add_json(key, &list);
        }
    }
    let text = text(&speech, raw.content, &mut raw.rest);
    let citations = speech.citations();
    let message = Message {
        id: id.into(),
        provider_message_id: raw.id.map(Cow::Borrowed),
        role: role.unwrap_or(Role::Assistant),
        content: text.map(Content::Text),
        created_at: raw.created,
        parent: parent.map(Cow::Borrowed),
        model: raw.model.map(Cow::Borrowed),
        citations,
        tool_calls: speech.calls,
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        attachments: attachments.iter().map(|(attachment, _)| attachment.clone()).collect(),
        ..Message::default()
    };
    Mapped { message, used: attachments.into_iter().filter_map(|(_, path)| path).collect(), warning }
}

/// The chunks speak; the flat copy does where they say nothing, and is kept where it says something else.
fn text<'a>(
    speech: &chunks::Speech<'a>,
    content: Option<&'a str>,
    rest: &mut satchel_importer::Leftover<'a>,
) -> Option<Cow<'a, str>> {
    let content = content.filter(|text| !text.is_empty());
    let spoken = speech.text();
    if let (Some(spoken), Some(content)) = (&spoken, content)
        && spoken != content
    {
        rest.add_text("content", content);
    }
    spoken.or(content.map(Cow::Borrowed))
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

/// The object that a value is; one without fields if it is none.
fn object<'a>(value: Value<'a>, arena: &'a Arena) -> Object<'a> {
    value.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default()
}

/// The JSON text of a list; none if it is empty.
fn list(items: &[Cow<'_, str>]) -> Option<String> {
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}
