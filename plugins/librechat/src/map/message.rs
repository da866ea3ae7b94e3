//! Maps one message to records: its thoughts and other texts that are no part of the answer, the message itself, and the answers of agents
//! beside the first one.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{Arena, Content, Leftover, Message, Role, address::unsigned_json};

use super::{
    AsideKind, agents, calls, files,
    memory::{self, Dated},
    parts::Pieces,
};
use crate::raw::{self, Node};

/// The author of a message, and whether it says so.
pub(super) fn role(message: &raw::Message<'_>) -> (Role, bool) {
    match (message.by_user, message.sender) {
        (Some(true), _) => (Role::User, true),
        (Some(false), _) => (Role::Assistant, true),
        (None, Some(sender)) if sender.eq_ignore_ascii_case("user") => (Role::User, true),
        (None, _) => (Role::Assistant, false),
    }
}

/// What is noted while messages are mapped.
#[derive(Debug, Default)]
pub(super) struct Noted<'a> {
    /// Types of parts that are not known.
    pub(super) unknown: BTreeSet<&'a str>,
    pub(super) memories: Vec<Dated<'a>>,
    /// Parts that were read.
    pub(super) parts: usize,
    /// The time of the last message that has one.
    time: Option<i64>,
}

/// Appends the messages of a node. Returns false if it does not say who wrote it.
pub(super) fn map<'a>(
    node: Node<'a>,
    parent: Option<&'a str>,
    arena: &'a Arena,
    messages: &mut Vec<Message<'a>>,
    noted: &mut Noted<'a>,
) -> bool {
    let Node { key, id, message, .. } = node;
    let Some(mut raw) = message else { return true };
    let (role, known) = role(&raw);
    let mut pieces = Pieces::read(&mut raw, role == Role::Assistant, noted, arena);
    for (field, value) in std::mem::take(&mut raw.plugins) {
        calls::read_plugins(field, value, &mut pieces.calls, &mut raw.rest, arena);
    }
    noted.time = raw.created.or(noted.time);
    for (field, list) in [("files", raw.files), ("attachments", raw.attachments)] {
        let changes = files::read(field, list, &mut pieces, &mut raw.rest, arena);
        let dated =
            |change: memory::Change<'a>| Dated { change, message: key, at: raw.created, after: noted.time };
        noted.memories.extend(changes.into_iter().map(dated));
    }
    let answer = Answer { key, parent, created: raw.created, model: raw.model.map(Cow::Borrowed), role };
    let (others, rest) = (std::mem::take(&mut pieces.others), raw.rest);
    answer.push(pieces, rest, messages);
    if let Some(message) = messages.last_mut() {
        message.provider_message_id = id.map(Cow::Borrowed);
        message.token_count = raw.tokens;
    }
    for (number, (agent, pieces)) in others.into_iter().enumerate() {
        let key = format!("{key}:agent:{}", number + 1);
        let answer = Answer { key: &key, model: Some(agents::model(agent)), ..answer };
        let mut rest = Leftover::default();
        if let Some(id) = id {
            rest.add_text("messageId", id);
        }
        answer.push(pieces, rest, messages);
    }
    known
}

/// One message, or what one of several agents says in it.
struct Answer<'a, 'k> {
    key: &'k str,
    parent: Option<&'a str>,
    created: Option<i64>,
    model: Option<Cow<'a, str>>,
    role: Role,
}

impl<'a> Answer<'a, '_> {
    /// Appends its messages, the message itself last.
    fn push(&self, mut pieces: Pieces<'a>, mut rest: Leftover<'a>, messages: &mut Vec<Message<'a>>) {
        if let Some(json) = pieces.remaining_json() {
            rest.add_json("pieces", &json);
        }
        let parent = self.push_before(std::mem::take(&mut pieces.before), messages);
        messages.push(Message {
            id: self.key.to_owned().into(),
            role: self.role,
            content: Content::of_texts(pieces.texts),
            created_at: self.created,
            parent,
            model: self.model.clone(),
            attachments: pieces.attachments,
            citations: pieces.citations.list,
            tool_calls: pieces.calls,
            unread: rest.unread().map(Cow::Borrowed),
            raw_metadata: rest.into_json().map(unsigned_json),
            ..Message::default()
        });
    }

    /// Appends the texts that come before the message, each below the one before; returns the parent of the message. An answer that goes
    /// on may get more of them. Then its parent is another one, below the earlier one.
    fn push_before(
        &self,
        before: Vec<(AsideKind, Cow<'a, str>)>,
        messages: &mut Vec<Message<'a>>,
    ) -> Option<Cow<'a, str>> {
        let mut parent = self.parent.map(Cow::Borrowed);
        let mut numbers = BTreeMap::new();
        for (kind, text) in before {
            let number = numbers.entry(kind.word()).or_insert(0_usize);
            let id: Cow<'a, str> = format!("{}:{}:{number}", self.key, kind.word()).into();
            *number += 1;
            let is_thought = kind == AsideKind::Thought;
            messages.push(Message {
                parent: parent.replace(id.clone()),
                id,
                role: kind.role(),
                content: Some(Content::Text(text)),
                created_at: self.created,
                model: self.model.clone().filter(|_| is_thought),
                is_thought,
                ..Message::default()
            });
        }
        parent
    }
}
