//! Tool calls: what the steps of an answer say that was asked, each with what came back.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, ToolCall, ToolInput,
    json::{Object, Value},
};

use crate::raw::visit_objects;

/// A tool whose name the export does not give: PAM asks for one.
const NAMELESS: &str = "unknown";

/// The calls of all steps, in order; a card that later steps repeat is one call.
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
        visit_objects(step.get("tool_usage_results"), arena, |answer| {
            let at = answer.text("tool_usage_card_id").and_then(|id| by_id.get(id).copied());
            if let Some(call) = at.and_then(|at| calls.get_mut(at)) {
                let said = match answer.get("result") {
                    Value::Text(said) | Value::Raw(said) => Some(said),
                    Value::Null => None,
                };
                call.output = said.map(Cow::Borrowed).or(call.output.take());
            }
        });
    });
    calls
}

/// The tool is `{"WebSearch": {"args": {…}}}` or `{"WebSearch": {…}}`.
fn call<'a>(id: Option<&'a str>, tool: &Object<'a>, arena: &'a Arena) -> ToolCall<'a> {
    let (name, asked) = tool.fields().next().unwrap_or((NAMELESS, Value::Null));
    let arguments = asked.raw().map(|raw| Object::parse(raw, arena));
    let only = arguments.filter(|object| object.fields().count() == 1).map(|object| object.get("args"));
    let input = match only.unwrap_or_default() {
        Value::Null => asked,
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
