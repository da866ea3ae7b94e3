//! Determines the parent and the time of every node of a conversation, from all nodes that any export has shown.
//!
//! Exports differ in what they leave out, so a node may have been seen below several parents. Of those that exist, the
//! deepest is the real one: the others are its ancestors, reported by an export that had dropped the nodes between.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One node, as all exports together show it.
#[derive(Clone, Debug)]
pub struct TreeNode<'a> {
    /// Message id.
    pub id: &'a str,
    /// Every parent under which it was seen.
    pub parents: &'a [String],
    /// Its own time in microseconds, if any export has one.
    pub time: Option<i64>,
}

/// Where the time of a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// The export.
    Message,
    /// The node before it.
    Parent,
    /// The first dated node after it.
    Child,
    /// The conversation.
    Conversation,
}

/// The place of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedNode {
    /// Index into the given nodes.
    pub node: usize,
    /// Index of the parent; `None` for a root.
    pub parent: Option<usize>,
    /// Microseconds.
    pub time: i64,
    /// Where `time` comes from.
    pub source: TimeSource,
}

/// Places all nodes, each after its parent; siblings are sorted by time, then by id.
///
/// `fallback` is the time of a conversation that has no dated node.
pub fn place(nodes: &[TreeNode<'_>], fallback: i64) -> Vec<PlacedNode> {
    let (order, parents) = resolve_parents(nodes);
    let mut children = children_of(&parents);
    let below = earliest_below(nodes, &order, &parents);
    let times = times(nodes, &order, &parents, &below, fallback);
    let mut stack = sorted(roots(&parents), nodes, &times);
    stack.reverse();
    let mut placed = Vec::with_capacity(nodes.len());
    while let Some(node) = stack.pop() {
        let (time, source) = times[node];
        placed.push(PlacedNode { node, parent: parents[node], time, source });
        let mut next = sorted(std::mem::take(&mut children[node]), nodes, &times);
        next.reverse();
        stack.append(&mut next);
    }
    placed
}

/// Returns the newest leaf, which is the current message of a conversation if the export names none.
pub fn newest_leaf(placed: &[PlacedNode], ids: &[&str]) -> Option<usize> {
    let inner: BTreeSet<usize> = placed.iter().filter_map(|place| place.parent).collect();
    placed
        .iter()
        .filter(|place| !inner.contains(&place.node))
        .max_by_key(|place| (place.time, ids[place.node]))
        .map(|place| place.node)
}

/// Returns one parent for each node, and an order in which parents come first.
///
/// A node is settled once all its known parents are. What remains then is a loop, which two exports together can create
/// even if neither contains one: the unsettled node with the smallest id is then placed without those parents.
fn resolve_parents(nodes: &[TreeNode<'_>]) -> (Vec<usize>, Vec<Option<usize>>) {
    let index: HashMap<&str, usize> = nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
    let candidates: Vec<Vec<usize>> = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| {
            node.parents
                .iter()
                .filter_map(|id| index.get(id.as_str()).copied())
                .filter(|&up| up != at)
                .collect()
        })
        .collect();
    let mut waiting: Vec<usize> = candidates.iter().map(Vec::len).collect();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (node, ups) in candidates.iter().enumerate() {
        ups.iter().for_each(|&up| followers[up].push(node));
    }
    let mut level: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut parents = vec![None; nodes.len()];
    let mut order = Vec::with_capacity(nodes.len());
    let mut ready: Vec<usize> = (0..nodes.len()).rev().filter(|&node| waiting[node] == 0).collect();
    let mut unresolved: BTreeMap<&str, usize> =
        nodes.iter().enumerate().filter(|(at, _)| waiting[*at] > 0).map(|(at, node)| (node.id, at)).collect();
    loop {
        while let Some(node) = ready.pop() {
            if level[node].is_some() {
                continue;
            }
            let deepest =
                candidates[node].iter().filter_map(|&up| Some((level[up]?, nodes[up].id, up))).max();
            level[node] = Some(deepest.map_or(0, |(depth, _, _)| depth + 1));
            parents[node] = deepest.map(|(_, _, up)| up);
            order.push(node);
            for &follower in &followers[node] {
                waiting[follower] = waiting[follower].saturating_sub(1);
                if waiting[follower] == 0 {
                    ready.push(follower);
                }
            }
        }
        let Some((_, node)) = unresolved.pop_first() else { return (order, parents) };
        if level[node].is_none() {
            ready.push(node);
        }
    }
}

fn children_of(parents: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); parents.len()];
    for (node, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            children[*parent].push(node);
        }
    }
    children
}

fn roots(parents: &[Option<usize>]) -> Vec<usize> {
    parents.iter().enumerate().filter(|(_, parent)| parent.is_none()).map(|(node, _)| node).collect()
}

