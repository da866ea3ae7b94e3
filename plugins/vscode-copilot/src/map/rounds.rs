//! What the Copilot extension notes about the rounds of an answer: the model's texts, its calls with their inputs, and their results.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Attachment, Fields, JsonError, Leftover, ToolInput, json::Value, text::without_white_space,
};

use super::results::{self, Output};
use crate::fields::{FIELD_READER, take_id};
/// What the extension puts behind the ids of calls.
const SUFFIX: &str = "__vscode";
/// Fields of a round that are known and kept.
const KEPT: [&str; 12] = [
    "compaction",
    "hookContext",
    "id",
    "modelId",
    "phase",
    "phaseModelId",
    "response",
    "statefulMarker",
    "summary",
    "thinking",
    "timestamp",
    "toolInputRetry",
];

/// Fields of a thought that are known and kept.
const THINKING: [&str; 4] = ["id", "metadata", "text", "tokens"];

/// The rounds of an answer.
#[derive(Debug, Default)]
pub(super) struct Rounds<'a> {
    rounds: Vec<Round<'a>>,
    calls: Vec<Call<'a>>,
    /// The numbers of the calls that no message has, by the id that the model gave, last ones first.
    unused: BTreeMap<&'a str, Vec<usize>>,
    /// No call before this one is unused.
    next: usize,
    /// Results of calls that were not read yet.
    results: BTreeMap<&'a str, Value<'a>>,
    /// What was not read of the results.
    kept: BTreeMap<&'a str, Value<'a>>,
    /// The field of the metadata in which an unknown field holds text.
    unread: Option<&'static str>,
    /// Items of the list that are no rounds.
    others: Vec<Value<'a>>,
}

/// One answer of the model.
#[derive(Debug)]
pub(super) struct Round<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) thought: Option<Cow<'a, str>>,
    /// The numbers of its calls.
    pub(super) calls: std::ops::Range<usize>,
    rest: Fields<'a>,
    /// The other fields of the thought.
    thinking: Option<Fields<'a>>,
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) input: Option<ToolInput<'a>>,
    pub(super) output: Option<String>,
    /// Pictures in its result.
    pub(super) pictures: Vec<Attachment<'a>>,
    /// Whether a message has it.
    used: bool,
    /// Its other fields, as JSON text.
    pub(super) rest: Option<Cow<'a, str>>,
}

impl<'a> Rounds<'a> {
    /// Takes the rounds out of the metadata of a result.
    pub(super) fn take(metadata: &mut Fields<'a>) -> Result<Self, JsonError> {
        let mut found = Self::default();
        if let Some(results) = metadata.take_object("toolCallResults")? {
            found.results = results.iter().collect();
        }
        for item in metadata.take_array_fields("toolCallRounds")?.unwrap_or_default() {
            match item.fields? {
                Some(round) => found.add(round)?,
                None => found.others.push(item.value),
            }
        }
        for (number, call) in found.calls.iter().enumerate().rev() {
            if let Some(id) = call.id {
                found.unused.entry(base(id)).or_default().push(number);
            }
        }
        Ok(found)
    }

    fn add(&mut self, mut round: Fields<'a>) -> Result<(), JsonError> {
        let arena = round.arena();
        let first = self.calls.len();
        for item in round.take_array_fields("toolCalls")?.unwrap_or_default() {
            match item.fields? {
                Some(call) => {
                    let call = self.call(call)?;
                    self.calls.push(call);
                }
                None => self.others.push(item.value),
            }
        }
        let text = round.take_text("response");
        let mut thinking = round.take_object("thinking")?;
        let thought = thinking.as_mut().and_then(|thinking| joined(thinking.take("text"), arena));
        if let Some(thinking) = &mut thinking {
            // Cannot be read, and is as long as the thought.
            thinking.remove(&["encrypted"]);
        }
        let calls = first..self.calls.len();
        self.rounds.push(Round { text, thought, calls, rest: round, thinking });
        Ok(())
    }

    fn call(&mut self, mut fields: Fields<'a>) -> Result<Call<'a>, JsonError> {
        let arena = fields.arena();
        let id = take_id(&mut fields, "id");
        let name = fields.take_text("name");
        let input = match fields.take("arguments") {
            Value::Null => None,
            Value::Text(text) => Some(ToolInput::of_text(text, arena)),
            Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        };
        let Output { text: output, pictures, .. } =
            id.map(|id| self.result(id, arena)).transpose()?.unwrap_or_default();
        let rest = fields.into_rest(&["type"]).into_json();
        Ok(Call { id, name, input, output, pictures, used: false, rest })
    }

    /// Takes the result of a call. What is not read of it is kept.
    fn result(&mut self, id: &'a str, arena: &'a Arena) -> Result<Output<'a>, JsonError> {
        let value = self.results.remove(id).unwrap_or_default();
        let output = match (value, FIELD_READER.of(value, arena)?) {
            (Value::Text(text), _) => Output { text: Some(text.to_owned()), ..Output::default() },
            (_, Some(result)) => results::read(result)?,
            (other, None) => Output { rest: Some(other), ..Output::default() },
        };
        self.kept.extend(output.rest.map(|rest| (id, rest)));
        if output.unread {
            self.unread = Some("toolCallResults");
        }
        Ok(output)
    }

