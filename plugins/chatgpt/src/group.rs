//! Group chats: several people and ChatGPT in one thread, a list instead of a tree.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Content, Conversation, Element, ImportError, JsonError, Leftover, Message, Parser, Participant,
    Role,
    address::unsigned_json,
    json::{Kind, Object},
    natural_key,
    order::{SORTED, sort_by_time},
};

use crate::map::{self, Context, Records};

/// PAM tag of these conversations.
const TAG: &str = "group-chat";

/// One item of `chats`.
#[derive(Debug, Default)]
struct Chat<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    members: Vec<Object<'a>>,
    messages: Vec<Said<'a>>,
    /// Items of `messages` that are no objects: their numbers.
    odd: Vec<usize>,
    rest: Leftover<'a>,
}

/// One message.
#[derive(Debug, Default)]
struct Said<'a> {
    /// Its place in the list, counting those that are no objects.
    at: usize,
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
        Chat::read(&mut element.parser())?.ok_or_else(|| ImportError::malformed("it is not an object"))?;
    if chat.messages.is_empty() {
        return Err(ImportError::malformed("it holds no message"));
    }
    let arena = element.arena();
    let locator = element.locator();
    let sorted = sort_by_time(&mut chat.messages, |said| (map::role(said.role), said.created));
    let mut warnings: Vec<_> = sorted.then(|| (locator.clone(), SORTED)).into_iter().collect();
    let id = chat.key();
    let place = |at: usize| format!("{locator}.messages[{at}]");
    let mut skipped: Vec<_> = chat.odd.iter().map(|at| (place(*at), "it is not an object")).collect();
    let mut messages: Vec<Message<'a>> = Vec::with_capacity(chat.messages.len());
    let mut known = BTreeSet::new();
    for (number, said) in chat.messages.into_iter().enumerate() {
        let (id, at) = (said.key(number), said.at);
        if !known.insert(id.clone()) {
            skipped.push((place(at), "another message has the same id"));
            continue;
        }
        if !map::is_role(said.role) {
            warnings.push((place(at), map::SPEAKERLESS));
        }
        let parent = messages.last().map(|before| before.id.clone());
        messages.push(said.message(id, parent, context, arena));
    }
    let mut rest = chat.rest;
    let conversation = Conversation {
        id,
        provider_conversation_id: chat.id.map(Cow::Borrowed),
        account: context.account.map(Cow::Borrowed),
        export_format_version: Some(Cow::Borrowed(context.version)),
        title: chat.name.map(Cow::Borrowed),
        created_at: chat.created,
        updated_at: chat.updated,
        participants: chat.members.iter().map(participant).collect(),
        tags: vec![TAG.into()],
        current: messages.last().map(|last| last.id.clone()),
        raw_metadata: rest.take_json(arena).map(unsigned_json),
        locator: Cow::Owned(locator),
        ..Conversation::default()
    };
    Ok(Records { conversation, messages, skipped, warnings, ..Records::default() })
}

fn participant<'a>(member: &Object<'a>) -> Participant<'a> {
    let id = member.text("id").or(member.text("user_id"));
    Participant {
        role: Role::User,
        name: member.text("name").map(Cow::Borrowed),
        provider_id: id.map(Cow::Borrowed),
    }
}

impl<'a> Chat<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "id" => it.id = rest.words(key, json)?,
                "name" | "title" if it.name.is_none() => it.name = rest.words(key, json)?,
                "created_at" => it.created = rest.time(key, json)?,
                "updated_at" => it.updated = rest.time(key, json)?,
                "members" => {
                    let members = rest.keep_and_read(key, json)?.raw();
                    it.members = members
                        .map(|raw| satchel_importer::json::objects(raw, json.arena()))
                        .unwrap_or_default();
                }
                "messages" => {
                    if rest.array(key, json)? {
                        it.read_messages(json)?;
                    }
                }
                _ => rest.keep(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    fn read_messages(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        (self.messages, self.odd) = (Vec::new(), Vec::new());
        let mut number = 0;
        while json.item()? {
            match Said::read(json)? {
                Some(said) => self.messages.push(Said { at: number, ..said }),
                None => self.odd.push(number),
            }
            number += 1;
        }
        Ok(())
    }

    /// Its id, which must not be that of a conversation; else what later exports hold too.
    fn key(&self) -> Cow<'a, str> {
        if let Some(id) = self.id {
            return format!("group_chat:{id}").into();
        }
        let created = self.created.map(|time| time.to_string());
        let first = self.messages.first();
        let said = first.and_then(|said| said.id.or(said.text));
        natural_key(&[Some("group_chat"), created.as_deref(), self.name, said]).into()
    }
}

impl<'a> Said<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "id" => it.id = rest.words(key, json)?,
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

    fn key(&self, number: usize) -> Cow<'a, str> {
        self.id.map_or_else(|| Cow::Owned(format!("message-{number}")), Cow::Borrowed)
    }

    fn message(
        mut self,
        id: Cow<'a, str>,
        parent: Option<Cow<'a, str>>,
        context: &Context<'a>,
        arena: &'a Arena,
    ) -> Message<'a> {
        let role = map::role(self.role);
        if let Some(name) =
            self.role.filter(|name| !matches!(*name, "user" | "assistant" | "system" | "tool"))
        {
            self.rest.add_text("role", name);
        }
        Message {
            provider_message_id: self.id.map(Cow::Borrowed),
            role,
            content: self.text.map(|text| Content::Text(text.into())),
            created_at: self.created,
            parent,
            attachments: map::listed_files(self.attachments, context.assets, arena),
            raw_metadata: self.rest.take_json(arena).map(unsigned_json),
            id,
            ..Message::default()
        }
    }
}
