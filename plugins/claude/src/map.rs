//! From one conversation of the provider to the records that are emitted; nothing is read or written here.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Conversation, Element, Evidence, Message, Participant, RecordKind, Role, ToolCall,
    address::unsigned_json, natural_key, order::SORTED, tree::SIBLING_NUMBER,
};

use crate::{
    memory::{
        edits::{self, Scene},
        injected,
    },
    raw,
};

/// The tool by which the model edits what it remembers.
const MEMORY_TOOL: &str = "memory_user_edits";

pub(crate) mod artifact;
mod calls;
mod cited;
mod files;
mod later;
mod message;
mod order;
pub(crate) mod project;
pub(crate) mod reflection;
mod replay;
mod written;

use calls::{State, Trace};
use later::Traced;
use message::Mapped;
pub(crate) use message::{Answer, Injected, MemoryCall};
use order::{Links, Node};

/// What holds for all conversations of a file: no other file has a say, as it may come on another day.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    /// The format's version.
    pub(crate) version: &'static str,
    /// The file holds chats of the design tool.
    pub(crate) design: bool,
}

/// What one conversation gives.
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) evidence: Vec<Evidence>,
    /// Locator and reason.
    pub(crate) skipped: Vec<(RecordKind, String, &'static str)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, &'static str)>,
    /// Bytes of the conversation in the export.
    size: usize,
}

impl Context {
    /// A key of all of it: a conversation gives the same under the same key.
    pub(crate) fn key(&self) -> String {
        natural_key(&[Some(self.version), Some(if self.design { "design" } else { "chat" })])
    }
}

/// Maps one conversation; a text if it is none.
pub(crate) fn records<'a>(
    mut raw: raw::Conversation<'a>,
    context: Context,
    element: &Element<'a>,
) -> Result<Records<'a>, &'static str> {
    let (locator, arena) = (&*element.locator(), element.arena());
    if raw.uuid.is_none() && raw.messages.is_empty() {
        return Err("it has neither a uuid nor messages");
    }
    let sorted = order::put_in_order(&mut raw.messages);
    let key = match raw.uuid {
        Some(uuid) => Cow::Borrowed(uuid),
        None => Cow::Owned(natural(&raw)),
    };
    let messages = std::mem::take(&mut raw.messages);
    let list = raw.list;
    let gaps = std::mem::take(&mut raw.gaps);
    let (forget, listing) = (raw.temporary, raw.listing);
    let mut records = Records {
        conversation: conversation(raw, key, context, locator),
        messages: Vec::with_capacity(messages.len()),
        evidence: Vec::new(),
        skipped: Vec::new(),
        warnings: Vec::new(),
        size: element.text().len(),
    };
    if sorted {
        records.warnings.push((locator.to_owned(), SORTED));
    }
    let place = |index: usize| format!("{locator}.{list}[{index}]");
    if listing == raw::Listing::Odd {
        records
            .warnings
            .push((format!("{locator}.{list}"), "it is not a list of messages; it is kept as it stands"));
    }
    records
        .skipped
        .extend(gaps.into_iter().map(|(index, reason)| (RecordKind::Message, place(index), reason)));
    map_messages(messages, &mut records, forget, &place, arena);
    Ok(records)
}

fn map_messages<'a>(
    messages: Vec<raw::Message<'a>>,
    records: &mut Records<'a>,
    forget: bool,
    place: &dyn Fn(usize) -> String,
    arena: &'a Arena,
) {
    let (nodes, repeated) = order::name(messages);
    for index in repeated {
        records.skipped.push((RecordKind::Message, place(index), "another message has the same uuid"));
    }
    let Links { parents, cut, lost, numbers } = order::links(&nodes);
    for node in cut.iter().filter_map(|at| nodes.get(*at)) {
        let warning = "its parents lead back to itself; it is read as a root";
        records.warnings.push((place(node.raw.index), warning));
    }
    let mut traced = Vec::new();
    for (at, (Node { id, mut raw }, parent)) in nodes.into_iter().zip(parents).enumerate() {
        let index = raw.index;
        if raw.speaker().is_none_or(|sender| message::role(sender).is_none()) {
            records
                .warnings
                .push((place(index), "it does not say who speaks; it is read as the assistant's"));
        }
        if raw.sender == Some("user") && records.conversation.tags.is_empty() {
            // Claude's own word is `human`; only the design tool says `user`.
            raw.rest.add_text("sender", "user");
        }
        if let Some(parent) = lost.get(&at) {
            raw.rest.add_text("parent_message_uuid", parent);
        }
        if let Some(number) = numbers.get(&at) {
            raw.rest.add_json(SIBLING_NUMBER, &number.to_string());
        }
        let Mapped { before, message, traces, written, injected, flat } =
            message::map(raw, id, parent, arena);
        if flat {
            records.warnings.push((place(index), message::FLAT));
        }
        records.messages.extend(before);
        for prompt in injected.iter().filter(|_| !forget) {
            let locator = format!("{}.content[{}]", place(index), prompt.block);
            let found = injected::evidence(prompt, &records.conversation, &message, &locator);
            records.evidence.extend(found);
        }
        if !traces.is_empty() || !written.is_empty() {
            traced.push(Traced { message: records.messages.len(), index, calls: traces, written });
        }
        records.messages.push(message);
    }
    if !traced.is_empty() {
        finish_calls(traced, records, forget, place, arena);
    }
}

