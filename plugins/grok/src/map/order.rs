//! Ids and parents of responses: by id, or by order if no response names a parent; without cycles.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Role, natural_key,
    order::sort_by_time,
    tree::{Link, Parent, Tree},
};

use super::message::role;
use crate::raw::Response;

/// A response and its id.
pub(super) struct Node<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) raw: Response<'a>,
}

/// Sorts responses that name no parents by time; true if the list has another order.
pub(super) fn sort(responses: &mut Vec<Response<'_>>) -> bool {
    let role_and_time =
        |response: &Response<'_>| (role(response.sender).unwrap_or(Role::Assistant), response.created);
    responses.iter().all(|response| response.parent.is_none()) && sort_by_time(responses, role_and_time)
}

/// Gives every response an id; the second list has the indices of those whose id an earlier one has.
pub(super) fn assign_ids(responses: Vec<Response<'_>>) -> (Vec<Node<'_>>, Vec<usize>) {
    let mut seen: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    let (mut nodes, mut repeated) = (Vec::with_capacity(responses.len()), Vec::new());
    for raw in responses {
        let id = natural_id(&raw);
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

/// The id of a response, else one derived from what later exports have too.
pub(super) fn natural_id<'a>(response: &Response<'a>) -> Cow<'a, str> {
    if let Some(id) = response.id {
        return Cow::Borrowed(id);
    }
    let created = response.created.map(|time| time.to_string());
    natural_key(&[response.sender, created.as_deref(), response.message]).into()
}

/// The links between nodes.
pub(super) struct Links<'a> {
    /// The parent of each.
    pub(super) parents: Vec<Option<Cow<'a, str>>>,
    /// Nodes of cycles that became roots.
    pub(super) cut: Vec<usize>,
    /// Numbers among siblings whose order is not that of their times.
    pub(super) numbers: BTreeMap<usize, usize>,
}

/// Links nodes to their parents. A node whose parent is not in the export, such as the first of each conversation, is a root.
pub(super) fn link<'a>(nodes: &[Node<'a>]) -> Links<'a> {
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
    Links { parents: (0..nodes.len()).map(parent).collect(), cut: tree.cycle_roots().to_vec(), numbers }
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
        let (nodes, repeated) = assign_ids(responses.collect());
        let parents = link(&nodes).parents;
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
    fn a_node_without_its_parent_is_a_root() {
        let given = [(Some("a"), Some("gone")), (Some("c"), Some("b")), (Some("b"), Some("a")), (None, None)];
        check(&given, &[None, Some("b"), Some("a"), None]);
    }
}
