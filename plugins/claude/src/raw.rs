//! The provider's shapes, as lenient as exports are: any field may be absent, null or of another type.
//!
//! One pass over the element; texts are slices of it or of its arena. What has no field here is kept in a [`Leftover`].

use satchel_importer::{JsonError, Leftover, Parser, json::Kind};

mod artifact;
mod block;
mod design;
mod file;
mod project;

pub(crate) use artifact::{Artifact, Comment, Thread, Version};
pub(crate) use block::{Block, NO_TEXT, PLAIN_TEXT};
pub(crate) use file::File;
pub(crate) use project::{Document, Project};

/// Messages of one conversation. Real ones have thousands at most; the largest conversation must fit into the memory of
/// the sandbox several times.
const MAX_MESSAGES: usize = 100_000;
/// Blocks or files of one message, for the same reason.
const MAX_LIST: usize = 5_000;
/// Blocks and files of one conversation.
const MAX_ITEMS: usize = 200_000;

/// One conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'a> {
    pub(crate) uuid: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) account: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    /// Who wrote in a chat of the design tool, each once.
    pub(crate) authors: Vec<Author<'a>>,
    pub(crate) archived: bool,
    /// Not to be remembered.
    pub(crate) temporary: bool,
    pub(crate) listing: Listing,
    /// What its list of messages is called.
    pub(crate) list: &'static str,
    /// The JSON text of `messages`, which is the list where there are no `chat_messages`.
    other_list: Option<&'a str>,
    pub(crate) messages: Vec<Message<'a>>,
    /// Places in the list that hold no message, and what they hold.
    pub(crate) gaps: Vec<(usize, &'static str)>,
    pub(crate) rest: Leftover<'a>,
}

/// What stood where the list of messages should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Nothing; so it is in a line of an index.
    #[default]
    Absent,
    /// Something else than a list.
    Odd,
    List,
}

/// Someone who wrote a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Author<'a> {
    pub(crate) uuid: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    /// Its place in the list.
    pub(crate) index: usize,
    pub(crate) uuid: Option<&'a str>,
    pub(crate) sender: Option<&'a str>,
    /// What says who speaks, where `sender` does not.
    pub(crate) role: Option<&'a str>,
    pub(crate) author: Author<'a>,
    pub(crate) parent: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) model: Option<&'a str>,
    /// The flat copy of the text.
    pub(crate) text: Option<&'a str>,
    pub(crate) blocks: Vec<Block<'a>>,
    pub(crate) attachments: Vec<File<'a>>,
    pub(crate) files: Vec<File<'a>>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Conversation<'a> {
    /// Reads one element; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            match key {
                "messages" => it.other_list = Some(json.raw_value()?),
                _ => it.field(key, json)?,
            }
        }
        json.end()?;
        it.take_other_list(json)?;
        Ok(Some(it))
    }

    /// Reads `messages` where `chat_messages` is missing; beside those it is kept.
    fn take_other_list(&mut self, json: &Parser<'a>) -> Result<(), JsonError> {
        let Some(raw) = self.other_list.take() else { return Ok(()) };
        let mut list = Parser::new(raw, json.arena());
        if self.listing == Listing::Absent && list.kind()? == Kind::Array {
            self.list = "messages";
            return self.read_messages("messages", &mut list, Message::read);
        }
        self.rest.keep_unknown("messages", &mut list)
    }

    /// The newest time in it.
    pub(crate) fn newest(&self) -> Option<i64> {
        let spoken = self.messages.iter().map(|message| message.created);
        spoken.chain([self.created, self.updated]).flatten().max()
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "chat_messages" => {
                self.list = "chat_messages";
                self.read_messages(key, json, Message::read)?;
            }
            "uuid" => self.uuid = rest.words(key, json)?,
            "name" => self.name = rest.text(key, json)?,
            "title" => self.title = rest.text(key, json)?,
            "created_at" => self.created = rest.time(key, json)?,
            "updated_at" => self.updated = rest.time(key, json)?,
            "account" => self.read_account(json)?,
            "model" => self.model = rest.text(key, json)?,
            "is_archived" => self.archived = rest.bool(key, json)?.unwrap_or_default(),
            "is_temporary" => self.temporary = rest.keep_and_read(key, json)?.is_true(),
            // A list may be that of the messages by another name.
            _ if json.kind()? == Kind::Array => rest.keep_unknown(key, json)?,
            _ => rest.keep(key, json)?,
        }
        Ok(())
    }

    fn read_account(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if json.kind()? == Kind::String {
            self.account = self.rest.words("account", json)?;
            return Ok(());
        }
        if !self.rest.object("account", json)? {
            return Ok(());
        }
        let mut rest = Leftover::default();
        while let Some(key) = json.key()? {
            match key {
                "uuid" => self.account = rest.words(key, json)?,
                _ => rest.keep(key, json)?,
            }
        }
        if let Some(account) = rest.into_json() {
            self.rest.add_json("account", &account);
        }
        Ok(())
    }

    /// Reads a list of messages, each by `read`.
    fn read_messages(
        &mut self,
        key: &'a str,
        json: &mut Parser<'a>,
        read: fn(usize, &mut Parser<'a>) -> Result<Option<Message<'a>>, JsonError>,
    ) -> Result<(), JsonError> {
        self.messages.clear();
        self.gaps.clear();
        let list = matches!(json.kind()?, Kind::Array | Kind::Null);
        self.listing = if list { Listing::List } else { Listing::Odd };
        if !self.rest.array(key, json)? {
            return Ok(());
        }
        let (mut index, mut items) = (0, 0);
        while json.item()? {
            if json.null()? {
                self.gaps.push((index, "it is null"));
            } else if let Some(message) = read(index, json)? {
                items += message.blocks.len() + message.attachments.len() + message.files.len();
                self.messages.push(message);
            } else {
                self.gaps.push((index, "it is not an object"));
            }
            index += 1;
            if index > MAX_MESSAGES || items > MAX_ITEMS {
                return Err(JsonError {
                    offset: json.offset(),
                    problem: "more messages or blocks than the limit",
                });
            }
        }
        Ok(())
    }
}

