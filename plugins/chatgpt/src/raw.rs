//! Conversations, nodes and messages as the provider writes them; any field may be absent, null or of another type.
//!
//! They are read in one pass over the element; texts are slices of it or of its arena. Fields without a place in these
//! types go into a [`Leftover`].

use satchel_importer::{Element, JsonError, Leftover, Parser, json::Kind};

mod content;

pub(crate) use content::{Content, Parts};

use crate::scan;

/// One conversation of `conversations.json`, without its nodes.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'a> {
    pub(crate) id: Option<&'a str>,
    /// `conversation_id`, the id in links; in a few old exports it differs from `id`.
    pub(crate) link_id: Option<&'a str>,
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
    /// No memories are to be made from it.
    pub(crate) forget: bool,
    pub(crate) mapping: Mapping,
    pub(crate) rest: Leftover<'a>,
}

/// The value of `mapping`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mapping {
    #[default]
    Absent,
    Null,
    NotAnObject,
    Nodes,
}

/// Receives the nodes of a conversation, in the order of the export.
pub(crate) trait NodeVisitor<'a> {
    /// A `mapping` begins; it replaces those before.
    fn begin(&mut self);
    /// One node. `rest` has the other fields of its message and is emptied.
    fn node(&mut self, node: Node<'a>, rest: &mut Leftover<'a>);
}

/// One entry of `mapping`.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) key: &'a str,
    pub(crate) parent: Option<&'a str>,
    /// The list of children as JSON text; slim exports have none.
    pub(crate) children: Option<&'a str>,
    pub(crate) message: NodeMessage<'a>,
}

/// The value of `message` in a node.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every node has a message; a box for each would cost more"
)]
pub(crate) enum NodeMessage<'a> {
    /// None, as in a root or a gap.
    Absent,
    Message(Message<'a>),
    /// The problem with a value that is no message.
    Malformed(&'static str),
}

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) role: Option<&'a str>,
    /// The name of a tool.
    pub(crate) name: Option<&'a str>,
    pub(crate) time: Option<i64>,
    pub(crate) recipient: Option<&'a str>,
    pub(crate) content: Content<'a>,
    pub(crate) metadata: Metadata<'a>,
}

/// The fields of a message's `metadata` that are read; the whole of it is kept too.
#[derive(Debug, Default)]
pub(crate) struct Metadata<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) hidden: bool,
    pub(crate) user_system: bool,
    /// The person has not confirmed a memory yet.
    pub(crate) pending: bool,
    /// Who wrote it in the person's name: `automation` is a scheduled task.
    pub(crate) real_author: Option<&'a str>,
    pub(crate) real_author_id: Option<&'a str>,
    pub(crate) real_author_title: Option<&'a str>,
    /// This field and the next ones are JSON text.
    pub(crate) attachments: Option<&'a str>,
    pub(crate) citations: Option<&'a str>,
    pub(crate) references: Option<&'a str>,
    pub(crate) searches: Option<&'a str>,
    pub(crate) aggregate: Option<&'a str>,
    pub(crate) user_context: Option<&'a str>,
    /// The saved memories and other conversations that an answer used.
    pub(crate) context: Option<&'a str>,
    pub(crate) canvas: Option<&'a str>,
}

impl<'a> Conversation<'a> {
    /// Reads one element and passes its nodes to `visitor`; none if it is no object.
    pub(crate) fn read(
        element: &Element<'a>,
        visitor: &mut impl NodeVisitor<'a>,
    ) -> Result<Option<Self>, JsonError> {
        let mut json = element.parser();
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            if key == "mapping" {
                it.read_mapping(&mut json, element.text(), visitor)?;
            } else {
                it.field(key, &mut json)?;
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "id" => self.id = rest.text(key, json)?,
            "conversation_id" => self.link_id = rest.text(key, json)?,
            "title" => self.title = rest.text(key, json)?,
            "create_time" => self.created = rest.time(key, json)?,
            "update_time" => self.updated = rest.time(key, json)?,
            "current_node" => self.current = rest.text(key, json)?,
            "default_model_slug" => self.model = rest.text(key, json)?,
            "is_archived" => self.archived = rest.bool(key, json)?.unwrap_or_default(),
            "gizmo_id" => self.gizmo = rest.keep_and_read(key, json)?.text(),
            "conversation_template_id" => self.template = rest.keep_and_read(key, json)?.text(),
            "memory_scope" => self.memory_scope = rest.keep_and_read(key, json)?.text(),
            "is_do_not_remember" | "is_temporary_chat" | "is_temporary" => {
                self.forget |= rest.keep_and_read(key, json)?.is_true();
            }
            _ => rest.keep(key, json)?,
        }
        Ok(())
    }

    fn read_mapping(
        &mut self,
        json: &mut Parser<'a>,
        element: &'a str,
        visitor: &mut impl NodeVisitor<'a>,
    ) -> Result<(), JsonError> {
        visitor.begin();
        if json.null()? {
            self.mapping = Mapping::Null;
            return Ok(());
        }
        if !json.enter_object()? {
            self.mapping = Mapping::NotAnObject;
            return self.rest.keep("mapping", json);
        }
        self.mapping = Mapping::Nodes;
        let mut rest = Leftover::default();
        while let Some(key) = json.key()? {
            rest.clear();
            let node = Node::read(key, json, element, &mut rest)?;
            visitor.node(node, &mut rest);
        }
        Ok(())
    }
}

