//! Maps one conversation of the provider to the records that are emitted.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Conversation, Element, Evidence, Message, Participant, RecordKind, Role, address::unsigned_json,
    natural_key, order::SORTED, tree::SIBLING_NUMBER,
};

use crate::{
    memory::{
        edits::{self, EditCall},
        injected,
    },
    raw,
};

pub(crate) mod artifact;
mod calls;
mod citations;
mod files;
mod late_results;
mod markup;
mod message;
mod order;
pub(crate) mod project;
pub(crate) mod reflection;
mod replay;

use calls::CallState;
use late_results::TracedMessage;
use message::Mapped;
use order::{Links, Node};

/// Facts about the file of a conversation. Other files are not considered: they may be imported on another day.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    /// The format's version.
    pub(crate) version: &'static str,
    /// The file holds chats of the design tool.
    pub(crate) design: bool,
}

/// The records of one conversation.
pub(crate) struct ConversationRecords<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) evidence: Vec<Evidence>,
    /// Kind, locator and reason.
    pub(crate) skipped: Vec<(RecordKind, String, &'static str)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, &'static str)>,
    /// Bytes of the conversation in the export.
    size: usize,
}

impl Context {
    /// A key of all fields: under the same key, a conversation gives the same records.
    pub(crate) fn key(&self) -> String {
        natural_key(&[Some(self.version), Some(if self.design { "design" } else { "chat" })])
    }
}

/// Maps one conversation; the error says why it is none.
pub(crate) fn map<'a>(
    mut raw: raw::Conversation<'a>,
    context: Context,
    element: &Element<'a>,
) -> Result<ConversationRecords<'a>, &'static str> {
    let (locator, arena) = (&*element.locator(), element.arena());
    if raw.uuid.is_none() && raw.messages.is_empty() {
        return Err("it has neither a uuid nor messages");
    }
    let sorted = order::sort_linear(&mut raw.messages);
    let key = match raw.uuid {
        Some(uuid) => Cow::Borrowed(uuid),
        None => Cow::Owned(key_without_uuid(&raw)),
    };
    let messages = std::mem::take(&mut raw.messages);
    let list = raw.list;
    let gaps = std::mem::take(&mut raw.gaps);
    let (temporary, listing) = (raw.temporary, raw.listing);
    let mut records = ConversationRecords {
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
    if listing == raw::Listing::Invalid {
        records
            .warnings
            .push((format!("{locator}.{list}"), "it is not a list of messages; it is kept as it stands"));
    }
    records
        .skipped
        .extend(gaps.into_iter().map(|(index, reason)| (RecordKind::Message, place(index), reason)));
    map_messages(messages, &mut records, temporary, &place, arena);
    Ok(records)
}

fn map_messages<'a>(
    messages: Vec<raw::Message<'a>>,
    records: &mut ConversationRecords<'a>,
    temporary: bool,
    place: &dyn Fn(usize) -> String,
    arena: &'a Arena,
) {
    let (nodes, repeated) = order::assign_ids(messages);
    for index in repeated {
        records.skipped.push((RecordKind::Message, place(index), "another message has the same uuid"));
    }
    let Links { parents, cut, unlinked, numbers } = order::links(&nodes);
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
        if let Some(parent) = unlinked.get(&at) {
            raw.rest.add_text("parent_message_uuid", parent);
        }
        if let Some(number) = numbers.get(&at) {
            raw.rest.add_json(SIBLING_NUMBER, &number.to_string());
        }
        let Mapped { before, message, traces, documents, injected, flat } =
            message::map(raw, id, parent, arena);
        if flat {
            records.warnings.push((place(index), message::FLAT));
        }
        records.messages.extend(before);
        for prompt in injected.iter().filter(|_| !temporary) {
            let locator = format!("{}.content[{}]", place(index), prompt.block);
            let evidence = injected::evidence(prompt, &records.conversation, &message, &locator);
            records.evidence.extend(evidence);
        }
        if !traces.is_empty() || !documents.is_empty() {
            traced.push(TracedMessage { message: records.messages.len(), index, calls: traces, documents });
        }
        records.messages.push(message);
    }
    if !traced.is_empty() {
        finish_calls(traced, records, temporary, place, arena);
    }
}

/// Does the steps that need all messages: late results, edits of memories, documents.
fn finish_calls<'a>(
    mut traced: Vec<TracedMessage<'a>>,
    records: &mut ConversationRecords<'a>,
    temporary: bool,
    place: &dyn Fn(usize) -> String,
    arena: &'a Arena,
) {
    late_results::join(&mut records.messages, &mut traced);
    for message in traced.iter().filter(|_| !temporary) {
        add_edits(message, records, place, arena);
    }
    for (index, warning) in replay::attach(&mut records.messages, &traced, records.size, arena) {
        records.warnings.push((place(index), warning));
    }
}

/// Adds the evidence of one message's calls of the memory tool.
fn add_edits(
    traced: &TracedMessage<'_>,
    records: &mut ConversationRecords<'_>,
    place: &dyn Fn(usize) -> String,
    arena: &Arena,
) {
    let Some(message) = records.messages.get(traced.message) else { return };
    for (call, trace) in message.tool_calls.iter().zip(&traced.calls) {
        if call.name != edits::TOOL || matches!(trace.state, CallState::Orphan { .. }) {
            continue;
        }
        let locator = format!("{}.content[{}]", place(traced.index), trace.block);
        let call = EditCall {
            conversation: &records.conversation,
            message,
            index: traced.index,
            block: trace.block,
            locator: &locator,
            input: trace.input,
            output: call.output.as_deref(),
            failed: trace.state != CallState::Succeeded,
        };
        match edits::evidence(&call, arena) {
            Ok(evidence) => records.evidence.extend(evidence),
            Err(reason) => records.skipped.push((RecordKind::Memory, locator, reason)),
        }
    }
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
        participants: participants(raw.account, &raw.authors),
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

/// The owner of a conversation and its other authors.
fn participants<'a>(account: Option<&'a str>, authors: &[raw::Author<'a>]) -> Vec<Participant<'a>> {
    let person = |name: Option<&'a str>, uuid: Option<&'a str>| Participant {
        role: Role::User,
        name: name.map(Cow::Borrowed),
        provider_id: uuid.map(Cow::Borrowed),
    };
    let mut participants: Vec<_> = authors.iter().map(|author| person(author.name, author.uuid)).collect();
    if account.is_some() && authors.iter().all(|author| author.uuid != account) {
        participants.insert(0, person(None, account));
    }
    participants
}

/// A key made of fields that later exports of the same conversation hold too.
fn key_without_uuid(raw: &raw::Conversation<'_>) -> String {
    let first = raw.messages.first().map(order::key);
    let created = raw.created.map(|time| time.to_string());
    natural_key(&[raw.name.or(raw.title), created.as_deref(), first.as_deref()])
}
