//! Who answers whom: parents by id, by order where no response names one, without circles.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Role, natural_key,
    order::sort_by_time,
    tree::{Link, Parent, Tree},
};

use super::message::role;
use crate::raw::Response;

/// A response and what it is called.
pub(super) struct Node<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) raw: Response<'a>,
}

/// Puts responses that name no parents into the order of their times; true if the list has another.
pub(super) fn put_in_order(responses: &mut Vec<Response<'_>>) -> bool {
    let said = |response: &Response<'_>| (role(response.sender).unwrap_or(Role::Assistant), response.created);
    responses.iter().all(|response| response.parent.is_none()) && sort_by_time(responses, said)
}

/// Names every response; the second list holds the places in the export's list of those whose id an earlier one has.
pub(super) fn name(responses: Vec<Response<'_>>) -> (Vec<Node<'_>>, Vec<usize>) {
    let mut seen: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    let (mut nodes, mut repeated) = (Vec::with_capacity(responses.len()), Vec::new());
    for raw in responses {
        let id = raw.id.map_or_else(|| Cow::Owned(natural(&raw)), Cow::Borrowed);
        let count = seen.entry(id.clone()).or_default();
        *count += 1;
        match (*count, raw.id) {
            (1, _) => nodes.push(Node { id, raw }),
            (_, Some(_)) => repeated.push(raw.index),
            (count, None) => nodes.push(Node { id: format!("{id}:{count}").into(), raw }),
        }
    }
    (nodes, repeated)
}

/// A key of a response: its id, or what later exports hold too.
pub(super) fn natural(response: &Response<'_>) -> String {
    if let Some(id) = response.id {
        return id.to_owned();
    }
    let created = response.created.map(|time| time.to_string());
    natural_key(&[response.sender, created.as_deref(), response.message])
}

/// How nodes hang together.
pub(super) struct Links<'a> {
    /// The parent of each.
    pub(super) parents: Vec<Option<Cow<'a, str>>>,
    /// Those that were made roots because their parents led back to them.
    pub(super) cut: Vec<usize>,
    /// Numbers among siblings that do not stand by time.
    pub(super) numbers: BTreeMap<usize, usize>,
}

/// What names a
/// response that is not there, as the first of each conversation does, is a root and keeps the name.
pub(super) fn links<'a>(nodes: &[Node<'a>]) -> Links<'a> {
    if nodes.iter().all(|node| node.raw.parent.is_none()) {
        let before = nodes.iter().map(|node| Some(node.id.clone()));
        let parents = std::iter::once(None).chain(before).take(nodes.len()).collect();
        return Links { parents, cut: Vec::new(), numbers: BTreeMap::new() };
    }
    let links = nodes.iter().map(|node| Link { key: &node.id, parent: node.raw.parent, kept: true });
    let tree = Tree::link(links, |_| []);
    let parent = |at: usize| match tree.parent(at) {
        Parent::Root | Parent::Absent(_) => None,
        Parent::Node(above) => nodes.get(above).map(|node| node.id.clone()),
    };
    let numbers = tree.sibling_numbers(|at| nodes.get(at)?.raw.created, Some);
    Links { parents: (0..nodes.len()).map(parent).collect(), cut: tree.cut().to_vec(), numbers }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        given: &[(Option<&'static str>, Option<&'static str>)],
        expected: &[Option<&str>],
    ) -> Vec<usize> {
        let responses = given.iter().enumerate().map(|(index, (id, parent))| Response {
            index,
            id: *id,
            parent: *parent,
            ..Response::default()
        });
        let (nodes, repeated) = name(responses.collect());
        let parents = links(&nodes).parents;
        assert_eq!(parents.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        repeated
    }

    #[test]
    fn without_parents_each_response_answers_the_one_before() {
        let repeated = check(&[(Some("a"), None), (Some("b"), None), (Some("b"), None)], &[None, Some("a")]);
        assert_eq!(repeated, [2]);
        assert!(check(&[], &[]).is_empty());
    }

    #[test]
    fn a_parent_that_is_not_there_makes_a_root() {
        let given = [(Some("a"), Some("gone")), (Some("c"), Some("b")), (Some("b"), Some("a")), (None, None)];
        check(&given, &[None, Some("b"), Some("a"), None]);
    }
}
