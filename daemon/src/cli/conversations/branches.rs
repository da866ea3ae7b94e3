//! The forks of a conversation and the branches behind each fork.
//!
//! There is no recursion, because the depth of the tree comes from data. Parents come before their children.

use std::collections::{BTreeMap, BTreeSet};

use satchel_proto::v1::Message;

use crate::cli::{error::CliError, pagination, text};

/// Length, in characters, of the preview that represents a branch.
const PREVIEW_LENGTH: usize = 60;
/// Maximum number of other branches that a fork lists.
const MAX_OTHERS: usize = 3;

/// The branch structure of one conversation.
#[derive(Debug, Default)]
pub(in crate::cli) struct Branches {
    nodes: Vec<BranchNode>,
    by_id: BTreeMap<String, usize>,
    roots: Vec<usize>,
    /// For each fork, keyed by the message above it: the first branches that lead to a shown message.
    first: BTreeMap<Option<usize>, Vec<usize>>,
}

#[derive(Debug)]
struct BranchNode {
    id: String,
    parent: Option<usize>,
    /// In order; only children that are in the tree.
    children: Vec<usize>,
    visible: bool,
    active: bool,
    preview: String,
    /// The first shown message at or below this one, along the newest branch; `None` if there is none.
    first_visible: Option<usize>,
    /// The last child that leads to a shown message; if there is none, the last child.
    newest: Option<usize>,
    /// The number of the branch that begins here, from 1, and the number of branches of its fork. Only branches
    /// that lead to a shown message count.
    numbering: (usize, usize),
}

/// A fork, as seen from one of its branches.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Fork {
    /// From 1.
    pub(in crate::cli) number: usize,
    pub(in crate::cli) of: usize,
    /// The first few of the other branches.
    pub(in crate::cli) others: Vec<OtherBranch>,
}

/// Another branch of a fork.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct OtherBranch {
    /// The id of a message on it.
    pub(in crate::cli) id: String,
    /// The beginning of its text.
    pub(in crate::cli) preview: String,
}

impl Branches {
    /// Builds the branches from the whole tree, parents first.
    pub(in crate::cli) fn new(tree: &[Message]) -> Self {
        let mut all = Self::default();
        for message in tree {
            all.add(message);
        }
        for at in (0..all.nodes.len()).rev() {
            let children = &all.nodes[at].children;
            let newest = children
                .iter()
                .rev()
                .find(|child| all.nodes[**child].first_visible.is_some())
                .or(children.last())
                .copied();
            let below = newest.and_then(|child| all.nodes[child].first_visible);
            let node = &mut all.nodes[at];
            node.newest = newest;
            node.first_visible = if node.visible { Some(at) } else { below };
        }
        for parent in std::iter::once(None).chain((0..all.nodes.len()).map(Some)) {
            all.number(parent);
        }
        all
    }

    /// Numbers the branches that begin below `parent`, or the roots if it is `None`.
    fn number(&mut self, parent: Option<usize>) {
        let branches: Vec<usize> = self
            .siblings(parent)
            .iter()
            .copied()
            .filter(|at| self.nodes[*at].first_visible.is_some())
            .collect();
        for (number, at) in branches.iter().enumerate() {
            self.nodes[*at].numbering = (number + 1, branches.len());
        }
        if branches.len() > 1 {
            self.first.insert(parent, branches.into_iter().take(MAX_OTHERS + 1).collect());
        }
    }

    fn siblings(&self, parent: Option<usize>) -> &[usize] {
        parent.map_or(&self.roots, |parent| &self.nodes[parent].children)
    }

    fn add(&mut self, message: &Message) {
        let at = self.nodes.len();
        // A parent that has not been added yet would allow a cycle, so such a message becomes a root.
        let parent = message.parent_id.as_ref().and_then(|id| self.by_id.get(id)).copied();
        match parent {
            Some(parent) => self.nodes[parent].children.push(at),
            None => self.roots.push(at),
        }
        let visible = !message.hidden && !message.is_thought;
        let preview = text::one_line(&super::message::first_text(message));
        self.nodes.push(BranchNode {
            id: message.id.clone(),
            parent,
            children: Vec::new(),
            visible,
            active: message.on_active_branch,
            preview: text::fit(&preview, PREVIEW_LENGTH).into_owned(),
            first_visible: None,
            newest: None,
            numbering: (0, 0),
        });
        self.by_id.insert(message.id.clone(), at);
    }

