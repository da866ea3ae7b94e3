//! Builds the tree of a conversation from the links of its nodes, without dropped nodes and without cycles.

use std::collections::BTreeMap;

mod chain;
mod siblings;

pub use chain::chain;
pub use siblings::{SIBLING_NUMBER, ranks};

/// A node and its link to its parent.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Its id. If several nodes have the same id, links refer to the last one.
    pub key: &'a str,
    /// The id of its parent, if it has one.
    pub parent: Option<&'a str>,
    /// Whether it becomes a message. If not, its children become children of its nearest kept ancestor.
    pub kept: bool,
}

/// The id of a node with an empty key, which only a broken export has: ids must not be empty.
const EMPTY_KEY: &str = "?";

/// The id for the key of a node or of its parent: the key itself, or `?` if it is empty.
#[must_use]
pub fn node_id(key: &str) -> &str {
    if key.is_empty() { EMPTY_KEY } else { key }
}

/// The parent of a kept node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent<'a> {
    /// None: it is a root.
    Root,
    /// The kept node with this index.
    Node(usize),
    /// A node that is not in this export; it may be in another one.
    Absent(&'a str),
}

/// The links between nodes, which are named by their index.
#[derive(Debug)]
pub struct Tree<'a> {
    index: BTreeMap<&'a str, usize>,
    /// For dropped nodes, the parent of their children.
    parents: Vec<Parent<'a>>,
    kept: Vec<bool>,
    cycle_roots: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Never,
    Now,
    Before,
}

