//! Tool calls: those of agents, those of assistants, and those of plugins in old versions.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Leftover, ToolCall, ToolInput,
    json::{Object, Value, items},
};

use super::object::Parts;

/// Fields of calls that are kept and may contain natural language.
const KEPT: [&str; 8] = [
    "approval",
    "code_interpreter",
    "file_search",
    "function",
    "progress",
    "retrieval",
    "status",
    "subagentIdentity",
];

/// The call in the object `tool`, and what remains of that object.
pub(super) fn read<'a>(
    mut tool: Parts<'a>,
    rest: &mut Leftover<'a>,
    arena: &'a Arena,
) -> (ToolCall<'a>, Option<Cow<'a, str>>) {
    let kind = tool.get("type").nonempty_text().unwrap_or("tool_call");
    let mut call = ToolCall { id: tool.text("id").map(Cow::Borrowed), ..ToolCall::default() };
    match kind {
        "function" => {
            tool.inside("function", &KEPT, rest, arena, |inner| {
                call.name = inner.text("name").unwrap_or_default().into();
                call.input = input(inner, "arguments", arena);
                call.output = output(inner, "output");
            });
        }
        "code_interpreter" => {
            tool.inside(kind, &["outputs"], rest, arena, |inner| {
                call.input = inner.text("input").map(|code| ToolInput::Text(code.into()));
                call.output = logs(inner, arena);
            });
        }
        "retrieval" | "file_search" => call.output = output(&mut tool, kind),
        _ => {
            call.name = tool.text("name").unwrap_or_default().into();
            call.input = input(&mut tool, "args", arena);
            call.output = output(&mut tool, "output");
        }
    }
    if call.name.is_empty() {
        call.name = kind.into();
    }
    // The address of a page where the person gives a tool access to an account: it is valid for minutes, and private.
    tool.take("auth");
    let left = tool.left(&KEPT, rest);
    (call, left)
}

fn input<'a>(tool: &mut Parts<'a>, key: &'a str, arena: &'a Arena) -> Option<ToolInput<'a>> {
    tool.take(key);
    match tool.get(key) {
        Value::Null | Value::Text("") => None,
        Value::Text(text) => Some(ToolInput::of_text(text, arena)),
        Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
    }
}

fn output<'a>(tool: &mut Parts<'a>, key: &'a str) -> Option<Cow<'a, str>> {
    tool.take(key);
    match tool.get(key) {
        Value::Null | Value::Text("") | Value::Raw("{}" | "[]") => None,
        Value::Text(text) => Some(text.into()),
        Value::Raw(raw) => Some(raw.into()),
    }
}

/// The logs of a program that ran. Pictures that it made stay in the list.
fn logs<'a>(tool: &mut Parts<'a>, arena: &'a Arena) -> Option<Cow<'a, str>> {
    let raw = tool.get("outputs").raw()?;
    let outputs = items(raw, arena);
    let logs: Vec<&str> =
        outputs.iter().filter_map(|output| Object::parse(output.raw()?, arena).text("logs")).collect();
    if logs.len() == outputs.len() {
        tool.take("outputs");
    }
    (!logs.is_empty()).then(|| Cow::Owned(logs.join("\n")))
}

/// Adds the calls of plugins at `key` and keeps what remains in `rest`. `plugins` is a list of calls; `plugin` is an object with the calls
/// in `inputs` and the results of all of them in `outputs`.
pub(super) fn read_plugins<'a>(
    key: &'a str,
    value: Value<'a>,
    calls: &mut Vec<ToolCall<'a>>,
    rest: &mut Leftover<'a>,
    arena: &'a Arena,
) {
    let listed = value.raw().is_some_and(|raw| raw.starts_with('['));
    let objects = if listed { items(value.raw().unwrap_or_default(), arena) } else { vec![value] };
    let mut left = Vec::new();
    for object in objects {
        match Parts::of(object, arena) {
            Some(plugin) => left.push(read_plugin(plugin, calls, rest, arena).unwrap_or("{}".into())),
            None if matches!(object, Value::Null | Value::Text("")) => {}
            None => {
                rest.note_unknown(key, object);
                left.push(object.json());
            }
        }
    }
    if left.iter().any(|left| left != "{}") {
        let json = left.join(",");
        rest.add_json(key, &if listed { format!("[{json}]") } else { json });
    }
}

fn read_plugin<'a>(
    mut plugin: Parts<'a>,
    calls: &mut Vec<ToolCall<'a>>,
    rest: &mut Leftover<'a>,
    arena: &'a Arena,
) -> Option<Cow<'a, str>> {
    const KNOWN: [&str; 4] = ["inputs", "latest", "loading", "thought"];
    let before = calls.len();
    if let Some(name) = plugin.text("plugin") {
        let input = input(&mut plugin, "input", arena);
        calls.push(ToolCall { name: name.into(), input, ..ToolCall::default() });
    } else {
        let inputs = plugin.get("inputs").raw().map(|raw| items(raw, arena)).unwrap_or_default();
        for mut step in inputs.into_iter().filter_map(|step| Parts::of(step, arena)) {
            if let Some(name) = step.text("plugin") {
                let input = input(&mut step, "input", arena);
                calls.push(ToolCall { name: name.into(), input, ..ToolCall::default() });
            }
        }
    }
    if calls.len() == before {
        let name = plugin.get("latest").nonempty_text().unwrap_or("plugin");
        calls.push(ToolCall { name: name.into(), ..ToolCall::default() });
    }
    if let Some(call) = calls.last_mut() {
        call.output = output(&mut plugin, "outputs");
    }
    plugin.left(&KNOWN, rest)
}
