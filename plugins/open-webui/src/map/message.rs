//! Maps one message to records: each of its thoughts, the message itself, and an answer that was merged from several.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, JsonError, Leftover, Message, Parser, Role, address::unsigned_json, json::Value,
};

use super::{files, pieces::Pieces, sources};
use crate::raw::{self, Node};

/// The role that a word names, and whether it is known.
pub(super) fn role(word: Option<&str>) -> (Role, bool) {
    match word.map(str::to_ascii_lowercase).as_deref() {
        Some("user" | "human") => (Role::User, true),
        Some("assistant" | "ai" | "bot" | "model") => (Role::Assistant, true),
        Some("system" | "developer") => (Role::System, true),
        Some("tool" | "function") => (Role::Tool, true),
        Some(_) | None => (Role::Assistant, false),
    }
}

/// Appends the messages of a node. Returns false if it does not say who speaks.
pub(super) fn map<'a>(
    node: Node<'a>,
    parent: Option<&'a str>,
    arena: &'a Arena,
    messages: &mut Vec<Message<'a>>,
) -> bool {
    let (key, named) = (node.key, node.named);
    let Some(mut raw) = node.message else { return true };
    let (role, known) = role(raw.role);
    keep_role(&mut raw);
    let mut pieces = Pieces::read(&mut raw, role, arena);
    if let Some(error) = raw.error.filter(|_| pieces.is_silent()) {
        pieces.texts.push(error.into());
    }
    let mut attachments = files::read(raw.files, &mut raw.rest, arena);
    attachments.append(&mut pieces.attachments);
    let mut citations = Vec::new();
    for (key, list) in std::mem::take(&mut raw.sources) {
        citations.extend(sources::read(key, list, &mut raw.rest, arena));
    }
    if let Some(json) = pieces.remaining_json() {
        raw.rest.add_json("pieces", &json);
    }
    let merged = merged(&mut raw, arena);
    let (mut parent, created_at) = (parent.map(Cow::Borrowed), raw.created);
    for (index, text) in pieces.thoughts.into_iter().enumerate() {
        let id: Cow<'a, str> = format!("{key}:think:{index}").into();
        let parent = parent.replace(id.clone());
        let content = Some(Content::Text(text));
        let is_thought = true;
        messages.push(Message { id, role, content, created_at, parent, is_thought, ..Message::default() });
    }
    let message = Message {
        id: key.into(),
        provider_message_id: named.then(|| key.into()),
        role,
        content: Content::of_texts(pieces.texts),
        created_at,
        parent,
        model: raw.model.map(Cow::Borrowed),
        token_count: raw.tokens.filter(|_| role == Role::Assistant),
        attachments,
        citations,
        tool_calls: pieces.calls,
        unread: raw.rest.unread().map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    };
    messages.push(message);
    if let Some((text, rest)) = merged {
        messages.push(Message {
            id: format!("{key}:merged").into(),
            role,
            content: Some(Content::Text(text.into())),
            created_at,
            parent: Some(key.into()),
            raw_metadata: Some(unsigned_json(rest)),
            ..Message::default()
        });
    }
    known
}

/// Keeps a word for the role that is not one of PAM's.
fn keep_role(raw: &mut raw::Message<'_>) {
    if let Some(word) = raw.role.filter(|word| !["user", "assistant", "system", "tool"].contains(word)) {
        raw.rest.add_text("role", word);
    }
}

/// The text of the merged answer, and its other fields as the metadata of the message.
fn merged<'a>(raw: &mut raw::Message<'a>, arena: &'a Arena) -> Option<(&'a str, Cow<'a, str>)> {
    const KEY: &str = "merged";
    let value = std::mem::take(&mut raw.merged);
    let mut text = None;
    let mut rest = Leftover::default();
    let mut read = |object: &'a str| -> Result<(), JsonError> {
        let mut json = Parser::new(object, arena);
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                match key {
                    "content" => text = rest.nonempty_text(key, &mut json)?,
                    "status" | "timestamp" | "done" => rest.keep(key, &mut json)?,
                    _ => rest.keep_unknown(key, &mut json)?,
                }
            }
        }
        Ok(())
    };
    // The value was checked when it was read.
    value.raw().map(&mut read).transpose().unwrap_or_default();
    if rest.unread().is_some() {
        raw.rest.mark_unread(KEY);
    }
    if text.is_none() && value != Value::Null {
        raw.rest.add_json(KEY, &value.json());
    }
    let inside = rest.into_json().unwrap_or("{}".into());
    Some((text?, format!("{{\"{KEY}\":{inside}}}").into()))
}