    /// Whether there are no rounds.
    pub(super) fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Round<'a>> {
        self.rounds.iter()
    }

    /// Takes the call that the invocation with this id shows.
    pub(super) fn take_by_id(&mut self, id: &str) -> Option<&mut Call<'a>> {
        let number = self.unused.get_mut(base(id))?.pop()?;
        self.take_number(number)
    }

    /// Takes the first call that no message has.
    pub(super) fn take_next(&mut self) -> Option<&mut Call<'a>> {
        while self.calls.get(self.next).is_some_and(|call| call.used) {
            self.next += 1;
        }
        self.take_number(self.next)
    }

    /// Takes the call with this number if no message has it.
    pub(super) fn take_number(&mut self, number: usize) -> Option<&mut Call<'a>> {
        let call = self.calls.get_mut(number).filter(|call| !call.used)?;
        call.used = true;
        Some(call)
    }

    /// Whether no call has the id of one of `invocations`, and there are as many: until the end of 2025 the ids differ, and both lists are in
    /// the order of the calls.
    pub(super) fn pair_by_order(&self, invocations: &[&str]) -> bool {
        let known = |id: &&str| self.unused.contains_key(base(id));
        invocations.len() == self.calls.len() && !invocations.iter().any(known)
    }

    /// Adds what remains to the metadata; `shown` and `thoughts` are the texts that messages have. Returns the field in which an
    /// unknown field holds text.
    pub(super) fn add_to(
        self,
        metadata: &mut Fields<'a>,
        shown: &str,
        thoughts: &str,
    ) -> Option<&'static str> {
        let arena = metadata.arena();
        let (mut shown, mut thoughts) = (Words::of(shown), Words::of(thoughts));
        let (mut remaining, mut unread) = (Vec::new(), self.unread);
        for round in self.rounds {
            let rest = round.remaining(&mut shown, &mut thoughts, arena);
            unread = unread.or_else(|| rest.unread().map(|_| "toolCallRounds"));
            remaining.push(rest.into_json().map_or_else(|| "{}".to_owned(), Cow::into_owned));
        }
        remaining.extend(self.others.iter().map(|other| other.json().into_owned()));
        if remaining.iter().any(|round| round != "{}") {
            let list = format!("[{}]", remaining.join(","));
            metadata.push("toolCallRounds", Value::Raw(arena.alloc_str(&list)));
        }
        let mut results = Leftover::default();
        self.results.into_iter().chain(self.kept).for_each(|(id, value)| results.add_value(id, value));
        if let Some(json) = results.into_json() {
            metadata.push("toolCallResults", Value::Raw(arena.alloc_str(&json)));
        }
        unread
    }
}

impl<'a> Round<'a> {
    fn remaining(self, shown: &mut Words, thoughts: &mut Words, arena: &'a Arena) -> Leftover<'a> {
        let mut rest = self.rest;
        if let Some(text) = self.text.filter(|text| !shown.take(text)) {
            rest.push("response", Value::Text(text));
        }
        let mut thinking = self.thinking.unwrap_or_else(|| FIELD_READER.none(arena));
        if let Some(text) = self.thought.filter(|text| !thoughts.take(text)) {
            thinking.push("text", Value::Text(arena.alloc_str(&text)));
        }
        let thinking = thinking.into_rest(&THINKING);
        let unread = thinking.unread();
        if let Some(json) = thinking.into_json() {
            rest.push("thinking", Value::Raw(arena.alloc_str(&json)));
        }
        let mut rest = rest.into_rest(&KEPT);
        if let Some(field) = unread {
            rest.mark_unread(field);
        }
        rest
    }
}

/// The id that the model gave to a call.
fn base(id: &str) -> &str {
    id.split(SUFFIX).next().unwrap_or(id)
}

/// The words of messages, in which those of rounds are looked for in their order. White space does not count.
struct Words {
    letters: String,
    /// Where the next words are looked for.
    at: usize,
    /// How many texts were not found.
    misses: u32,
}

impl Words {
    /// Texts that may be looked for in vain; each costs the time to read all words.
    const MAX_MISSES: u32 = 64;

    fn of(text: &str) -> Self {
        Self { letters: without_white_space(text), at: 0, misses: 0 }
    }

    /// Whether the words of `text` are next, behind any others.
    fn take(&mut self, text: &str) -> bool {
        let text = without_white_space(text);
        let rest = self.letters.get(self.at..).filter(|_| self.misses < Self::MAX_MISSES);
        let found = rest.and_then(|rest| rest.find(&text));
        match found {
            Some(found) => self.at += found + text.len(),
            None => self.misses += 1,
        }
        found.is_some()
    }
}

/// A text, or a list of texts in a row.
pub(super) fn joined<'a>(value: Value<'a>, arena: &'a Arena) -> Option<Cow<'a, str>> {
    let text = match value {
        Value::Text(text) => Cow::Borrowed(text),
        Value::Raw(raw) => {
            Cow::Owned(FIELD_READER.items(raw, arena).ok()?.into_iter().filter_map(Value::text).collect())
        }
        Value::Null => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_compared_without_what_the_extension_adds() {
        assert_eq!(base("call_1__vscode-17"), "call_1");
        assert_eq!(base("call_1"), "call_1");
    }
}