impl<'a> Node<'a> {
    fn read(
        key: &'a str,
        json: &mut Parser<'a>,
        element: &'a str,
        rest: &mut Leftover<'a>,
    ) -> Result<Self, JsonError> {
        let mut node = Self { key, parent: None, children: None, message: NodeMessage::Absent };
        if !json.enter_object()? {
            node.message = NodeMessage::Malformed("the node is not an object");
            return Ok(node);
        }
        let mut beside = Leftover::default();
        while let Some(key) = json.key()? {
            match key {
                "parent" => node.parent = text(json)?,
                "children" if json.kind()? == Kind::Array => node.children = Some(json.raw_value()?),
                "message" => node.message = NodeMessage::read(json, element, rest)?,
                // The key in the mapping is the id.
                "id" | "children" => json.skip_value()?,
                _ => beside.keep(key, json)?,
            }
        }
        if let Some(beside) = beside.take_json(json.arena()) {
            rest.add_json("node", &beside);
        }
        Ok(node)
    }
}

impl<'a> NodeMessage<'a> {
    fn read(json: &mut Parser<'a>, element: &'a str, rest: &mut Leftover<'a>) -> Result<Self, JsonError> {
        rest.clear();
        if json.null()? {
            return Ok(Self::Absent);
        }
        if !json.enter_object()? {
            return Ok(Self::Malformed("the message is not an object"));
        }
        let mut message = Message::default();
        let mut known = false;
        while let Some(key) = json.key()? {
            known |= matches!(key, "author" | "content");
            message.field(key, json, element, rest)?;
        }
        Ok(if known {
            Self::Message(message)
        } else {
            Self::Malformed("the message has neither author nor content")
        })
    }
}

impl<'a> Message<'a> {
    fn field(
        &mut self,
        key: &'a str,
        json: &mut Parser<'a>,
        element: &'a str,
        rest: &mut Leftover<'a>,
    ) -> Result<(), JsonError> {
        match key {
            "content" => self.content = Content::read(json)?,
            "metadata" => self.metadata = Metadata::read(json, element, rest)?,
            "author" => self.read_author(json, rest)?,
            "create_time" => self.time = rest.time(key, json)?,
            "recipient" => self.recipient = rest.keep_and_read(key, json)?.text(),
            "id" => self.id = rest.text(key, json)?,
            "status" | "end_turn" | "weight" | "channel" | "update_time" => rest.keep(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    fn read_author(&mut self, json: &mut Parser<'a>, rest: &mut Leftover<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return rest.keep("author", json);
        }
        let mut author = Leftover::default();
        while let Some(key) = json.key()? {
            match key {
                "role" => self.role = author.text(key, json)?,
                "name" => self.name = author.keep_and_read(key, json)?.text(),
                _ => author.keep(key, json)?,
            }
        }
        keep_role(self.role, &mut author);
        if let Some(author) = author.take_json(json.arena()) {
            rest.add_json("author", &author);
        }
        Ok(())
    }
}

impl<'a> Metadata<'a> {
    fn read(json: &mut Parser<'a>, element: &'a str, rest: &mut Leftover<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        json.kind()?;
        let start = json.offset();
        if !json.enter_object()? {
            rest.keep("metadata", json)?;
            return Ok(it);
        }
        let mut empty = true;
        while let Some(key) = json.key()? {
            empty = false;
            match key {
                "model_slug" => it.model = text(json)?,
                "is_visually_hidden_from_conversation" => it.hidden = flag(json)?,
                "is_user_system_message" => it.user_system = flag(json)?,
                "pending_memory_info" => it.pending = !matches!(json.raw_value()?, "null" | "{}"),
                "real_author_type" => it.real_author = text(json)?,
                "real_author_id" => it.real_author_id = text(json)?,
                "real_author_title" => it.real_author_title = text(json)?,
                "attachments" => it.attachments = list(json)?,
                "citations" => it.citations = list(json)?,
                "content_references" => it.references = list(json)?,
                "search_result_groups" => it.searches = list(json)?,
                "aggregate_result" => it.aggregate = Some(json.raw_value()?),
                "user_context_message_data" => it.user_context = Some(json.raw_value()?),
                "conversation_context_citation_metadata" => it.context = list(json)?,
                "canvas" => it.canvas = Some(json.raw_value()?),
                _ => {}
            }
        }
        if !empty {
            let raw = element.get(start..json.offset()).unwrap_or_default();
            // It was walked over leniently, and has to be kept as strict parsers accept it.
            let lenient = scan::may_be_lenient(raw);
            rest.add_json(
                "metadata",
                if lenient { Parser::new(raw, json.arena()).raw_value()? } else { raw },
            );
        }
        Ok(it)
    }
}

/// Keeps a role that PAM has no name for.
pub(crate) fn keep_role(role: Option<&str>, rest: &mut Leftover<'_>) {
    if let Some(role) = role.filter(|role| !matches!(*role, "user" | "assistant" | "system" | "tool")) {
        rest.add_text("role", role);
    }
}

fn text<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.kind()? == Kind::String { json.string().map(Some) } else { Ok(None) }
}

fn flag(json: &mut Parser<'_>) -> Result<bool, JsonError> {
    if json.kind()? == Kind::Bool { json.bool() } else { Ok(false) }
}

/// A list that is not empty, as JSON text.
fn list<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.kind()? != Kind::Array {
        return Ok(None);
    }
    json.raw_value().map(|raw| Some(raw).filter(|raw| *raw != "[]"))
}
