//! Tool calls in the steps of an answer, each with its result.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, ToolCall, ToolInput,
    json::{Object, Value},
};

use crate::raw::visit_objects;

/// The name of a tool that has none; PAM requires one.
const UNKNOWN_TOOL: &str = "unknown";

/// Reads the calls of all steps, in order; a card that later steps repeat is one call.
pub(super) fn read<'a>(steps: Value<'a>, arena: &'a Arena) -> Vec<ToolCall<'a>> {
    let mut calls: Vec<ToolCall<'a>> = Vec::new();
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    visit_objects(steps, arena, |step| {
        visit_objects(step.get("tool_usage_cards"), arena, |card| {
            let id = card.text("tool_usage_card_id");
            if id.is_some_and(|id| by_id.contains_key(id)) {
                return;
            }
            if let Some(id) = id {
                by_id.insert(id, calls.len());
            }
            calls.push(call(id, &card.object("tool", arena), arena));
        });
        visit_objects(step.get("tool_usage_results"), arena, |result| {
            let at = result.text("tool_usage_card_id").and_then(|id| by_id.get(id).copied());
            if let Some(call) = at.and_then(|at| calls.get_mut(at)) {
                let output = match result.get("result") {
                    Value::Text(output) | Value::Raw(output) => Some(output),
                    Value::Null => None,
                };
                call.output = output.map(Cow::Borrowed).or(call.output.take());
            }
        });
    });
    calls
}

/// The tool is `{"WebSearch": {"args": {…}}}` or `{"WebSearch": {…}}`.
fn call<'a>(id: Option<&'a str>, tool: &Object<'a>, arena: &'a Arena) -> ToolCall<'a> {
    let (name, arguments) = tool.fields().next().unwrap_or((UNKNOWN_TOOL, Value::Null));
    let object = arguments.raw().map(|raw| Object::parse(raw, arena));
    let args = object.filter(|object| object.fields().count() == 1).map(|object| object.get("args"));
    let input = match args.unwrap_or_default() {
        Value::Null => arguments,
        inner @ (Value::Text(_) | Value::Raw(_)) => inner,
    };
    ToolCall {
        id: id.map(Cow::Borrowed),
        name: name.into(),
        input: match input {
            Value::Null => None,
            Value::Text(text) => Some(ToolInput::Text(text.into())),
            Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        },
        output: None,
    }
}
