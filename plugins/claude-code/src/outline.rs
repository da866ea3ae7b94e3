//! The first pass over a session: what becomes of each line, the tree of all lines, the title and what all lines share.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, ImportError, JsonArray,
    tree::{Link, Parent, Tree},
};

use crate::raw::REPEATED;

mod builder;
mod continuation;
mod head;
mod queue;
mod title;

use builder::Builder;

/// The longest line that is read, in bytes: the sandbox holds it several times.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The message of this node.
    Message(usize),
    /// A state of the program that says nothing of what was said; counted by type.
    LeftOut,
    /// The conversation keeps the last line of its type.
    Aside,
    /// An earlier line has the same id.
    Repeated,
    BeyondLimit,
    /// It is not an object.
    Foreign,
}

/// A line in the tree.
#[expect(clippy::struct_excessive_bools, reason = "facts about a line, each independent of the others")]
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) id: String,
    parent: Option<String>,
    /// It becomes a message.
    kept: bool,
    time: Option<i64>,
    /// Its line has an id; other lines follow the one before.
    own_id: bool,
    /// It belongs to what its parent began: an answer of a tool, an attachment, a line of the program.
    continues: bool,
    sidechain: bool,
    /// A digest of the id of its message, of which it may be a part.
    message: Option<u64>,
    /// The parent that its line names, if it follows another line of the same turn instead.
    pub(crate) stated_parent: Option<String>,
    /// Its number among its siblings, if their times are not in the order of the file.
    pub(crate) sibling: Option<usize>,
    /// It is the last one of its message, whose parts repeat the number of tokens.
    pub(crate) last_part: bool,
}

/// The parent of a node.
#[derive(Clone, Copy, Debug)]
enum Above {
    Nothing,
    /// The node with this index.
    Node(usize),
    /// A line that is not in this file.
    Elsewhere,
}

/// What the first pass knows of a session.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    places: Vec<Place>,
    nodes: Vec<Node>,
    parents: Vec<Above>,
    pub(crate) title: Option<String>,
    /// The title is the first line of the first prompt.
    pub(crate) titled_by_prompt: bool,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) model: Option<String>,
    /// The first value of each field of [`REPEATED`].
    pub(crate) shared: [Option<String>; REPEATED.len()],
    /// The number of lines that are left out, by type.
    pub(crate) left_out: BTreeMap<String, u64>,
    /// The last line without a message of each type, as JSON text.
    pub(crate) asides: BTreeMap<String, String>,
    /// Unknown types of lines without a message that hold text.
    pub(crate) unknown: Vec<String>,
    /// Summaries, which mostly belong to other sessions, as JSON text.
    pub(crate) summaries: Vec<String>,
    /// The ids of lines whose parents led back to them.
    pub(crate) cycles: Vec<String>,
    /// No line names its parent, so each follows the one before.
    pub(crate) chained: bool,
    pub(crate) current: Option<usize>,
}

/// The lines of the session at `path`.
pub(crate) fn lines(path: &str) -> JsonArray<'_> {
    JsonArray::new(path).lines().limit(MAX_LINE)
}

impl Outline {
    /// Reads the outline of the session at `path`.
    pub(crate) fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut builder = Builder::default();
        lines(path).survey(bundle, |element| {
            builder.add(&element);
            Ok(true)
        })?;
        Ok(builder.finish())
    }

    /// What becomes of the line `index`.
    pub(crate) fn place(&self, index: u64) -> Place {
        let place = usize::try_from(index).ok().and_then(|index| self.places.get(index));
        place.copied().unwrap_or(Place::BeyondLimit)
    }

    /// The node of a message.
    pub(crate) fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    /// The id of the parent of a message; it may be in another file.
    pub(crate) fn parent(&self, at: usize) -> Option<&str> {
        match self.parents.get(at)? {
            Above::Nothing => None,
            Above::Node(parent) => self.nodes.get(*parent).map(|parent| parent.id.as_str()),
            Above::Elsewhere => self.nodes.get(at)?.parent.as_deref(),
        }
    }

    /// The id of the message that was shown last.
    pub(crate) fn current(&self) -> Option<&str> {
        self.nodes.get(self.current?).map(|node| node.id.as_str())
    }

    /// Whether there are no messages.
    pub(crate) fn is_empty(&self) -> bool {
        !self.nodes.iter().any(|node| node.kept)
    }
}

impl Outline {
    fn link(&mut self) {
        let links = self.nodes.iter().map(|node| Link {
            key: &node.id,
            parent: node.parent.as_deref(),
            kept: node.kept,
        });
        let tree = Tree::link(links, |_| []);
        let parents = (0..self.nodes.len()).map(|at| match tree.parent(at) {
            Parent::Node(above) => Above::Node(above),
            Parent::Root => Above::Nothing,
            Parent::Absent(_) => Above::Elsewhere,
        });
        let cut = tree.cycle_roots().iter().filter_map(|at| self.nodes.get(*at));
        let cut: Vec<String> = cut.map(|node| node.id.clone()).collect();
        let siblings = tree.sibling_numbers(|at| self.nodes.get(at)?.time, Some);
        self.parents = parents.collect();
        self.cycles = cut;
        for (at, number) in siblings {
            if let Some(node) = self.nodes.get_mut(at) {
                node.sibling = Some(number);
            }
        }
    }
}

/// Makes each line follow the one before.
fn chain(nodes: &mut [Node]) {
    let mut before: Option<String> = None;
    for node in nodes.iter_mut().filter(|node| node.kept) {
        node.parent = before.replace(node.id.clone());
    }
}

#[cfg(test)]
mod tests;
