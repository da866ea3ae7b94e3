//! The export's own structures. Any field may be absent, null or of another type.

use std::collections::BTreeMap;

use satchel_importer::{JsonError, Leftover, Parser, json::Kind, tree::node_id};

mod message;

pub(crate) use message::{Fragment, Message};

/// Nodes of one conversation. Real ones have hundreds; the largest conversation must fit into the memory of the sandbox
/// several times.
const MAX_NODES: usize = 100_000;
/// Fragments of one conversation, for the same reason.
const MAX_FRAGMENTS: usize = 200_000;

/// One conversation with its nodes.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) mapping: Mapping,
    /// In the order of the export; of a repeated key the last node.
    pub(crate) nodes: Vec<Node<'a>>,
    pub(crate) rest: Leftover<'a>,
}

/// The value of `mapping`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mapping {
    #[default]
    Absent,
    /// Not an object.
    Invalid,
    Nodes,
}

/// One entry of `mapping`.
#[derive(Debug, Default)]
pub(crate) struct Node<'a> {
    pub(crate) key: &'a str,
    pub(crate) parent: Option<&'a str>,
    pub(crate) children: Vec<&'a str>,
    pub(crate) message: Option<Message<'a>>,
    /// Why its message cannot be read.
    pub(crate) problem: Option<&'static str>,
    /// The fields of the node that have no place above.
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Conversation<'a> {
    /// Reads one element; none if it is not an object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "mapping" => it.read_mapping(key, json)?,
                "id" => it.id = rest.nonempty_text(key, json)?,
                "title" => it.title = rest.text(key, json)?,
                "inserted_at" => it.created = rest.time(key, json)?,
                "updated_at" => it.updated = rest.time(key, json)?,
                _ => rest.keep(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    fn read_mapping(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.nodes.clear();
        self.mapping = match json.kind()? {
            Kind::Null => Mapping::Absent,
            Kind::Object => Mapping::Nodes,
            Kind::Bool | Kind::Number | Kind::String | Kind::Array => Mapping::Invalid,
        };
        if !self.rest.object(key, json)? {
            return Ok(());
        }
        let mut fragments = 0;
        while let Some(key) = json.key()? {
            let node = Node::read(key, json)?;
            fragments += node.message.as_ref().map_or(0, |message| message.fragments.len());
            self.nodes.push(node);
            if self.nodes.len() > MAX_NODES || fragments > MAX_FRAGMENTS {
                let problem = "more nodes or fragments than the limit";
                return Err(JsonError { offset: json.offset(), problem });
            }
        }
        self.drop_repeated();
        Ok(())
    }

    fn drop_repeated(&mut self) {
        let last: BTreeMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
        let mut indices = 0..;
        self.nodes.retain(|node| last.get(node.key).copied() == indices.next());
    }
}

impl<'a> Node<'a> {
    fn read(key: &'a str, json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut node = Self { key: node_id(key), ..Self::default() };
        if !json.enter_object()? {
            node.problem = Some("the node is not an object");
            json.skip_value()?;
            return Ok(node);
        }
        while let Some(key) = json.key()? {
            match key {
                "id" => node.read_id(key, json)?,
                "parent" => node.parent = node.rest.nonempty_text(key, json)?.map(node_id),
                "children" => node.read_children(key, json)?,
                "message" => node.read_message(json)?,
                _ => node.rest.keep(key, json)?,
            }
        }
        Ok(node)
    }

    /// The key in the mapping is the id; a different `id` is kept.
    fn read_id(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if let Some(id) = self.rest.text(key, json)?
            && id != self.key
        {
            self.rest.add_text(key, id);
        }
        Ok(())
    }

    fn read_children(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.children.clear();
        if self.rest.array(key, json)? {
            while json.item()? {
                if json.kind()? == Kind::String {
                    self.children.push(json.string()?);
                }
            }
        }
        Ok(())
    }

    fn read_message(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        (self.message, self.problem) = (None, None);
        if json.null()? {
            return Ok(());
        }
        self.message = Message::read(json)?;
        if self.message.is_none() {
            self.problem = Some("the message is not an object");
            json.skip_value()?;
        }
        Ok(())
    }
}
