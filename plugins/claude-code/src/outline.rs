//! The first pass over a session: what becomes of each line, the tree of all lines, the title and what all lines share.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use satchel_importer::{
    Bundle, Element, ImportError, JsonArray, natural_key,
    tree::{Link, Parent, Tree, node_id},
};

use crate::raw::REPEATED;

mod head;
mod title;

use head::Head;
use title::Titles;

/// Lines of one file. The tree of all of them is in memory.
const MAX_LINES: u64 = 200_000;
/// Types of lines without a message, of which the last one is kept; real sessions have about 25.
const MAX_ASIDES: usize = 100;
/// The longest line without a message that is kept, in bytes.
const MAX_ASIDE: usize = 64 * 1024;

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
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    parent: Option<String>,
    /// It becomes a message.
    kept: bool,
    time: Option<i64>,
    /// Its number among its siblings, if their times are not in the order of the file.
    pub(crate) sibling: Option<usize>,
    /// It is the last one of its message, whose parts repeat the number of tokens.
    pub(crate) last_part: bool,
}

impl Node {
    fn new(id: String, parent: Option<String>, time: Option<i64>) -> Self {
        Self { id, parent, kept: false, time, sibling: None, last_part: true }
    }
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
    /// Summaries, which mostly belong to other sessions, as JSON text.
    pub(crate) summaries: Vec<String>,
    /// The ids of lines whose parents led back to them.
    pub(crate) cycles: Vec<String>,
    /// No line names its parent, so each follows the one before.
    pub(crate) chained: bool,
    pub(crate) current: Option<usize>,
}

