//! The answer that the person saw last. The export does not name it; the website shows the newest child of each node.

use satchel_importer::tree::{Parent, Tree};

use crate::raw::Node;

/// The key of the message at the end of the way that leads by the last child of each, beginning at the last root. Times
/// do not tell: they go backwards, and an answer that failed is often the newest.
pub(super) fn leaf<'a>(nodes: &[Node<'a>], tree: &Tree<'_>) -> Option<&'a str> {
    let ranks = ranks(nodes);
    // For each node its last child, and the last root behind them.
    let mut last: Vec<Option<(usize, usize)>> = vec![None; nodes.len() + 1];
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.message.is_some()) {
        let above = match tree.parent(at) {
            Parent::Node(above) => above,
            Parent::Root | Parent::Absent(_) => nodes.len(),
        };
        let rank = ranks.get(node.key).copied().unwrap_or(at);
        if let Some(slot) = last.get_mut(above)
            && slot.is_none_or(|(known, _)| known <= rank)
        {
            *slot = Some((rank, at));
        }
    }
    let mut leaf = None;
    let mut next = last.get(nodes.len()).copied().flatten();
    // The tree has no circles, so this ends.
    while let Some((_, at)) = next {
        leaf = nodes.get(at).map(|node| node.key);
        next = last.get(at).copied().flatten();
    }
    leaf
}

/// The place of each node among the children of the node that names it as one.
fn ranks<'a>(nodes: &[Node<'a>]) -> std::collections::BTreeMap<&'a str, usize> {
    let named = nodes.iter().flat_map(|node| node.children.iter().copied().enumerate());
    named.map(|(rank, child)| (child, rank)).collect()
}
