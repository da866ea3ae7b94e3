//! Reads the call of a tool.

use satchel_importer::{Fields, JsonError, ToolCall, ToolInput, json::Value};

/// A call that the model wrote so badly that its tool is not known.
const UNNAMED: &str = "unnamed";

/// Takes the call out of the fields of a part. What failed before the tool was called is its output.
pub(crate) fn take<'a>(part: &mut Fields<'a>) -> Result<ToolCall<'a>, JsonError> {
    let id = part.take_id("id").map(Into::into);
    let Some(mut call) = part.take_object("toolCall")? else {
        return Ok(ToolCall { id, name: UNNAMED.into(), ..ToolCall::default() });
    };
    call.remove_text("status", "success");
    let mut read = ToolCall { id, name: UNNAMED.into(), ..ToolCall::default() };
    if let Some(mut value) = call.take_object("value")? {
        take_name_and_input(&mut value, &mut read);
        call.push_json("value", &value.into_json());
    } else {
        take_name_and_input(&mut call, &mut read);
    }
    read.output = call.take_text("error").map(Into::into);
    part.push_json("toolCall", &call.into_json());
    Ok(read)
}

fn take_name_and_input<'a>(fields: &mut Fields<'a>, call: &mut ToolCall<'a>) {
    if let Some(name) = fields.take_text("name") {
        call.name = name.into();
    }
    call.input = match fields.take("arguments") {
        Value::Null => None,
        Value::Text(text) => Some(ToolInput::of_text(text, fields.arena())),
        Value::Raw(raw) => Some(ToolInput::of_json(raw, fields.arena())),
    };
}
