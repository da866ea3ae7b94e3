//! Group chats: several people and ChatGPT in one conversation.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Content, Element, ImportError, JsonError, Leftover, Message, Parser, Participant, Role,
    address::unsigned_json,
    json::{Kind, Object, objects},
    natural_key,
};

use crate::{
    map::{self, Context, Records},
    raw,
    turn_list::TurnList,
};

/// PAM tag of these conversations.
const TAG: &str = "group-chat";

/// One message.
#[derive(Debug, Default)]
struct GroupMessage<'a> {
    /// Its index in the list of the file.
    index: usize,
    id: Option<&'a str>,
    role: Option<&'a str>,
    text: Option<&'a str>,
    created: Option<i64>,
    attachments: Option<&'a str>,
    rest: Leftover<'a>,
}

/// Reads one group chat.
pub(crate) fn read<'a>(element: &Element<'a>, context: &Context<'a>) -> Result<Records<'a>, ImportError> {
    let mut chat =
        read_chat(&mut element.parser())?.ok_or_else(|| ImportError::malformed("it is not an object"))?;
    if chat.turns.is_empty() {
        return Err(ImportError::malformed("it holds no message"));
    }
    let locator = element.locator();
    let mut records = chat.sort(&locator, "messages", |message| (message.role, message.created));
    let id = chat_id(&chat);
    let mut ids = BTreeSet::new();
    for (number, message) in std::mem::take(&mut chat.turns).into_iter().enumerate() {
        let place = format!("{locator}.messages[{}]", message.index);
        let id = message.id.map_or_else(|| Cow::Owned(format!("message-{number}")), Cow::Borrowed);
        if !ids.insert(id.clone()) {
            records.skipped.push((place, "another message has the same id"));
            continue;
        }
        if map::known_role(message.role).is_none() {
            records.warnings.push((place, map::UNKNOWN_ROLE));
        }
        let parent = records.messages.last().map(|before| before.id.clone());
        records.messages.push(message.map(id, parent, context, element.arena()));
    }
    records.conversation = chat.conversation(id, TAG, &records.messages, element, context);
    Ok(records)
}

fn read_chat<'a>(json: &mut Parser<'a>) -> Result<Option<TurnList<'a, GroupMessage<'a>>>, JsonError> {
    if !json.enter_object()? {
        return Ok(None);
    }
    let mut chat = TurnList::default();
    while let Some(key) = json.key()? {
        let rest = &mut chat.rest;
        match key {
            "id" => chat.id = rest.nonempty_text(key, json)?,
            "name" | "title" if chat.title.is_none() => chat.title = rest.nonempty_text(key, json)?,
            "created_at" => chat.created = rest.time(key, json)?,
            "updated_at" => chat.updated = rest.time(key, json)?,
            "members" => {
                let members = rest.keep_and_read(key, json)?.raw();
                let members = members.map(|raw| objects(raw, json.arena())).unwrap_or_default();
                chat.participants = members.iter().map(participant).collect();
            }
            "messages" => {
                if rest.array(key, json)? {
                    chat.read_turns(json, GroupMessage::read)?;
                }
            }
            _ => rest.keep(key, json)?,
        }
    }
    json.end()?;
    Ok(Some(chat))
}

fn participant<'a>(member: &Object<'a>) -> Participant<'a> {
    let id = member.text("id").or(member.text("user_id"));
    Participant {
        role: Role::User,
        name: member.text("name").map(Cow::Borrowed),
        provider_id: id.map(Cow::Borrowed),
    }
}

/// The id, with a prefix because a conversation may have the same; if there is none, a hash of values that later exports
/// have too.
fn chat_id<'a>(chat: &TurnList<'a, GroupMessage<'a>>) -> Cow<'a, str> {
    if let Some(id) = chat.id {
        return format!("group_chat:{id}").into();
    }
    let created = chat.created.map(|time| time.to_string());
    let first = chat.turns.first().and_then(|message| message.id.or(message.text));
    natural_key(&[Some("group_chat"), created.as_deref(), chat.title, first]).into()
}

impl<'a> GroupMessage<'a> {
    fn read(json: &mut Parser<'a>, index: usize) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { index, ..Self::default() };
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "id" => it.id = rest.nonempty_text(key, json)?,
                "role" => it.role = rest.text(key, json)?,
                "text" => it.text = rest.text(key, json)?,
                "created_at" => it.created = rest.time(key, json)?,
                "attachments" if json.kind()? == Kind::Array => {
                    it.attachments = rest.keep_and_read(key, json)?.raw().filter(|raw| *raw != "[]");
                }
                _ => rest.keep(key, json)?,
            }
        }
        Ok(Some(it))
    }

    fn map(
        mut self,
        id: Cow<'a, str>,
        parent: Option<Cow<'a, str>>,
        context: &Context<'a>,
        arena: &'a Arena,
    ) -> Message<'a> {
        raw::keep_role(self.role, &mut self.rest);
        Message {
            id,
            provider_message_id: self.id.map(Cow::Borrowed),
            role: map::role(self.role),
            content: self.text.map(|text| Content::Text(text.into())),
            created_at: self.created,
            parent,
            attachments: map::merge_attachments(Vec::new(), self.attachments, context.assets, arena),
            raw_metadata: self.rest.take_json(arena).map(unsigned_json),
            ..Message::default()
        }
    }
}
