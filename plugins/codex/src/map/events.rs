//! Events that were shown to the user. Most repeat items of the conversation with the model.

use std::borrow::Cow;

use satchel_importer::{AttachmentKind, Fields, ImportError, Role, json::Value};

use super::{Mapped, Origin, UnplacedMessage, Usage, items, parts::Parts, unknown};
use crate::{
    fields::{FIELD_READER, KEPT},
    injected,
};

/// Events that hold no message: the progress of turns and tools, requests for permission, settings. Their results are items too.
const BOOKKEEPING: [&str; 31] = [
    "apply_patch_approval_request",
    "background_event",
    "context_compacted",
    "deprecation_notice",
    "elicitation_request",
    "entered_review_mode",
    "exec_approval_request",
    "exited_review_mode",
    "guardian_assessment",
    "image_generation_begin",
    "image_generation_end",
    "item_started",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "patch_apply_end",
    "plan_update",
    "session_configured",
    "shutdown_complete",
    "sub_agent_activity",
    "task_complete",
    "terminal_interaction",
    "thread_goal_updated",
    "thread_settings_applied",
    "turn_complete",
    "turn_diff",
    "undo_completed",
    "undo_started",
    "view_image_tool_call",
    "web_search_begin",
    "web_search_end",
];
/// The `kind` of a text that the person wrote.
const PLAIN: &str = "plain";
/// What the names of further such events begin with.
const BOOKKEEPING_GROUPS: [&str; 4] = ["collab_", "dynamic_tool_call_", "exec_command_", "hook_"];
/// Completed items that repeat items of the conversation with the model, or their results.
const REPEATED_ITEMS: [&str; 15] = [
    "CollabAgentToolCall",
    "CommandExecution",
    "ContextCompaction",
    "EnteredReviewMode",
    "ExitedReviewMode",
    "Extension",
    "FileChange",
    "HookPrompt",
    "ImageGeneration",
    "ImageView",
    "McpToolCall",
    "SubAgentActivity",
    "Todo",
    "TodoList",
    "WebSearch",
];