fn sorted(mut siblings: Vec<usize>, nodes: &[TreeNode<'_>], times: &[(i64, TimeSource)]) -> Vec<usize> {
    siblings.sort_by_key(|&node| (times[node].0, nodes[node].id));
    siblings
}

/// Returns the earliest own time of each node and all its descendants.
fn earliest_below(nodes: &[TreeNode<'_>], order: &[usize], parents: &[Option<usize>]) -> Vec<Option<i64>> {
    let mut below: Vec<Option<i64>> = nodes.iter().map(|node| node.time).collect();
    for &node in order.iter().rev() {
        if let (Some(parent), Some(time)) = (parents[node], below[node]) {
            // A parent with its own time passes that time on instead of its children's.
            if nodes[parent].time.is_none() {
                below[parent] = Some(below[parent].map_or(time, |known| known.min(time)));
            }
        }
    }
    below
}

fn times(
    nodes: &[TreeNode<'_>],
    order: &[usize],
    parents: &[Option<usize>],
    below: &[Option<i64>],
    fallback: i64,
) -> Vec<(i64, TimeSource)> {
    let mut times: Vec<Option<(i64, TimeSource)>> = vec![None; nodes.len()];
    for &node in order {
        let above = parents[node]
            .and_then(|parent| times[parent])
            .filter(|(_, source)| *source != TimeSource::Conversation);
        times[node] = Some(match (nodes[node].time, above, below[node]) {
            (Some(time), _, _) => (time, TimeSource::Message),
            (None, Some((time, _)), _) => (time, TimeSource::Parent),
            (None, None, Some(time)) => (time, TimeSource::Child),
            (None, None, None) => (fallback, TimeSource::Conversation),
        });
    }
    times.into_iter().map(|time| time.unwrap_or((fallback, TimeSource::Conversation))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owned(list: &[(&str, &[&str], Option<i64>)]) -> Vec<(String, Vec<String>, Option<i64>)> {
        list.iter()
            .map(|(id, parents, time)| {
                ((*id).to_owned(), parents.iter().map(|&up| up.to_owned()).collect(), *time)
            })
            .collect()
    }

    fn view(list: &[(String, Vec<String>, Option<i64>)]) -> Vec<TreeNode<'_>> {
        list.iter().map(|(id, parents, time)| TreeNode { id, parents, time: *time }).collect()
    }

    fn parents_of(list: &[(String, Vec<String>, Option<i64>)]) -> BTreeMap<String, Option<String>> {
        let name = |at: usize| list[at].0.clone();
        place(&view(list), 0).into_iter().map(|place| (name(place.node), place.parent.map(name))).collect()
    }

    #[test]
    fn the_deepest_reported_parent_is_chosen() {
        let list = owned(&[("u", &[], Some(1)), ("tool", &["u"], Some(2)), ("a", &["u", "tool"], Some(3))]);
        assert_eq!(parents_of(&list)["a"].as_deref(), Some("tool"));
    }

    #[test]
    fn a_node_with_a_missing_parent_is_a_root() {
        assert_eq!(parents_of(&owned(&[("a", &["gone"], None)]))["a"], None);
    }

    #[test]
    fn siblings_are_sorted_by_time_below_their_parent() {
        let list = owned(&[
            ("late", &["u"], Some(9)),
            ("early", &["u"], Some(2)),
            ("x", &["early"], Some(50)),
            ("u", &[], Some(1)),
        ]);
        let order: Vec<_> =
            place(&view(&list), 0).into_iter().map(|place| list[place.node].0.as_str()).collect();
        assert_eq!(order, ["u", "early", "x", "late"]);
    }

    #[test]
    fn an_undated_node_takes_the_time_of_its_parent_or_children() {
        let list = owned(&[
            ("root", &[], None),
            ("u", &["root"], Some(5)),
            ("a", &["u"], None),
            ("alone", &[], None),
        ]);
        let times: BTreeMap<_, _> = place(&view(&list), 7)
            .into_iter()
            .map(|place| (list[place.node].0.as_str(), (place.time, place.source)))
            .collect();
        assert_eq!(times["root"], (5, TimeSource::Child));
        assert_eq!(times["a"], (5, TimeSource::Parent));
        assert_eq!(times["alone"], (7, TimeSource::Conversation));
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let list: Vec<_> = (0..100_000)
            .map(|at: u32| {
                (
                    format!("{at:06}"),
                    at.checked_sub(1).map(|up| format!("{up:06}")).into_iter().collect(),
                    None,
                )
            })
            .collect();
        assert_eq!(place(&view(&list), 0).len(), list.len());
    }

    proptest! {
        #[test]
        fn every_node_is_placed_once_after_its_parent(
            edges in prop::collection::vec((0_usize..12, prop::collection::vec(0_usize..14, 0..3), prop::option::of(0_i64..5)), 1..12),
            seed in any::<u64>(),
        ) {
            let mut unique = BTreeMap::new();
            for (id, ups, time) in edges {
                unique.insert(format!("n{id:02}"), (ups.into_iter().map(|up| format!("n{up:02}")).collect::<Vec<_>>(), time));
            }
            let list: Vec<_> = unique.into_iter().map(|(id, (ups, time))| (id, ups, time)).collect();
            let placed = place(&view(&list), 0);
            prop_assert_eq!(placed.len(), list.len());
            let mut seen = BTreeSet::new();
            for place in &placed {
                prop_assert!(place.parent.is_none_or(|parent| seen.contains(&parent)));
                prop_assert!(seen.insert(place.node));
            }
            let mut shuffled = list.clone();
            let pivot = usize::try_from(seed % list.len() as u64).unwrap_or(0);
            shuffled.rotate_left(pivot);
            shuffled.reverse();
            prop_assert_eq!(parents_of(&list), parents_of(&shuffled));
            let names = |list: &[(String, Vec<String>, Option<i64>)]| place(&view(list), 0).into_iter().map(|place| list[place.node].0.clone()).collect::<Vec<_>>();
            prop_assert_eq!(names(&list), names(&shuffled));
        }
    }
}
