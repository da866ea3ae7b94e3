//! The messages of one conversation while they are read, and what binds them together.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, Leftover, Message, Role,
    json::texts,
    tree::{Link, Parent, Tree, chain, named},
};

use super::{
    canvas, files,
    message::{Mapped, Mapper},
    tools,
};
use crate::{
    memory::Note,
    raw::{Node, Nodes, Slot},
};

mod places;

/// The messages of one conversation, with what was read beside them.
pub(crate) struct Messages<'a> {
    mapper: Mapper<'a>,
    nodes: Vec<Place<'a>>,
    pub(crate) all: Vec<Message<'a>>,
    /// One for each message.
    pub(crate) facts: Vec<Facts<'a>>,
    /// Nodes that hold something else than a message.
    pub(crate) odd: Vec<Odd<'a>>,
    /// What is odd about messages, by the key of their node.
    pub(crate) oddities: Vec<(&'a str, &'static str)>,
    /// Messages that link to files of the sandbox, by their place.
    pub(crate) linked: Vec<usize>,
    /// Tasks that wrote in the person's place, each once: id and title.
    pub(crate) tasks: BTreeSet<(Option<&'a str>, Option<&'a str>)>,
    /// Whether any message calls the canvas.
    canvas: bool,
    /// No node named another: each message answers the one before.
    pub(crate) chained: bool,
}

/// A node that holds something else than a message.
pub(crate) struct Odd<'a> {
    /// Its place among all nodes.
    node: usize,
    pub(crate) key: &'a str,
    pub(crate) problem: &'static str,
}

/// A node by its links.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    key: &'a str,
    parent: Option<&'a str>,
    /// The list of children as JSON text; slim exports have none.
    children: Option<&'a str>,
    /// Index of its message; none if it has none and is dropped.
    message: Option<usize>,
}

impl<'a> Place<'a> {
    fn link(&self) -> Link<'a> {
        Link { key: self.key, parent: self.parent, kept: self.message.is_some() }
    }

    fn children(&self, arena: &'a Arena) -> Vec<&'a str> {
        self.children.map(|raw| texts(raw, arena)).unwrap_or_default()
    }
}

/// What memories and tool calls need of a message.
#[derive(Debug, Default)]
pub(crate) struct Facts<'a> {
    /// The tool that speaks.
    tool: Option<&'a str>,
    /// The person typed it.
    typed: bool,
    /// What it tells of waits for the person's consent.
    pending: bool,
    /// Instructions or saved memories that the model was shown.
    pub(crate) note: Option<Box<Note<'a>>>,
    /// A tool confirmed what this call wrote to the saved memories.
    pub(crate) remembered: bool,
}

impl<'a> Nodes<'a> for Messages<'a> {
    fn begin(&mut self) {
        self.nodes.clear();
        self.all.clear();
        self.facts.clear();
        self.odd.clear();
        self.oddities.clear();
        self.linked.clear();
        self.tasks.clear();
        self.canvas = false;
        self.chained = false;
    }

    fn node(&mut self, node: Node<'a>, rest: &mut Leftover<'a>) {
        let Node { key, parent, children, message } = node;
        let (key, parent) = (named(key), parent.map(named));
        let mut place = Place { key, parent, children, message: None };
        match message {
            Slot::Message(raw) => {
                place.message = Some(self.all.len());
                let Mapped { message, plain, oddities } = self.mapper.message(key, &raw, rest);
                self.oddities.extend(oddities.into_iter().map(|oddity| (key, oddity)));
                if !plain && files::links(&message) {
                    self.linked.push(self.all.len());
                }
                self.canvas |=
                    message.tool_calls.first().is_some_and(|call| call.name.starts_with(canvas::TOOL));
                let scheduled = raw.metadata.real_author == Some(AUTOMATION);
                if scheduled {
                    self.tasks.insert((raw.metadata.real_author_id, raw.metadata.real_author_title));
                }
                self.facts.push(Facts {
                    tool: raw.name.filter(|_| message.role == Role::Tool),
                    typed: raw.role == Some("user") && raw.content.kind == Some("text") && !scheduled,
                    pending: raw.metadata.pending,
                    note: Note::read(&raw, self.mapper.arena),
                    remembered: false,
                });
                self.all.push(message);
            }
            Slot::Odd(problem) => self.odd.push(Odd { node: self.nodes.len(), key, problem }),
            Slot::Empty => {}
        }
        self.nodes.push(place);
    }
}

