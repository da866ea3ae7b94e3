//! The provider's shapes, as lenient as exports are: any field may be absent, null or of another type.
//!
//! One pass over the element; texts are slices of it or of its arena. What has no field of its own is kept as text in
//! a [`Leftover`].

use std::borrow::Cow;

use satchel_importer::{JsonError, Leftover, Parser, json::Kind};

mod content;
mod value;

pub(crate) use content::{Content, Part};
pub(crate) use value::{Object, Value, items, texts};

use crate::time;

/// One conversation of `conversations.json`.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'a> {
    pub(crate) id: Option<&'a str>,
    /// `conversation_id`: the id in addresses; in a few old exports it is not that of `id`.
    pub(crate) address: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) current: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) archived: bool,
    /// `g-p-…` names a project, `g-…` a custom GPT.
    pub(crate) gizmo: Option<&'a str>,
    pub(crate) template: Option<&'a str>,
    pub(crate) memory_scope: Option<&'a str>,
    /// The person asked not to be remembered by it.
    pub(crate) forget: bool,
    pub(crate) mapping: Mapping,
    pub(crate) nodes: Vec<Node<'a>>,
    pub(crate) rest: Leftover<'a>,
}

/// What stood under `mapping`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mapping {
    #[default]
    Absent,
    Null,
    /// Not an object.
    Odd,
    Nodes,
}

/// One entry of `mapping`.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) key: &'a str,
    pub(crate) parent: Option<&'a str>,
    /// The list of children as JSON text; slim exports have none.
    pub(crate) children: Option<&'a str>,
    pub(crate) message: Slot<'a>,
}

/// What a node holds.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every node holds a message; a box for each would cost more"
)]
pub(crate) enum Slot<'a> {
    /// A root or a gap: no message, and nothing is missing.
    Empty,
    Message(Message<'a>),
    /// Something that is no message; the text says what.
    Odd(&'static str),
}

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) role: Option<&'a str>,
    /// The tool's name.
    pub(crate) name: Option<&'a str>,
    pub(crate) time: Option<i64>,
    pub(crate) recipient: Option<&'a str>,
    pub(crate) content: Content<'a>,
    pub(crate) metadata: Metadata<'a>,
    pub(crate) rest: Leftover<'a>,
}

/// The fields of a message's `metadata` that are read; all of it is kept too.
#[derive(Debug, Default)]
pub(crate) struct Metadata<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) hidden: bool,
    pub(crate) user_system: bool,
    /// JSON text each.
    pub(crate) attachments: Option<&'a str>,
    pub(crate) citations: Option<&'a str>,
    pub(crate) references: Option<&'a str>,
    pub(crate) searches: Option<&'a str>,
    pub(crate) aggregate: Option<&'a str>,
    pub(crate) user_context: Option<&'a str>,
}

impl<'a> Conversation<'a> {
    /// Reads one element; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            it.field(key, json)?;
        }
        json.end()?;
        Ok(Some(it))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "mapping" => self.read_mapping(json)?,
            "id" => self.id = rest.text(key, json)?,
            "conversation_id" => self.address = rest.text(key, json)?,
            "title" => self.title = rest.text(key, json)?,
            "create_time" => self.created = time::read(key, json, rest)?,
            "update_time" => self.updated = time::read(key, json, rest)?,
            "current_node" => self.current = rest.text(key, json)?,
            "default_model_slug" => self.model = rest.text(key, json)?,
            "is_archived" => self.archived = rest.bool(key, json)?.unwrap_or_default(),
            "gizmo_id" => self.gizmo = kept(key, json, rest)?.text(),
            "conversation_template_id" => self.template = kept(key, json, rest)?.text(),
            "memory_scope" => self.memory_scope = kept(key, json, rest)?.text(),
            "is_do_not_remember" | "is_temporary_chat" | "is_temporary" => {
                self.forget |= kept(key, json, rest)?.is_true();
            }
            _ => keep(key, json, rest)?,
        }
        Ok(())
    }

    fn read_mapping(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.nodes.clear();
        if json.null()? {
            self.mapping = Mapping::Null;
            return Ok(());
        }
        if !json.enter_object()? {
            self.mapping = Mapping::Odd;
            return keep("mapping", json, &mut self.rest);
        }
        self.mapping = Mapping::Nodes;
        while let Some(key) = json.key()? {
            self.nodes.push(Node::read(key, json)?);
        }
        Ok(())
    }
}