impl<'a> Message<'a> {
    /// Who speaks, in the export's word.
    pub(crate) fn speaker(&self) -> Option<&'a str> {
        self.sender.or(self.role)
    }

    /// Reads one item of `chat_messages`; none if it is no object.
    fn read(index: usize, json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { index, ..Self::default() };
        while let Some(key) = json.key()? {
            match key {
                "role" => it.role = it.rest.text(key, json)?,
                _ => it.field(key, json)?,
            }
        }
        if let (Some(_), Some(role)) = (it.sender, it.role) {
            it.rest.add_text("role", role);
            it.role = None;
        }
        Ok(Some(it))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "content" => self.read_content(key, json)?,
            "text" => self.text = rest.text(key, json)?,
            "uuid" => self.uuid = rest.words(key, json)?,
            "sender" => self.sender = rest.text(key, json)?,
            "parent_message_uuid" => self.parent = rest.text(key, json)?,
            "created_at" => self.created = rest.time(key, json)?,
            "model" => self.model = rest.text(key, json)?,
            "attachments" => self.attachments = File::read_list(key, json, rest)?,
            "files" => self.files = File::read_list(key, json, rest)?,
            "updated_at" => rest.keep(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    /// Reads a list of blocks, or one block, or either of them as JSON in a string.
    fn read_content(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.blocks.clear();
        match json.kind()? {
            Kind::Array => self.blocks = Block::read_list(json)?,
            Kind::Object => self.blocks.push(Block::read(json)?),
            Kind::String => {
                let text = json.string()?;
                self.blocks = Block::from_text(text, json.arena());
            }
            Kind::Null | Kind::Bool | Kind::Number => self.rest.keep(key, json)?,
        }
        Ok(())
    }
}

/// Refuses a list that is too long to be real.
fn check_length(length: usize, json: &Parser<'_>) -> Result<(), JsonError> {
    let problem = "a list of blocks or files is longer than the limit";
    if length > MAX_LIST { Err(JsonError { offset: json.offset(), problem }) } else { Ok(()) }
}

/// Takes a value of any type as JSON text; null is none.
pub(crate) fn json_text<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.null()? { Ok(None) } else { json.raw_value().map(Some) }
}
