//! Maps one line to a message, or to what it says about the session and its other messages.

use std::borrow::Cow;

use satchel_importer::{
    Content, Fields, ImportError, Leftover, Message, Role, ToolInput, address::unsigned_json, natural_key,
};

use crate::{
    fields::FIELD_READER,
    line::{Kind, Line},
    message_tree::Place,
};

mod calls;
mod events;
mod items;
mod parts;
mod unknown;

/// What a line is for the conversation.
pub(crate) enum Mapped<'a> {
    Message(Box<UnplacedMessage<'a>>),
    /// The session's own fields.
    Session(Fields<'a>),
    /// The settings of the messages that follow.
    Turn(TurnSettings<'a>),
    /// A turn begins, with this id.
    TurnBegun {
        kind: &'a str,
        id: Option<&'a str>,
    },
    /// The last turns were rolled back; none if the line does not say how many.
    RollBack(Option<u64>),
    /// The name of a session; none if the name was removed.
    Name {
        session: Option<&'a str>,
        name: Option<&'a str>,
    },
    /// The tokens of one answer.
    Usage(Usage<'a>),
    /// It is not imported: its type.
    LeftOut(&'a str),
}

/// The settings of a turn.
pub(crate) struct TurnSettings<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) cwd: Option<&'a str>,
}

/// The tokens of one answer.
pub(crate) struct Usage<'a> {
    /// The sum of the session, as JSON text.
    pub(crate) total: &'a str,
    /// Those of the last answer, as JSON text.
    pub(crate) last: Option<&'a str>,
    pub(crate) output: Option<u64>,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A line that nothing repeats.
    #[default]
    Standalone,
    /// A message with a text that events may repeat.
    Item,
    /// An event, which may repeat an item.
    Event,
}

/// A warning about a message.
pub(crate) enum Warning {
    /// About a type or a role; one for each file is enough.
    Once(String),
    /// About something that is lost.
    Each(&'static str),
}

/// A message without its place.
#[derive(Default)]
pub(crate) struct UnplacedMessage<'a> {
    /// The type of its line, for its key.
    pub(crate) kind: &'a str,
    /// Its own id. An event has none, because its id may be that of the item that it repeats.
    pub(crate) id: Option<&'a str>,
    pub(crate) role: Role,
    pub(crate) texts: Vec<Cow<'a, str>>,
    /// Digests of the addresses of its files.
    pub(crate) files: Vec<u64>,
    pub(crate) call: Option<&'a str>,
    pub(crate) message: Message<'a>,
    pub(crate) rest: Leftover<'a>,
    pub(crate) origin: Origin,
    /// Whether Codex added the text and the user does not see it.
    pub(crate) hidden: bool,
    /// Whether it has parts that are not known.
    pub(crate) has_unknown_parts: bool,
    pub(crate) warning: Option<Warning>,
}

/// Maps one line. `decode` says whether files inside the line are decoded.
pub(crate) fn line<'a>(line: &mut Line<'a>, decode: bool) -> Result<Mapped<'a>, ImportError> {
    let arena = line.payload.arena();
    let mut payload = std::mem::replace(&mut line.payload, FIELD_READER.none(arena));
    let mapped = match line.kind {
        Kind::Session => Mapped::Session(payload),
        Kind::Item => items::item(payload, decode)?,
        Kind::Event => events::event(payload, decode)?,
        Kind::Compacted => items::compacted(payload),
        Kind::Agent => items::agent_message("inter_agent_communication", payload, decode)?,
        Kind::Turn => Mapped::Turn(TurnSettings {
            id: payload.take_text("turn_id"),
            model: payload.take_text("model"),
            cwd: payload.take_text("cwd"),
        }),
        Kind::Bookkeeping(kind) => Mapped::LeftOut(kind),
        Kind::Unknown(kind) => unknown::unknown(kind, payload, decode)?,
    };
    Ok(match mapped {
        Mapped::Message(mut unplaced) => {
            unplaced.message.created_at = line.time;
            unplaced.add_line(std::mem::take(&mut line.rest));
            Mapped::Message(unplaced)
        }
        other => other,
    })
}

impl<'a> UnplacedMessage<'a> {
    /// Whether a turn of the person begins with it.
    pub(crate) fn begins_turn(&self) -> bool {
        self.role == Role::User
    }

    /// Its id, or else a key of its content.
    pub(crate) fn key(&self, line: &Line<'_>) -> String {
        if let Some(id) = self.id {
            return id.to_owned();
        }
        let call = self.message.tool_calls.first();
        let input = call.and_then(|call| call.input.as_ref()).map(|input| match input {
            ToolInput::Text(text) | ToolInput::Object(text) => &**text,
        });
        // An event that repeats an item must not take its key.
        let origin = if self.origin == Origin::Event { "event" } else { "item" };
        let mut parts =
            vec![Some(origin), Some(self.kind), Some(role_name(self.role)), line.stamp, self.call];
        match self.texts.as_slice() {
            [] => parts.push(Some(input.unwrap_or(line.raw))),
            texts => parts.extend(texts.iter().map(|text| Some(&**text))),
        }
        natural_key(&parts)
    }

    /// The message at its place.
    pub(crate) fn finish(self, place: &'a Place) -> Message<'a> {
        let mut rest = self.rest;
        if self.hidden {
            rest.add_bool("hidden", true);
        }
        let unread = rest.unread().map(Cow::Borrowed);
        Message {
            id: Cow::Borrowed(&place.id),
            provider_message_id: self.id.filter(|_| !place.repeated).map(Cow::Borrowed),
            role: self.role,
            content: content(self.texts, self.message.is_thought),
            parent: place.parent.as_deref().map(Cow::Borrowed),
            raw_metadata: rest.into_json().map(unsigned_json),
            unread,
            ..self.message
        }
    }

    /// Keeps what the line has beside its payload.
    fn add_line(&mut self, line: Leftover<'a>) {
        if let Some(field) = line.unread() {
            self.rest.mark_unread(field);
        }
        if let Some(json) = line.into_json() {
            self.rest.add_json("line", &json);
        }
    }

    /// A message, or nothing if it has no content and no field with an unread text.
    fn unless_empty(self) -> Mapped<'a> {
        let message = &self.message;
        let empty = self.texts.is_empty() && message.tool_calls.is_empty() && message.attachments.is_empty();
        if empty && !self.has_unknown_parts && self.rest.unread().is_none() {
            return Mapped::LeftOut(self.kind);
        }
        Mapped::Message(Box::new(self))
    }
}

/// The texts as parts; summaries of a thought are paragraphs of one text.
fn content(texts: Vec<Cow<'_, str>>, thought: bool) -> Option<Content<'_>> {
    if thought && texts.len() > 1 {
        return Some(Content::Text(texts.join("\n\n").into()));
    }
    Content::of_texts(texts)
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    }
}
