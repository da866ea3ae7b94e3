//! Tool calls, each with what the tool answered.

use std::borrow::Cow;

use satchel_importer::{Arena, JsonError, Leftover, Parser, ToolCall, ToolInput, json::Kind};

use crate::raw::Block;

/// A tool whose name the export does not give: PAM asks for one.
const NAMELESS: &str = "unknown";

/// The calls of one message, in order.
#[derive(Default)]
pub(super) struct Calls<'a> {
    records: Vec<ToolCall<'a>>,
    traces: Vec<Trace<'a>>,
}

/// What is known of a call beside its record.
#[derive(Debug)]
pub(super) struct Trace<'a> {
    /// Its place in the content.
    pub(super) block: usize,
    /// JSON text.
    pub(super) input: Option<&'a str>,
    pub(super) state: State,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No answer was seen yet.
    Open,
    Answered,
    Failed,
    /// An answer of which the call was not seen, and whether it tells of a failure.
    Stray {
        failed: bool,
    },
}

impl<'a> Calls<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes the `tool_use` at `place` in the content.
    pub(super) fn ask(&mut self, block: &mut Block<'a>, place: usize, arena: &'a Arena) {
        let input = block.input.take();
        self.records.push(ToolCall {
            id: block.id.take().map(Cow::Borrowed),
            name: block.name.take().unwrap_or(NAMELESS).into(),
            input: input.map(|raw| ToolInput::of_json(raw, arena)),
            output: None,
        });
        self.traces.push(Trace { block: place, input, state: State::Open });
    }

    /// Joins a `tool_result` to its call; one without a call stands for itself. Gives a list that holds more than texts.
    pub(super) fn answer(
        &mut self,
        block: &mut Block<'a>,
        place: usize,
        arena: &'a Arena,
    ) -> Option<&'a str> {
        let (output, rich) = match block.content.take() {
            Some(raw) => output(raw, &mut block.rest, arena),
            None => (Cow::Borrowed(""), None),
        };
        if let Some((record, trace)) = self.asked(block) {
            trace.state = if block.error { State::Failed } else { State::Answered };
            record.output = Some(output);
            return rich;
        }
        self.records.push(ToolCall {
            id: block.tool_use_id.map(Cow::Borrowed),
            name: block.name.unwrap_or(NAMELESS).into(),
            input: None,
            output: Some(output),
        });
        self.traces.push(Trace { block: place, input: None, state: State::Stray { failed: block.error } });
        rich
    }

    /// The call that a result belongs to: the one with its id, else the last open one of its name.
    fn asked(&mut self, block: &Block<'a>) -> Option<(&mut ToolCall<'a>, &mut Trace<'a>)> {
        let calls = self.records.iter_mut().zip(&mut self.traces).rev();
        let mut open = calls.filter(|(_, trace)| trace.state == State::Open);
        match block.tool_use_id {
            Some(id) => open.find(|(record, _)| record.id.as_deref() == Some(id)),
            None => open.find(|(record, _)| block.name.is_none_or(|name| record.name == name)),
        }
    }

    /// The calls and, at the same places, what is known of them.
    pub(super) fn finish(self) -> (Vec<ToolCall<'a>>, Vec<Trace<'a>>) {
        (self.records, self.traces)
    }
}

/// The text of a result: its texts if it holds nothing else, or its JSON, given once more if it does. What stands beside
/// the texts goes to `rest`.
fn output<'a>(raw: &'a str, rest: &mut Leftover<'a>, arena: &'a Arena) -> (Cow<'a, str>, Option<&'a str>) {
    match texts(&mut Parser::new(raw, arena)) {
        Ok(Some((texts, beside))) => {
            if beside.iter().any(|item| item != "{}") {
                rest.add_json("content", &format!("[{}]", beside.join(",")));
            }
            let text = match texts.as_slice() {
                [text] => Cow::Borrowed(*text),
                _ => texts.join("\n").into(),
            };
            (text, None)
        }
        // The value was walked when it was taken, so there is no error.
        Ok(None) | Err(_) => (Cow::Borrowed(raw), Some(raw)),
    }
}

/// The texts of a string or of a list of text items, and what is left of each item; none if there is more than text.
#[expect(clippy::type_complexity, reason = "two lists of one loop")]
fn texts<'a>(json: &mut Parser<'a>) -> Result<Option<(Vec<&'a str>, Vec<Cow<'a, str>>)>, JsonError> {
    if json.kind()? == Kind::String {
        return Ok(Some((vec![json.string()?], Vec::new())));
    }
    if !json.enter_array()? {
        return Ok(None);
    }
    let (mut texts, mut beside) = (Vec::new(), Vec::new());
    while json.item()? {
        let Some((text, rest)) = text_item(json)? else { return Ok(None) };
        texts.push(text);
        beside.push(rest);
    }
    Ok(Some((texts, beside)))
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
