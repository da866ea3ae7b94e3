//! The order of messages: a line, or a tree of versions since the program keeps them.

use std::collections::BTreeMap;

use satchel_importer::{
    order,
    tree::{Link as TreeLink, Parent, Tree},
};

use crate::message::Link;

/// What the first pass knows of a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// Unique in the thread.
    pub(crate) id: String,
    /// Whether the program gave the id.
    pub(crate) given: bool,
    pub(crate) link: Link,
    /// The version that the person sees behind it.
    pub(crate) active_child: Option<String>,
    pub(crate) by_user: bool,
    /// Microseconds.
    pub(crate) time: Option<i64>,
    /// The id of its last piece, which is answered.
    pub(crate) last_piece: String,
}

/// The order of the messages of a thread.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// For each message, the piece that it answers.
    pub(crate) parents: Vec<Option<String>>,
    /// The numbers of versions whose times do not tell their order.
    pub(crate) numbers: BTreeMap<usize, usize>,
    /// The piece that the person saw last.
    pub(crate) current: Option<String>,
    pub(crate) has_cycles: bool,
    /// Whether an answer has lost its link to the prompt.
    pub(crate) detached: bool,
    /// Whether the times contradict the order of the file.
    pub(crate) contradicts: bool,
}

/// Finds the order. `active_root` is the first message that the person sees, if there are versions of it.
pub(crate) fn of(entries: &[Entry], active_root: Option<&str>) -> Order {
    let branching = entries.iter().any(|entry| entry.link != Link::Absent || entry.active_child.is_some());
    let (above, detached) = if branching { links(entries) } else { (line(entries), false) };
    let nodes = entries.iter().zip(&above).map(|(entry, above)| TreeLink {
        key: &entry.id,
        parent: above.as_deref(),
        kept: true,
    });
    let tree = Tree::link(nodes, |_| []);
    let ranks = ranks(entries);
    let numbers =
        tree.sibling_numbers(|at| entries.get(at).and_then(|entry| entry.time), |at| ranks.get(at).copied());
    let parents = (0..entries.len()).map(|at| match tree.parent(at) {
        Parent::Root => None,
        Parent::Node(above) => entries.get(above).map(|entry| entry.last_piece.clone()),
        Parent::Absent(key) => Some(key.to_owned()),
    });
    Order {
        parents: parents.collect(),
        numbers,
        current: current(entries, &tree, &ranks, active_root).map(|entry| entry.last_piece.clone()),
        has_cycles: !tree.cycle_roots().is_empty(),
        detached,
        contradicts: !branching && order::contradicts(entries.iter().map(|entry| entry.time)),
    }
}

/// Each message answers the one before it.
fn line(entries: &[Entry]) -> Vec<Option<String>> {
    let before = entries.iter().map(|entry| Some(entry.id.clone()));
    std::iter::once(None).chain(before).take(entries.len()).collect()
}

/// The parents that the messages name. An answer without one has lost it: it answers the last prompt before it, as the program repairs it.
fn links(entries: &[Entry]) -> (Vec<Option<String>>, bool) {
    let (mut last, mut prompt, mut detached) = (None, None, false);
    let mut found = Vec::with_capacity(entries.len());
    for entry in entries {
        found.push(match &entry.link {
            Link::Parent(key) => Some(key.clone()),
            Link::Absent | Link::Root if !entry.by_user && prompt.is_some() => {
                detached = true;
                prompt.clone()
            }
            Link::Root => None,
            Link::Absent => last.clone(),
        });
        last = Some(entry.id.clone());
        if entry.by_user {
            prompt.clone_from(&last);
        }
    }
    (found, detached)
}

/// The place of each message by its time, and by its place in the file at the same time.
fn ranks(entries: &[Entry]) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..entries.len()).collect();
    sorted.sort_by_key(|at| entries.get(*at).and_then(|entry| entry.time));
    let mut ranks = vec![0; entries.len()];
    for (rank, at) in sorted.into_iter().enumerate() {
        if let Some(own) = ranks.get_mut(at) {
            *own = rank;
        }
    }
    ranks
}

/// The last message that the person sees: of several versions the chosen one, or else the newest.
fn current<'e>(
    entries: &'e [Entry],
    tree: &Tree<'_>,
    ranks: &[usize],
    active_root: Option<&str>,
) -> Option<&'e Entry> {
    let (mut roots, mut below) = (Vec::new(), vec![Vec::new(); entries.len()]);
    for at in 0..entries.len() {
        match tree.parent(at) {
            Parent::Node(above) => below.get_mut(above).map(|below| below.push(at)),
            Parent::Root | Parent::Absent(_) => {
                roots.push(at);
                None
            }
        };
    }
    let choose = |versions: &[usize], chosen: Option<&str>| {
        let is_chosen =
            |at: &&usize| entries.get(**at).is_some_and(|entry| Some(entry.id.as_str()) == chosen);
        let newest = || versions.iter().max_by_key(|at| ranks.get(**at));
        versions.iter().find(is_chosen).or_else(newest).copied()
    };
    let mut at = choose(&roots, active_root)?;
    while let Some(next) = below
        .get(at)
        .and_then(|below| choose(below, entries.get(at).and_then(|entry| entry.active_child.as_deref())))
    {
        at = next;
    }
    entries.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, link: Link, by_user: bool, time: i64) -> Entry {
        Entry { id: id.into(), link, by_user, time: Some(time), last_piece: id.into(), ..Entry::default() }
    }

    fn under(id: &str) -> Link {
        Link::Parent(id.to_owned())
    }

    #[test]
    fn the_newest_version_is_seen_unless_another_one_was_chosen() {
        let mut entries = vec![
            entry("a", Link::Root, true, 1),
            entry("b", under("a"), false, 2),
            entry("c", under("a"), false, 3),
            entry("d", under("b"), true, 4),
        ];
        assert_eq!(of(&entries, None).current.as_deref(), Some("c"));
        entries[0].active_child = Some("b".to_owned());
        assert_eq!(of(&entries, None).current.as_deref(), Some("d"));
        entries.push(entry("e", Link::Root, true, 5));
        assert_eq!(of(&entries, None).current.as_deref(), Some("e"));
        assert_eq!(of(&entries, Some("a")).current.as_deref(), Some("d"));
    }

    #[test]
    fn answers_without_a_link_answer_the_prompt_before_them() {
        let entries = [
            entry("a", Link::Root, true, 1),
            entry("b", Link::Root, false, 2),
            entry("c", Link::Absent, false, 3),
            entry("d", Link::Absent, true, 4),
        ];
        let order = of(&entries, None);
        let parents: Vec<_> = order.parents.iter().map(Option::as_deref).collect();
        assert_eq!(parents, [None, Some("a"), Some("a"), Some("c")]);
        assert!(order.detached);
    }

    #[test]
    fn messages_without_links_are_a_line() {
        let entries = [entry("a", Link::Absent, true, 2), entry("b", Link::Absent, false, 1)];
        let order = of(&entries, None);
        assert_eq!(order.parents, [None, Some("a".to_owned())]);
        assert!(order.contradicts && !order.detached);
    }
}
