//! The calls of tools: parts of an answer, or in the metadata of early versions.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Fields, JsonError, ToolCall, ToolInput,
    json::{Value, parse_items},
};

use crate::fields::FIELD_READER;

/// A call whose tool has no name.
const UNNAMED: &str = "unnamed";

/// A call, and what the tool answered.
pub(crate) struct Tool<'a> {
    pub(crate) call: ToolCall<'a>,
    pub(crate) answer: Option<Cow<'a, str>>,
}

/// Takes a call out of a part of the type `tool_call`.
pub(crate) fn of_part<'a>(part: &mut Fields<'a>) -> Result<Tool<'a>, JsonError> {
    let call = ToolCall {
        id: part.take_text("tool_call_id").map(Cow::Borrowed),
        name: part.take_text("tool_name").unwrap_or(UNNAMED).into(),
        input: input(part.take("input"), part.arena()),
        ..ToolCall::default()
    };
    let answer = answer(part.take("output"), part.arena())?;
    Ok(Tool { call, answer })
}

/// Takes a call out of an entry of `metadata.tool_calls`.
pub(crate) fn of_metadata<'a>(entry: &mut Fields<'a>) -> Result<Tool<'a>, JsonError> {
    let mut call = ToolCall { name: UNNAMED.into(), ..ToolCall::default() };
    if let Some(mut tool) = entry.take_object("tool")? {
        call.id = tool.take_text("id").map(Cow::Borrowed);
        tool.take("type");
        if let Some(mut function) = tool.take_object("function")? {
            call.name = function.take_text("name").unwrap_or(UNNAMED).into();
            call.input = input(function.take("arguments"), entry.arena());
            let rest = function.into_json();
            tool.push_json("function", &rest);
        }
        let rest = tool.into_json();
        entry.push_json("tool", &rest);
    } else {
        call.id = entry.take_text("id").map(Cow::Borrowed);
        call.name = entry.take_text("name").unwrap_or(UNNAMED).into();
        call.input = input(entry.take("args"), entry.arena());
    }
    let answer = answer(entry.take("response"), entry.arena())?;
    Ok(Tool { call, answer })
}

fn input<'a>(value: Value<'a>, arena: &'a Arena) -> Option<ToolInput<'a>> {
    match value {
        Value::Null | Value::Text("") => None,
        Value::Text(text) => Some(ToolInput::of_text(text, arena)),
        Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
    }
}

/// The text of an answer. Most are a list of texts; any other answer is kept as JSON.
fn answer<'a>(value: Value<'a>, arena: &'a Arena) -> Result<Option<Cow<'a, str>>, JsonError> {
    Ok(match value {
        Value::Null | Value::Text("") => None,
        Value::Text(text) => Some(text.into()),
        Value::Raw(raw) => {
            let texts = match FIELD_READER.of(value, arena)? {
                Some(mut fields) => {
                    let list = fields.take_array("content")?;
                    // What stands beside the list, such as an error, must not be lost.
                    list.filter(|_| fields.iter().next().is_none()).map(|list| plain_texts(&list, arena))
                }
                None if raw.starts_with('[') => Some(plain_texts(&parse_items(raw, arena)?, arena)),
                None => None,
            };
            Some(texts.transpose()?.flatten().map_or(Cow::Borrowed(raw), Cow::Owned))
        }
    })
}

/// The texts of a list that has nothing else.
fn plain_texts(list: &[Value<'_>], arena: &Arena) -> Result<Option<String>, JsonError> {
    let mut texts = Vec::with_capacity(list.len());
    for value in list {
        let Some(mut part) = value
            .raw()
            .map(|raw| arena.alloc_str(raw))
            .map(|raw| FIELD_READER.parse(raw, arena))
            .transpose()?
        else {
            return Ok(None);
        };
        let is_text = part.take("type").text() == Some("text");
        let Some(text) = part.take_text("text").filter(|_| is_text && part.iter().next().is_none()) else {
            return Ok(None);
        };
        texts.push(text.to_owned());
    }
    Ok(Some(texts.join("\n")).filter(|_| !list.is_empty()))
}
