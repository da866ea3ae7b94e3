//! From one response of the provider to a message of ours, and to one for each of its thoughts.

use std::borrow::Cow;

use satchel_importer::{Arena, Content, Message, Role, address::unsigned_json};

use super::{calls, cards::Cards, citations, files::Files, marks, thoughts};
use crate::{assets::Assets, raw::Response};

/// Our role of a sender's name; none if it names nobody known.
pub(super) fn role(sender: Option<&str>) -> Option<Role> {
    let sender = sender?.trim().to_ascii_lowercase();
    match sender.as_str() {
        "human" | "user" => Some(Role::User),
        "assistant" | "model" | "grok" => Some(Role::Assistant),
        "system" => Some(Role::System),
        "tool" => Some(Role::Tool),
        _ if sender.starts_with("grok-") => Some(Role::Assistant),
        _ => None,
    }
}

/// Maps one response; its thoughts come first, each answering the one before.
pub(super) fn map<'a>(
    mut raw: Response<'a>,
    id: Cow<'a, str>,
    parent: Option<Cow<'a, str>>,
    assets: &'a Assets<'a>,
    arena: &'a Arena,
    messages: &mut Vec<Message<'a>>,
) {
    let role = role(raw.sender).unwrap_or(Role::Assistant);
    let cards = Cards::read(raw.cards, arena);
    let asked = raw.query.words().filter(|_| role == Role::User);
    let said = raw.message.filter(|message| !message.is_empty()).or(asked);
    let marked = marks::resolve(said.unwrap_or_default(), raw.thinking);
    let mut files = Files::new(assets, arena);
    files.add(raw.files, None);
    files.add(raw.images, Some("image"));
    files.add(raw.edited, Some("image"));
    files.add(raw.generated, Some("image"));
    cards.show(&mut files);
    marked.artifacts.iter().for_each(|artifact| files.artifact(artifact));
    let citations = citations::read(&raw, &cards, &marked.cards, arena);
    let tool_calls = calls::read(raw.steps, arena);
    let parent_named = raw.parent.filter(|named| parent.as_deref() != Some(*named));
    let parent = thoughts::add(&mut raw, &id, role, parent, arena, messages);
    keep(&mut raw, marked.changed.then_some(said).flatten(), parent_named, &cards);
    messages.push(Message {
        id,
        provider_message_id: raw.id.map(Cow::Borrowed),
        role,
        content: marked.content(),
        created_at: raw.created,
        parent,
        model: model(&raw).map(Cow::Borrowed),
        attachments: files.finish(),
        citations,
        tool_calls,
        unread: raw.rest.unread().map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    });
}

/// The real model, where the export tells more than what was picked.
fn model<'a>(raw: &Response<'a>) -> Option<&'a str> {
    let sender = raw.sender.filter(|sender| sender.starts_with("grok-"));
    raw.resolved.or(raw.model).or(sender)
}

/// Keeps what was taken and is not told by the message's own fields.
fn keep<'a>(
    raw: &mut Response<'a>,
    original: Option<&'a str>,
    parent_named: Option<&'a str>,
    cards: &Cards<'a>,
) {
    if let Some(sender) = raw.sender.filter(|sender| !matches!(*sender, "human" | "assistant")) {
        raw.rest.add_text("sender", sender);
    }
    if let Some(picked) = raw.model.filter(|picked| model(raw) != Some(*picked)) {
        raw.rest.add_text("model", picked);
    }
    if let Some(original) = original {
        raw.rest.add_text("message", original);
    }
    if let Some(parent) = parent_named {
        raw.rest.add_text("parent_response_id", parent);
    }
    if let Some(cards) = cards.kept() {
        raw.rest.add_json("card_attachments_json", &cards);
    }
}

/// The content of a list of pieces.
pub(super) fn content(mut parts: Vec<satchel_importer::Part<'_>>) -> Option<Content<'_>> {
    use satchel_importer::PartKind;
    match parts.as_mut_slice() {
        [] => None,
        [part] if part.kind == PartKind::Text => part.text.take().map(Content::Text),
        _ => Some(Content::Multipart(parts)),
    }
}
