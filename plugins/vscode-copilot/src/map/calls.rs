//! Calls of tools, and edits of files, which VS Code shows as parts of an answer.

use std::borrow::Cow;

use satchel_importer::{Fields, JsonError, Role, ToolCall, ToolInput, json::Value};

use super::{
    Draft, attachments,
    rounds::{Call, Rounds},
};
use crate::fields::{FIELD_READER, take_id};
/// The types of a call of a tool.
const INVOCATIONS: [&str; 2] = ["toolInvocation", "toolInvocationSerialized"];
/// Edits that the answer made in files.
const EDITS: [&str; 7] = [
    "textEdit",
    "textEditGroup",
    "notebookEdit",
    "notebookEditGroup",
    "workspaceEdit",
    "externalEdit",
    "multiDiffData",
];
/// Fields of a call that are known and kept as they are.
const KEPT: [&str; 20] = [
    "confirmationMessages",
    "fromSubAgent",
    "generatedTitle",
    "icon",
    "invocationMessage",
    "isAttachedToThinking",
    "isComplete",
    "isConfirmed",
    "kind",
    "originMessage",
    "pastTenseMessage",
    "presentation",
    "progress",
    "resultDetails",
    "resultError",
    "source",
    "subAgentInvocationId",
    "toolCallId",
    "toolId",
    "toolSpecificData",
];

/// Whether parts of this type are calls of tools.
pub(super) fn is_invocation(kind: &str) -> bool {
    INVOCATIONS.contains(&kind)
}

/// Whether parts of this type are edits of files.
pub(super) fn is_edit(kind: &str) -> bool {
    EDITS.contains(&kind)
}

/// The ids of the calls that the model itself made. Those of its subagents are in no round.
pub(super) fn ids<'a>(parts: &[Fields<'a>]) -> Vec<&'a str> {
    let own = |part: &&Fields<'a>| {
        let kind = part.get("kind").text().unwrap_or_default();
        let of_subagent =
            part.get("subAgentInvocationId") != Value::Null || part.get("fromSubAgent").is_true();
        is_invocation(kind) && !of_subagent
    };
    parts.iter().filter(own).map(|part| part.get("toolCallId").text().unwrap_or_default()).collect()
}

/// Maps a call. `by_order` says that it shows the first call that no other one has shown.
pub(super) fn invocation<'a>(
    mut fields: Fields<'a>,
    rounds: &mut Rounds<'a>,
    by_order: bool,
) -> Result<Draft<'a>, JsonError> {
    let arena = fields.arena();
    let mut draft = Draft::new(Role::Assistant);
    let id = take_id(&mut fields, "toolCallId");
    let of_subagent =
        fields.get("subAgentInvocationId") != Value::Null || fields.get("fromSubAgent").is_true();
    let paired =
        if by_order && !of_subagent { rounds.take_next() } else { id.and_then(|id| rounds.take_by_id(id)) };
    let specific =
        FIELD_READER.of(fields.get("toolSpecificData"), arena)?.unwrap_or_else(|| FIELD_READER.none(arena));
    let mut shown = Shown::take(&mut fields, &mut draft)?;
    let own = ToolCall {
        id: id.map(Cow::Borrowed),
        name: fields.take_text("toolId").unwrap_or("tool").into(),
        input: None,
        output: None,
    };
    let mut call = match paired {
        Some(call) => joined(own, call, &mut draft),
        None => own,
    };
    if call.input.is_none() {
        call.input =
            shown.input.take().map(|text| ToolInput::of_text(text, arena)).or_else(|| input(&specific));
    }
    if call.output.is_none() {
        call.output = shown.output.take().map(Cow::Owned).or_else(|| output(&specific).map(Cow::Borrowed));
    }
    let repeated = shown.output.as_deref() == call.output.as_deref();
    shown.keep(repeated, &mut draft);
    draft.message.tool_calls = vec![call];
    fields.add_to(&mut draft.rest, &KEPT);
    Ok(draft)
}

/// Joins what the page shows of a call with what the model wrote.
fn joined<'a>(own: ToolCall<'a>, call: &mut Call<'a>, draft: &mut Draft<'a>) -> ToolCall<'a> {
    if let Some(name) = call.name {
        draft.rest.add_text("tool_name", name);
    }
    if let Some(json) = &call.rest {
        draft.rest.add_json("call", json);
    }
    for picture in call.pictures.drain(..) {
        // The page may show it too.
        if !draft.message.attachments.iter().any(|shown| shown.source == picture.source) {
            draft.message.attachments.push(picture);
        }
    }
    ToolCall { input: call.input.take(), output: call.output.take().map(Cow::Owned), ..own }
}

/// A call that the page does not show.
pub(super) fn unseen<'a>(call: &mut Call<'a>) -> Draft<'a> {
    let mut draft = Draft::new(Role::Assistant);
    if let Some(json) = &call.rest {
        draft.rest.add_json("call", json);
    }
    draft.message.attachments.append(&mut call.pictures);
    draft.message.tool_calls = vec![ToolCall {
        id: call.id.map(Cow::Borrowed),
        name: call.name.unwrap_or("tool").into(),
        input: call.input.take(),
        output: call.output.take().map(Cow::Owned),
    }];
    draft
}

