//! The tree of a conversation: who stands under whom once nodes without a message are gone.

use std::collections::BTreeMap;

use satchel_importer::Arena;

use crate::raw;

/// A node by its links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link<'a> {
    pub(crate) key: &'a str,
    pub(crate) parent: Option<&'a str>,
    /// The list of children as JSON text; slim exports have none.
    pub(crate) children: Option<&'a str>,
    /// Index of its message; none if it has none and is dropped.
    pub(crate) message: Option<usize>,
}

/// Where a kept node hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent<'a> {
    /// Nowhere.
    Root,
    /// Under the kept node of this index.
    Node(usize),
    /// Under a node that this export does not hold; an older one may.
    Absent(&'a str),
}

/// The links between nodes, by their index in the mapping.
pub(crate) struct Tree<'a> {
    index: BTreeMap<&'a str, usize>,
    /// For dropped nodes, where their children hang.
    parents: Vec<Parent<'a>>,
    kept: Vec<bool>,
    /// Kept nodes that stood in a cycle and became roots.
    pub(crate) cut: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    Never,
    Now,
    Before,
}

impl<'a> Tree<'a> {
    /// Links `nodes`; those without a message are dropped. Runs in `n log n`, whatever the links look like.
    pub(crate) fn link(nodes: &[Link<'a>], arena: &'a Arena) -> Self {
        let kept = nodes.iter().map(|node| node.message.is_some()).collect();
        let index = nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
        let mut tree = Self { index, parents: Vec::with_capacity(nodes.len()), kept, cut: Vec::new() };
        tree.parents.extend(nodes.iter().map(|node| match node.parent {
            None => Parent::Root,
            Some(key) => tree.index.get(key).map_or(Parent::Absent(key), |at| Parent::Node(*at)),
        }));
        if tree.parents.iter().filter(|parent| **parent == Parent::Root).count() > 1 {
            tree.adopt(nodes, arena);
        }
        tree.skip_dropped();
        tree.cut_cycles();
        tree
    }

    /// The parent of the node at `at`; never one that is dropped.
    pub(crate) fn parent(&self, at: usize) -> Parent<'a> {
        self.parents.get(at).copied().unwrap_or(Parent::Root)
    }

    /// The node named `key`, or its nearest kept ancestor.
    pub(crate) fn kept_at(&self, key: &str) -> Option<usize> {
        let at = *self.index.get(key)?;
        if self.is_kept(at) {
            return Some(at);
        }
        match self.parent(at) {
            Parent::Node(above) => Some(above),
            Parent::Root | Parent::Absent(_) => None,
        }
    }

    fn is_kept(&self, at: usize) -> bool {
        self.kept.get(at).copied().unwrap_or_default()
    }

    /// A node that names no parent hangs under the first node that names it as a child.
    fn adopt(&mut self, nodes: &[Link<'a>], arena: &'a Arena) {
        for (above, node) in nodes.iter().enumerate() {
            for child in node.children.map(|raw| raw::texts(raw, arena)).unwrap_or_default() {
                let Some(at) = self.index.get(child).copied() else { continue };
                if at != above && self.parents[at] == Parent::Root {
                    self.parents[at] = Parent::Node(above);
                }
            }
        }
    }

    /// Makes every link end at a kept node; each dropped node is walked over once.
    fn skip_dropped(&mut self) {
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
                        // Dropped nodes that stand in a cycle hang nowhere.
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

    /// Makes one node of each cycle a root: the first in the order of the export.
    fn cut_cycles(&mut self) {
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
            children: None,
            message: kept.then_some(at),
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
            let arena = Arena::new();
            let tree = Tree::link(&nodes(&parents, &kept), &arena);
            for at in (0..count).filter(|at| kept[*at]) {
                let expected = by_hand(at, &parents, &kept);
                if tree.cut.contains(&at) {
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
}