/// Maps an event.
pub(super) fn event(mut payload: Fields<'_>, decode: bool) -> Result<Mapped<'_>, ImportError> {
    let kind = payload.get("type").text().unwrap_or_default();
    let in_group = || BOOKKEEPING_GROUPS.iter().any(|group| kind.starts_with(group));
    Ok(match kind {
        "user_message" => user_message(payload, decode)?,
        "agent_message" => text(kind, payload, "message", false),
        "agent_reasoning" | "agent_reasoning_raw_content" => text(kind, payload, "text", true),
        "error" | "warning" | "stream_error" => report(kind, payload, "message"),
        "turn_aborted" => report(kind, payload, "reason"),
        "item_completed" => completed(payload, decode)?,
        "task_started" | "turn_started" => Mapped::TurnBegun { kind, id: payload.take_text("turn_id") },
        "token_count" => usage(&payload)?,
        "thread_rolled_back" => Mapped::RollBack(payload.get("num_turns").as_u64()),
        "thread_name_updated" => Mapped::Name {
            session: payload.take_text("thread_id"),
            name: payload.take_text("thread_name").filter(|name| !name.trim().is_empty()),
        },
        _ if BOOKKEEPING.contains(&kind) || in_group() => Mapped::LeftOut(kind),
        _ => unknown::unknown(kind, payload, decode)?,
    })
}

/// A text of the person.
fn user_message(mut payload: Fields<'_>, decode: bool) -> Result<Mapped<'_>, ImportError> {
    let arena = payload.arena();
    let text = payload.take_text("message");
    let mut images = Parts::read(Value::Null, arena, decode)?;
    if let Some(raw) = payload.get("images").raw().filter(|raw| raw.starts_with('[')) {
        payload.take("images");
        let mut others = Vec::new();
        for item in FIELD_READER.items(raw, arena)? {
            match item.text().and_then(|url| images.file(url, AttachmentKind::Image)) {
                Some(image) => images.attachments.push(image),
                None => others.push(item.json()),
            }
        }
        payload.push("images", Value::Raw(arena.alloc_str(&format!("[{}]", others.join(",")))));
    }
    // Until October 2025 the event said what the text is.
    let kind = payload.get("kind").text().unwrap_or(PLAIN);
    let injected = kind != PLAIN || text.is_some_and(injected::is_injected);
    let mut unplaced = UnplacedMessage {
        kind: "user_message",
        role: if injected { Role::System } else { Role::User },
        texts: text.map(Cow::Borrowed).into_iter().collect(),
        origin: Origin::Event,
        hidden: injected,
        ..UnplacedMessage::default()
    };
    payload.take("type");
    unplaced.rest = payload.into_rest(&KEPT);
    images.move_to(&mut unplaced, "images");
    Ok(unplaced.unless_empty())
}

/// A text of the model.
fn text<'a>(kind: &'a str, mut payload: Fields<'a>, key: &str, thought: bool) -> Mapped<'a> {
    let texts = payload.take_text(key).map(Cow::Borrowed).into_iter().collect();
    payload.take("type");
    let rest = payload.into_rest(&KEPT);
    let mut unplaced = UnplacedMessage {
        kind,
        role: Role::Assistant,
        texts,
        rest,
        origin: Origin::Event,
        ..UnplacedMessage::default()
    };
    unplaced.message.is_thought = thought;
    unplaced.unless_empty()
}

/// A message of the program itself.
fn report<'a>(kind: &'a str, mut payload: Fields<'a>, key: &str) -> Mapped<'a> {
    let texts = payload.take_text(key).map(Cow::Borrowed).into_iter().collect();
    let rest = payload.into_rest(&KEPT);
    UnplacedMessage { kind, role: Role::System, texts, rest, ..UnplacedMessage::default() }.unless_empty()
}

/// A completed item of a turn.
fn completed(mut payload: Fields<'_>, decode: bool) -> Result<Mapped<'_>, ImportError> {
    let Some(mut item) = payload.take_object("item")? else {
        return unknown::unknown("item_completed", payload, decode);
    };
    let kind = item.get("type").text().unwrap_or_default();
    payload.remove(&["type", "thread_id", "turn_id", "started_at_ms", "completed_at_ms"]);
    for (key, value) in payload.iter() {
        item.push(key, value);
    }
    let (role, content) = match kind {
        _ if REPEATED_ITEMS.contains(&kind) => return Ok(Mapped::LeftOut("item_completed")),
        "UserMessage" => (Role::User, "content"),
        "AgentMessage" => (Role::Assistant, "content"),
        "Plan" => (Role::Assistant, "text"),
        "Reasoning" => {
            let reasoning = items::reasoning("item_completed", item, "summary_text", "raw_content", decode)?;
            return Ok(as_event(reasoning));
        }
        _ => return unknown::unknown(kind, item, decode),
    };
    let parts = Parts::read(item.take(content), item.arena(), decode)?;
    let injected = role == Role::User && parts.texts.iter().all(|text| injected::is_injected(text));
    let injected = injected && !parts.texts.is_empty();
    let mut unplaced =
        UnplacedMessage { kind: "item_completed", origin: Origin::Event, ..UnplacedMessage::default() };
    (unplaced.role, unplaced.hidden) = if injected { (Role::System, true) } else { (role, false) };
    unplaced.rest = item.into_rest(&KEPT);
    parts.move_to(&mut unplaced, content);
    Ok(unplaced.unless_empty())
}

/// Marks a message as one that may repeat an item.
fn as_event(mapped: Mapped<'_>) -> Mapped<'_> {
    match mapped {
        Mapped::Message(mut unplaced) => {
            unplaced.origin = Origin::Event;
            if let Some(id) = unplaced.id.take() {
                unplaced.rest.add_text("id", id);
            }
            Mapped::Message(unplaced)
        }
        other => other,
    }
}

/// The tokens of the last answer.
fn usage<'a>(payload: &Fields<'a>) -> Result<Mapped<'a>, ImportError> {
    let object = |raw: &&str| raw.starts_with('{');
    let info = payload.get("info").raw().filter(object);
    let info = info.map(|raw| FIELD_READER.parse(raw, payload.arena())).transpose()?;
    let Some(info) = info else { return Ok(Mapped::LeftOut("token_count")) };
    let last = info.get("last_token_usage").raw().filter(object);
    let fields = last.map(|raw| FIELD_READER.parse(raw, payload.arena())).transpose()?;
    Ok(Mapped::Usage(Usage {
        total: info.get("total_token_usage").raw().unwrap_or_default(),
        last,
        output: fields.and_then(|fields| fields.get("output_tokens").as_u64()),
    }))
}
