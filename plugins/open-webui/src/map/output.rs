//! Answers as output items, in the form of `OpenAI`'s Responses interface.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser, ToolCall, ToolInput,
    json::{Object, Value, items},
};

use super::{files, pieces::Pieces};

const KEY: &str = "output";

/// Reads the items. If there is none, the value is kept, unless it is null or empty, and the result is none.
pub(super) fn read<'a>(output: Value<'a>, rest: &mut Leftover<'a>, arena: &'a Arena) -> Option<Pieces<'a>> {
    let listed = output.raw().map(|raw| items(raw, arena)).unwrap_or_default();
    let mut pieces = Pieces::default();
    for item in &listed {
        let read = item.raw().filter(|raw| raw.starts_with('{')).map(|raw| Item::read(raw, arena));
        // The value was checked when it was read.
        let Some(Ok(item)) = read else {
            rest.note_unknown(KEY, *item);
            pieces.remaining.push(item.json());
            continue;
        };
        if item.rest.unread().is_some() {
            rest.mark_unread(KEY);
        }
        item.add_to(&mut pieces, arena);
    }
    if pieces.texts.is_empty() && pieces.thoughts.is_empty() && pieces.calls.is_empty() {
        if !matches!(output, Value::Null | Value::Raw("[]")) {
            rest.note_unknown(KEY, output);
            rest.add_json(KEY, &output.json());
        }
        return None;
    }
    Some(pieces)
}

/// One item.
#[derive(Debug, Default)]
struct Item<'a> {
    kind: &'a str,
    call: Option<&'a str>,
    name: Option<&'a str>,
    input: Value<'a>,
    content: Value<'a>,
    summary: Value<'a>,
    output: Value<'a>,
    rest: Leftover<'a>,
}

