//! The pieces of an answer of the model: thoughts, text, calls, and what the tools answered.

use std::{borrow::Cow, collections::BTreeSet, mem};

use satchel_importer::{
    Fields, ImportError, Message, Role, ToolCall, ToolInput,
    json::{FieldReader, Value},
};

use super::{Piece, Record, Slot, take_time};
use crate::{
    digest::{digest, digest_of_json, digest_of_thoughts, digest_of_words},
    parts::{Call, Parts, Remaining, Response},
};

/// The name of a tool that has none.
const TOOL: &str = "tool";
/// States of a call that has ended.
const ENDED: [&str; 3] = ["success", "error", "cancelled"];

/// A call in the list of calls, with its result.
struct Called<'a> {
    call: Call<'a>,
    result: Option<Parts<'a>>,
    /// Calls inside of the result.
    nested: Vec<Call<'a>>,
    /// Results of other calls inside of it: a checkpoint has those of all parallel calls in each.
    others: Vec<Response<'a>>,
}

impl<'a> Record<'a> {
    /// An answer of the model.
    pub(super) fn add_answer(&mut self, mut content: Parts<'a>, decode: bool) -> Result<(), ImportError> {
        self.add_thoughts(&content)?;
        let answers = mem::take(&mut content.responses);
        let mut called = self.take_called(decode)?;
        let answered: BTreeSet<&str> = called
            .iter()
            .filter(|called| called.result.is_some())
            .filter_map(|called| called.call.id)
            .collect();
        for called in &mut called {
            called.others.retain(|answer| answer.id.is_none_or(|id| !answered.contains(id)));
        }
        let mut calls = mem::take(&mut content.calls);
        let listed: BTreeSet<_> = called.iter().flat_map(|called| called.call.names()).collect();
        calls.retain(|call| !listed.contains(&(call.id, call.input())));
        self.add_content(content, self.answering_role(), Slot::Text);
        self.add_calls(calls);
        for called in called {
            self.add_called(called);
        }
        for answer in answers {
            let piece = self.result(answer);
            self.pieces.push(piece);
        }
        Ok(())
    }

    /// The thoughts. Newer versions have them among the parts of the content, too.
    fn add_thoughts(&mut self, content: &Parts<'a>) -> Result<(), ImportError> {
        let arena = self.rest.arena();
        if let Some(list) = self.rest.get("thoughts").raw().filter(|raw| raw.starts_with('[')) {
            self.rest.take("thoughts");
            for thought in FieldReader::new().item_fields(list, arena)? {
                self.add_thought(thought.value, thought.fields?);
            }
        }
        if content.thoughts.is_empty() {
            return Ok(());
        }
        let listed: BTreeSet<u64> = self.pieces.iter().map(|piece| piece.key).collect();
        let all = |pieces: &[Piece<'a>]| {
            digest_of_thoughts(pieces.iter().flat_map(|piece| piece.texts.iter().map(|text| &**text)))
        };
        // A stream may have joined them.
        if all(&self.pieces) == digest_of_thoughts(content.thoughts.iter().copied()) {
            return Ok(());
        }
        for text in &content.thoughts {
            let mut piece = self.thought(digest_of_thoughts([*text]));
            if !listed.contains(&piece.key) {
                piece.texts.push(Cow::Borrowed(text));
                self.pieces.push(piece);
            }
        }
        Ok(())
    }

    fn add_thought(&mut self, thought: Value<'a>, fields: Option<Fields<'a>>) {
        let mut piece = self.thought(0);
        match (thought, fields) {
            (Value::Null, _) => return,
            (Value::Text(text), _) => piece.texts.push(Cow::Borrowed(text)),
            (_, Some(mut fields)) => {
                let texts = ["subject", "description"].map(|key| fields.take_text(key));
                piece.texts.extend(texts.into_iter().flatten().map(Cow::Borrowed));
                piece.message.created_at = take_time(&mut fields).or(self.time);
                piece.keep(&fields);
            }
            (Value::Raw(raw), None) => {
                piece.rest.add_json("thought", raw);
                piece.rest.note_unknown("thought", thought);
            }
        }
        piece.key = digest_of_thoughts(piece.texts.iter().map(|text| &**text));
        if !piece.texts.is_empty() || piece.rest.unread().is_some() {
            self.pieces.push(piece);
        }
    }