impl<'a> Messages<'a> {
    /// Room for the messages of an element of so many `bytes`.
    pub(crate) fn with_room(mapper: Mapper<'a>, bytes: usize) -> Self {
        let nodes = bytes / BYTES_PER_NODE + 4;
        let (all, facts) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        Self {
            mapper,
            nodes: Vec::with_capacity(nodes),
            all,
            facts,
            odd: Vec::new(),
            oddities: Vec::new(),
            linked: Vec::new(),
            tasks: BTreeSet::new(),
            canvas: false,
            chained: false,
        }
    }

    /// Of nodes with the same key the last one stays.
    pub(crate) fn drop_repeated(&mut self) {
        let last: BTreeMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
        if last.len() == self.nodes.len() {
            return;
        }
        self.odd.retain(|odd| last.get(odd.key) == Some(&odd.node));
        let (mut messages, mut facts) = (Vec::new(), Vec::new());
        let mut old = self.all.drain(..).zip(self.facts.drain(..));
        let mut at = 0;
        self.nodes.retain_mut(|node| {
            let content = node.message.and_then(|_| old.next());
            let stays = last.get(node.key) == Some(&at);
            at += 1;
            if stays && let Some((message, fact)) = content {
                node.message = Some(messages.len());
                messages.push(message);
                facts.push(fact);
            }
            stays
        });
        drop(old);
        self.linked = (0..messages.len()).filter(|at| messages.get(*at).is_some_and(files::links)).collect();
        (self.all, self.facts) = (messages, facts);
    }