/// What needs all messages: answers that stand apart from their calls, memories, documents.
fn finish_calls<'a>(
    mut traced: Vec<Traced<'a>>,
    records: &mut Records<'a>,
    forget: bool,
    place: &dyn Fn(usize) -> String,
    arena: &'a Arena,
) {
    later::join(&mut records.messages, &mut traced);
    for one in traced.iter().filter(|_| !forget) {
        note_edits(one, records, place, arena);
    }
    for (index, warning) in replay::attach(&mut records.messages, &traced, records.size, arena) {
        records.warnings.push((place(index), warning));
    }
}

/// Turns calls of the memory tool into evidence.
fn note_edits(
    traced: &Traced<'_>,
    records: &mut Records<'_>,
    place: &dyn Fn(usize) -> String,
    arena: &Arena,
) {
    let Some(message) = records.messages.get(traced.message) else { return };
    for (call, trace) in message.tool_calls.iter().zip(&traced.calls) {
        if call.name != MEMORY_TOOL || matches!(trace.state, State::Stray { .. }) {
            continue;
        }
        let locator = format!("{}.content[{}]", place(traced.index), trace.block);
        let scene =
            Scene { conversation: &records.conversation, message, index: traced.index, locator: &locator };
        match edits::evidence(&memory_call(call, trace), &scene, arena) {
            Ok(evidence) => records.evidence.extend(evidence),
            Err(reason) => records.skipped.push((RecordKind::Memory, locator, reason)),
        }
    }
}

fn memory_call<'a>(call: &ToolCall<'a>, trace: &Trace<'a>) -> MemoryCall<'a> {
    let answer = match (&call.output, trace.state) {
        (Some(text), State::Answered) => Answer::Good(text.clone()),
        (Some(_), _) => Answer::Error,
        (None, _) => Answer::None,
    };
    MemoryCall { block: trace.block, input: trace.input, answer }
}

fn conversation<'a>(
    mut raw: raw::Conversation<'a>,
    key: Cow<'a, str>,
    context: Context,
    locator: &str,
) -> Conversation<'a> {
    if let (Some(_), Some(title)) = (raw.name, raw.title) {
        raw.rest.add_text("title", title);
    }
    Conversation {
        id: key,
        provider_conversation_id: raw.uuid.map(Cow::Borrowed),
        participants: people(raw.account, &raw.authors),
        account: raw.account.map(Cow::Borrowed),
        export_format_version: Some(context.version.into()),
        title: raw.name.or(raw.title).filter(|title| !title.trim().is_empty()).map(Cow::Borrowed),
        created_at: raw.created,
        updated_at: raw.updated,
        model: raw.model.filter(|model| !model.is_empty()).map(Cow::Borrowed),
        is_archived: raw.archived,
        tags: if context.design { vec!["design-chat".into()] } else { Vec::new() },
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }
}

/// Whose conversation it is, and who else wrote in it.
fn people<'a>(account: Option<&'a str>, authors: &[raw::Author<'a>]) -> Vec<Participant<'a>> {
    let person = |name: Option<&'a str>, uuid: Option<&'a str>| Participant {
        role: Role::User,
        name: name.map(Cow::Borrowed),
        provider_id: uuid.map(Cow::Borrowed),
    };
    let mut people: Vec<_> = authors.iter().map(|author| person(author.name, author.uuid)).collect();
    if account.is_some() && authors.iter().all(|author| author.uuid != account) {
        people.insert(0, person(None, account));
    }
    people
}

/// A key made of what later exports of the same conversation hold too.
fn natural(raw: &raw::Conversation<'_>) -> String {
    let first = raw.messages.first().map(order::natural);
    let created = raw.created.map(|time| time.to_string());
    natural_key(&[raw.name.or(raw.title), created.as_deref(), first.as_deref()])
}
