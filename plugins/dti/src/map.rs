//! Maps a history to a conversation, and one of its messages to a record.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, Conversation, Leftover, Message, Participant, Role, address::unsigned_json, natural_key,
};

use crate::{
    order::{Order, Place},
    raw,
    senders::{Sender, Senders},
};

/// What the details say, independent of the file.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    /// A JSON object.
    pub(crate) rest: Option<String>,
}

impl Details {
    pub(crate) fn of(raw: raw::Details<'_>) -> Self {
        let rest = raw.rest.into_json().map(|rest| unsigned_json(rest).into_owned());
        Self { start: raw.start, end: raw.end, rest }
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
    let times = || order.list.iter().filter_map(|place| place.time);
    let person = |(role, person): (Role, &crate::senders::Person)| Participant {
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
        id: natural_key(&[Some("history"), order.first.as_deref()]).into(),
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

/// Maps one message; its id and its parent come from the order.
pub(crate) fn message<'a>(
    mut raw: raw::Message<'a>,
    place: &'a Place,
    parent: Option<&'a Place>,
    senders: &'a Senders,
    has_ai: bool,
    arena: &'a Arena,
) -> Message<'a> {
    let (role, _) = senders.role(place.sender, has_ai);
    if let Some(label) = senders.label(place.sender, raw.sender) {
        raw.rest.add_text("sender", label);
    }
    Message {
        id: place.id.as_str().into(),
        role,
        content: raw.text.map(|text| Content::Text(text.into())),
        created_at: raw.sent,
        parent: parent.map(|parent| parent.id.as_str().into()),
        // Of a message without content the host itself says so.
        unread: raw.rest.unread().filter(|_| raw.text.is_some()).map(Cow::Borrowed),
        raw_metadata: raw.rest.take_json(arena).map(unsigned_json),
        ..Message::default()
    }
}

/// The warning about messages whose sender is uncertain.
pub(crate) fn uncertain(sender: Sender, count: u64) -> String {
    let messages = if count == 1 { "1 message has".to_owned() } else { format!("{count} messages have") };
    match sender {
        Sender::UnknownAddress => {
            format!(
                "{messages} a sender who is not among the identifiers; read as a person's for its mail address"
            )
        }
        Sender::Unknown => {
            format!("{messages} a sender who is not among the identifiers; read as the assistant's")
        }
        Sender::Absent => format!("{messages} no sender; read as the assistant's"),
        Sender::Ai | Sender::Known(_) => format!(
            "{messages} a sender of whom the file does not say whether it is a person; read as the assistant's"
        ),
    }
}
