//! The order of siblings if it is not that of their times.

use std::collections::BTreeMap;

use super::{Parent, Tree};

/// The key in `raw_metadata` for the number of a message among its siblings.
pub const SIBLING_NUMBER: &str = "sibling_number";

impl Tree<'_> {
    /// The numbers, from 0, of siblings whose order is not that of their times, by the index of the node; roots are siblings too. The host
    /// sorts siblings by time. `rank` gives the position of a node in the provider's order. If one of the siblings has none, they get
    /// no numbers.
    pub fn sibling_numbers(
        &self,
        time: impl Fn(usize) -> Option<i64>,
        rank: impl Fn(usize) -> Option<usize>,
    ) -> BTreeMap<usize, usize> {
        let mut numbers = BTreeMap::new();
        for mut siblings in self.sibling_groups() {
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

    /// The kept nodes with the same parent, if there are several.
    fn sibling_groups(&self) -> Vec<Vec<usize>> {
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
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in kept().filter(|at| counts[above(*at)] > 1) {
            groups.entry(above(at)).or_default().push(at);
        }
        groups.into_values().collect()
    }
}

/// The ranks of nodes for [`Tree::sibling_numbers`]: their positions in a walk over the lists of `children`, which begins at the nodes that
/// are in no list. A node that the walk does not reach has none. Children of a node without a message take its position.
pub fn ranks<'a>(keys: &[&'a str], children: impl Fn(usize) -> Vec<&'a str>) -> Vec<Option<usize>> {
    let index: BTreeMap<&str, usize> = keys.iter().enumerate().map(|(at, key)| (*key, at)).collect();
    let lists: Vec<Vec<usize>> = (0..keys.len())
        .map(|at| children(at).into_iter().filter_map(|key| index.get(key).copied()).collect())
        .collect();
    let mut listed = vec![false; keys.len()];
    lists.iter().flatten().for_each(|at| listed[*at] = true);
    let (mut ranks, mut next) = (vec![None; keys.len()], 0);
    for top in (0..keys.len()).filter(|at| !listed[*at] && !lists[*at].is_empty()) {
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
    fn siblings_have_numbers_only_if_their_times_are_not_in_order() {
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
    fn ranks_follow_the_lists_of_children() {
        let children = |at: usize| match at {
            0 => vec!["gap", "c", "gone"],
            1 => vec!["b", "a"],
            5 => vec!["root"],
            _ => Vec::new(),
        };
        // The last lists nothing and is in no list.
        let keys = ["root", "gap", "a", "b", "c", "loop", "alone"];
        assert_eq!(ranks(&keys, children), [Some(1), Some(2), Some(4), Some(3), Some(5), Some(0), None]);
    }
}
