//! Who answers whom: parents by uuid, by order where no message names one, without cycles.

use std::{borrow::Cow, collections::BTreeMap};

use crate::raw::Message;

/// What the first message of a conversation names as its parent.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// The parent of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parent<'a> {
    Root,
    /// By its place among the messages.
    Node(usize),
    /// By a uuid that no message here has; another export may bring it.
    Absent(&'a str),
}

/// The messages of one conversation by id and parent.
pub(super) struct Tree<'a> {
    ids: Vec<Cow<'a, str>>,
    parents: Vec<Parent<'a>>,
    /// Messages whose uuid an earlier one has.
    repeated: Vec<usize>,
    /// Messages that were made roots because their parents led back to them.
    cut: Vec<usize>,
}

impl<'a> Tree<'a> {
    pub(super) fn of(messages: &[Message<'a>]) -> Self {
        let ids = ids(messages);
        let (order, repeated) = order(&ids);
        let mut parents = if messages.iter().all(|message| message.parent.is_none()) {
            in_line(ids.len(), &repeated)
        } else {
            messages.iter().map(|message| named(message.parent, &ids, &order)).collect()
        };
        let cut = cut_cycles(&mut parents);
        Self { ids, parents, repeated, cut }
    }

    pub(super) fn id(&self, at: usize) -> Cow<'a, str> {
        self.ids.get(at).cloned().unwrap_or_default()
    }

    pub(super) fn parent(&self, at: usize) -> Parent<'a> {
        self.parents.get(at).copied().unwrap_or(Parent::Root)
    }

    pub(super) fn repeated(&self, at: usize) -> bool {
        self.repeated.binary_search(&at).is_ok()
    }

    pub(super) fn cut(&self) -> &[usize] {
        &self.cut
    }
}

/// The uuid of each message, or a key made of what it says.
fn ids<'a>(messages: &[Message<'a>]) -> Vec<Cow<'a, str>> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut id = |message: &Message<'a>| {
        if let Some(uuid) = message.uuid {
            return Cow::Borrowed(uuid);
        }
        let key = natural_key(message);
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        Cow::Owned(if *count == 1 { key } else { format!("{key}:{count}") })
    };
    messages.iter().map(&mut id).collect()
}

/// A key of a message without uuid, made of what later exports hold too.
pub(super) fn natural_key(message: &Message<'_>) -> String {
    if let Some(uuid) = message.uuid {
        return uuid.to_owned();
    }
    let said = message.text.or_else(|| message.blocks.iter().find_map(|block| block.text.or(block.thinking)));
    super::natural(&[message.sender, message.created.map(|time| time.to_string()).as_deref(), said])
}

/// Places ordered by id, and those whose id an earlier one has.
fn order(ids: &[Cow<'_, str>]) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by(|a, b| (ids.get(*a), a).cmp(&(ids.get(*b), b)));
    let same = |pair: &&[usize]| match pair {
        [a, b] => ids.get(*a) == ids.get(*b),
        _ => false,
    };
    let mut repeated: Vec<usize> =
        order.windows(2).filter(same).filter_map(|pair| pair.last().copied()).collect();
    repeated.sort_unstable();
    (order, repeated)
}

/// Each message answers the one before it.
fn in_line<'a>(count: usize, repeated: &[usize]) -> Vec<Parent<'a>> {
    let mut last = Parent::Root;
    let mut parents = Vec::with_capacity(count);
    for at in 0..count {
        parents.push(last);
        if repeated.binary_search(&at).is_err() {
            last = Parent::Node(at);
        }
    }
    parents
}

fn named<'a>(parent: Option<&'a str>, ids: &[Cow<'a, str>], order: &[usize]) -> Parent<'a> {
    let Some(parent) = parent.filter(|parent| !parent.is_empty() && *parent != ROOT) else {
        return Parent::Root;
    };
    let id = |at: &usize| ids.get(*at).map(AsRef::as_ref);
    let first = order.partition_point(|at| id(at) < Some(parent));
    match order.get(first).filter(|at| id(at) == Some(parent)) {
        Some(at) => Parent::Node(*at),
        None => Parent::Absent(parent),
    }
}

/// Makes the earliest message of every cycle a root, and names it.
fn cut_cycles(parents: &mut [Parent<'_>]) -> Vec<usize> {
    // Exports put parents first; then there is no cycle.
    if parents.iter().enumerate().all(|(at, parent)| !matches!(parent, Parent::Node(above) if *above >= at)) {
        return Vec::new();
    }
    let mut cut = Vec::new();
    let mut state = vec![State::Fresh; parents.len()];
    for start in 0..parents.len() {
        let mut path = Vec::new();
        let mut at = start;
        while state.get(at) == Some(&State::Fresh) {
            state[at] = State::OnPath;
            path.push(at);
            match parents[at] {
                Parent::Node(above) => at = above,
                Parent::Root | Parent::Absent(_) => break,
            }
        }
        let closed = path.iter().position(|node| *node == at && closes(parents, &path, at));
        if let Some(earliest) = closed.and_then(|from| path[from..].iter().min().copied()) {
            parents[earliest] = Parent::Root;
            cut.push(earliest);
        }
        for node in path {
            state[node] = State::Done;
        }
    }
    cut
}

/// Whether the last node of `path` leads to `at`.
fn closes(parents: &[Parent<'_>], path: &[usize], at: usize) -> bool {
    path.last().is_some_and(|last| parents[*last] == Parent::Node(at))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fresh,
    OnPath,
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(uuid: &'static str, parent: Option<&'static str>) -> Message<'static> {
        Message { uuid: Some(uuid), parent, ..Message::default() }
    }

    fn parents(messages: &[Message<'static>]) -> (Vec<Parent<'static>>, Vec<usize>) {
        let tree = Tree::of(messages);
        (tree.parents, tree.cut)
    }

    #[test]
    fn without_parents_each_message_answers_the_one_before() {
        let (parents, _) =
            parents(&[message("a", None), message("b", None), message("b", None), message("c", None)]);
        assert_eq!(parents, [Parent::Root, Parent::Node(0), Parent::Node(1), Parent::Node(1)]);
    }

    #[test]
    fn the_nil_like_uuid_is_the_root() {
        let (parents, _) =
            parents(&[message("a", Some(ROOT)), message("b", Some("a")), message("c", Some("gone"))]);
        assert_eq!(parents, [Parent::Root, Parent::Node(0), Parent::Absent("gone")]);
    }

    #[test]
    fn a_cycle_is_cut_at_its_earliest_message() {
        let (found, cut) = parents(&[
            message("x", Some("a")),
            message("a", Some("b")),
            message("b", Some("c")),
            message("c", Some("a")),
        ]);
        assert_eq!(found, [Parent::Node(1), Parent::Root, Parent::Node(3), Parent::Node(1)]);
        assert_eq!(cut, [1]);
        let (found, cut) = parents(&[message("a", Some("a")), message("b", Some("a"))]);
        assert_eq!(found, [Parent::Root, Parent::Node(0)]);
        assert_eq!(cut, [0]);
    }
}
