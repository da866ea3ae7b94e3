//! Answers of tools that stand in a later message than their calls.

use std::collections::BTreeMap;

use satchel_importer::Message;

use super::{
    calls::{State, Trace},
    written::Written,
};

/// Messages that a result without an id may be away from its call.
const MAX_STEPS: usize = 8;

/// The calls of one message, and the documents in its text.
pub(super) struct Traced<'a> {
    /// Its place among all records.
    pub(super) message: usize,
    /// Its place in the export's list.
    pub(super) index: usize,
    pub(super) calls: Vec<Trace<'a>>,
    pub(super) written: Vec<Written<'a>>,
}

/// A call that waits for its answer: its message among those with calls, and its place there.
type Waiting = (usize, usize);

/// Moves answers to the calls that they belong to.
pub(super) fn join(messages: &mut [Message<'_>], traced: &mut [Traced<'_>]) {
    let mut states = traced.iter().flat_map(|message| message.calls.iter().map(|call| call.state));
    if !(states.clone().any(|state| state == State::Open)
        && states.any(|state| matches!(state, State::Stray { .. })))
    {
        return;
    }
    let mut waiting = Calls::of(messages);
    for at in 0..traced.len() {
        let mut place = 0;
        while let Some(call) = traced.get(at).and_then(|message| message.calls.get(place)) {
            match call.state {
                State::Open => waiting.ask(messages, traced, (at, place)),
                State::Stray { failed } => {
                    if let Some(asked) = waiting.asked(messages, traced, (at, place)) {
                        move_answer(messages, traced, (at, place), asked, failed);
                        continue;
                    }
                }
                State::Answered | State::Failed => {}
            }
            place += 1;
        }
    }
}

/// Open calls of the messages that were walked over.
struct Calls {
    by_id: BTreeMap<String, Waiting>,
    /// Open calls without an id by message.
    nameable: BTreeMap<usize, Vec<Waiting>>,
    places: BTreeMap<String, usize>,
}

impl Calls {
    fn of(messages: &[Message<'_>]) -> Self {
        let places = messages.iter().enumerate().map(|(at, message)| (message.id.to_string(), at)).collect();
        Self { by_id: BTreeMap::new(), nameable: BTreeMap::new(), places }
    }

    fn ask(&mut self, messages: &[Message<'_>], traced: &[Traced<'_>], (at, place): Waiting) {
        let Some(message) = traced.get(at).map(|traced| traced.message) else { return };
        let call = messages.get(message).and_then(|message| message.tool_calls.get(place));
        if let Some(id) = call.and_then(|call| call.id.as_deref()) {
            self.by_id.insert(id.to_owned(), (at, place));
        }
        self.nameable.entry(message).or_default().push((at, place));
    }

    /// The call with the id of the answer, else the last open one of its name above it.
    fn asked(
        &mut self,
        messages: &[Message<'_>],
        traced: &[Traced<'_>],
        (at, place): Waiting,
    ) -> Option<Waiting> {
        let start = traced.get(at)?.message;
        let answer = messages.get(start)?.tool_calls.get(place)?;
        let open = |(at, place): &Waiting| {
            traced
                .get(*at)
                .and_then(|message| message.calls.get(*place))
                .is_some_and(|call| call.state == State::Open)
        };
        if let Some(id) = answer.id.as_deref() {
            return self.by_id.remove(id).filter(open);
        }
        let mut above = start;
        for _ in 0..MAX_STEPS {
            above = *self.places.get(messages.get(above)?.parent.as_deref()?)?;
            let named = |(at, place): &&Waiting| {
                let call =
                    traced.get(*at).and_then(|traced| messages.get(traced.message)?.tool_calls.get(*place));
                open(&(*at, *place)) && call.is_some_and(|call| call.name == answer.name)
            };
            if let Some(found) = self.nameable.get(&above).and_then(|calls| calls.iter().rev().find(named)) {
                return Some(*found);
            }
        }
        None
    }
}

/// Takes the answer out of its message; one that says nothing else is hidden.
fn move_answer(
    messages: &mut [Message<'_>],
    traced: &mut [Traced<'_>],
    (at, place): Waiting,
    (asked_at, asked_place): Waiting,
    failed: bool,
) {
    let Some(answering) = traced.get_mut(at) else { return };
    answering.calls.remove(place);
    let Some(message) = messages.get_mut(answering.message) else { return };
    let output = message.tool_calls.remove(place).output;
    if message.content.is_none() && message.tool_calls.is_empty() && message.attachments.is_empty() {
        let kept = message.raw_metadata.as_deref().and_then(|kept| kept.strip_suffix('}'));
        let hidden =
            kept.map_or_else(|| "{\"hidden\":true}".to_owned(), |kept| format!("{kept},\"hidden\":true}}"));
        message.raw_metadata = Some(hidden.into());
    }
    let Some(asking) = traced.get_mut(asked_at) else { return };
    if let Some(call) = asking.calls.get_mut(asked_place) {
        call.state = if failed { State::Failed } else { State::Answered };
    }
    let call = messages.get_mut(asking.message).and_then(|message| message.tool_calls.get_mut(asked_place));
    if let Some(call) = call {
        call.output = output;
    }
}