impl<'a> Item<'a> {
    fn read(raw: &'a str, arena: &'a Arena) -> Result<Self, JsonError> {
        let (mut json, mut it) = (Parser::new(raw, arena), Self::default());
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                it.read_field(key, &mut json)?;
            }
        }
        if !it.kind.is_empty() {
            it.rest.add_text("type", it.kind);
        }
        Ok(it)
    }

    fn read_field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "type" => self.kind = rest.text(key, json)?.unwrap_or_default(),
            "call_id" => self.call = rest.nonempty_text(key, json)?,
            "name" => self.name = rest.nonempty_text(key, json)?,
            "arguments" | "code" | "action" | "actions" | "queries" | "input"
                if self.input == Value::Null =>
            {
                self.input = Value::read(json)?;
            }
            "content" => self.content = Value::read(json)?,
            "summary" => self.summary = Value::read(json)?,
            "output" => self.output = Value::read(json)?,
            "id" | "status" | "role" | "duration" | "started_at" | "ended_at" | "lang" | "language"
            | "files" | "embeds" | "attributes" | "start_tag" | "end_tag" | "source_type"
            | "encrypted_content" => {
                rest.keep(key, json)?;
            }
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    fn add_to(mut self, pieces: &mut Pieces<'a>, arena: &'a Arena) {
        match self.kind {
            "reasoning" => {
                let of_summary = self.take_text("summary", arena, pieces);
                let text = of_summary.or_else(|| self.take_text("content", arena, pieces));
                self.keep_untaken();
                pieces.add_thought(text.unwrap_or_default(), self.remaining());
            }
            "function_call_output" | "custom_tool_call_output" => self.add_result(pieces, arena),
            kind if kind.ends_with("_call") || kind.ends_with("code_interpreter") => {
                self.add_call(pieces, arena);
            }
            // The answer, and any other item with a text.
            _ => {
                let text = self.take_text("content", arena, pieces);
                self.keep_untaken();
                pieces.texts.extend(text.filter(|text| !text.trim().is_empty()));
                pieces.remaining.push(self.remaining());
            }
        }
    }

    fn add_call(mut self, pieces: &mut Pieces<'a>, arena: &'a Arena) {
        let input = match std::mem::take(&mut self.input) {
            Value::Null | Value::Text("") => None,
            Value::Text(text) if self.kind.ends_with("_call") => Some(ToolInput::of_text(text, arena)),
            Value::Text(text) => Some(ToolInput::Text(text.into())),
            Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        };
        let name = self.name.take().unwrap_or(self.kind);
        let name = name.strip_prefix("open_webui:").unwrap_or(name);
        let output = match std::mem::take(&mut self.output) {
            Value::Null => None,
            Value::Text(text) | Value::Raw(text) => Some(text.into()),
        };
        self.keep_untaken();
        pieces.calls.push(ToolCall {
            id: self.call.take().map(Cow::Borrowed),
            name: name.into(),
            input,
            output,
        });
        pieces.remaining.push(self.remaining());
    }

    /// Adds a result to its call. A result without a call is a call of its own.
    fn add_result(mut self, pieces: &mut Pieces<'a>, arena: &'a Arena) {
        let of_output = self.take_text("output", arena, pieces);
        let text = of_output.or_else(|| self.take_text("content", arena, pieces));
        self.keep_untaken();
        let call = self.call.take();
        let open = |known: &&mut ToolCall<'a>| known.output.is_none() && known.id.as_deref() == call;
        match pieces.calls.iter_mut().rev().find(open).filter(|_| call.is_some()) {
            Some(known) => known.output = text,
            None => pieces.calls.push(ToolCall {
                id: call.map(Cow::Borrowed),
                name: self.name.take().unwrap_or(self.kind).into(),
                input: None,
                output: text,
            }),
        }
        pieces.remaining.push(self.remaining());
    }

    /// The texts of a field that is a text or a list of parts. Pictures among the parts become attachments; what remains of
    /// the parts is kept.
    fn take_text(&mut self, key: &'a str, arena: &'a Arena, pieces: &mut Pieces<'a>) -> Option<Cow<'a, str>> {
        let slot = match key {
            "summary" => &mut self.summary,
            "output" => &mut self.output,
            _ => &mut self.content,
        };
        let raw = match std::mem::take(slot) {
            Value::Null => return None,
            Value::Text(text) => return Some(text.into()),
            Value::Raw(raw) if raw.starts_with('[') => raw,
            Value::Raw(raw) => {
                // The result of a tool may be any value.
                if key == "output" {
                    return Some(raw.into());
                }
                self.rest.note_unknown(key, Value::Raw(raw));
                self.rest.add_json(key, raw);
                return None;
            }
        };
        let (mut texts, mut remaining) = (Vec::new(), Vec::new());
        for part in items(raw, arena) {
            let (text, rest) = self.read_part(part, arena, pieces);
            texts.extend(text);
            remaining.extend(rest);
        }
        if !remaining.is_empty() {
            self.rest.add_json(key, &format!("[{}]", remaining.join(",")));
        }
        match texts.as_slice() {
            [] => None,
            [one] => Some(Cow::Borrowed(one)),
            _ => Some(Cow::Owned(texts.concat())),
        }
    }

    /// The text of a part, and what else it has.
    fn read_part(
        &mut self,
        part: Value<'a>,
        arena: &'a Arena,
        pieces: &mut Pieces<'a>,
    ) -> (Option<&'a str>, Option<Cow<'a, str>>) {
        let Some(raw) = part.raw() else { return (part.text(), None) };
        let object = Object::parse(raw, arena);
        if let Some(picture) = files::picture_of_part(&object, arena) {
            pieces.attachments.push(picture);
            return (None, None);
        }
        let Some(text) = object.text("text") else {
            // An empty text has nothing to keep.
            let blank = object.get("text").text().is_some() && object.fields().count() <= 2;
            self.rest.note_unknown("content", part);
            return (None, (!blank).then(|| part.json()));
        };
        let mut rest = Leftover::default();
        for (key, value) in object.fields().filter(|(key, _)| *key != "text") {
            let plain = key == "type"
                && matches!(
                    value.text(),
                    Some("output_text" | "text" | "summary_text" | "input_text" | "reasoning_text")
                );
            if !plain && !matches!(value, Value::Null | Value::Raw("[]" | "{}")) {
                rest.note_unknown(key, value);
                rest.add_json(key, &value.json());
            }
        }
        if let Some(unread) = rest.unread() {
            self.rest.mark_unread(unread);
        }
        (Some(text), rest.into_json())
    }

    /// Keeps the values that this kind of item does not use.
    fn keep_untaken(&mut self) {
        let untaken = [
            ("input", &mut self.input),
            ("content", &mut self.content),
            ("summary", &mut self.summary),
            ("output", &mut self.output),
        ];
        for (key, value) in untaken {
            let value = std::mem::take(value);
            if !matches!(value, Value::Null | Value::Text("") | Value::Raw("[]" | "{}")) {
                self.rest.note_unknown(key, value);
                self.rest.add_json(key, &value.json());
            }
        }
    }

    fn remaining(&mut self) -> Cow<'a, str> {
        for (key, value) in [("call_id", self.call.take()), ("name", self.name.take())] {
            if let Some(value) = value {
                self.rest.add_text(key, value);
            }
        }
        std::mem::take(&mut self.rest).into_json().unwrap_or("{}".into())
    }
}
