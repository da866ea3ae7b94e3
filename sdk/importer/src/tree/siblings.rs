//! The order of siblings, where their times do not tell it.

use std::collections::BTreeMap;

use super::{Parent, Tree};

/// Where an importer keeps the number of a message among its siblings: in `raw_metadata`.
pub const SIBLING_NUMBER: &str = "sibling_number";

impl Tree<'_> {
    /// Numbers, from 0, of kept nodes that hang under the same node, or under none, and stand otherwise than by time: the host orders
    /// siblings by time. `rank` gives the place of a node in the provider's order, if it has one; nodes of which one has none get no
    /// number.
    pub fn sibling_numbers(
        &self,
        time: impl Fn(usize) -> Option<i64>,
        rank: impl Fn(usize) -> Option<usize>,
    ) -> BTreeMap<usize, usize> {
        let mut numbers = BTreeMap::new();
        for mut siblings in self.families() {
            if siblings.iter().any(|at| rank(*at).is_none()) {
                continue;
            }
            siblings.sort_by_key(|at| rank(*at));
            let ascend = |pair: &[usize]| match pair {
                [one, next] => time(*one).zip(time(*next)).is_some_and(|(one, next)| one < next),
                _ => true,
            };
            if !siblings.windows(2).all(ascend) {
                numbers.extend(siblings.into_iter().enumerate().map(|(number, at)| (at, number)));
            }
        }
        numbers
    }

    /// Kept nodes by the node they hang under; only where there are several.
    fn families(&self) -> Vec<Vec<usize>> {
        let roots = self.parents.len();
        let above = |at: usize| match self.parent(at) {
            Parent::Node(above) => above,
            Parent::Root | Parent::Absent(_) => roots,
        };
        let kept = || (0..roots).filter(|at| self.is_kept(*at));
        let mut counts = vec![0_u32; roots + 1];
        kept().for_each(|at| counts[above(at)] += 1);
        if counts.iter().all(|count| *count < 2) {
            return Vec::new();
        }
        let mut families: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in kept().filter(|at| counts[above(*at)] > 1) {
            families.entry(above(at)).or_default().push(at);
        }
        families.into_values().collect()
    }
}

/// Places of nodes in the order in which lists of `children` name them, from the nodes on that none names; none of a node that no list
/// leads to. Of use where nodes without a message stand between: what hangs under them stands at their place.
pub fn ranks<'a>(keys: &[&'a str], children: impl Fn(usize) -> Vec<&'a str>) -> Vec<Option<usize>> {
    let index: BTreeMap<&str, usize> = keys.iter().enumerate().map(|(at, key)| (*key, at)).collect();
    let lists: Vec<Vec<usize>> = (0..keys.len())
        .map(|at| children(at).into_iter().filter_map(|key| index.get(key).copied()).collect())
        .collect();
    let mut named = vec![false; keys.len()];
    lists.iter().flatten().for_each(|at| named[*at] = true);
    let (mut ranks, mut next) = (vec![None; keys.len()], 0);
    for top in (0..keys.len()).filter(|at| !named[*at] && !lists[*at].is_empty()) {
        let mut stack = vec![top];
        while let Some(at) = stack.pop() {
            if ranks[at].is_none() {
                ranks[at] = Some(next);
                next += 1;
                stack.extend(lists[at].iter().rev());
            }
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Link;

    fn tree(nodes: &[(&'static str, Option<&'static str>, bool)]) -> Tree<'static> {
        let link =
            |&(key, parent, kept): &(&'static str, Option<&'static str>, bool)| Link { key, parent, kept };
        Tree::link(nodes.iter().map(link).collect::<Vec<_>>().into_iter(), |_| [])
    }

    #[test]
    fn siblings_have_numbers_only_where_times_do_not_tell() {
        let nodes =
            [("q", None, true), ("a", Some("q"), true), ("gap", Some("q"), false), ("b", Some("gap"), true)];
        let tree = tree(&nodes);
        let numbers = |times: [Option<i64>; 4], ranks: [Option<usize>; 4]| {
            tree.sibling_numbers(|at| times[at], |at| ranks[at]).into_iter().collect::<Vec<_>>()
        };
        let forward = [Some(0), Some(1), Some(2), Some(3)];
        assert_eq!(numbers([Some(1), Some(2), None, Some(3)], forward), []);
        assert_eq!(numbers([Some(1), Some(2), None, Some(2)], forward), [(1, 0), (3, 1)]);
        assert_eq!(numbers([Some(1), None, None, Some(2)], forward), [(1, 0), (3, 1)]);
        let back = [Some(0), Some(3), Some(1), Some(2)];
        assert_eq!(numbers([Some(1), Some(2), None, Some(3)], back), [(1, 1), (3, 0)]);
        assert_eq!(numbers([None; 4], [Some(0), Some(1), None, None]), [], "a list that leaves one out");
    }

    #[test]
    fn roots_are_siblings() {
        let numbers = tree(&[("x", None, true), ("y", Some("gone"), true)]).sibling_numbers(|_| None, Some);
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [(0, 0), (1, 1)]);
    }

    #[test]
    fn lists_of_children_give_ranks_through_nodes_between() {
        let children = |at: usize| match at {
            0 => vec!["gap", "c", "gone"],
            1 => vec!["b", "a"],
            5 => vec!["root"],
            _ => Vec::new(),
        };
        // The last but one names nothing and is named by none.
        let keys = ["root", "gap", "a", "b", "c", "loop", "alone"];
        assert_eq!(ranks(&keys, children), [Some(1), Some(2), Some(4), Some(3), Some(5), Some(0), None]);
    }
}
