//! Tool calls, each with its result.

use std::borrow::Cow;

use satchel_importer::{Arena, JsonError, Leftover, Parser, ToolCall, ToolInput, json::Kind};

use crate::raw::Block;

/// PAM requires a name, even if the export gives none.
const NAMELESS: &str = "unknown";

/// The calls of one message, in order.
#[derive(Default)]
pub(super) struct Calls<'a> {
    records: Vec<ToolCall<'a>>,
    traces: Vec<CallTrace<'a>>,
}

/// Facts about a call beside its record.
#[derive(Debug)]
pub(super) struct CallTrace<'a> {
    /// The index of its block in the content.
    pub(super) block: usize,
    /// JSON text.
    pub(super) input: Option<&'a str>,
    pub(super) state: CallState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// No result was found yet.
    Open,
    Succeeded,
    Failed,
    /// A result without its call.
    Orphan {
        failed: bool,
    },
}

impl CallState {
    pub(super) fn of_result(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Succeeded }
    }
}

impl<'a> Calls<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds the `tool_use` at `index` in the content.
    pub(super) fn add_call(&mut self, block: &mut Block<'a>, index: usize, arena: &'a Arena) {
        let input = block.input.take();
        self.records.push(ToolCall {
            id: block.id.take().map(Cow::Borrowed),
            name: block.name.take().unwrap_or(NAMELESS).into(),
            input: input.map(|raw| ToolInput::of_json(raw, arena)),
            output: None,
        });
        self.traces.push(CallTrace { block: index, input, state: CallState::Open });
    }

    /// Joins a `tool_result` to its call, or adds it as an orphan. Returns its JSON text if it holds more than texts.
    pub(super) fn add_result(
        &mut self,
        block: &mut Block<'a>,
        index: usize,
        arena: &'a Arena,
    ) -> Option<&'a str> {
        let (output, rich) = match block.content.take() {
            Some(raw) => output(raw, &mut block.rest, arena),
            None => (Cow::Borrowed(""), None),
        };
        if let Some((record, trace)) = self.open_call(block) {
            trace.state = CallState::of_result(block.error);
            record.output = Some(output);
            return rich;
        }
        self.records.push(ToolCall {
            id: block.tool_use_id.map(Cow::Borrowed),
            name: block.name.unwrap_or(NAMELESS).into(),
            input: None,
            output: Some(output),
        });
        let state = CallState::Orphan { failed: block.error };
        self.traces.push(CallTrace { block: index, input: None, state });
        rich
    }

    /// The call of a result: the one with its id, else the last open one of its name.
    fn open_call(&mut self, result: &Block<'a>) -> Option<(&mut ToolCall<'a>, &mut CallTrace<'a>)> {
        let calls = self.records.iter_mut().zip(&mut self.traces).rev();
        let mut open = calls.filter(|(_, trace)| trace.state == CallState::Open);
        match result.tool_use_id {
            Some(id) => open.find(|(record, _)| record.id.as_deref() == Some(id)),
            None => open.find(|(record, _)| result.name.is_none_or(|name| record.name == name)),
        }
    }

    /// The records, and their traces at the same indices.
    pub(super) fn finish(self) -> (Vec<ToolCall<'a>>, Vec<CallTrace<'a>>) {
        (self.records, self.traces)
    }
}

/// The output of a result: its texts if it holds nothing else, otherwise its JSON, which is also the second value. Other
/// fields of the text items go to `rest`.
fn output<'a>(raw: &'a str, rest: &mut Leftover<'a>, arena: &'a Arena) -> (Cow<'a, str>, Option<&'a str>) {
    match texts(&mut Parser::new(raw, arena)) {
        Ok(Some((texts, fields))) => {
            if fields.iter().any(|item| item != "{}") {
                rest.add_json("content", &format!("[{}]", fields.join(",")));
            }
            let text = match texts.as_slice() {
                [text] => Cow::Borrowed(*text),
                _ => texts.join("\n").into(),
            };
            (text, None)
        }
        // There is no error: the value was checked when it was read.
        Ok(None) | Err(_) => (Cow::Borrowed(raw), Some(raw)),
    }
}

/// The texts of a string or of a list of text items, and the other fields of each item; none if there is more than text.
#[expect(clippy::type_complexity, reason = "two lists of one loop")]
fn texts<'a>(json: &mut Parser<'a>) -> Result<Option<(Vec<&'a str>, Vec<Cow<'a, str>>)>, JsonError> {
    if json.kind()? == Kind::String {
        return Ok(Some((vec![json.string()?], Vec::new())));
    }
    if !json.enter_array()? {
        return Ok(None);
    }
    let (mut texts, mut fields) = (Vec::new(), Vec::new());
    while json.item()? {
        let Some((text, rest)) = text_item(json)? else { return Ok(None) };
        texts.push(text);
        fields.push(rest);
    }
    Ok(Some((texts, fields)))
}

fn text_item<'a>(json: &mut Parser<'a>) -> Result<Option<(&'a str, Cow<'a, str>)>, JsonError> {
    let (mut rest, mut text, mut kind) = (Leftover::default(), None, None);
    if !json.enter_object()? {
        return Ok(None);
    }
    while let Some(key) = json.key()? {
        match key {
            "type" => kind = rest.text(key, json)?,
            "text" => text = rest.text(key, json)?,
            _ => rest.keep(key, json)?,
        }
    }
    if kind != Some("text") {
        return Ok(None);
    }
    Ok(text.map(|text| (text, rest.into_json().unwrap_or("{}".into()))))
}
