//! Maps one message to records: its thoughts and other texts that are no part of the answer, and the message itself.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{Arena, Content, Message, Part, Role, address::unsigned_json};

use super::{
    AsideKind, calls, files,
    memory::{self, Dated},
    parts::Pieces,
};
use crate::raw::{self, Node};

/// The author of a message, and whether it says so.
pub(super) fn role(message: &raw::Message<'_>) -> (Role, bool) {
    match (message.by_user, message.sender) {
        (Some(true), _) => (Role::User, true),
        (Some(false), _) => (Role::Assistant, true),
        (None, Some(sender)) if sender.eq_ignore_ascii_case("user") => (Role::User, true),
        (None, _) => (Role::Assistant, false),
    }
}

/// What is noted while messages are mapped.
#[derive(Debug, Default)]
pub(super) struct Noted<'a> {
    /// Types of parts that are not known.
    pub(super) unknown: BTreeSet<&'a str>,
    pub(super) memories: Vec<Dated<'a>>,
}

/// Appends the messages of a node. Returns false if it does not say who wrote it.
pub(super) fn map<'a>(
    node: Node<'a>,
    parent: Option<&'a str>,
    arena: &'a Arena,
    messages: &mut Vec<Message<'a>>,
    noted: &mut Noted<'a>,
) -> bool {
    let Node { key, id, message, .. } = node;
    let Some(mut raw) = message else { return true };
    let (role, known) = role(&raw);
    let mut pieces = Pieces::read(&mut raw, role == Role::Assistant, &mut noted.unknown, arena);
    for (field, value) in std::mem::take(&mut raw.plugins) {
        calls::read_plugins(field, value, &mut pieces.calls, &mut raw.rest, arena);
    }
    for (field, list) in [("files", raw.files), ("attachments", raw.attachments)] {
        let changes = files::read(field, list, &mut pieces, &mut raw.rest, arena);
        let dated = |change: memory::Change<'a>| Dated { change, message: key, at: raw.created };
        noted.memories.extend(changes.into_iter().map(dated));
    }
    if let Some(json) = pieces.remaining_json() {
        raw.rest.add_json("pieces", &json);
    }
    let parent = push_before(key, parent, &raw, pieces.before, messages);
    messages.push(Message {
        id: key.into(),
        provider_message_id: id.map(Cow::Borrowed),
        role,
        content: content(pieces.texts),
        created_at: raw.created,
        parent,
        model: raw.model.map(Cow::Borrowed),
        token_count: raw.tokens,
        attachments: pieces.attachments,
        citations: pieces.citations,
        tool_calls: pieces.calls,
        unread: raw.rest.unread().map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    });
    known
}

/// Appends the texts that come before a message, each below the one before; returns the parent of the message.
fn push_before<'a>(
    key: &str,
    parent: Option<&'a str>,
    raw: &raw::Message<'a>,
    before: Vec<(AsideKind, Cow<'a, str>)>,
    messages: &mut Vec<Message<'a>>,
) -> Option<Cow<'a, str>> {
    let mut parent = parent.map(Cow::Borrowed);
    let mut numbers = BTreeMap::new();
    for (kind, text) in before {
        let number = numbers.entry(kind.word()).or_insert(0_usize);
        let id: Cow<'a, str> = format!("{key}:{}:{number}", kind.word()).into();
        *number += 1;
        let is_thought = kind == AsideKind::Thought;
        messages.push(Message {
            parent: parent.replace(id.clone()),
            id,
            role: kind.role(),
            content: Some(Content::Text(text)),
            created_at: raw.created,
            model: raw.model.filter(|_| is_thought).map(Cow::Borrowed),
            is_thought,
            ..Message::default()
        });
    }
    parent
}

fn content(mut texts: Vec<Cow<'_, str>>) -> Option<Content<'_>> {
    if texts.len() <= 1 {
        return texts.pop().map(Content::Text);
    }
    let part = |text| Part { text: Some(text), ..Part::default() };
    Some(Content::Multipart(texts.into_iter().map(part).collect()))
}
