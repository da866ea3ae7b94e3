//! The tree of a conversation: who stands under whom once nodes that are not kept are gone, and without circles.

use std::collections::BTreeMap;

mod chain;
mod siblings;

pub use chain::chain;
pub use siblings::{SIBLING_NUMBER, ranks};

/// A node by its links.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Its id; of nodes with the same id the last one is meant by others.
    pub key: &'a str,
    /// The id of its parent, if it names one.
    pub parent: Option<&'a str>,
    /// Whether it becomes a message; its children hang under its nearest kept ancestor if not.
    pub kept: bool,
}

/// What a node without a key is called, which only a broken export has: ids are not empty.
const NAMELESS: &str = "?";

/// The key of a node, or the parent that it names, as an id.
#[must_use]
pub fn named(key: &str) -> &str {
    if key.is_empty() { NAMELESS } else { key }
}

/// Where a kept node hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent<'a> {
    /// Nowhere.
    Root,
    /// Under the kept node of this index.
    Node(usize),
    /// Under a node that this export does not hold; another one may.
    Absent(&'a str),
}

/// The links between nodes, by their index.
#[derive(Debug)]
pub struct Tree<'a> {
    index: BTreeMap<&'a str, usize>,
    /// For nodes that are not kept, where their children hang.
    parents: Vec<Parent<'a>>,
    kept: Vec<bool>,
    cut: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    Never,
    Now,
    Before,
}

impl<'a> Tree<'a> {
    /// Links nodes, in `n log n` whatever the links look like.
    ///
    /// `children` gives the ids that the node of an index names as its children; it is asked only where several nodes
    /// name no parent, and a node that names none hangs under the first one that names it.
    pub fn link<C: IntoIterator<Item = &'a str>>(
        nodes: impl Iterator<Item = Link<'a>> + Clone,
        children: impl Fn(usize) -> C,
    ) -> Self {
        let kept = nodes.clone().map(|node| node.kept).collect();
        let index = nodes.clone().enumerate().map(|(at, node)| (node.key, at)).collect();
        let mut tree = Self { index, parents: Vec::new(), kept, cut: Vec::new() };
        tree.parents = nodes
            .map(|node| match node.parent {
                None => Parent::Root,
                Some(key) => tree.index.get(key).map_or(Parent::Absent(key), |at| Parent::Node(*at)),
            })
            .collect();
        if tree.parents.iter().filter(|parent| **parent == Parent::Root).count() > 1 {
            tree.adopt(children);
        }
        tree.pass_over_dropped();
        tree.cut_cycles();
        tree
    }

    /// The parent of the node at `at`; never one that is not kept.
    pub fn parent(&self, at: usize) -> Parent<'a> {
        self.parents.get(at).copied().unwrap_or(Parent::Root)
    }

    /// The index of the node named `key`, or of its nearest kept ancestor.
    pub fn kept_at(&self, key: &str) -> Option<usize> {
        let at = *self.index.get(key)?;
        if self.is_kept(at) {
            return Some(at);
        }
        match self.parent(at) {
            Parent::Node(above) => Some(above),
            Parent::Root | Parent::Absent(_) => None,
        }
    }

    /// Kept nodes that stood in a circle and became roots: the first of each circle.
    pub fn cut(&self) -> &[usize] {
        &self.cut
    }

    fn is_kept(&self, at: usize) -> bool {
        self.kept.get(at).copied().unwrap_or_default()
    }

    fn adopt<C: IntoIterator<Item = &'a str>>(&mut self, children: impl Fn(usize) -> C) {
        for above in 0..self.parents.len() {
            for child in children(above) {
                let Some(at) = self.index.get(child).copied() else { continue };
                if at != above && self.parents[at] == Parent::Root {
                    self.parents[at] = Parent::Node(above);
                }
            }
        }
    }

    /// Makes every link end at a kept node; each node is walked over once.
    fn pass_over_dropped(&mut self) {
        let mut walked = vec![Walk::Never; self.parents.len()];
        let mut path = Vec::new();
        for start in 0..self.parents.len() {
            let mut at = start;
            let end = loop {
                path.push(at);
                walked[at] = Walk::Now;
                match self.parents[at] {
                    Parent::Node(above) if self.is_kept(above) => break Parent::Node(above),
                    Parent::Node(above) => match walked[above] {
                        Walk::Never => at = above,
                        // Nodes that are not kept and stand in a circle hang nowhere.
                        Walk::Now => break Parent::Root,
                        Walk::Before => break self.parents[above],
                    },
                    end @ (Parent::Root | Parent::Absent(_)) => break end,
                }
            };
            for at in path.drain(..) {
                self.parents[at] = end;
                walked[at] = Walk::Before;
            }
        }
    }

    /// Makes one node of each circle a root: the first in the order of the export.
    fn cut_cycles(&mut self) {
        // Exports put parents first; then there is no circle.
        let forward = |(at, parent): (usize, &Parent)| matches!(parent, Parent::Node(above) if *above >= at);
        if !self.parents.iter().enumerate().any(forward) {
            return;
        }
        // 0: not seen; else the number of the walk that came by.
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
        self.cut.push(first);
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

    /// The nearest kept ancestor by a plain walk; none if the walk ends or goes on for ever.
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
                // Keys beyond the nodes are one that never comes.
                *parent = parent.map(|at| if at < count { at } else { 11 });
            }
            let nodes = nodes(&parents, &kept);
            let tree = Tree::link(nodes.iter().copied(), |_| []);
            for at in (0..count).filter(|at| kept[*at]) {
                let expected = by_hand(at, &parents, &kept);
                if tree.cut.contains(&at) {
                    prop_assert_eq!(tree.parent(at), Parent::Root);
                } else {
                    prop_assert_eq!(tree.parent(at), expected);
                }
                let mut above = at;
                for step in 0.. {
                    prop_assert!(step <= count, "a circle is left");
                    let Parent::Node(next) = tree.parent(above) else { break };
                    above = next;
                }
            }
        }
    }

    #[test]
    fn what_names_no_parent_hangs_under_the_first_that_names_it() {
        let node = |key| Link { key, parent: None, kept: true };
        let nodes = [node("a"), node("b"), node("c"), Link { parent: Some("a"), ..node("d") }];
        let children = [vec!["b", "d"], vec!["c", "b"], vec!["c", "a"], vec!["c", "gone"]];
        let tree = Tree::link(nodes.into_iter(), |at| children[at].clone());
        let parents: Vec<_> = (0..4).map(|at| tree.parent(at)).collect();
        // The third names the first as its child, which closes a circle: it is cut at its first node.
        assert_eq!(parents, [Parent::Root, Parent::Node(0), Parent::Node(1), Parent::Node(0)]);
        assert_eq!(tree.cut(), [0]);
    }

    #[test]
    fn a_circle_is_cut_at_its_first_node() {
        let nodes = [("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("s", "s")];
        let links = nodes.into_iter().map(|(key, parent)| Link { key, parent: Some(parent), kept: true });
        let tree = Tree::link(links, |_| []);
        let parents: Vec<_> = (0..5).map(|at| tree.parent(at)).collect();
        assert_eq!(parents, [Parent::Node(1), Parent::Root, Parent::Node(3), Parent::Node(1), Parent::Root]);
        assert_eq!(tree.cut(), [1, 4]);
    }
}
