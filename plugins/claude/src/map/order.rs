//! Who answers whom: parents by uuid, by order where no message names one, without circles.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Role, natural_key,
    order::sort_by_time,
    tree::{Link, Parent, Tree},
};

use super::message::role;
use crate::raw::Message;

/// What the first message of a conversation names as its parent.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// A message and what it is called.
pub(super) struct Node<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) raw: Message<'a>,
}

/// Whether no message names another as its parent: then each answers the one before.
fn in_a_line<'m>(messages: impl IntoIterator<Item = &'m Message<'m>>) -> bool {
    messages.into_iter().all(|message| message.parent.is_none_or(str::is_empty))
}

/// Puts messages that name no parents into the order of their times; true if the file has another.
///
/// Exports of 2024 list them in no order at all.
pub(super) fn put_in_order(messages: &mut Vec<Message<'_>>) -> bool {
    let speaker = |message: &Message<'_>| message.speaker().and_then(role).unwrap_or(Role::Assistant);
    in_a_line(messages.iter()) && sort_by_time(messages, |message| (speaker(message), message.created))
}

/// Names every message; the second list holds the places in the export's list of those whose uuid an earlier one has.
pub(super) fn name(messages: Vec<Message<'_>>) -> (Vec<Node<'_>>, Vec<usize>) {
    let mut seen: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    let (mut nodes, mut repeated) = (Vec::with_capacity(messages.len()), Vec::new());
    for raw in messages {
        let id = raw.uuid.map_or_else(|| Cow::Owned(natural(&raw)), Cow::Borrowed);
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

/// A key of a message: its uuid, or what later exports hold too.
pub(super) fn natural(message: &Message<'_>) -> String {
    if let Some(uuid) = message.uuid {
        return uuid.to_owned();
    }
    let said = message.text.or_else(|| message.blocks.iter().find_map(|block| block.text.or(block.thinking)));
    natural_key(&[message.speaker(), message.created.map(|time| time.to_string()).as_deref(), said])
}

/// How nodes hang together.
pub(super) struct Links<'a> {
    /// The parent of each.
    pub(super) parents: Vec<Option<Cow<'a, str>>>,
    /// Those that were made roots because their parents led back to them.
    pub(super) cut: Vec<usize>,
    /// What nodes name as their parent without answering it: the export lacks it, or it was cut off.
    pub(super) lost: BTreeMap<usize, &'a str>,
    /// Numbers among siblings that do not stand by time.
    pub(super) numbers: BTreeMap<usize, usize>,
}

/// Parents by uuid, or each node the one before where none names a parent.
pub(super) fn links<'a>(nodes: &[Node<'a>]) -> Links<'a> {
    if in_a_line(nodes.iter().map(|node| &node.raw)) {
        let before = nodes.iter().map(|node| Some(node.id.clone()));
        let parents = std::iter::once(None).chain(before).take(nodes.len()).collect();
        return Links { parents, cut: Vec::new(), lost: BTreeMap::new(), numbers: BTreeMap::new() };
    }
    let named = |node: &Node<'a>| node.raw.parent.filter(|parent| !parent.is_empty() && *parent != ROOT);
    let links = nodes.iter().map(|node| Link { key: &node.id, parent: named(node), kept: true });
    let tree = Tree::link(links, |_| []);
    let parent = |(at, node): (usize, &Node<'a>)| match tree.parent(at) {
        Parent::Root => None,
        Parent::Node(above) => nodes.get(above).map(|node| node.id.clone()),
        // Another export may bring it.
        Parent::Absent(_) => node.raw.parent.map(Cow::Borrowed),
    };
    let absent = |at: &usize| matches!(tree.parent(*at), Parent::Absent(_));
    let lost = (0..nodes.len()).filter(absent).chain(tree.cut().iter().copied());
    let lost = lost.filter_map(|at| Some((at, named(nodes.get(at)?)?))).collect();
    let numbers = tree.sibling_numbers(|at| nodes.get(at)?.raw.created, Some);
    Links { parents: nodes.iter().enumerate().map(parent).collect(), cut: tree.cut().to_vec(), lost, numbers }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(index: usize, uuid: &'static str, parent: Option<&'static str>) -> Message<'static> {
        Message { index, uuid: Some(uuid), parent, ..Message::default() }
    }

    fn check(messages: Vec<Message<'static>>, expected: &[Option<&str>]) -> Vec<usize> {
        let (nodes, repeated) = name(messages);
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
    fn the_nil_like_uuid_is_the_root() {
        let messages =
            vec![message(0, "a", Some(ROOT)), message(1, "b", Some("a")), message(2, "c", Some("gone"))];
        check(messages, &[None, Some("a"), Some("gone")]);
    }
}
