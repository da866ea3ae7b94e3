//! Ids and parents of messages: parents by uuid, or by order if no message names one, without cycles.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Role, natural_key,
    order::sort_by_time,
    tree::{Link, Parent, Tree},
};

use super::message::role;
use crate::raw::Message;

/// The parent that the first message of a conversation names.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// A message and its id.
pub(super) struct Node<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) raw: Message<'a>,
}

/// Whether no message names its parent, so that each answers the one before.
fn is_linear<'m>(messages: impl IntoIterator<Item = &'m Message<'m>>) -> bool {
    messages.into_iter().all(|message| message.parent.is_none_or(str::is_empty))
}

/// Sorts messages without parents by time; true if that changed their order.
///
/// Exports of 2024 list them in no order.
pub(super) fn sort_linear(messages: &mut Vec<Message<'_>>) -> bool {
    let speaker = |message: &Message<'_>| message.speaker().and_then(role).unwrap_or(Role::Assistant);
    is_linear(messages.iter()) && sort_by_time(messages, |message| (speaker(message), message.created))
}

/// Gives every message an id; the second list holds the indices of those whose uuid an earlier one has.
pub(super) fn assign_ids(messages: Vec<Message<'_>>) -> (Vec<Node<'_>>, Vec<usize>) {
    let mut seen: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    let (mut nodes, mut repeated) = (Vec::with_capacity(messages.len()), Vec::new());
    for raw in messages {
        let id = raw.uuid.map_or_else(|| Cow::Owned(key(&raw)), Cow::Borrowed);
        let count = seen.entry(id.clone()).or_default();
        *count += 1;
        match (*count, raw.uuid) {
            (1, _) => nodes.push(Node { id, raw }),
            (_, Some(_)) => repeated.push(raw.index),
            (count, None) => nodes.push(Node { id: format!("{id}:{count}").into(), raw }),
        }
    }
    (nodes, repeated)
}

/// The key of a message: its uuid, or a key made of fields that later exports hold too.
pub(super) fn key(message: &Message<'_>) -> String {
    if let Some(uuid) = message.uuid {
        return uuid.to_owned();
    }
    let text = message.text.or_else(|| message.blocks.iter().find_map(|block| block.text.or(block.thinking)));
    natural_key(&[message.speaker(), message.created.map(|time| time.to_string()).as_deref(), text])
}

/// The links between nodes.
pub(super) struct Links<'a> {
    /// The parent of each node.
    pub(super) parents: Vec<Option<Cow<'a, str>>>,
    /// Nodes that became roots because their parents form a cycle.
    pub(super) cut: Vec<usize>,
    /// Named parents that are absent from the export, or were cut off.
    pub(super) unlinked: BTreeMap<usize, &'a str>,
    /// Positions of siblings whose order is not that of their times.
    pub(super) numbers: BTreeMap<usize, usize>,
}

/// Links nodes by uuid, or each to the one before if none names a parent.
pub(super) fn links<'a>(nodes: &[Node<'a>]) -> Links<'a> {
    if is_linear(nodes.iter().map(|node| &node.raw)) {
        let before = nodes.iter().map(|node| Some(node.id.clone()));
        let parents = std::iter::once(None).chain(before).take(nodes.len()).collect();
        return Links { parents, cut: Vec::new(), unlinked: BTreeMap::new(), numbers: BTreeMap::new() };
    }
    let named = |node: &Node<'a>| node.raw.parent.filter(|parent| !parent.is_empty() && *parent != ROOT);
    let links = nodes.iter().map(|node| Link { key: &node.id, parent: named(node), kept: true });
    let tree = Tree::link(links, |_| []);
    let parent = |(at, node): (usize, &Node<'a>)| match tree.parent(at) {
        Parent::Root => None,
        Parent::Node(above) => nodes.get(above).map(|node| node.id.clone()),
        // Another export may hold it.
        Parent::Absent(_) => node.raw.parent.map(Cow::Borrowed),
    };
    let absent = |at: &usize| matches!(tree.parent(*at), Parent::Absent(_));
    let unlinked = (0..nodes.len()).filter(absent).chain(tree.cycle_roots().iter().copied());
    let unlinked = unlinked.filter_map(|at| Some((at, named(nodes.get(at)?)?))).collect();
    let numbers = tree.sibling_numbers(|at| nodes.get(at)?.raw.created, Some);
    Links {
        parents: nodes.iter().enumerate().map(parent).collect(),
        cut: tree.cycle_roots().to_vec(),
        unlinked,
        numbers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(index: usize, uuid: &'static str, parent: Option<&'static str>) -> Message<'static> {
        Message { index, uuid: Some(uuid), parent, ..Message::default() }
    }

    fn check(messages: Vec<Message<'static>>, expected: &[Option<&str>]) -> Vec<usize> {
        let (nodes, repeated) = assign_ids(messages);
        let Links { parents, cut, .. } = links(&nodes);
        let parents: Vec<_> = parents.iter().map(Option::as_deref).collect();
        assert_eq!((parents.as_slice(), cut), (expected, Vec::new()));
        repeated
    }

    #[test]
    fn without_parents_each_message_answers_the_one_before() {
        let messages = [("a", None), ("b", None), ("b", None), ("c", None)];
        let messages = messages.into_iter().enumerate().map(|(at, (uuid, parent))| message(at, uuid, parent));
        assert_eq!(check(messages.collect(), &[None, Some("a"), Some("b")]), [2]);
        assert!(check(Vec::new(), &[]).is_empty());
    }

    #[test]
    fn a_message_that_names_the_placeholder_parent_is_a_root() {
        let messages =
            vec![message(0, "a", Some(ROOT)), message(1, "b", Some("a")), message(2, "c", Some("gone"))];
        check(messages, &[None, Some("a"), Some("gone")]);
    }
}
