//! Calls of tools and their results, each in its own message.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Fields, ImportError, JsonError, Role, ToolCall, ToolInput,
    json::{MAX_ID_BYTES, Value},
};

use super::{Mapped, UnplacedMessage, parts::Parts};
use crate::fields::{FIELD_READER, KEPT, take_id};

/// A type of call.
struct CallType {
    kind: &'static str,
    /// The field with the input.
    input: &'static str,
    /// The name of the tool, if the call does not give one.
    name: &'static str,
}

/// The types of calls.
const CALLS: [CallType; 6] = [
    CallType { kind: "function_call", input: "arguments", name: "function" },
    CallType { kind: "custom_tool_call", input: "input", name: "tool" },
    CallType { kind: "local_shell_call", input: "action", name: "local_shell" },
    CallType { kind: "web_search_call", input: "action", name: "web_search" },
    CallType { kind: "tool_search_call", input: "arguments", name: "tool_search" },
    CallType { kind: IMAGE, input: "revised_prompt", name: "image_generation" },
];
/// The call whose result is an image.
const IMAGE: &str = "image_generation_call";

/// Whether items of this type call a tool.
pub(super) fn is_call(kind: &str) -> bool {
    CALLS.iter().any(|call| call.kind == kind)
}

/// Whether items of this type hold the result of a call.
pub(super) fn is_output(kind: &str) -> bool {
    kind.ends_with("_output")
}

/// Maps a call.
pub(super) fn call<'a>(
    kind: &'a str,
    mut payload: Fields<'a>,
    decode: bool,
) -> Result<Mapped<'a>, ImportError> {
    let arena = payload.arena();
    let Some(known) = CALLS.iter().find(|call| call.kind == kind) else { return Ok(Mapped::LeftOut(kind)) };
    let mut unplaced = UnplacedMessage {
        kind,
        id: take_id(&mut payload, "id"),
        role: Role::Assistant,
        ..UnplacedMessage::default()
    };
    unplaced.call = take_id(&mut payload, "call_id");
    let input = input(payload.take(known.input), arena);
    unplaced.message.tool_calls = vec![ToolCall {
        id: unplaced.call.or(unplaced.id).map(Cow::Borrowed),
        name: payload.take_text("name").unwrap_or(known.name).into(),
        input,
        output: None,
    }];
    let image = if kind == IMAGE { payload.take_text("result") } else { None };
    unplaced.rest = payload.into_rest(&KEPT);
    if let Some(base64) = image {
        let mut parts = Parts::read(Value::Null, arena, decode)?;
        let mut attachment = Attachment { kind: AttachmentKind::Image, ..Attachment::default() };
        parts.set_bytes(&mut attachment, base64);
        parts.attachments.push(attachment);
        parts.move_to(&mut unplaced, "result");
    }
    Ok(Mapped::Message(Box::new(unplaced)))
}

fn input<'a>(value: Value<'a>, arena: &'a Arena) -> Option<ToolInput<'a>> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(ToolInput::of_text(text, arena)),
        Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
    }
}

/// Maps the result of a call.
pub(super) fn output<'a>(
    kind: &'a str,
    mut payload: Fields<'a>,
    decode: bool,
) -> Result<Mapped<'a>, ImportError> {
    let arena = payload.arena();
    let mut unplaced = UnplacedMessage {
        kind,
        id: take_id(&mut payload, "id"),
        role: Role::Tool,
        ..UnplacedMessage::default()
    };
    unplaced.call = payload.get("call_id").nonempty_text().filter(|id| id.len() <= MAX_ID_BYTES);
    let (output, others) = unwrap(payload.take("output"), arena)?;
    let parts = Parts::read(output, arena, decode)?;
    payload.take("type");
    let own: BTreeSet<&str> = payload.iter().map(|(key, _)| key).collect();
    for (key, value) in others.iter().flat_map(Fields::iter).filter(|(key, _)| !own.contains(key)) {
        payload.push(key, value);
    }
    unplaced.rest = payload.into_rest(&KEPT);
    parts.move_to(&mut unplaced, "output");
    Ok(Mapped::Message(Box::new(unplaced)))
}

/// The output itself, if it is inside an object: `{"content":…,"success":…}`, or the text `{"output":…,"metadata":…}`. And the other
/// fields of that object.
fn unwrap<'a>(output: Value<'a>, arena: &'a Arena) -> Result<(Value<'a>, Option<Fields<'a>>), JsonError> {
    let (raw, key) = match output {
        Value::Raw(raw) if raw.starts_with('{') => (raw, "content"),
        Value::Text(text) if text.starts_with("{\"") => (text, "output"),
        _ => return Ok((output, None)),
    };
    let mut fields = match FIELD_READER.parse(raw, arena) {
        Ok(fields) => fields,
        // Any tool may print something like this.
        Err(_) if key == "output" => return Ok((output, None)),
        Err(error) => return Err(error),
    };
    let known = match key {
        "output" => is_result(&fields),
        _ => fields.get(key) != Value::Null,
    };
    if !known {
        return Ok((output, None));
    }
    Ok((fields.take(key), Some(fields)))
}

/// Whether it is a text with metadata and nothing else, as Codex writes it. Tools print other objects with an `output`.
fn is_result(fields: &Fields<'_>) -> bool {
    let metadata = fields.get("metadata").raw().is_some_and(|raw| raw.starts_with('{'));
    let only = fields.iter().all(|(name, _)| matches!(name, "output" | "metadata"));
    metadata && only && fields.get("output").text().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_taken_out_of_their_objects() {
        let arena = Arena::new();
        let unwrapped = |value| {
            let (value, others) = unwrap(value, &arena).expect("it is JSON");
            (value, others.map_or(0, |others| others.iter().count()))
        };
        let wrapped = r#"{"output":"a\n","metadata":{"exit_code":0}}"#;
        assert_eq!(unwrapped(Value::Text(wrapped)), (Value::Text("a\n"), 1));
        assert_eq!(unwrapped(Value::Raw(r#"{"content":"a","success":true}"#)), (Value::Text("a"), 1));
        for plain in [
            r#"{"output":"a","files":[1]}"#,
            r#"{"a":1}"#,
            r#"{"output":"a"#,
            "a",
            r#"{"output":"a"}"#,
            r#"{"output":"a","metadata":1}"#,
            r#"{"output":1,"metadata":{}}"#,
            "{\"output\":\"ok\",\"metadata\":{\"exit_code\":0}}\nwarning: 3 tests failed",
            "{\"output\":\"ok\"}\nwarning: 3 tests failed",
        ] {
            assert_eq!(unwrapped(Value::Text(plain)), (Value::Text(plain), 0), "{plain}");
        }
    }
}