/// An edit as a call whose input is the edit.
pub(super) fn edit<'a>(kind: &'a str, mut fields: Fields<'a>) -> Draft<'a> {
    let mut draft = Draft::new(Role::Assistant);
    fields.take("kind");
    let known: Vec<&str> = fields.iter().map(|(key, _)| key).collect();
    let input = fields.into_rest(&known).into_json().map(ToolInput::Object);
    draft.message.tool_calls = vec![ToolCall { id: None, name: kind.into(), input, output: None }];
    draft
}

/// The details of a result, as the page shows them.
#[derive(Default)]
struct Shown<'a> {
    input: Option<&'a str>,
    output: Option<String>,
    rest: Option<Fields<'a>>,
}

impl<'a> Shown<'a> {
    /// Takes the details. Lists of files, which some tools have instead, stay.
    fn take(fields: &mut Fields<'a>, draft: &mut Draft<'a>) -> Result<Self, JsonError> {
        let arena = fields.arena();
        let Some(mut details) = fields.take_object("resultDetails")? else { return Ok(Self::default()) };
        let mut shown = Self { input: details.take_text("input"), ..Self::default() };
        match details.get("output") {
            Value::Text(_) => shown.output = details.take_text("output").map(ToOwned::to_owned),
            Value::Raw(raw) if raw.starts_with('[') => {
                details.take("output");
                let (mut texts, mut others) = (Vec::new(), Vec::new());
                for item in FIELD_READER.items(raw, arena)? {
                    match FIELD_READER.of(item, arena)? {
                        Some(part) => shown_part(part, &mut texts, &mut others, draft),
                        None => others.push(item.json().into_owned()),
                    }
                }
                shown.output = (!texts.is_empty()).then(|| texts.join("\n"));
                if !others.is_empty() {
                    let list = arena.alloc_str(&format!("[{}]", others.join(",")));
                    details.push("output", Value::Raw(list));
                }
            }
            value => {
                let picture = FIELD_READER.of(value, arena)?.and_then(|output| {
                    attachments::of_base64(output.get("base64Data").text()?, output.get("mimeType").text())
                });
                if picture.is_some() {
                    details.take("output");
                }
                draft.message.attachments.extend(picture);
            }
        }
        shown.rest = Some(details);
        Ok(shown)
    }

    /// Keeps what the call does not have.
    fn keep(self, repeated: bool, draft: &mut Draft<'a>) {
        const KNOWN: [&str; 6] = ["input", "inputLanguage", "isError", "mcpOutput", "output", "text"];
        let Some(mut rest) = self.rest else { return };
        if let Some(input) = self.input {
            rest.push("input", Value::Text(input));
        }
        let output = self.output.filter(|_| !repeated);
        if let Some(output) = output {
            let text = rest.arena().alloc_str(&output);
            rest.push("text", Value::Text(text));
        }
        let rest = rest.into_rest(&KNOWN);
        if rest.unread().is_some() {
            draft.rest.mark_unread("resultDetails");
        }
        if let Some(json) = rest.into_json() {
            draft.rest.add_json("resultDetails", &json);
        }
    }
}

/// One part of the output of a tool: a text, a picture, or something that is kept.
fn shown_part<'a>(
    mut part: Fields<'a>,
    texts: &mut Vec<&'a str>,
    others: &mut Vec<String>,
    draft: &mut Draft<'a>,
) {
    let mime = part.get("mimeType").nonempty_text();
    let text = part.get("value").text();
    let is_text = part.get("isText").is_true() || mime.is_none_or(|mime| mime.starts_with("text/"));
    match text {
        Some(text) if is_text => {
            part.take("value");
            texts.push(text);
            part.remove(&["isText", "type"]);
        }
        Some(text) => {
            if let Some(picture) = attachments::of_base64(text, mime) {
                draft.message.attachments.push(picture);
                part.remove(&["isText", "mimeType", "type", "value"]);
            }
        }
        None => {}
    }
    others.extend(part.into_rest(&[]).into_json().map(Cow::into_owned));
}

/// The input that the page shows, by the type of the tool.
fn input<'a>(specific: &Fields<'a>) -> Option<ToolInput<'a>> {
    let arena = specific.arena();
    let line = FIELD_READER.of(specific.get("commandLine"), arena).ok().flatten();
    let run = line.and_then(|line| {
        ["userEdited", "toolEdited", "original"].into_iter().find_map(|key| line.get(key).nonempty_text())
    });
    let text = run.or_else(|| {
        ["command", "prompt", "input"].into_iter().find_map(|key| specific.get(key).nonempty_text())
    });
    match specific.get("rawInput") {
        Value::Text(text) => Some(ToolInput::of_text(text, arena)),
        Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        Value::Null => text.map(|text| ToolInput::Text(text.into())),
    }
}

/// The output that the page shows, by the type of the tool.
fn output<'a>(specific: &Fields<'a>) -> Option<&'a str> {
    let terminal = FIELD_READER.of(specific.get("terminalCommandOutput"), specific.arena()).ok().flatten();
    let of_terminal = terminal.and_then(|terminal| terminal.get("text").nonempty_text());
    of_terminal.or_else(|| ["result", "output"].into_iter().find_map(|key| specific.get(key).nonempty_text()))
}
