//! Tool results that are in a later message than their calls.

use std::collections::BTreeMap;

use satchel_importer::{Message, json::with_members};

use super::{
    calls::{CallState, CallTrace},
    markup::InlineDocument,
};

/// Ancestors of a result without an id that are searched for its call.
const MAX_STEPS: usize = 8;

/// The calls of one message, and the documents in its text.
pub(super) struct TracedMessage<'a> {
    /// Its index among all records.
    pub(super) message: usize,
    /// Its index in the export's list.
    pub(super) index: usize,
    pub(super) calls: Vec<CallTrace<'a>>,
    pub(super) documents: Vec<InlineDocument<'a>>,
}

/// A call: the index of its traced message, and its index there.
type CallIndex = (usize, usize);

/// Moves results to the calls that they belong to.
pub(super) fn join(messages: &mut [Message<'_>], traced: &mut [TracedMessage<'_>]) {
    let mut states = traced.iter().flat_map(|message| message.calls.iter().map(|call| call.state));
    if !(states.clone().any(|state| state == CallState::Open)
        && states.any(|state| matches!(state, CallState::Orphan { .. })))
    {
        return;
    }
    let mut open = OpenCalls::new(messages);
    for at in 0..traced.len() {
        let mut place = 0;
        while let Some(call) = traced.get(at).and_then(|message| message.calls.get(place)) {
            match call.state {
                CallState::Open => open.add(messages, traced, (at, place)),
                CallState::Orphan { failed } => {
                    if let Some(call) = open.find(messages, traced, (at, place)) {
                        move_result(messages, traced, (at, place), call, failed);
                        continue;
                    }
                }
                CallState::Succeeded | CallState::Failed => {}
            }
            place += 1;
        }
    }
}

/// The open calls of the messages up to the current one.
struct OpenCalls {
    by_id: BTreeMap<String, CallIndex>,
    by_message: BTreeMap<usize, Vec<CallIndex>>,
    /// Indices of messages by id.
    messages: BTreeMap<String, usize>,
}

impl OpenCalls {
    fn new(messages: &[Message<'_>]) -> Self {
        let messages = messages.iter().enumerate().map(|(at, message)| (message.id.to_string(), at));
        Self { by_id: BTreeMap::new(), by_message: BTreeMap::new(), messages: messages.collect() }
    }

    fn add(&mut self, messages: &[Message<'_>], traced: &[TracedMessage<'_>], (at, place): CallIndex) {
        let Some(message) = traced.get(at).map(|traced| traced.message) else { return };
        let call = messages.get(message).and_then(|message| message.tool_calls.get(place));
        if let Some(id) = call.and_then(|call| call.id.as_deref()) {
            self.by_id.insert(id.to_owned(), (at, place));
        }
        self.by_message.entry(message).or_default().push((at, place));
    }

    /// The call with the id of the result, else the last open one of its name above it.
    fn find(
        &mut self,
        messages: &[Message<'_>],
        traced: &[TracedMessage<'_>],
        (at, place): CallIndex,
    ) -> Option<CallIndex> {
        let start = traced.get(at)?.message;
        let result = messages.get(start)?.tool_calls.get(place)?;
        let open = |(at, place): &CallIndex| {
            let call = traced.get(*at).and_then(|message| message.calls.get(*place));
            call.is_some_and(|call| call.state == CallState::Open)
        };
        if let Some(id) = result.id.as_deref() {
            return self.by_id.remove(id).filter(open);
        }
        let mut above = start;
        for _ in 0..MAX_STEPS {
            above = *self.messages.get(messages.get(above)?.parent.as_deref()?)?;
            let matches = |(at, place): &&CallIndex| {
                let call =
                    traced.get(*at).and_then(|traced| messages.get(traced.message)?.tool_calls.get(*place));
                open(&(*at, *place)) && call.is_some_and(|call| call.name == result.name)
            };
            if let Some(found) = self.by_message.get(&above).and_then(|calls| calls.iter().rfind(matches)) {
                return Some(*found);
            }
        }
        None
    }
}

/// Takes a result out of its message. A message without other content becomes hidden.
fn move_result(
    messages: &mut [Message<'_>],
    traced: &mut [TracedMessage<'_>],
    (at, place): CallIndex,
    (call_at, call_place): CallIndex,
    failed: bool,
) {
    let Some(source) = traced.get_mut(at) else { return };
    source.calls.remove(place);
    let Some(message) = messages.get_mut(source.message) else { return };
    let output = message.tool_calls.remove(place).output;
    if message.content.is_none() && message.tool_calls.is_empty() && message.attachments.is_empty() {
        let hidden = [("hidden", "true".to_owned())];
        message.raw_metadata = with_members(message.raw_metadata.take(), &hidden);
    }
    let Some(target) = traced.get_mut(call_at) else { return };
    if let Some(call) = target.calls.get_mut(call_place) {
        call.state = CallState::of_result(failed);
    }
    let call = messages.get_mut(target.message).and_then(|message| message.tool_calls.get_mut(call_place));
    if let Some(call) = call {
        call.output = output;
    }
}