impl<'a> Tree<'a> {
    /// Links nodes, in O(n log n) for any links.
    ///
    /// `children` gives the ids that the node with an index lists as its children. It is called only if several nodes have no
    /// parent: each of them becomes a child of the first node that lists it.
    pub fn link<C: IntoIterator<Item = &'a str>>(
        nodes: impl Iterator<Item = Link<'a>> + Clone,
        children: impl Fn(usize) -> C,
    ) -> Self {
        let kept = nodes.clone().map(|node| node.kept).collect();
        let index = nodes.clone().enumerate().map(|(at, node)| (node.key, at)).collect();
        let mut tree = Self { index, parents: Vec::new(), kept, cycle_roots: Vec::new() };
        tree.parents = nodes
            .map(|node| match node.parent {
                None => Parent::Root,
                Some(key) => tree.index.get(key).map_or(Parent::Absent(key), |at| Parent::Node(*at)),
            })
            .collect();
        if tree.parents.iter().filter(|parent| **parent == Parent::Root).count() > 1 {
            tree.link_listed_children(children);
        }
        tree.skip_dropped();
        tree.cut_cycles();
        tree
    }

    /// The parent of the node at `at`; never a dropped node.
    pub fn parent(&self, at: usize) -> Parent<'a> {
        self.parents.get(at).copied().unwrap_or(Parent::Root)
    }

    /// The index of the node with this key, or of its nearest kept ancestor.
    pub fn nearest_kept(&self, key: &str) -> Option<usize> {
        let at = *self.index.get(key)?;
        if self.is_kept(at) {
            return Some(at);
        }
        match self.parent(at) {
            Parent::Node(above) => Some(above),
            Parent::Root | Parent::Absent(_) => None,
        }
    }

    /// The kept nodes that became roots to break a cycle: the first node of each cycle.
    pub fn cycle_roots(&self) -> &[usize] {
        &self.cycle_roots
    }

    fn is_kept(&self, at: usize) -> bool {
        self.kept.get(at).copied().unwrap_or_default()
    }

    fn link_listed_children<C: IntoIterator<Item = &'a str>>(&mut self, children: impl Fn(usize) -> C) {
        for above in 0..self.parents.len() {
            for child in children(above) {
                let Some(at) = self.index.get(child).copied() else { continue };
                if at != above && self.parents[at] == Parent::Root {
                    self.parents[at] = Parent::Node(above);
                }
            }
        }
    }

    /// Makes every link end at a kept node. Visits each node once.
    fn skip_dropped(&mut self) {
        let mut visits = vec![Visit::Never; self.parents.len()];
        let mut path = Vec::new();
        for start in 0..self.parents.len() {
            let mut at = start;
            let end = loop {
                path.push(at);
                visits[at] = Visit::Now;
                match self.parents[at] {
                    Parent::Node(above) if self.is_kept(above) => break Parent::Node(above),
                    Parent::Node(above) => match visits[above] {
                        Visit::Never => at = above,
                        // A cycle of dropped nodes has no parent.
                        Visit::Now => break Parent::Root,
                        Visit::Before => break self.parents[above],
                    },
                    end @ (Parent::Root | Parent::Absent(_)) => break end,
                }
            };
            for at in path.drain(..) {
                self.parents[at] = end;
                visits[at] = Visit::Before;
            }
        }
    }

    /// Makes the first node of each cycle, in the order of the export, a root.
    fn cut_cycles(&mut self) {
        // Most exports have parents first, so there is no cycle.
        let forward = |(at, parent): (usize, &Parent)| matches!(parent, Parent::Node(above) if *above >= at);
        if !self.parents.iter().enumerate().any(forward) {
            return;
        }
        // 0: not seen; otherwise the number of the walk that has seen the node.
        let mut seen = vec![0_usize; self.parents.len()];
        for start in 0..self.parents.len() {
            let mut at = start;
            while seen[at] == 0 {
                seen[at] = start + 1;
                let Parent::Node(above) = self.parents[at] else { break };
                if seen[above] == start + 1 {
                    self.cut_at(above);
                    break;
                }
                at = above;
            }
        }
    }

    fn cut_at(&mut self, entry: usize) {
        let (mut first, mut at) = (entry, entry);
        while let Parent::Node(above) = self.parents[at] {
            first = first.min(above);
            at = above;
            if at == entry {
                break;
            }
        }
        self.parents[first] = Parent::Root;
        self.cycle_roots.push(first);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "gone"];

    fn nodes(parents: &[Option<usize>], kept: &[bool]) -> Vec<Link<'static>> {
        let node = |(at, (parent, kept)): (usize, (&Option<usize>, &bool))| Link {
            key: KEYS[at],
            parent: parent.map(|parent| KEYS[parent]),
            kept: *kept,
        };
        parents.iter().zip(kept).enumerate().map(node).collect()
    }

    /// The nearest kept ancestor by a plain walk; none if the walk ends or does not end.
    fn by_hand(at: usize, parents: &[Option<usize>], kept: &[bool]) -> Parent<'static> {
        let mut at = at;
        for _ in 0..=parents.len() {
            match parents[at] {
                Some(above) if above >= parents.len() => return Parent::Absent(KEYS[above]),
                Some(above) if kept[above] => return Parent::Node(above),
                Some(above) => at = above,
                None => return Parent::Root,
            }
        }
        Parent::Root
    }

    proptest! {
        #[test]
        fn links_lead_to_the_nearest_kept_ancestor(
            drawn in prop::collection::vec((prop::option::weighted(0.9, 0..12_usize), any::<bool>()), 1..11),
        ) {
            let (mut parents, kept): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
            let count = parents.len();
            for parent in &mut parents {
                // All keys beyond the nodes are the one that is absent.
                *parent = parent.map(|at| if at < count { at } else { 11 });
            }
            let nodes = nodes(&parents, &kept);
            let tree = Tree::link(nodes.iter().copied(), |_| []);
            for at in (0..count).filter(|at| kept[*at]) {
                let expected = by_hand(at, &parents, &kept);
                if tree.cycle_roots.contains(&at) {
                    prop_assert_eq!(tree.parent(at), Parent::Root);
                } else {
                    prop_assert_eq!(tree.parent(at), expected);
                }
                let mut above = at;
                for step in 0.. {
                    prop_assert!(step <= count, "a cycle is left");
                    let Parent::Node(next) = tree.parent(above) else { break };
                    above = next;
                }
            }
        }
    }

    #[test]
    fn a_node_without_a_parent_becomes_a_child_of_the_first_that_lists_it() {
        let node = |key| Link { key, parent: None, kept: true };
        let nodes = [node("a"), node("b"), node("c"), Link { parent: Some("a"), ..node("d") }];
        let children = [vec!["b", "d"], vec!["c", "b"], vec!["c", "a"], vec!["c", "gone"]];
        let tree = Tree::link(nodes.into_iter(), |at| children[at].clone());
        let parents: Vec<_> = (0..4).map(|at| tree.parent(at)).collect();
        // The third lists the first as its child, which closes a cycle: it is broken at its first node.
        assert_eq!(parents, [Parent::Root, Parent::Node(0), Parent::Node(1), Parent::Node(0)]);
        assert_eq!(tree.cycle_roots(), [0]);
    }

    #[test]
    fn a_cycle_is_broken_at_its_first_node() {
        let nodes = [("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("s", "s")];
        let links = nodes.into_iter().map(|(key, parent)| Link { key, parent: Some(parent), kept: true });
        let tree = Tree::link(links, |_| []);
        let parents: Vec<_> = (0..5).map(|at| tree.parent(at)).collect();
        assert_eq!(parents, [Parent::Node(1), Parent::Root, Parent::Node(3), Parent::Node(1), Parent::Root]);
        assert_eq!(tree.cycle_roots(), [1, 4]);
    }
}