    /// Hangs every message under its nearest ancestor with a message, and tools' answers on the calls they answer.
    pub(crate) fn link(&mut self) -> Tree<'a> {
        self.chain();
        let children = |at: usize| self.nodes.get(at).map(|node| node.children(self.mapper.arena));
        let links = self.nodes.iter().map(Place::link);
        let tree = Tree::link(links, |at| children(at).unwrap_or_default());
        for (at, node) in self.nodes.iter().enumerate() {
            let parent = match tree.parent(at) {
                Parent::Root => None,
                Parent::Node(above) => self.nodes.get(above).map(|node| node.key),
                Parent::Absent(key) => Some(key),
            };
            if let Some(message) = node.message.and_then(|message| self.all.get_mut(message)) {
                message.parent = parent.map(Into::into);
            }
        }
        places::keep(&self.nodes, &mut self.all, &tree, self.mapper.arena);
        self.join_outputs(&tree);
        if self.canvas {
            self.replay_canvas(&tree);
        }
        tree
    }

    /// Hangs each message on the one before where no node names another.
    fn chain(&mut self) {
        let names =
            |at: usize| self.nodes.get(at).is_some_and(|node| !node.children(self.mapper.arena).is_empty());
        let said = |at: usize| {
            let message = self.at(at).and_then(|at| self.all.get(at));
            message.map_or((Role::Assistant, None), |message| (message.role, message.created_at))
        };
        if let Some(parents) = chain(self.nodes.iter().map(Place::link), names, said) {
            self.chained = true;
            self.nodes.iter_mut().zip(parents).for_each(|(node, parent)| node.parent = parent);
        }
    }

    /// Shows what stood on the canvas after each call that changed it.
    fn replay_canvas(&mut self, tree: &Tree<'a>) {
        let call = |node: &usize| {
            let message = self.at(*node).and_then(|at| self.all.get(at));
            message
                .and_then(|message| message.tool_calls.first())
                .is_some_and(|call| canvas::writes(&call.name))
        };
        let nodes: Vec<usize> = (0..self.nodes.len()).filter(call).collect();
        let numbers: BTreeMap<usize, usize> =
            nodes.iter().enumerate().map(|(number, node)| (*node, number)).collect();
        let above = |number: usize| {
            let mut at = *nodes.get(number)?;
            for _ in 0..MAX_STEPS_TO_CANVAS {
                let Parent::Node(next) = tree.parent(at) else { return None };
                if let Some(found) = numbers.get(&next) {
                    return Some(*found);
                }
                at = next;
            }
            None
        };
        let calls: Vec<usize> = nodes.iter().filter_map(|node| self.at(*node)).collect();
        canvas::replay(&mut self.all, &calls, above);
    }

    pub(crate) fn key_at(&self, node: usize) -> Option<&'a str> {
        self.nodes.get(node).map(|node| node.key)
    }

    /// What names the conversation best where it has no id: the first thing that the person typed. Slim exports leave
    /// out the hidden nodes at the top, so the first node is not the same in both.
    pub(crate) fn first_key(&self) -> Option<&'a str> {
        let typed = |node: &&Place<'a>| {
            node.message.and_then(|at| self.facts.get(at)).is_some_and(|facts| facts.typed)
        };
        self.nodes.iter().find(typed).or(self.nodes.first()).map(|node| node.key)
    }

    fn join_outputs(&mut self, tree: &Tree<'a>) {
        if !self.all.iter().any(|message| message.role == Role::Tool) {
            return;
        }
        for node in 0..self.nodes.len() {
            let Some(answer) = self.at(node).filter(|at| self.is_tool(*at)) else { continue };
            let name = self.facts.get(answer).and_then(|facts| facts.tool);
            let step = |node| self.step_at(node);
            let call = match tree.parent(node) {
                Parent::Node(_) => tools::call_on_the_way(tools::above(node, tree), step, name),
                // Exports that thin out their nodes lose links too; the order stays.
                Parent::Root | Parent::Absent(_) => {
                    let before = (0..node).rev().filter(|at| self.at(*at).is_some());
                    tools::call_on_the_way(before, step, name)
                }
            };
            if let Some(call) = call {
                self.join(call, answer);
            }
        }
    }

    fn join(&mut self, call: usize, answer: usize) {
        let text = self.all.get(answer).and_then(|message| message.content.as_ref()?.text());
        let Some(text) = text else { return };
        let said = self.facts.get(answer).filter(|facts| !facts.pending);
        let confirmed = tools::confirms_memory(said.and_then(|facts| facts.tool), &text);
        let target = self.all.get_mut(call).and_then(|message| message.tool_calls.first_mut());
        let (Some(target), Some(facts)) = (target, self.facts.get_mut(call)) else { return };
        facts.remembered |= confirmed && target.name == tools::MEMORY;
        match &mut target.output {
            Some(output) => {
                let output = output.to_mut();
                output.push('\n');
                output.push_str(&text);
            }
            None => target.output = Some(text),
        }
    }

    fn at(&self, node: usize) -> Option<usize> {
        self.nodes.get(node).and_then(|node| node.message)
    }

    fn is_tool(&self, message: usize) -> bool {
        self.all.get(message).is_some_and(|message| message.role == Role::Tool)
    }

    fn step_at(&self, node: usize) -> tools::Step<'_> {
        let Some(at) = self.at(node) else { return tools::Step::Stop };
        match self.all.get(at) {
            Some(message) if message.role == Role::Tool => tools::Step::Tool,
            Some(Message { tool_calls, .. }) => {
                tool_calls.first().map_or(tools::Step::Stop, |call| tools::Step::Call(at, &call.name))
            }
            None => tools::Step::Stop,
        }
    }
}

/// What `real_author_type` calls a scheduled task.
const AUTOMATION: &str = "automation";
/// Messages between one call of the canvas and the next.
const MAX_STEPS_TO_CANVAS: usize = 10_000;
/// Bytes of the export for each node, about; generous, since growing moves all messages.
const BYTES_PER_NODE: usize = 1024;