impl Outline {
    /// Reads the outline of the session at `path`.
    pub(crate) fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut builder = Builder::default();
        JsonArray::new(path).lines().survey(bundle, |element| {
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

/// Collects the outline line by line.
#[derive(Default)]
struct Builder {
    outline: Outline,
    seen: BTreeSet<String>,
    /// The last node of each message id.
    parts: BTreeMap<String, usize>,
    /// Digests of what the person said.
    said: BTreeSet<u64>,
    queue: Queue,
    titles: Titles,
    names_parents: bool,
    /// The last node of the main chain.
    last: Option<usize>,
}

/// Texts that the person typed while the model worked.
#[derive(Default)]
struct Queue {
    /// The node and the digest of each, and whether its line does not say what happened to it.
    typed: Vec<(usize, u64, bool)>,
    /// The number of nodes when a text was last handed to the model without a line of its own.
    handed_over: usize,
}

impl Builder {
    fn add(&mut self, element: &Element<'_>) {
        let place = if element.index() >= MAX_LINES {
            Place::BeyondLimit
        } else {
            match Head::read(element) {
                Ok(Some(head)) => self.add_line(&head, element),
                // The second pass says what is wrong.
                Ok(None) | Err(_) => Place::Foreign,
            }
        };
        if element.index() <= MAX_LINES {
            self.outline.places.push(place);
        }
    }

    fn add_line(&mut self, head: &Head<'_>, element: &Element<'_>) -> Place {
        self.names_parents |= head.names_parent;
        self.titles.add(head);
        for (shared, value) in self.outline.shared.iter_mut().zip(head.repeated) {
            if shared.is_none() {
                *shared = value.map(ToOwned::to_owned);
            }
        }
        match head.what() {
            head::What::Message => self.add_message(head, true),
            head::What::State if head.uuid.is_some() => {
                self.count_left_out(head.kind);
                match self.add_message(head, false) {
                    Place::Message(_) => Place::LeftOut,
                    other => other,
                }
            }
            head::What::State => {
                self.count_left_out(head.kind);
                Place::LeftOut
            }
            head::What::Queue => self.add_queued(head),
            head::What::Aside => self.add_aside(head, element),
        }
    }

    fn add_message(&mut self, head: &Head<'_>, kept: bool) -> Place {
        let Some(id) = self.new_id(head) else { return Place::Repeated };
        let last = self.last_id();
        // A line without an id of its own follows the one before.
        let parent = if head.uuid.is_some() { head.parent.or(head.logical_parent) } else { last.as_deref() };
        let parent = parent.map(|parent| node_id(parent).to_owned());
        let at = self.outline.nodes.len();
        self.outline.nodes.push(Node { kept, ..Node::new(id, parent, head.time) });
        if let Some(part) = head.message_id
            && let Some(before) = self.parts.insert(part.to_owned(), at)
            && let Some(before) = self.outline.nodes.get_mut(before)
        {
            before.last_part = false;
        }
        if kept {
            self.note_times(head.time);
            if let Some(model) = head.model.filter(|model| !model.starts_with('<')) {
                self.outline.model = Some(model.to_owned());
            }
            self.said.extend(head.said.map(digest));
            if !head.sidechain || self.outline.current.is_none() {
                self.outline.current = Some(at);
            }
            if !head.sidechain || self.last.is_none() {
                self.last = Some(at);
            }
        }
        Place::Message(at)
    }

    /// A text that was typed while the model worked. Usually a line with the same text follows.
    fn add_queued(&mut self, head: &Head<'_>) -> Place {
        if head.operation == Some("remove") {
            self.queue.handed_over = self.outline.nodes.len();
        }
        let Some(text) = head.queued.filter(|text| !text.trim().is_empty()) else {
            self.count_left_out(head.kind);
            return Place::LeftOut;
        };
        let Some(id) = self.new_id(head) else { return Place::Repeated };
        let parent = self.last_id();
        let at = self.outline.nodes.len();
        self.outline.nodes.push(Node::new(id, parent, head.time));
        self.queue.typed.push((at, digest(text), head.operation.is_none()));
        Place::Message(at)
    }

    fn add_aside(&mut self, head: &Head<'_>, element: &Element<'_>) -> Place {
        let kind = head.kind.unwrap_or("unknown");
        if element.text().len() > MAX_ASIDE {
            self.count_left_out(Some(kind));
            return Place::LeftOut;
        }
        if kind == title::SUMMARY {
            if self.outline.summaries.len() < MAX_ASIDES {
                self.outline.summaries.push(element.text().to_owned());
            } else {
                self.count_left_out(Some(kind));
            }
        } else if self.outline.asides.len() < MAX_ASIDES || self.outline.asides.contains_key(kind) {
            self.outline.asides.insert(kind.to_owned(), element.text().to_owned());
        } else {
            self.count_left_out(Some(kind));
        }
        Place::Aside
    }

    /// The id of a line: its own, or one of its contents. None if an earlier line has it.
    fn new_id(&mut self, head: &Head<'_>) -> Option<String> {
        if let Some(uuid) = head.uuid {
            return self.seen.insert(uuid.to_owned()).then(|| uuid.to_owned());
        }
        let time = head.time.map(|time| time.to_string());
        let text = head.said.or(head.queued).or(head.message_id);
        let key = natural_key(&[head.kind, time.as_deref(), text]);
        let mut id = key.clone();
        for number in 2.. {
            if self.seen.insert(id.clone()) {
                break;
            }
            id = format!("{key}:{number}");
        }
        Some(id)
    }

    fn last_id(&self) -> Option<String> {
        self.outline.nodes.get(self.last?).map(|node| node.id.clone())
    }

    fn note_times(&mut self, time: Option<i64>) {
        let Outline { created, updated, .. } = &mut self.outline;
        *created = match (*created, time) {
            (Some(known), Some(time)) => Some(known.min(time)),
            (known, time) => known.or(time),
        };
        *updated = (*updated).max(time);
    }

    fn count_left_out(&mut self, kind: Option<&str>) {
        let kind = kind.unwrap_or("unknown");
        let counts = &mut self.outline.left_out;
        let kind = if counts.len() < MAX_ASIDES || counts.contains_key(kind) { kind } else { "others" };
        *counts.entry(kind.to_owned()).or_default() += 1;
    }

    fn finish(mut self) -> Outline {
        self.keep_queued();
        let mut outline = self.outline;
        outline.chained = !self.names_parents && outline.nodes.iter().filter(|node| node.kept).count() > 1;
        if outline.chained {
            chain(&mut outline.nodes);
        }
        let ids: BTreeSet<&str> = outline.nodes.iter().map(|node| node.id.as_str()).collect();
        (outline.title, outline.titled_by_prompt) = self.titles.finish(|id| ids.contains(id));
        outline.link();
        outline
    }

    /// Keeps the texts that were handed to the model and that no other line has.
    fn keep_queued(&mut self) {
        for (at, digest, unclear) in std::mem::take(&mut self.queue.typed) {
            let keeps = (at < self.queue.handed_over || unclear) && self.said.insert(digest);
            match self.outline.nodes.get_mut(at) {
                Some(node) if keeps => node.kept = true,
                _ => self.count_left_out(Some(head::QUEUE)),
            }
        }
        let nodes = &self.outline.nodes;
        for place in &mut self.outline.places {
            if let Place::Message(at) = *place
                && nodes.get(at).is_some_and(|node| !node.kept)
            {
                *place = Place::LeftOut;
            }
        }
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

/// A digest of a text without the white space around it.
fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.trim().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
