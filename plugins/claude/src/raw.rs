//! The provider's records. Any field may be absent, null or of another type.
//!
//! Reading is one pass over the element; texts are slices of it or of its arena. Unknown fields go to a [`Leftover`].

use satchel_importer::{JsonError, Leftover, Parser, json::Kind};

mod artifact;
mod block;
mod design;
mod file;
mod project;

pub(crate) use artifact::{Artifact, Comment, Thread, Version};
pub(crate) use block::{Block, EMPTY_TEXT, PLAIN_TEXT};
pub(crate) use file::File;
pub(crate) use project::{Document, Project};

/// Messages of one conversation. Real ones have thousands at most; the sandbox's memory must hold the largest
/// conversation several times.
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
    /// The authors of a chat of the design tool, each once.
    pub(crate) authors: Vec<Author<'a>>,
    pub(crate) archived: bool,
    /// It must give no memories.
    pub(crate) temporary: bool,
    pub(crate) listing: Listing,
    /// The key of its list of messages.
    pub(crate) list: &'static str,
    /// The JSON text of `messages`, which is the list of messages if there are no `chat_messages`.
    messages_json: Option<&'a str>,
    pub(crate) messages: Vec<Message<'a>>,
    /// Indices in the list that hold no message, and why not.
    pub(crate) gaps: Vec<(usize, &'static str)>,
    pub(crate) rest: Leftover<'a>,
}

/// Whether a conversation has a list of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Listing {
    /// No, as in an entry of an index.
    #[default]
    Absent,
    /// Something else is in its place.
    Invalid,
    List,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Author<'a> {
    pub(crate) uuid: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    /// Its index in the list.
    pub(crate) index: usize,
    pub(crate) uuid: Option<&'a str>,
    pub(crate) sender: Option<&'a str>,
    /// The role of the speaker, if there is no `sender`.
    pub(crate) role: Option<&'a str>,
    pub(crate) author: Author<'a>,
    pub(crate) parent: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) model: Option<&'a str>,
    /// A copy of the text of all blocks.
    pub(crate) text: Option<&'a str>,
    pub(crate) blocks: Vec<Block<'a>>,
    pub(crate) attachments: Vec<File<'a>>,
    pub(crate) files: Vec<File<'a>>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Conversation<'a> {
    /// Reads one element; none if it is no object. `design`: it is a chat of the design tool.
    pub(crate) fn read(json: &mut Parser<'a>, design: bool) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { list: if design { "messages" } else { "" }, ..Self::default() };
        while let Some(key) = json.key()? {
            match key {
                "messages" if design => it.read_messages(key, json, design)?,
                "messages" => it.messages_json = Some(json.raw_value()?),
                _ => it.field(key, json)?,
            }
        }
        json.end()?;
        if design {
            it.add_authors();
        } else {
            it.read_messages_json(json)?;
        }
        Ok(Some(it))
    }

    /// Reads `messages` if `chat_messages` is missing; otherwise keeps it.
    fn read_messages_json(&mut self, json: &Parser<'a>) -> Result<(), JsonError> {
        let Some(raw) = self.messages_json.take() else { return Ok(()) };
        let mut list = Parser::new(raw, json.arena());
        if self.listing == Listing::Absent && list.kind()? == Kind::Array {
            self.list = "messages";
            return self.read_messages("messages", &mut list, false);
        }
        self.rest.keep_unknown("messages", &mut list)
    }

    /// The newest time in it.
    pub(crate) fn newest(&self) -> Option<i64> {
        let messages = self.messages.iter().map(|message| message.created);
        messages.chain([self.created, self.updated]).flatten().max()
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "chat_messages" => {
                self.list = "chat_messages";
                self.read_messages(key, json, false)?;
            }
            "uuid" => self.uuid = rest.nonempty_text(key, json)?,
            "name" => self.name = rest.text(key, json)?,
            "title" => self.title = rest.text(key, json)?,
            "created_at" => self.created = rest.time(key, json)?,
            "updated_at" => self.updated = rest.time(key, json)?,
            "account" => self.read_account(json)?,
            "model" => self.model = rest.text(key, json)?,
            "is_archived" => self.archived = rest.bool(key, json)?.unwrap_or_default(),
            "is_temporary" => self.temporary = rest.keep_and_read(key, json)?.is_true(),
            // It may be the list of messages under a new name.
            _ if json.kind()? == Kind::Array => rest.keep_unknown(key, json)?,
            _ => rest.keep(key, json)?,
        }
        Ok(())
    }

    fn read_account(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if json.kind()? == Kind::String {
            self.account = self.rest.nonempty_text("account", json)?;
            return Ok(());
        }
        if !self.rest.object("account", json)? {
            return Ok(());
        }
        let mut rest = Leftover::default();
        while let Some(key) = json.key()? {
            match key {
                "uuid" => self.account = rest.nonempty_text(key, json)?,
                _ => rest.keep(key, json)?,
            }
        }
        add_object(&mut self.rest, "account", rest);
        Ok(())
    }

    fn read_messages(&mut self, key: &'a str, json: &mut Parser<'a>, design: bool) -> Result<(), JsonError> {
        self.messages.clear();
        self.gaps.clear();
        let list = matches!(json.kind()?, Kind::Array | Kind::Null);
        self.listing = if list { Listing::List } else { Listing::Invalid };
        if !self.rest.array(key, json)? {
            return Ok(());
        }
        let (mut index, mut items) = (0, 0);
        while json.item()? {
            if json.null()? {
                self.gaps.push((index, "it is null"));
            } else if let Some(message) = Message::read(index, json, design)? {
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
    /// The speaker's role, as the export spells it.
    pub(crate) fn speaker(&self) -> Option<&'a str> {
        self.sender.or(self.role)
    }

    /// Reads one item of the list; none if it is no object.
    fn read(index: usize, json: &mut Parser<'a>, design: bool) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { index, ..Self::default() };
        while let Some(key) = json.key()? {
            match key {
                "role" if design => it.sender = it.rest.text(key, json)?,
                "content" if design && json.kind()? == Kind::Object => it.read_design_content(json)?,
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
            "uuid" => self.uuid = rest.nonempty_text(key, json)?,
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

/// Adds the fields in `rest` to `outer` as an object.
fn add_object<'a>(outer: &mut Leftover<'a>, key: &'a str, rest: Leftover<'a>) {
    if let Some(field) = rest.unread() {
        outer.mark_unread(field);
    }
    if let Some(rest) = rest.into_json() {
        outer.add_json(key, &rest);
    }
}

/// Reads the items of an array that was entered.
fn read_items<'a, T>(
    json: &mut Parser<'a>,
    read: fn(&mut Parser<'a>) -> Result<T, JsonError>,
) -> Result<Vec<T>, JsonError> {
    let mut items = Vec::new();
    while json.item()? {
        items.push(read(json)?);
        check_length(items.len(), json)?;
    }
    Ok(items)
}

/// Returns an error if a list is too long to be real.
fn check_length(length: usize, json: &Parser<'_>) -> Result<(), JsonError> {
    let problem = "a list of blocks or files is longer than the limit";
    if length > MAX_LIST { Err(JsonError { offset: json.offset(), problem }) } else { Ok(()) }
}

/// Reads a value of any type as JSON text; none for null.
pub(crate) fn json_text<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.null()? { Ok(None) } else { json.raw_value().map(Some) }
}