    /// Returns the ids of the branch that the person saw last, from its root.
    pub(in crate::cli) fn active_path(&self) -> BTreeSet<String> {
        self.nodes.iter().filter(|node| node.active).map(|node| node.id.clone()).collect()
    }

    /// Returns the ids of the branch through the message with the id `given`, down to its newest leaf.
    ///
    /// # Errors
    /// Fails if the id matches none or several.
    pub(in crate::cli) fn path_through(&self, given: &str) -> Result<BTreeSet<String>, CliError> {
        let at = self.find(given)?;
        let mut path: Vec<usize> = std::iter::successors(Some(at), |at| self.nodes[*at].parent).collect();
        path.extend(std::iter::successors(self.nodes[at].newest, |at| self.nodes[*at].newest));
        Ok(path.into_iter().map(|at| self.nodes[at].id.clone()).collect())
    }

    /// Returns the full id of the message with the id `given`.
    ///
    /// # Errors
    /// Fails if the id matches none or several.
    pub(super) fn resolve(&self, given: &str) -> Result<String, CliError> {
        Ok(self.nodes[self.find(given)?].id.clone())
    }

    fn find(&self, given: &str) -> Result<usize, CliError> {
        if let Some(at) = self.by_id.get(given) {
            return Ok(*at);
        }
        let fitting = self.by_id.keys().filter(|id| pagination::starts_with(id, given)).cloned().collect();
        let id = pagination::single_match("message", given, fitting)?;
        Ok(self.by_id.get(&id).copied().unwrap_or_default())
    }

    /// Returns the fork whose branch begins with this message, or `None` if the conversation does not fork there.
    pub(in crate::cli) fn fork(&self, id: &str) -> Option<Fork> {
        let at = *self.by_id.get(id)?;
        let (number, of) = self.nodes[at].numbering;
        if of < 2 {
            return None;
        }
        let first = self.first.get(&self.nodes[at].parent).map(Vec::as_slice).unwrap_or_default();
        let others = first.iter().filter(|other| **other != at);
        let others = others.filter_map(|other| self.nodes[*other].first_visible).take(MAX_OTHERS);
        let others = others
            .map(|at| OtherBranch { id: self.nodes[at].id.clone(), preview: self.nodes[at].preview.clone() });
        Some(Fork { number, of, others: others.collect() })
    }

    /// Returns the id of the message with which the next branch begins, if a branch begins with the message `id`; the
    /// previous branch if `back`. After the last branch comes the first.
    pub(in crate::cli) fn sibling(&self, id: &str, back: bool) -> Option<&str> {
        let node = &self.nodes[*self.by_id.get(id)?];
        let (number, of) = node.numbering;
        if of < 2 {
            return None;
        }
        let wanted = if back { (number + of - 2) % of + 1 } else { number % of + 1 };
        let siblings = self.siblings(node.parent).iter().map(|at| &self.nodes[*at]);
        siblings.into_iter().find(|other| other.numbering.0 == wanted).map(|other| other.id.as_str())
    }

    /// Returns the number of forks above each message.
    pub(super) fn depths(&self) -> BTreeMap<&str, usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let above = node.parent.and_then(|parent| depths.get(parent)).copied().unwrap_or(0);
            depths.push(above + usize::from(node.numbering.1 > 1));
        }
        self.nodes.iter().map(|node| node.id.as_str()).zip(depths).collect()
    }

    /// Returns all ids.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.by_id.keys().map(String::as_str)
    }
}