    fn thought(&self, key: u64) -> Piece<'a> {
        let message = Message { is_thought: true, ..self.message(Role::Assistant) };
        Piece::new(Slot::Thought, key, message)
    }

    /// Takes the list of calls. What is no call stays in the list.
    fn take_called(&mut self, decode: bool) -> Result<Vec<Called<'a>>, ImportError> {
        let arena = self.rest.arena();
        let Some(list) = self.rest.get("toolCalls").raw().filter(|raw| raw.starts_with('[')) else {
            return Ok(Vec::new());
        };
        self.rest.take("toolCalls");
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for item in FieldReader::new().item_fields(list, arena)? {
            let Some(fields) = item.fields? else {
                others.push(item.value.json());
                continue;
            };
            let mut call = Call::new(fields);
            let mut result = match call.rest.take("result") {
                Value::Null => None,
                result => Some(Parts::read(result, arena, decode)?),
            };
            self.unreadable |= result.as_ref().is_some_and(|parts| parts.unreadable);
            let nested = result.as_mut().map(|parts| mem::take(&mut parts.calls)).unwrap_or_default();
            let others = result.as_mut().map(|parts| parts.take_others(call.id)).unwrap_or_default();
            found.push(Called { call, result, nested, others });
        }
        if !others.is_empty() {
            self.rest.push("toolCalls", Value::Raw(arena.alloc_str(&format!("[{}]", others.join(",")))));
        }
        Ok(found)
    }

    /// The calls among the parts of a content.
    pub(super) fn add_calls(&mut self, calls: Vec<Call<'a>>) {
        for mut call in calls {
            let rest = call.take_rest();
            let piece = self.call(&call, &rest);
            self.pieces.push(piece);
        }
    }

    fn call(&self, call: &Call<'a>, rest: &Fields<'a>) -> Piece<'a> {
        let arena = self.rest.arena();
        let input = call.input();
        let mut piece = Piece::new(Slot::Call, call.key(), self.message(self.answering_role()));
        piece.input = Some(input);
        piece.call = call.id.map(Cow::Borrowed);
        piece.message.tool_calls = vec![ToolCall {
            id: call.id.map(Cow::Borrowed),
            name: call.name.unwrap_or(TOOL).into(),
            input: match call.args {
                Value::Null => None,
                Value::Text(text) => Some(ToolInput::of_text(text, arena)),
                Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
            },
            output: None,
        }];
        piece.keep(rest);
        piece
    }

    /// A call, and its result once it has ended.
    fn add_called(&mut self, mut called: Called<'a>) {
        let status = called.call.rest.get("status").text().unwrap_or_default();
        // What is shown of a call that runs is not its result.
        if called.result.is_none() && !ENDED.contains(&status) {
            return self.add_calls(vec![called.call]);
        }
        let call = self.call(&called.call, &Fields::none(self.rest.arena()));
        self.pieces.push(call);
        let mut result = self.result_of(&mut called);
        if let Some(id) = called.call.id {
            result.rest.add_text("call_id", id);
        }
        self.pieces.push(result);
        self.add_calls(called.nested);
        for answer in called.others {
            let piece = self.result(answer);
            self.pieces.push(piece);
        }
    }

    fn result_of(&self, called: &mut Called<'a>) -> Piece<'a> {
        let call = &mut called.call;
        let mut piece = Piece::new(Slot::Result, 0, self.message(Role::Tool));
        piece.call = call.id.map(Cow::Borrowed);
        piece.message.created_at = take_time(&mut call.rest).or(self.time);
        let mut parts = called.result.take().unwrap_or_default();
        piece.content.extend(&parts.files);
        piece.content.extend(parts.remaining.iter().map(Remaining::digest));
        piece.content.extend(parts.words().map(|text| digest_of_words([text])));
        let (others, error) = add_responses(&mut piece, call, mem::take(&mut parts.responses));
        let answered = digest_of_words(piece.texts.iter().map(|text| &**text));
        let has_answer = !piece.texts.is_empty();
        let more = !parts.texts.is_empty() || !parts.thoughts.is_empty();
        piece.texts.append(&mut parts.texts);
        piece.texts.extend(mem::take(&mut parts.thoughts).into_iter().map(Cow::Borrowed));
        let words = if more { digest_of_words(piece.texts.iter().map(|text| &**text)) } else { answered };
        // In the person's name, a text beside the answer is a message of its own.
        piece.words = if has_answer { answered } else { words };
        piece.input = call.id.is_some().then(|| call.input());
        piece.key = if call.id.is_some() { call.key() } else { digest(&format!("{words} {}", call.input())) };
        // What was shown repeats the answer of many tools.
        let shown = call.rest.get("resultDisplay").nonempty_text().map(|text| digest_of_words([text]));
        if shown == Some(words) {
            call.rest.take("resultDisplay");
        }
        piece.keep(&call.take_rest());
        others.iter().for_each(|fields| piece.keep(fields));
        if error {
            piece.rest.add_bool("error", true);
        }
        (piece.files, piece.remaining, piece.field) = (parts.files, parts.remaining, "result");
        piece.message.attachments = parts.attachments;
        piece
    }

    /// What a tool answered, in a message of its own.
    pub(super) fn result(&self, answer: Response<'a>) -> Piece<'a> {
        let words = digest_of_words(answer.texts.iter().map(|text| &**text));
        let key = answer.id.map_or(words, digest);
        let mut piece = Piece::new(Slot::Result, key, self.message(Role::Tool));
        piece.words = words;
        piece.call = answer.id.map(Cow::Borrowed);
        piece.texts = answer.texts;
        piece.keep(&answer.rest);
        if answer.error {
            piece.rest.add_bool("error", true);
        }
        if let Some(id) = answer.id {
            piece.rest.add_text("call_id", id);
        }
        piece
    }
}

/// Adds the texts of what a tool answered. Returns the other fields, and whether it is an error.
fn add_responses<'a>(
    piece: &mut Piece<'a>,
    call: &Call<'a>,
    responses: Vec<Response<'a>>,
) -> (Vec<Fields<'a>>, bool) {
    let (mut others, mut error) = (Vec::new(), false);
    for mut response in responses {
        piece.texts.append(&mut response.texts);
        if response.rest.get("name").text() == call.name {
            response.rest.take("name");
        }
        if let Some(id) = response.id.filter(|id| call.id != Some(id)) {
            response.rest.push("response_id", Value::Text(id));
        }
        error |= response.error;
        others.push(response.rest);
    }
    (others, error)
}

impl<'a> Call<'a> {
    /// Digest of its name and its input.
    fn input(&self) -> u64 {
        let args = match self.args.json() {
            // The same call may be written without a list of its arguments.
            args if args == "null" => "{}".into(),
            args => args,
        };
        digest(&format!("{} {}", self.name.unwrap_or_default(), digest_of_json(&args)))
    }

    /// Digest of its id and its input.
    fn key(&self) -> u64 {
        let input = self.input();
        self.id.map_or(input, |id| digest(&format!("{input} {id}")))
    }

    /// What a part of the content with this call has: some have no id.
    fn names(&self) -> [(Option<&'a str>, u64); 2] {
        [(self.id, self.input()), (None, self.input())]
    }

    /// Takes the fields that are left.
    fn take_rest(&mut self) -> Fields<'a> {
        let none = Fields::none(self.rest.arena());
        mem::replace(&mut self.rest, none)
    }
}
