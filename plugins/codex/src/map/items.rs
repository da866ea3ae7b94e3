//! Items of the conversation with the model: messages, reasoning, summaries, messages between agents.

use std::borrow::Cow;

use satchel_importer::{Fields, ImportError, Role, json::Value, warnings::shortened};

use super::{Mapped, Origin, UnplacedMessage, Warning, calls, parts::Parts, unknown};
use crate::{
    fields::{FIELD_READER, KEPT, take_id},
    injected,
};

/// Fields that repeat earlier lines, or hold the state of the program.
const LEFT_OUT: [&str; 7] = [
    "encrypted_content",
    "guardian_history",
    "latest_token_usage_record",
    "replacement_history",
    "replacement_history_metadata",
    "resume_metadata",
    "retained_context",
];
/// Items that hold no message.
const BOOKKEEPING: [&str; 7] = [
    "additional_tools",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "context_compaction",
    "ghost_snapshot",
    "other",
];
/// The field with the kind of each part.
const KINDS: &str = "content_item_kinds";
/// The field that holds it in the newest files.
const PASSTHROUGH: &str = "internal_chat_message_metadata_passthrough";
/// Reports a message without a role.
const NO_ROLE: &str = "it does not say who speaks; it is read as the system's";
/// What the kinds of the person's own parts begin with.
const HUMAN: &str = "user.";

/// Maps an item.
pub(super) fn item(mut payload: Fields<'_>, decode: bool) -> Result<Mapped<'_>, ImportError> {
    let kind = payload.get("type").text().unwrap_or_default();
    match kind {
        "message" => message(payload, decode),
        "reasoning" => reasoning(kind, payload, "summary", "content", decode),
        "agent_message" => agent_message(kind, payload, decode),
        _ if BOOKKEEPING.contains(&kind) => Ok(Mapped::LeftOut(kind)),
        _ if calls::is_output(kind) => calls::output(kind, payload, decode),
        _ if calls::is_call(kind) => {
            payload.take("type");
            calls::call(kind, payload, decode)
        }
        _ => unknown::unknown(kind, payload, decode),
    }
}

/// Maps the summary that replaces the history.
pub(super) fn compacted(mut payload: Fields<'_>) -> Mapped<'_> {
    payload.remove(&LEFT_OUT);
    let texts = payload.take_text("message").map(Cow::Borrowed).into_iter().collect();
    let id = take_id(&mut payload, "id");
    let rest = payload.into_rest(&KEPT);
    UnplacedMessage {
        kind: "compacted",
        id,
        role: Role::System,
        texts,
        rest,
        hidden: true,
        ..UnplacedMessage::default()
    }
    .unless_empty()
}

/// Maps a message from one agent to another.
pub(super) fn agent_message<'a>(
    kind: &'a str,
    mut payload: Fields<'a>,
    decode: bool,
) -> Result<Mapped<'a>, ImportError> {
    let parts = Parts::read(payload.take("content"), payload.arena(), decode)?;
    payload.remove(&LEFT_OUT);
    payload.take("type");
    let mut unplaced = UnplacedMessage {
        kind,
        id: take_id(&mut payload, "id"),
        role: Role::Assistant,
        ..UnplacedMessage::default()
    };
    unplaced.origin = Origin::Item;
    unplaced.rest = payload.into_rest(&KEPT);
    parts.move_to(&mut unplaced, "content");
    Ok(unplaced.unless_empty())
}

/// Maps a summary of reasoning, or its text if there is no summary.
pub(super) fn reasoning<'a>(
    kind: &'a str,
    mut payload: Fields<'a>,
    summary: &'a str,
    content: &'a str,
    decode: bool,
) -> Result<Mapped<'a>, ImportError> {
    let arena = payload.arena();
    let mut unplaced =
        UnplacedMessage { kind, role: Role::Assistant, origin: Origin::Item, ..UnplacedMessage::default() };
    unplaced.message.is_thought = true;
    let summaries = Parts::read(payload.take(summary), arena, decode)?;
    let has_summary = !summaries.texts.is_empty();
    let contents = (!has_summary).then(|| Parts::read(payload.take(content), arena, decode)).transpose()?;
    unplaced.id = take_id(&mut payload, "id");
    payload.remove(&["type", "encrypted_content"]);
    unplaced.rest = payload.into_rest(&KEPT);
    summaries.move_to(&mut unplaced, summary);
    if let Some(contents) = contents {
        contents.move_to(&mut unplaced, content);
    }
    Ok(unplaced.unless_empty())
}

/// Maps a message of the person, the model, or the program.
fn message(mut payload: Fields<'_>, decode: bool) -> Result<Mapped<'_>, ImportError> {
    let arena = payload.arena();
    let content = payload.take("content");
    let parts = Parts::read(content, arena, decode)?;
    let kinds = kinds(&payload)?;
    let mut unplaced = UnplacedMessage {
        kind: "message",
        id: take_id(&mut payload, "id"),
        origin: Origin::Item,
        ..UnplacedMessage::default()
    };
    let role = payload.take_text("role");
    (unplaced.role, unplaced.hidden, unplaced.warning) = match role {
        Some("user") => role_of_user(&parts, &kinds),
        Some("assistant") => (Role::Assistant, false, None),
        Some("developer" | "system") => (Role::System, true, None),
        Some("tool") => (Role::Tool, false, None),
        Some(role) => {
            let warning = format!("its role {:?} is unknown; it is read as the system's", shortened(role));
            (Role::System, false, Some(Warning::Once(warning)))
        }
        None => (Role::System, false, Some(Warning::Once(NO_ROLE.to_owned()))),
    };
    if let Some(role) = role.filter(|role| !matches!(*role, "user" | "assistant" | "system" | "tool")) {
        payload.push("role", Value::Text(role));
    }
    payload.take("type");
    unplaced.rest = payload.into_rest(&KEPT);
    parts.move_to(&mut unplaced, "content");
    Ok(unplaced.unless_empty())
}

/// The role of a message in the person's name, and whether it is hidden: Codex adds texts of its own in that name.
fn role_of_user(parts: &Parts<'_>, kinds: &[Value<'_>]) -> (Role, bool, Option<Warning>) {
    let mut texts = parts.texts.iter().filter(|text| !injected::is_image_marker(text)).peekable();
    let injected = if !kinds.is_empty() && kinds.len() == parts.count {
        !kinds.iter().any(|kind| kind.text().is_none_or(|kind| kind.starts_with(HUMAN)))
    } else {
        texts.peek().is_some()
            && parts.attachments.is_empty()
            && texts.clone().all(|text| injected::is_injected(text))
    };
    if !injected {
        return (Role::User, false, None);
    }
    (Role::System, !texts.any(|text| injected::is_shell_command(text)), None)
}

/// The kind of each part, in the newest files.
fn kinds<'a>(payload: &Fields<'a>) -> Result<Vec<Value<'a>>, ImportError> {
    let arena = payload.arena();
    let nested = payload.get(PASSTHROUGH).raw().map(|raw| FIELD_READER.parse(raw, arena)).transpose()?;
    let own = payload.get(KINDS).raw();
    let raw = own.or(nested.and_then(|nested| nested.get(KINDS).raw()));
    Ok(raw.map(|raw| FIELD_READER.items(raw, arena)).transpose()?.unwrap_or_default())
}