/// Keeps the messages of `path`, in their order.
pub(super) fn retain_path(tree: Vec<Message>, path: &BTreeSet<String>) -> Vec<Message> {
    tree.into_iter().filter(|message| path.contains(&message.id)).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(in crate::cli) mod tests {
    use satchel_proto::v1::{Content, ContentKind, Role};

    use super::*;

    pub(in crate::cli::conversations) fn message(id: &str, parent: Option<&str>, text: &str) -> Message {
        let role = if id.starts_with('q') { Role::User } else { Role::Assistant };
        Message {
            id: id.to_owned(),
            role: role.into(),
            parent_id: parent.map(str::to_owned),
            content: Some(Content {
                kind: ContentKind::Text.into(),
                text: Some(text.to_owned()),
                parts: Vec::new(),
            }),
            on_active_branch: true,
            created_at: crate::cli::time::at("2026-03-12T11:20:00Z"),
            ..Message::default()
        }
    }

    pub(in crate::cli::conversations) fn active_messages(
        tree: Vec<Message>,
        branches: &Branches,
    ) -> Vec<Message> {
        retain_path(tree, &branches.active_path())
    }

    fn hidden(id: &str, parent: Option<&str>) -> Message {
        Message { hidden: true, ..message(id, parent, "context") }
    }

    fn inactive(message: Message) -> Message {
        Message { on_active_branch: false, ..message }
    }

    /// A tree with a hidden root. The first question was edited once, and its second answer was regenerated.
    pub(in crate::cli) fn forked() -> Vec<Message> {
        vec![
            hidden("root", None),
            inactive(message("q-old", Some("root"), "How many hives?")),
            inactive(message("a-old", Some("q-old"), "It depends.")),
            message("q-new", Some("root"), "How many hives fit on\na balcony?"),
            inactive(hidden("lost", Some("q-new"))),
            inactive(message("a-one", Some("q-new"), "Two.")),
            message("a-two", Some("q-new"), "Two small ones."),
        ]
    }

    #[test]
    fn forks_are_found_and_hidden_leaves_do_not_count() {
        let branches = Branches::new(&forked());
        let other = |id: &str, preview: &str| OtherBranch { id: id.to_owned(), preview: preview.to_owned() };
        assert_eq!(
            branches.fork("q-new"),
            Some(Fork { number: 2, of: 2, others: vec![other("q-old", "How many hives?")] })
        );
        assert_eq!(
            branches.fork("a-two"),
            Some(Fork { number: 2, of: 2, others: vec![other("a-one", "Two.")] })
        );
        assert_eq!((branches.fork("root"), branches.fork("a-old")), (None, None));
    }

    #[test]
    fn the_branches_of_a_fork_follow_each_other_in_a_circle() {
        let branches = Branches::new(&forked());
        assert_eq!(branches.sibling("q-new", false), Some("q-old"));
        assert_eq!(branches.sibling("q-old", false), Some("q-new"));
        assert_eq!(branches.sibling("a-one", true), Some("a-two"));
        assert_eq!((branches.sibling("root", false), branches.sibling("nobody", false)), (None, None));
        // A branch without a shown message is left out.
        assert_eq!(branches.sibling("a-two", false), Some("a-one"));
    }

    #[test]
    fn a_branch_runs_through_a_message_to_its_newest_leaf() {
        let branches = Branches::new(&forked());
        let path = |given: &str| branches.path_through(given).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(path("q-old"), ["a-old", "q-old", "root"]);
        assert_eq!(path("a-one"), ["a-one", "q-new", "root"]);
        assert_eq!(path("root"), ["a-two", "q-new", "root"]);
        assert_eq!(branches.active_path().len(), 3);
        assert!(branches.path_through("q-").is_err() && branches.path_through("nobody").is_err());
    }

    #[test]
    fn two_roots_are_a_fork_too() {
        let tree = [message("q1", None, "one"), message("q2", None, "two")];
        assert_eq!(Branches::new(&tree).fork("q1").map(|fork| (fork.number, fork.of)), Some((1, 2)));
    }

    #[test]
    fn cycles_and_orphans_are_handled() {
        let tree = [message("a", Some("b"), "x"), message("b", Some("a"), "y"), message("b", Some("b"), "z")];
        let branches = Branches::new(&tree);
        assert!(branches.path_through("b").is_ok());
        let wide: Vec<Message> = (0..50_000).map(|n| message(&n.to_string(), None, "x")).collect();
        let branches = Branches::new(&wide);
        assert!(wide.iter().all(|message| branches.fork(&message.id).is_some_and(|fork| fork.of == 50_000)));
        // Forks at which most branches lead to no shown message.
        let mostly_hidden: Vec<Message> =
            (0..40_000)
                .map(|n| {
                    if n < 20_000 { hidden(&n.to_string(), None) } else { message(&n.to_string(), None, "x") }
                })
                .collect();
        let branches = Branches::new(&mostly_hidden);
        assert!(
            mostly_hidden[20_000..]
                .iter()
                .all(|message| branches.fork(&message.id).is_some_and(|fork| fork.of == 20_000))
        );
        let deep: Vec<Message> =
            (0..50_000).map(|n| message(&n.to_string(), Some(&(n - 1).to_string()), "x")).collect();
        assert_eq!(Branches::new(&deep).depths().len(), 50_000);
    }
}