impl<'a> Node<'a> {
    fn read(key: &'a str, json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut node = Self { key, parent: None, children: None, message: Slot::Empty };
        if !json.enter_object()? {
            node.message = Slot::Odd("the node is not an object");
            return Ok(node);
        }
        let mut rest = Leftover::default();
        while let Some(key) = json.key()? {
            match key {
                "parent" => node.parent = text(json)?,
                "children" if json.kind()? == Kind::Array => node.children = Some(json.raw_value()?),
                "message" => node.message = Slot::read(json)?,
                // The key in the mapping is the id.
                "id" | "children" => json.skip_value()?,
                _ => keep(key, json, &mut rest)?,
            }
        }
        if let (Slot::Message(message), Some(rest)) = (&mut node.message, rest.into_json()) {
            message.rest.add_json("node", rest);
        }
        Ok(node)
    }

    /// The children that the node names.
    pub(crate) fn children(&self, arena: &'a satchel_importer::Arena) -> Vec<&'a str> {
        self.children.map(|raw| texts(raw, arena)).unwrap_or_default()
    }
}

impl<'a> Slot<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        if json.null()? {
            return Ok(Self::Empty);
        }
        if !json.enter_object()? {
            return Ok(Self::Odd("the message is not an object"));
        }
        let mut message = Message::default();
        let mut known = false;
        while let Some(key) = json.key()? {
            known |= matches!(key, "author" | "content");
            message.field(key, json)?;
        }
        Ok(if known {
            Self::Message(message)
        } else {
            Self::Odd("the message has neither author nor content")
        })
    }
}

impl<'a> Message<'a> {
    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "content" => self.content = Content::read(json)?,
            "metadata" => self.metadata = Metadata::read(json, rest)?,
            "author" => self.read_author(json)?,
            "create_time" => self.time = time::read(key, json, rest)?,
            "recipient" => self.recipient = kept(key, json, rest)?.text(),
            "id" => self.id = rest.text(key, json)?,
            _ => keep(key, json, rest)?,
        }
        Ok(())
    }

    fn read_author(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return keep("author", json, &mut self.rest);
        }
        let mut rest = Leftover::default();
        while let Some(key) = json.key()? {
            match key {
                "role" => self.role = rest.text(key, json)?,
                "name" => self.name = kept(key, json, &mut rest)?.text(),
                _ => keep(key, json, &mut rest)?,
            }
        }
        if let Some(role) =
            self.role.filter(|role| !matches!(*role, "user" | "assistant" | "system" | "tool"))
        {
            rest.add_text("role", role);
        }
        if let Some(author) = rest.into_json() {
            self.rest.add_json("author", author);
        }
        Ok(())
    }
}

impl<'a> Metadata<'a> {
    fn read(json: &mut Parser<'a>, rest: &mut Leftover<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        let raw = json.raw_value()?;
        if nothing(raw) {
            return Ok(it);
        }
        rest.add_json("metadata", raw);
        let mut json = Parser::new(raw, json.arena());
        if !json.enter_object()? {
            return Ok(it);
        }
        while let Some(key) = json.key()? {
            match key {
                "model_slug" => it.model = text(&mut json)?,
                "is_visually_hidden_from_conversation" => it.hidden = flag(&mut json)?,
                "is_user_system_message" => it.user_system = flag(&mut json)?,
                "attachments" => it.attachments = list(&mut json)?,
                "citations" => it.citations = list(&mut json)?,
                "content_references" => it.references = list(&mut json)?,
                "search_result_groups" => it.searches = list(&mut json)?,
                "aggregate_result" => it.aggregate = Some(json.raw_value()?),
                "user_context_message_data" => it.user_context = Some(json.raw_value()?),
                _ => {}
            }
        }
        Ok(it)
    }
}

/// Keeps the value unless it says nothing.
fn keep<'a>(key: &'a str, json: &mut Parser<'a>, rest: &mut Leftover<'a>) -> Result<(), JsonError> {
    let raw = json.raw_value()?;
    if !nothing(raw) {
        rest.add_json(key, raw);
    }
    Ok(())
}

/// Keeps the value, and reads it.
fn kept<'a>(key: &'a str, json: &mut Parser<'a>, rest: &mut Leftover<'a>) -> Result<Value<'a>, JsonError> {
    let raw = json.raw_value()?;
    if nothing(raw) {
        return Ok(Value::Null);
    }
    rest.add_json(key, Cow::Borrowed(raw));
    Value::read(&mut Parser::new(raw, json.arena()))
}

/// Absent, null and `{}` are one.
fn nothing(raw: &str) -> bool {
    matches!(raw, "null" | "{}")
}

fn text<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.kind()? == Kind::String { json.string().map(Some) } else { Ok(None) }
}

fn flag(json: &mut Parser<'_>) -> Result<bool, JsonError> {
    if json.kind()? == Kind::Bool { json.bool() } else { Ok(false) }
}

/// A list with something in it, as JSON text.
fn list<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.kind()? != Kind::Array {
        return Ok(None);
    }
    json.raw_value().map(|raw| Some(raw).filter(|raw| *raw != "[]"))
}
