//! Conversations in which no node names another, neither as its parent nor as its child.

use super::Link;
use crate::{Role, order::sort_by_time};

/// The parents of nodes of which none names another, so that each message answers the one before; none if a link is named, or if
/// there is nothing to link.
///
/// Messages stand in the order of the export, or by time where their times contradict it ([`sort_by_time`]). `said` gives the role and
/// the time of a node's message; `names_children` says whether a node names any.
pub fn chain<'a>(
    nodes: impl Iterator<Item = Link<'a>> + Clone,
    names_children: impl Fn(usize) -> bool,
    said: impl Fn(usize) -> (Role, Option<i64>),
) -> Option<Vec<Option<&'a str>>> {
    let count = nodes.clone().count();
    if nodes.clone().any(|node| node.parent.is_some()) || (0..count).any(names_children) {
        return None;
    }
    let mut order: Vec<(usize, &'a str)> =
        nodes.enumerate().filter(|(_, node)| node.kept).map(|(at, node)| (at, node.key)).collect();
    if order.len() < 2 {
        return None;
    }
    sort_by_time(&mut order, |(at, _)| said(*at));
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
    fn each_answers_the_one_before_in_the_order_of_the_export() {
        let nodes = [("root", false), ("q1", true), ("a1", true), ("gap", false), ("q2", true)];
        assert_eq!(chained(&nodes, &[]), Some(vec![None, None, Some("q1"), None, Some("a1")]));
        // Times that are unknown contradict nothing.
        let times = [None, Some(1), None, None, Some(1)];
        assert_eq!(chained(&nodes, &times), Some(vec![None, None, Some("q1"), None, Some("a1")]));
    }

    #[test]
    fn times_that_contradict_the_order_count_and_of_one_time_the_person_is_first() {
        let nodes = [("a2", true), ("q2", true), ("a1", true), ("q1", true)];
        let times = [Some(5), Some(5), Some(2), Some(1)];
        assert_eq!(chained(&nodes, &times), Some(vec![Some("q2"), Some("a1"), Some("q1"), None]));
    }

    #[test]
    fn nothing_is_linked_where_a_link_is_named_or_one_message_stands_alone() {
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
