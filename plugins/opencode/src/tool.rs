//! Reads the call of a tool and what the tool answered. Both are in one part.

use std::borrow::Cow;

use satchel_importer::{
    Attachment, Fields, JsonError, ToolCall, ToolInput,
    json::{Value, array_of, parse_items},
};

use crate::{fields::time_at, file};

/// A call whose tool has no name.
const UNNAMED: &str = "unnamed";

/// A call of a tool.
pub(crate) struct Tool<'a> {
    pub(crate) call: ToolCall<'a>,
    /// Microseconds.
    pub(crate) started: Option<i64>,
    pub(crate) result: Option<ToolResult<'a>>,
    pub(crate) unreadable: bool,
    /// What is left of the state of the call, as JSON text.
    pub(crate) state: String,
}

/// What a tool answered, also if it failed.
pub(crate) struct ToolResult<'a> {
    pub(crate) text: Option<Cow<'a, str>>,
    pub(crate) attachments: Vec<Attachment<'a>>,
    /// Microseconds.
    pub(crate) ended: Option<i64>,
}

/// Takes a call out of the fields of a part.
pub(crate) fn read<'a>(part: &mut Fields<'a>, decode: bool) -> Result<Tool<'a>, JsonError> {
    let mut call = ToolCall {
        id: part.take_id("callID").map(Cow::Borrowed),
        name: part.take_text("tool").unwrap_or(UNNAMED).into(),
        ..ToolCall::default()
    };
    let Some(mut state) = part.take_object("state")? else {
        return Ok(Tool { call, started: None, result: None, unreadable: false, state: "{}".to_owned() });
    };
    call.input = input(state.take("input"), &state);
    let time = state.object("time")?;
    let ended = matches!(state.get("status").text(), Some("completed" | "error"))
        || state.has("output")
        || state.has("error");
    let mut unreadable = false;
    let result = if ended {
        let output = state.take("output");
        leave_out_repetition(&mut state, output)?;
        // If there are both, the error stays in the state.
        let text = text_of(output).or_else(|| text_of(state.take("error")));
        let attachments = attachments(&mut state, decode, &mut unreadable)?;
        // Version 2 of the program has the times of the call beside the state.
        let completed = || part.object("time").ok().and_then(|time| time_at(&time, "completed"));
        Some(ToolResult { text, attachments, ended: time_at(&time, "end").or_else(completed) })
    } else {
        None
    };
    Ok(Tool { call, started: time_at(&time, "start"), result, unreadable, state: state.into_json() })
}

/// Takes a call out of a part of the first versions.
pub(crate) fn read_invocation<'a>(part: &mut Fields<'a>) -> Result<Tool<'a>, JsonError> {
    let none = || Fields::parse("{}", part.arena());
    let mut own = match part.clone().take_object("toolInvocation")? {
        Some(own) => own,
        None => none()?,
    };
    if part.get("toolInvocation").raw().is_some_and(|raw| raw.starts_with('{')) {
        part.take("toolInvocation");
    }
    let call = ToolCall {
        id: own.take_id("toolCallId").map(Cow::Borrowed),
        name: own.take_text("toolName").unwrap_or(UNNAMED).into(),
        input: input(own.take("args"), part),
        ..ToolCall::default()
    };
    let result = own.has("result").then(|| ToolResult {
        text: text_of(own.take("result")),
        attachments: Vec::new(),
        ended: None,
    });
    Ok(Tool { call, started: None, result, unreadable: false, state: own.into_json() })
}

fn input<'a>(value: Value<'a>, fields: &Fields<'a>) -> Option<ToolInput<'a>> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(ToolInput::Text(text.into())),
        Value::Raw(raw) => Some(ToolInput::of_json(raw, fields.arena())),
    }
}

fn text_of(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(Cow::Borrowed(text)).filter(|text| !text.is_empty()),
        Value::Raw(raw) => Some(Cow::Borrowed(raw)),
    }
}

/// The metadata of some tools repeat the output.
fn leave_out_repetition(state: &mut Fields<'_>, output: Value<'_>) -> Result<(), JsonError> {
    let Some(output) = output.nonempty_text() else { return Ok(()) };
    if let Some(mut metadata) = state.take_object("metadata")? {
        metadata.remove_text("output", output);
        metadata.remove_text("preview", output);
        state.push_json("metadata", &metadata.into_json());
    }
    Ok(())
}

/// The files that a tool returned. What is left of their fields stays in the state.
fn attachments<'a>(
    state: &mut Fields<'a>,
    decode: bool,
    unreadable: &mut bool,
) -> Result<Vec<Attachment<'a>>, JsonError> {
    let Some(raw) = state.get("attachments").raw().filter(|raw| raw.starts_with('[')) else {
        return Ok(Vec::new());
    };
    let (mut found, mut remaining) = (Vec::new(), Vec::new());
    for value in parse_items(raw, state.arena())? {
        let Some(raw) = value.raw().filter(|raw| raw.starts_with('{')) else {
            remaining.push(value.json().into_owned());
            continue;
        };
        let mut fields = Fields::parse(raw, state.arena())?;
        let read = file::take(&mut fields, decode);
        *unreadable |= read.unreadable;
        found.extend(read.attachment);
        for key in ["sessionID", "messageID", "type"] {
            fields.take(key);
        }
        remaining.push(fields.into_json());
    }
    state.take("attachments");
    if remaining.iter().any(|rest| rest != "{}") {
        state.push_json("attachments", &array_of(&remaining));
    }
    Ok(found)
}
