//! What the links between messages do not tell of a node's place: its own id, a parent that is no message, the order of siblings.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, Message,
    json::{quote, with_members},
    tree::{Parent, SIBLING_NUMBER, Tree, ranks},
};

use super::Place;

/// The key of the node, where the message has another id.
const NODE_ID: &str = "node_id";
/// The parent that the node names, where the message answers none.
const NODE_PARENT: &str = "node_parent";

/// Keeps it in the metadata of each message.
pub(super) fn keep<'a>(nodes: &[Place<'a>], messages: &mut [Message<'a>], tree: &Tree<'a>, arena: &'a Arena) {
    let time = |at: usize| messages.get(nodes.get(at)?.message?)?.created_at;
    let ranks = listed(nodes, arena);
    let numbers = if ranks.is_empty() {
        BTreeMap::new()
    } else {
        tree.sibling_numbers(time, |at| ranks.get(at).copied().flatten())
    };
    let cut: BTreeSet<usize> = tree.cut().iter().copied().collect();
    for (at, node) in nodes.iter().enumerate() {
        let Some(message) = node.message.and_then(|message| messages.get_mut(message)) else { continue };
        let mut members = Vec::new();
        if message.provider_message_id.as_deref() != Some(node.key) {
            members.push((NODE_ID, quoted(node.key)));
        }
        let lost = match tree.parent(at) {
            Parent::Absent(key) => Some(key),
            Parent::Root => node.parent.filter(|_| cut.contains(&at)),
            Parent::Node(_) => None,
        };
        members.extend(lost.map(|key| (NODE_PARENT, quoted(key))));
        members.extend(numbers.get(&at).map(|number| (SIBLING_NUMBER, number.to_string())));
        if !members.is_empty() {
            message.raw_metadata = with_members(message.raw_metadata.take(), &members);
        }
    }
}

fn quoted(key: &str) -> String {
    let mut json = String::new();
    quote(key, &mut json);
    json
}

/// The order of the lists of children; none if no list holds several.
fn listed<'a>(nodes: &[Place<'a>], arena: &'a Arena) -> Vec<Option<usize>> {
    let several = |node: &Place<'_>| node.children.is_some_and(|children| children.contains(','));
    if !nodes.iter().any(several) {
        return Vec::new();
    }
    let keys: Vec<&str> = nodes.iter().map(|node| node.key).collect();
    ranks(&keys, |at| nodes.get(at).map(|node| node.children(arena)).unwrap_or_default())
}
