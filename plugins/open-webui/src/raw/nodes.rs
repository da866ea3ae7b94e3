//! The messages of a chat: a tree, or a list in which each answers the one before.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Arena, JsonError, Leftover, Parser, json::Kind, tree::node_id};

use super::{Chat, Message};

/// Messages of one chat. Real ones have hundreds; the largest chat must fit into the memory of the sandbox several times.
const MAX_NODES: usize = 100_000;

/// How the messages are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    /// There are none.
    #[default]
    Absent,
    /// `history.messages`, by their ids.
    Tree,
    /// A list.
    List,
}

/// One message with its place.
#[derive(Debug, Default)]
pub(crate) struct Node<'a> {
    /// Unique in the chat.
    pub(crate) key: &'a str,
    /// Whether the export states the key.
    pub(crate) named: bool,
    /// The place in the chat: `history.messages.<id>` or `messages[<index>]`.
    pub(crate) place: String,
    pub(crate) message: Option<Message<'a>>,
    /// Why there is no message to emit.
    pub(crate) problem: Option<&'static str>,
}

/// Reads `history.messages`; any other value than an object or a list is kept.
pub(super) fn read<'a>(
    rest: &mut Leftover<'a>,
    key: &'a str,
    json: &mut Parser<'a>,
) -> Result<(Vec<Node<'a>>, Layout), JsonError> {
    if json.kind()? == Kind::Array {
        return Ok((read_list("history.messages", json)?, Layout::List));
    }
    if !rest.object(key, json)? {
        return Ok((Vec::new(), Layout::Absent));
    }
    let mut nodes = Vec::new();
    while let Some(key) = json.key()? {
        let mut node = Node::read(json)?;
        (node.key, node.named, node.place) = (node_id(key), true, format!("history.messages.{key}"));
        if let Some(message) = &mut node.message {
            message.keep_other_id(node.key);
        }
        push(&mut nodes, node, json)?;
    }
    drop_repeated(&mut nodes);
    Ok((nodes, Layout::Tree))
}

/// Adds the messages of the list `messages` that the tree does not have. Usually the list is a copy of the current branch.
pub(super) fn add_listed<'a>(chat: &mut Chat<'a>, list: &'a str, arena: &'a Arena) -> Result<(), JsonError> {
    let mut listed = read_list("messages", &mut Parser::new(list, arena))?;
    if chat.nodes.is_empty() {
        if !listed.is_empty() {
            (chat.nodes, chat.layout) = (listed, Layout::List);
        }
        return Ok(());
    }
    let ids: BTreeMap<&str, usize> = chat.nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
    let texts: BTreeSet<&str> = chat.nodes.iter().filter_map(Node::text).collect();
    let mut copies = Vec::new();
    listed.retain(|node| {
        let same = ids.get(node.key).filter(|_| node.named);
        copies.extend(same.copied().zip(node.text()));
        same.is_none() && (node.named || node.text().is_none_or(|text| !texts.contains(text)))
    });
    // The numbers of the list may be ids of the tree.
    for node in listed.iter_mut().filter(|node| ids.contains_key(node.key)) {
        node.key = arena.alloc_str(&format!("{}#", node.key));
    }
    for (at, text) in copies {
        if let Some(message) = chat.nodes.get_mut(at).and_then(|node| node.message.as_mut())
            && message.content.text() != Some(text)
        {
            message.rest.add_text("listed_content", text);
        }
    }
    chat.nodes.append(&mut listed);
    Ok(())
}

fn read_list<'a>(place: &str, json: &mut Parser<'a>) -> Result<Vec<Node<'a>>, JsonError> {
    let (mut nodes, mut known) = (Vec::new(), BTreeSet::new());
    if json.enter_array()? {
        while json.item()? {
            let (mut node, index) = (Node::read(json)?, nodes.len());
            node.place = format!("{place}[{index}]");
            let own = node.message.as_ref().and_then(|message| message.id);
            if let Some(id) = own.filter(|id| known.insert(*id)) {
                (node.key, node.named) = (id, true);
            } else {
                // Also the second message with the same id.
                node.key = json.arena().alloc_str(&format!("#{index}"));
                if let Some(message) = &mut node.message {
                    message.keep_other_id(node.key);
                }
            }
            push(&mut nodes, node, json)?;
        }
    }
    Ok(nodes)
}

fn push<'a>(nodes: &mut Vec<Node<'a>>, node: Node<'a>, json: &Parser<'a>) -> Result<(), JsonError> {
    nodes.push(node);
    check_count(nodes, json)
}

/// Fails if there are too many messages.
pub(super) fn check_count(nodes: &[Node<'_>], json: &Parser<'_>) -> Result<(), JsonError> {
    if nodes.len() > MAX_NODES {
        return Err(JsonError { offset: json.offset(), problem: "more messages than the limit" });
    }
    Ok(())
}

/// Of a repeated key the last message counts.
fn drop_repeated(nodes: &mut Vec<Node<'_>>) {
    let last: BTreeMap<&str, usize> = nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
    let mut indices = 0..;
    nodes.retain(|node| last.get(node.key).copied() == indices.next());
}

impl<'a> Node<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let message = Message::read(json)?;
        let problem = match &message {
            None => Some("it is not an object"),
            Some(message) if message.is_stub() => Some("it has neither a role nor a content"),
            Some(_) => None,
        };
        if message.is_none() {
            json.skip_value()?;
        }
        Ok(Self { message, problem, ..Self::default() })
    }

    /// The message, unless there is a problem.
    pub(crate) fn kept(&self) -> Option<&Message<'a>> {
        self.message.as_ref().filter(|_| self.problem.is_none())
    }

    /// The ids of the children that it lists.
    pub(crate) fn children(&self) -> &[&'a str] {
        self.message.as_ref().map_or(&[], |message| &message.children)
    }

    fn text(&self) -> Option<&'a str> {
        self.message.as_ref()?.content.nonempty_text()
    }
}
