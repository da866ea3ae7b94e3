//! Tool calls, each with what the tool answered.

use std::borrow::Cow;

use satchel_importer::{Arena, JsonError, Leftover, Parser, ToolCall, ToolInput, json::Kind};

use super::message::{Answer, MemoryCall};
use crate::raw::Block;

/// A tool whose name the export does not give: PAM asks for one.
const NAMELESS: &str = "unknown";

/// The calls of one message, in order.
#[derive(Default)]
pub(super) struct Calls<'a>(Vec<Call<'a>>);

struct Call<'a> {
    record: ToolCall<'a>,
    /// No answer was seen yet.
    open: bool,
    error: bool,
    /// JSON text.
    input: Option<&'a str>,
    /// The place of a call of the memory tool.
    memory: Option<usize>,
}

impl<'a> Calls<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a `tool_use`; `memory` is its place if it is the memory tool's.
    pub(super) fn ask(&mut self, block: &mut Block<'a>, memory: Option<usize>, arena: &'a Arena) {
        let input = block.input.take();
        let record = ToolCall {
            id: block.id.take().map(Cow::Borrowed),
            name: block.name.take().unwrap_or(NAMELESS).into(),
            input: input.map(|raw| ToolInput::of_json(raw, arena)),
            output: None,
        };
        self.0.push(Call { record, open: true, error: false, input, memory });
    }

    /// Joins a `tool_result` to its call. One without a call stands for itself.
    pub(super) fn answer(&mut self, block: &mut Block<'a>, arena: &'a Arena) {
        let output =
            block.content.take().map_or(Cow::Borrowed(""), |raw| output(raw, &mut block.rest, arena));
        if let Some(call) = self.asked(block) {
            call.open = false;
            call.error = block.error;
            call.record.output = Some(output);
            return;
        }
        let record = ToolCall {
            id: block.tool_use_id.map(Cow::Borrowed),
            name: block.name.unwrap_or(NAMELESS).into(),
            input: None,
            output: Some(output),
        };
        self.0.push(Call { record, open: false, error: block.error, input: None, memory: None });
    }

    /// The call that a result belongs to: the one with its id, else the last open one of its name.
    fn asked(&mut self, block: &Block<'a>) -> Option<&mut Call<'a>> {
        let mut open = self.0.iter_mut().rev().filter(|call| call.open);
        match block.tool_use_id {
            Some(id) => open.find(|call| call.record.id.as_deref() == Some(id)),
            None => open.find(|call| block.name.is_none_or(|name| call.record.name == name)),
        }
    }

    pub(super) fn finish(self) -> (Vec<ToolCall<'a>>, Vec<MemoryCall<'a>>) {
        let mut memory = Vec::new();
        for call in &self.0 {
            let Some(block) = call.memory else { continue };
            let answer = match (&call.record.output, call.error) {
                (None, _) => Answer::None,
                (Some(_), true) => Answer::Error,
                (Some(text), false) => Answer::Good(text.clone()),
            };
            memory.push(MemoryCall { block, input: call.input, answer });
        }
        (self.0.into_iter().map(|call| call.record).collect(), memory)
    }
}

/// The text of a result: its texts if it holds nothing else, or its JSON. What stands beside the texts goes to `rest`.
fn output<'a>(raw: &'a str, rest: &mut Leftover<'a>, arena: &'a Arena) -> Cow<'a, str> {
    match texts(&mut Parser::new(raw, arena)) {
        Ok(Some((texts, beside))) => {
            if beside.iter().any(|item| item != "{}") {
                rest.add_json("content", &format!("[{}]", beside.join(",")));
            }
            match texts.as_slice() {
                [text] => Cow::Borrowed(text),
                _ => texts.join("\n").into(),
            }
        }
        // The value was walked when it was taken, so there is no error.
        Ok(None) | Err(_) => Cow::Borrowed(raw),
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
