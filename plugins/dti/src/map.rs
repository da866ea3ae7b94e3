//! Maps a history to a conversation, and one of its messages to a record.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, Conversation, Leftover, Message, Participant, Role, address::unsigned_json, natural_key,
};

use crate::{
    order::{Order, OrderedMessage},
    raw,
    senders::{Person, Sender, Senders},
};

/// The details of a history, independent of the memory of the file.
#[derive(Debug, Default)]
pub(crate) struct Details {
    /// The time of the export.
    pub(crate) created: Option<i64>,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    /// A JSON object.
    pub(crate) rest: Option<String>,
}

impl Details {
    pub(crate) fn of(raw: raw::Details<'_>) -> Self {
        let rest = raw.rest.into_json().map(|rest| unsigned_json(rest).into_owned());
        Self { created: raw.created, start: raw.start, end: raw.end, rest }
    }
}

/// The conversation without its messages. The time of the schema counts, or else that of the messages.
pub(crate) fn conversation(
    details: &Details,
    senders: &Senders,
    order: &Order,
    version: &'static str,
    locator: &str,
) -> Conversation<'static> {
    let times = || order.list.iter().filter_map(|message| message.time);
    let person = |(role, person): (Role, &Person)| Participant {
        role,
        name: person.name.clone().map(Cow::Owned),
        provider_id: person.id.clone().map(Cow::Owned),
    };
    let mut rest = Leftover::default();
    if let Some(details) = &details.rest {
        rest.add_json("details", details);
    }
    if let Some(identifiers) = senders.rest() {
        rest.add_json("identifiers", &identifiers);
    }
    if order.title.is_some() {
        rest.add_text("title_source", "first user message");
    }
    Conversation {
        id: conversation_key(details, order).into(),
        export_format_version: Some(version.into()),
        title: order.title.clone().map(Cow::Owned),
        created_at: details.start.or_else(|| times().min()),
        updated_at: details.end.or_else(|| times().max()),
        participants: senders.people(order.has_ai).map(person).collect(),
        current: order.list.last().map(|last| last.id.clone().into()),
        raw_metadata: rest.into_json(),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }
}

/// A key of the beginning, which is the same when the conversation goes on: the format has no ids.
fn conversation_key(details: &Details, order: &Order) -> String {
    let first = order.list.first();
    let time = details.start.or_else(|| first?.time).map(|time| time.to_string());
    natural_key(&[Some("history"), time.as_deref(), first.map(|first| first.id.as_str())])
}

/// Maps one message; its id, its time and its parent come from the order.
pub(crate) fn message<'a>(
    mut raw: raw::Message<'a>,
    ordered: &'a OrderedMessage,
    parent: Option<&'a OrderedMessage>,
    senders: &'a Senders,
    has_ai: bool,
    arena: &'a Arena,
) -> Message<'a> {
    let (role, _) = senders.role(ordered.sender, has_ai);
    if let Some(label) = senders.label(ordered.sender, raw.sender) {
        raw.rest.add_text("sender", label);
    }
    Message {
        id: ordered.id.as_str().into(),
        role,
        content: raw.text.map(|text| Content::Text(text.into())),
        created_at: ordered.time,
        parent: parent.map(|parent| parent.id.as_str().into()),
        // Of a message without content the host itself says so.
        unread: raw.rest.unread().filter(|_| raw.text.is_some()).map(Cow::Borrowed),
        raw_metadata: raw.rest.take_json(arena).map(unsigned_json),
        ..Message::default()
    }
}

/// The warning about messages whose sender is uncertain, and the role with which they are read.
pub(crate) fn uncertain(sender: Sender, role: Role, count: u64) -> String {
    let messages = if count == 1 { "1 message has".to_owned() } else { format!("{count} messages have") };
    let reason = match sender {
        Sender::UnknownContact => {
            "a sender whose mail address or telephone number is not among the identifiers"
        }
        Sender::UnknownUser | Sender::UnknownAssistant | Sender::Unknown => {
            "a sender who is not among the identifiers"
        }
        Sender::Absent => "no sender",
        Sender::Ai | Sender::Identified(_) => "a sender of whom the file does not say whether it is a person",
    };
    let side = if role == Role::User { "a person's" } else { "the assistant's" };
    format!("{messages} {reason}; read as {side}")
}

/// The warning about messages that have the time of the export.
pub(crate) fn undated(count: usize) -> String {
    let messages = if count == 1 { "1 message has".to_owned() } else { format!("{count} messages have") };
    format!("{messages} the time of the export instead of their own; read without a time")
}
