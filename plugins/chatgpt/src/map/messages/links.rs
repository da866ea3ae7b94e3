//! Links between nodes; those that the parents of messages cannot express go into `raw_metadata`.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, Message,
    json::{Value, texts, with_members},
    tree::{Link, Parent, SIBLING_NUMBER, Tree, ranks},
};

/// The key of the node, if the message has another id.
const NODE_ID: &str = "node_id";
/// The parent that the node names, if the message has none.
const NODE_PARENT: &str = "node_parent";

/// A node without its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeLinks<'a> {
    pub(super) key: &'a str,
    pub(super) parent: Option<&'a str>,
    /// The list of children as JSON text; slim exports have none.
    pub(super) children: Option<&'a str>,
    /// Index of its message; a node without one is dropped.
    pub(super) message: Option<usize>,
}

impl<'a> NodeLinks<'a> {
    pub(super) fn link(&self) -> Link<'a> {
        Link { key: self.key, parent: self.parent, kept: self.message.is_some() }
    }

    pub(super) fn children(&self, arena: &'a Arena) -> Vec<&'a str> {
        self.children.map(|raw| texts(raw, arena)).unwrap_or_default()
    }
}

/// Adds the node's id, a lost parent and the number among its siblings to the metadata of each message.
pub(super) fn keep<'a>(
    nodes: &[NodeLinks<'a>],
    messages: &mut [Message<'a>],
    tree: &Tree<'a>,
    arena: &'a Arena,
) {
    let time = |at: usize| messages.get(nodes.get(at)?.message?)?.created_at;
    let mut numbers = BTreeMap::new();
    // Only a list of several children has an order.
    if nodes.iter().any(|node| node.children.is_some_and(|children| children.contains(','))) {
        let keys: Vec<&str> = nodes.iter().map(|node| node.key).collect();
        let ranks = ranks(&keys, |at| nodes.get(at).map(|node| node.children(arena)).unwrap_or_default());
        numbers = tree.sibling_numbers(time, |at| ranks.get(at).copied().flatten());
    }
    let cut: BTreeSet<usize> = tree.cycle_roots().iter().copied().collect();
    for (at, node) in nodes.iter().enumerate() {
        let Some(message) = node.message.and_then(|message| messages.get_mut(message)) else { continue };
        let mut members = Vec::new();
        if message.provider_message_id.as_deref() != Some(node.key) {
            members.push((NODE_ID, Value::Text(node.key).json().into_owned()));
        }
        let lost = match tree.parent(at) {
            Parent::Absent(key) => Some(key),
            Parent::Root => node.parent.filter(|_| cut.contains(&at)),
            Parent::Node(_) => None,
        };
        members.extend(lost.map(|key| (NODE_PARENT, Value::Text(key).json().into_owned())));
        members.extend(numbers.get(&at).map(|number| (SIBLING_NUMBER, number.to_string())));
        if !members.is_empty() {
            message.raw_metadata = with_members(message.raw_metadata.take(), &members);
        }
    }
}
