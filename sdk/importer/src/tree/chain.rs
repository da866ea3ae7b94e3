//! Conversations in which no node links to another, neither to a parent nor to a child.

use super::Link;
use crate::{Role, order::sort_by_time};

/// Makes each message answer the one before: returns the parent of each node, or `None` if a node has a link or there are fewer than two
/// messages.
///
/// Messages are in the order of the export, or sorted by time if their times contradict it ([`sort_by_time`]). `has_children` says whether
/// a node lists any children; `key` gives the role and the time of its message.
pub fn chain<'a>(
    nodes: impl Iterator<Item = Link<'a>> + Clone,
    has_children: impl Fn(usize) -> bool,
    key: impl Fn(usize) -> (Role, Option<i64>),
) -> Option<Vec<Option<&'a str>>> {
    let count = nodes.clone().count();
    if nodes.clone().any(|node| node.parent.is_some()) || (0..count).any(has_children) {
        return None;
    }
    let mut order: Vec<(usize, &'a str)> =
        nodes.enumerate().filter(|(_, node)| node.kept).map(|(at, node)| (at, node.key)).collect();
    if order.len() < 2 {
        return None;
    }
    sort_by_time(&mut order, |(at, _)| key(*at));
    let mut parents = vec![None; count];
    for pair in order.windows(2) {
        if let [(_, above), (at, _)] = pair
            && let Some(parent) = parents.get_mut(*at)
        {
            *parent = Some(*above);
        }
    }
    Some(parents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chained(nodes: &[(&'static str, bool)], times: &[Option<i64>]) -> Option<Vec<Option<&'static str>>> {
        let links = nodes.iter().map(|(key, kept)| Link { key, parent: None, kept: *kept });
        let role = |at: usize| if nodes[at].0.starts_with('q') { Role::User } else { Role::Assistant };
        chain(links, |_| false, |at| (role(at), times.get(at).copied().flatten()))
    }

    #[test]
    fn each_message_answers_the_one_before() {
        let nodes = [("root", false), ("q1", true), ("a1", true), ("gap", false), ("q2", true)];
        assert_eq!(chained(&nodes, &[]), Some(vec![None, None, Some("q1"), None, Some("a1")]));
        // Missing times do not contradict the order.
        let times = [None, Some(1), None, None, Some(1)];
        assert_eq!(chained(&nodes, &times), Some(vec![None, None, Some("q1"), None, Some("a1")]));
    }

    #[test]
    fn messages_are_sorted_by_time_if_times_contradict_the_order() {
        let nodes = [("a2", true), ("q2", true), ("a1", true), ("q1", true)];
        let times = [Some(5), Some(5), Some(2), Some(1)];
        assert_eq!(chained(&nodes, &times), Some(vec![Some("q2"), Some("a1"), Some("q1"), None]));
    }

    #[test]
    fn nothing_is_linked_if_there_is_a_link_or_only_one_message() {
        assert_eq!(chained(&[("q1", true), ("gap", false)], &[]), None);
        let linked = [
            Link { key: "a", parent: None, kept: true },
            Link { key: "b", parent: Some("gone"), kept: true },
        ];
        assert_eq!(chain(linked.into_iter(), |_| false, |_| (Role::User, None)), None);
        let alone =
            [Link { key: "a", parent: None, kept: true }, Link { key: "b", parent: None, kept: true }];
        assert_eq!(chain(alone.into_iter(), |at| at == 0, |_| (Role::User, None)), None);
    }
}
