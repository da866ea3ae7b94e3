//! Maps one line of a session to a message, and each of its thoughts to another.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Bundle, Content, Leftover, Message, Part, Role, address::unsigned_json, json::Value,
    tree::SIBLING_NUMBER,
};

use crate::{
    outline::{Node, Outline},
    raw::{KeepUnexpected as _, Line, REPEATED},
};

mod attachment;
mod blocks;
mod tool_result;

use blocks::Parts;

/// A line without a role: nobody says who speaks.
const NO_ROLE: &str = "it does not say who speaks; it is read as the program's";
/// The start of a text in which the program tells that something in the background has ended.
const NOTIFICATION: &str = "<task-notification>";
/// Elements in which the program shows what a command printed.
const OUTPUTS: [&str; 4] =
    ["<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>"];

/// What all lines of a session share.
pub(crate) struct SessionContext<'r> {
    pub(crate) bundle: &'r Bundle,
    pub(crate) path: &'r str,
    pub(crate) outline: &'r Outline,
}

/// The messages of a line, the paths of their files, and a warning.
#[derive(Default)]
pub(crate) struct Mapped<'a> {
    /// Thoughts first; each message answers the one before.
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) files: Vec<String>,
    pub(crate) warning: Option<&'static str>,
}

/// Maps one line; its id and parent come from the outline.
pub(crate) fn messages<'a>(
    mut line: Line<'a>,
    node: &'a Node,
    parent: Option<&'a str>,
    context: &SessionContext<'_>,
    arena: &'a Arena,
) -> Mapped<'a> {
    let mut mapped = Mapped::default();
    keep_repeated(&mut line, context.outline);
    let mut parts = Parts::default();
    let (mut role, mut model, mut tokens) = (None, None, None);
    if let Some(message) = line.message.take() {
        let mut message = message;
        role = stated_role(&line, &mut message.rest, message.role);
        parts.unread = message.rest.unread();
        let only = message.blocks.len() == 1;
        for (index, block) in std::mem::take(&mut message.blocks).into_iter().enumerate() {
            parts.add(index, block, only, arena);
        }
        if let Some(blocks) = parts.remaining_json() {
            message.rest.add_json("content", &blocks);
        }
        (model, tokens) = (message.model, message.output_tokens.filter(|_| node.last_part));
        if let Some(synthetic) = model.take_if(|model| model.starts_with('<')) {
            message.rest.add_text("model", synthetic);
        }
        if let Some(rest) = message.rest.into_json() {
            line.rest.add_json("message", &rest);
        }
    }
    let role = role.or_else(|| role_of(line.kind)).unwrap_or_else(|| {
        mapped.warning = Some(NO_ROLE);
        Role::System
    });
    let role = add_text_of_program(&mut line, &mut parts, role, arena);
    tool_result::add(&mut line, &mut parts, context, &mut mapped.files, arena);
    if line.hidden {
        line.rest.add_bool("hidden", true);
    }
    if let Some(parent) = &node.stated_parent {
        line.rest.add_text("parentUuid", parent);
    }
    if let Some(number) = node.sibling {
        line.rest.add_json(SIBLING_NUMBER, &number.to_string());
    }
    finish(line, parts, MessageHead { node, parent, role, model, tokens }, mapped)
}

/// What a message has beside its contents.
struct MessageHead<'a> {
    node: &'a Node,
    parent: Option<&'a str>,
    role: Role,
    model: Option<&'a str>,
    tokens: Option<u64>,
}

fn finish<'a>(line: Line<'a>, parts: Parts<'a>, head: MessageHead<'a>, mut mapped: Mapped<'a>) -> Mapped<'a> {
    let MessageHead { node, parent, role, model, tokens } = head;
    let role = if parts.only_results() { Role::Tool } else { role };
    let mut above = parent.map(Cow::Borrowed);
    for (index, thought) in parts.thoughts {
        let id: Cow<'a, str> = format!("{}:thinking:{index}", node.id).into();
        mapped.messages.push(Message {
            parent: above.replace(id.clone()),
            id,
            role: Role::Assistant,
            content: Some(Content::Text(thought.into())),
            created_at: line.time,
            model: model.map(Cow::Borrowed),
            is_thought: true,
            ..Message::default()
        });
    }
    mapped.messages.push(Message {
        id: Cow::Borrowed(&node.id),
        provider_message_id: line.uuid.map(Cow::Borrowed),
        role,
        content: content(parts.parts),
        created_at: line.time,
        parent: above,
        model: model.map(Cow::Borrowed),
        is_thought: parts.is_thought,
        token_count: tokens,
        attachments: parts.attachments,
        citations: parts.citations,
        tool_calls: parts.calls,
        unread: line.rest.unread().or(parts.unread).map(Cow::Borrowed),
        raw_metadata: line.rest.into_json().map(unsigned_json),
    });
    mapped
}

/// Keeps the repeated fields where they differ from those of the session.
fn keep_repeated(line: &mut Line<'_>, outline: &Outline) {
    for ((key, value), shared) in REPEATED.into_iter().zip(line.repeated).zip(&outline.shared) {
        if let Some(value) = value.filter(|value| shared.as_deref() != Some(*value)) {
            line.rest.add_text(key, value);
        }
    }
}

/// The role of a message by its line; a role of its own that says something else is kept.
fn stated_role<'a>(line: &Line<'a>, rest: &mut Leftover<'a>, stated: Option<&'a str>) -> Option<Role> {
    let (by_line, by_message) = (role_of(line.kind), role_of(stated));
    let role = by_line.or(by_message);
    if let Some(stated) = stated.filter(|_| by_message.is_none() || by_message != role) {
        rest.add_text("role", stated);
    }
    role
}

fn role_of(name: Option<&str>) -> Option<Role> {
    match name? {
        // A text that was typed while the model worked, and has no other line.
        "user" | "queue-operation" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" | "attachment" => Some(Role::System),
        _ => None,
    }
}

/// Adds the text of a line of the program itself or of an attachment; returns the role of what it says.
fn add_text_of_program<'a>(line: &mut Line<'a>, parts: &mut Parts<'a>, role: Role, arena: &'a Arena) -> Role {
    match std::mem::take(&mut line.content) {
        Value::Text(text) if !text.is_empty() => parts.add_text(text),
        Value::Text(_) | Value::Null => {}
        other @ Value::Raw(_) => line.rest.keep_unexpected("content", other),
    }
    let role = match line.attachment.take() {
        Some(raw) => attachment::add(raw, line, parts, arena),
        None => role,
    };
    if role == Role::Assistant {
        return role;
    }
    let text = parts.parts.first().and_then(|part| part.text.as_deref()).unwrap_or_default().trim_start();
    if OUTPUTS.iter().any(|start| text.starts_with(start)) {
        return Role::Tool;
    }
    let notification = text.starts_with(NOTIFICATION);
    // A line without contents says how the program works, not what anybody said.
    line.hidden |= notification || (role == Role::System && parts.is_empty());
    if notification { Role::System } else { role }
}

fn content(mut parts: Vec<Part<'_>>) -> Option<Content<'_>> {
    if parts.len() == 1 {
        return parts.pop()?.text.map(Content::Text);
    }
    (!parts.is_empty()).then_some(Content::Multipart(parts))
}
