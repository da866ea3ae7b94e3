//! Maps one conversation of MemU to the records that are emitted.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{Content, Conversation, Leftover, Message, Participant, Role, natural_key, order};

use crate::raw;

/// The warning if the numbers of messages contradict their times.
const NUMBERED: &str = "the numbers of its messages contradict their times; they are read by number";

/// The key of a conversation: its id, else a key made of fields that later exports hold too.
pub(crate) fn key<'a>(raw: &raw::Conversation<'a>) -> Cow<'a, str> {
    if let Some(id) = raw.id {
        return Cow::Borrowed(id);
    }
    let created = raw.created.map(|time| time.to_string());
    let first = raw.messages.first();
    let first = first.map(|message| natural_key(&[message.id, message.role, message.content]));
    natural_key(&[raw.user, raw.agent, raw.session, created.as_deref(), first.as_deref()]).into()
}

/// Maps the conversation without its messages; takes `rest` out of `raw`.
pub(crate) fn conversation<'a>(
    raw: &mut raw::Conversation<'a>,
    key: &Cow<'a, str>,
    version: &'static str,
    locator: &str,
) -> Conversation<'a> {
    let participant = |role, id: Option<&'a str>| {
        id.map(|id| Participant { role, name: None, provider_id: Some(Cow::Borrowed(id)) })
    };
    let participants = [participant(Role::User, raw.user), participant(Role::Assistant, raw.agent)];
    Conversation {
        id: key.clone(),
        provider_conversation_id: raw.id.map(Cow::Borrowed),
        account: raw.user.map(Cow::Borrowed),
        export_format_version: Some(version.into()),
        created_at: raw.created,
        participants: participants.into_iter().flatten().collect(),
        raw_metadata: std::mem::take(&mut raw.rest).into_json(),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }
}

/// Sorts messages by number, else by time; returns the warning if both disagree.
pub(crate) fn sort(messages: &mut Vec<raw::Message<'_>>) -> Option<&'static str> {
    let numbers: BTreeSet<u64> = messages.iter().filter_map(|message| message.index).collect();
    if numbers.len() == messages.len() {
        messages.sort_by_key(|message| message.index);
        let contradicted = order::contradicts(messages.iter().map(|message| message.created));
        return contradicted.then_some(NUMBERED);
    }
    let key = |message: &raw::Message<'_>| (role(message.role, &mut Leftover::default()).0, message.created);
    order::sort_by_time(messages, key).then_some(order::SORTED)
}

/// Maps messages one after the other; each answers the one before.
#[derive(Default)]
pub(crate) struct Chain<'a> {
    seen: BTreeSet<Cow<'a, str>>,
    last: Option<Cow<'a, str>>,
}

impl<'a> Chain<'a> {
    /// Maps the next message, with a warning about it; the error says why it is none.
    pub(crate) fn next(
        &mut self,
        raw: raw::Message<'a>,
    ) -> Result<(Message<'a>, Option<&'static str>), &'static str> {
        let raw::Message { place, id, role, content, index, created, mut rest } = raw;
        if role.is_none() && content.is_none() {
            return Err("it has neither a role nor a content");
        }
        let (role, mut warning) = self::role(role, &mut rest);
        let mut key = id.map_or_else(|| numbered(index, place), Cow::Borrowed);
        if self.seen.contains(&key) {
            warning = Some("another message has the same message_id");
        }
        while self.seen.contains(&key) {
            key = Cow::Owned(format!("{key}#{place}"));
        }
        self.seen.insert(key.clone());
        let parent = self.last.replace(key.clone());
        let message = Message {
            id: key,
            provider_message_id: id.map(Cow::Borrowed),
            role,
            content: content.map(|text| Content::Text(text.into())),
            created_at: created,
            parent,
            raw_metadata: rest.into_json(),
            ..Message::default()
        };
        Ok((message, warning))
    }
}

/// The key of a message without an id: its number, which stays the same as the conversation grows.
fn numbered<'a>(index: Option<u64>, place: usize) -> Cow<'a, str> {
    Cow::Owned(index.map_or_else(|| format!("#{place}"), |index| format!("#{index}")))
}

/// The role, and the warning about it. A name that is not MemU's own is kept.
fn role<'a>(name: Option<&'a str>, rest: &mut Leftover<'a>) -> (Role, Option<&'static str>) {
    let Some(name) = name else { return (Role::System, Some("it has no role; it is read as the system's")) };
    match name {
        "user" => return (Role::User, None),
        "assistant" => return (Role::Assistant, None),
        "system" => return (Role::System, None),
        _ => rest.add_text("role", name),
    }
    match name.trim().to_ascii_lowercase().as_str() {
        "user" | "human" => (Role::User, None),
        "assistant" | "ai" => (Role::Assistant, None),
        "system" => (Role::System, None),
        "tool" | "function" => (Role::Tool, None),
        _ => (Role::System, Some("its role is not known; it is read as the system's")),
    }
}
