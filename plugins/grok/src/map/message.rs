//! Maps one response to a message, and each of its thoughts to another.

use std::borrow::Cow;

use satchel_importer::{Arena, Message, Role, address::unsigned_json};

use super::{calls, cards::Cards, citations, files::Files, markup, thoughts};
use crate::{assets::Assets, raw::Response};

/// The role of a sender; none if it is not known.
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

/// Maps one response; its thoughts come first, each the parent of the next.
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
    let query = raw.query.nonempty_text().filter(|_| role == Role::User);
    let text = raw.message.filter(|message| !message.is_empty()).or(query);
    let parsed = markup::parse(text.unwrap_or_default(), raw.thinking);
    let mut files = Files::new(assets, arena);
    files.add(raw.files, None);
    files.add(raw.images, Some("image"));
    files.add(raw.edited, Some("image"));
    files.add(raw.generated, Some("image"));
    cards.attach_images(&mut files);
    parsed.artifacts.iter().for_each(|artifact| files.add_artifact(artifact));
    let citations = citations::read(&raw, &cards, &parsed.cards, arena);
    let tool_calls = calls::read(raw.steps, arena);
    let lost_parent = raw.parent.filter(|key| parent.as_deref() != Some(*key));
    let parent = thoughts::add(&mut raw, &id, role, parent, arena, messages);
    keep_rest(&mut raw, parsed.changed.then_some(text).flatten(), lost_parent, &cards);
    messages.push(Message {
        id,
        provider_message_id: raw.id.map(Cow::Borrowed),
        role,
        content: parsed.content(),
        created_at: raw.created,
        parent,
        model: model(&raw).map(Cow::Borrowed),
        attachments: files.attachments,
        citations,
        tool_calls,
        unread: raw.rest.unread().map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    });
}

/// The model that answered, else the one that the person picked.
fn model<'a>(raw: &Response<'a>) -> Option<&'a str> {
    let sender = raw.sender.filter(|sender| sender.starts_with("grok-"));
    raw.resolved.or(raw.model).or(sender)
}

/// Keeps the values that the fields of the message do not have.
fn keep_rest<'a>(
    raw: &mut Response<'a>,
    original: Option<&'a str>,
    lost_parent: Option<&'a str>,
    cards: &Cards<'a>,
) {
    let sender = raw.sender.filter(|sender| !matches!(*sender, "human" | "assistant"));
    let picked = raw.model.filter(|picked| model(raw) != Some(*picked));
    let texts =
        [("sender", sender), ("model", picked), ("message", original), ("parent_response_id", lost_parent)];
    for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text?))) {
        raw.rest.add_text(key, text);
    }
    if let Some(cards) = cards.to_json() {
        raw.rest.add_json("card_attachments_json", &cards);
    }
}
