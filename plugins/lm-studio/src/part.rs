//! Reads one part of a content: a text, a file, the call of a tool, or what a tool answered.

use std::borrow::Cow;

use satchel_importer::{Attachment, Fields, JsonError, ToolCall, ToolInput, json::Value};

use crate::files::{self, Files};

/// Fields that are known and kept as they are.
const KEPT: [&str; 12] = [
    "callId",
    "fileType",
    "fromDraftModel",
    "isStructural",
    "name",
    "pluginIdentifier",
    "sizeBytes",
    "text",
    "tokensCount",
    "toolCallId",
    "toolCallRequestId",
    "type",
];
/// A call whose tool has no name.
const UNNAMED: &str = "unnamed";

/// What a part is.
pub(crate) enum What<'a> {
    Text(&'a str),
    File(Box<Attachment<'a>>),
    Call(Box<ToolCall<'a>>),
    /// What a tool answered.
    Answer(Option<Cow<'a, str>>),
    /// Nothing that is shown: an empty text, or a mark of the model's template.
    Note,
}

/// A part that was taken apart.
pub(crate) struct ReadPart<'a> {
    pub(crate) what: What<'a>,
    /// Whether the type is not known.
    pub(crate) unknown: bool,
    pub(crate) kind: Option<&'a str>,
    /// A field that is not known and holds natural language.
    pub(crate) unread: Option<&'a str>,
    /// What is left of it, as JSON text.
    pub(crate) rest: String,
}

/// Takes a part apart. The first pass has no `files`.
pub(crate) fn read<'a>(mut part: Fields<'a>, files: Option<&Files<'_>>) -> Result<ReadPart<'a>, JsonError> {
    let kind = part.get("type").nonempty_text();
    let mut unknown = false;
    let what = match kind {
        Some("text") if part.get("isStructural").is_true() => What::Note,
        Some("text") => text(&mut part),
        Some("file") => files::take(&mut part, files).map_or(What::Note, |file| What::File(Box::new(file))),
        Some("toolCallRequest") => What::Call(Box::new(call(&mut part)?)),
        Some("toolCallResult") => What::Answer(answer(part.take("content"))),
        _ => {
            unknown = true;
            text(&mut part)
        }
    };
    let unread = part.unread(&KEPT);
    if !unknown && !matches!(what, What::Note) {
        part.take("type");
    }
    Ok(ReadPart { what, unknown, kind, unread, rest: part.into_json() })
}

fn text<'a>(part: &mut Fields<'a>) -> What<'a> {
    part.take_text("text").map_or(What::Note, What::Text)
}

/// Takes the call of a tool. The types of the program's own library have its fields in an object of their own.
fn call<'a>(part: &mut Fields<'a>) -> Result<ToolCall<'a>, JsonError> {
    let Some(mut own) = part.take_object("toolCallRequest")? else { return Ok(take_call(part)) };
    own.take("type");
    let call = take_call(&mut own);
    let rest = own.into_json();
    part.push_json("toolCallRequest", &rest);
    Ok(call)
}

fn take_call<'a>(part: &mut Fields<'a>) -> ToolCall<'a> {
    let named = part.take_text("toolCallRequestId").or_else(|| part.take_text("id"));
    // A number counts the calls of the whole chat.
    let id = named.map(Cow::Borrowed).or_else(|| match part.get("callId") {
        Value::Null => None,
        value => Some(value.text().map_or_else(|| value.json(), Cow::Borrowed)),
    });
    let given = match part.take("parameters") {
        Value::Null => part.take("arguments"),
        value => value,
    };
    let input = match given {
        Value::Null => None,
        Value::Text(text) => Some(ToolInput::of_text(text, part.arena())),
        Value::Raw(raw) => Some(ToolInput::of_json(raw, part.arena())),
    };
    ToolCall { id, name: part.take_text("name").unwrap_or(UNNAMED).into(), input, ..ToolCall::default() }
}

fn answer(content: Value<'_>) -> Option<Cow<'_, str>> {
    match content {
        Value::Null | Value::Text("") => None,
        Value::Text(text) => Some(text.into()),
        Value::Raw(raw) => Some(raw.into()),
    }
}
