//! Collects the messages of one conversation, and links them to their parents, tool outputs and canvas documents.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Leftover, Message, Role,
    tree::{Parent, Tree, chain, node_id},
};

use super::{
    attachments, canvas,
    message::{MappedMessage, Mapper},
    tools,
};
use crate::{
    memory::{MemoryContext, MemoryFacts},
    raw::{Node, NodeMessage, NodeVisitor},
};
use links::NodeLinks;

mod links;

/// The messages of one conversation, and facts about them.
pub(crate) struct Messages<'a> {
    mapper: Mapper<'a>,
    nodes: Vec<NodeLinks<'a>>,
    pub(crate) all: Vec<Message<'a>>,
    /// One for each message.
    facts: Vec<Facts<'a>>,
    pub(crate) malformed: Vec<MalformedNode<'a>>,
    /// Warnings about messages, by the key of their node.
    pub(crate) warnings: Vec<(&'a str, &'static str)>,
    /// Indices of messages that link to files of the sandbox.
    pub(crate) linked: Vec<usize>,
    /// Scheduled tasks that wrote in the person's name, each once: id and title.
    pub(crate) tasks: BTreeSet<(Option<&'a str>, Option<&'a str>)>,
    /// Some message calls the canvas.
    canvas: bool,
    /// No node names another: each message answers the one before.
    pub(crate) chained: bool,
}

/// A node with a value that is no message.
pub(crate) struct MalformedNode<'a> {
    /// Its index among all nodes.
    node: usize,
    pub(crate) key: &'a str,
    pub(crate) problem: &'static str,
}

/// Facts about one message that its record lacks.
#[derive(Debug, Default)]
struct Facts<'a> {
    /// The tool that wrote it.
    tool: Option<&'a str>,
    /// The person typed it.
    typed: bool,
    /// The person has not confirmed the memory that it reports.
    pending: bool,
    memory: MemoryFacts<'a>,
}

impl<'a> NodeVisitor<'a> for Messages<'a> {
    fn begin(&mut self) {
        if !self.nodes.is_empty() {
            *self = Self::with_room(self.mapper, 0);
        }
    }

    fn node(&mut self, node: Node<'a>, rest: &mut Leftover<'a>) {
        let Node { key, parent, children, message } = node;
        let (key, parent) = (node_id(key), parent.map(node_id));
        let mut links = NodeLinks { key, parent, children, message: None };
        match message {
            NodeMessage::Message(raw) => {
                links.message = Some(self.all.len());
                let MappedMessage { message, plain, warnings } = self.mapper.message(key, &raw, rest);
                self.warnings.extend(warnings.into_iter().map(|warning| (key, warning)));
                if !plain && attachments::has_links(&message) {
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
                    memory: MemoryFacts {
                        context: MemoryContext::read(&raw, self.mapper.arena),
                        confirmed: false,
                    },
                });
                self.all.push(message);
            }
            NodeMessage::Malformed(problem) => {
                self.malformed.push(MalformedNode { node: self.nodes.len(), key, problem });
            }
            NodeMessage::Absent => {}
        }
        self.nodes.push(links);
    }
}

impl<'a> Messages<'a> {
    /// Reserves room for the messages of an element with so many `bytes`.
    pub(crate) fn with_room(mapper: Mapper<'a>, bytes: usize) -> Self {
        let nodes = bytes / BYTES_PER_NODE + 4;
        Self {
            mapper,
            nodes: Vec::with_capacity(nodes),
            all: Vec::with_capacity(nodes),
            facts: Vec::with_capacity(nodes),
            malformed: Vec::new(),
            warnings: Vec::new(),
            linked: Vec::new(),
            tasks: BTreeSet::new(),
            canvas: false,
            chained: false,
        }
    }

    /// Keeps only the last node of each key.
    pub(crate) fn drop_repeated(&mut self) {
        let last: BTreeMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
        if last.len() == self.nodes.len() {
            return;
        }
        self.malformed.retain(|malformed| last.get(malformed.key) == Some(&malformed.node));
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
        let linked = |at: &usize| messages.get(*at).is_some_and(attachments::has_links);
        self.linked = (0..messages.len()).filter(linked).collect();
        (self.all, self.facts) = (messages, facts);
    }

    /// Sets the parent of each message to its nearest ancestor with a message, and adds tools' answers to their calls.
    pub(crate) fn link(&mut self) -> Tree<'a> {
        self.chain();
        let children = |at: usize| self.nodes.get(at).map(|node| node.children(self.mapper.arena));
        let links = self.nodes.iter().map(NodeLinks::link);
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
        links::keep(&self.nodes, &mut self.all, &tree, self.mapper.arena);
        self.join_outputs(&tree);
        if self.canvas {
            self.replay_canvas(&tree);
        }
        tree
    }

    /// If no node names another, makes each message the answer to the one before.
    fn chain(&mut self) {
        let names =
            |at: usize| self.nodes.get(at).is_some_and(|node| !node.children(self.mapper.arena).is_empty());
        let role_and_time = |at: usize| {
            self.message_of(at).map_or((Role::Assistant, None), |message| (message.role, message.created_at))
        };
        if let Some(parents) = chain(self.nodes.iter().map(NodeLinks::link), names, role_and_time) {
            self.chained = true;
            self.nodes.iter_mut().zip(parents).for_each(|(node, parent)| node.parent = parent);
        }
    }

    /// Adds the document on the canvas to each call that changed it.
    fn replay_canvas(&mut self, tree: &Tree<'a>) {
        let call = |node: &usize| {
            let call = self.message_of(*node).and_then(|message| message.tool_calls.first());
            call.is_some_and(|call| canvas::is_edit(&call.name))
        };
        let nodes: Vec<usize> = (0..self.nodes.len()).filter(call).collect();
        let numbers: BTreeMap<usize, usize> =
            nodes.iter().enumerate().map(|(number, node)| (*node, number)).collect();
        let above = |number: usize| {
            let mut path = tools::ancestors(*nodes.get(number)?, tree).take(MAX_STEPS_TO_CANVAS);
            path.find_map(|node| numbers.get(&node).copied())
        };
        let calls: Vec<usize> = nodes.iter().filter_map(|node| self.index_of(*node)).collect();
        canvas::replay(&mut self.all, &calls, above);
    }

    pub(crate) fn key_at(&self, node: usize) -> Option<&'a str> {
        self.nodes.get(node).map(|node| node.key)
    }

    /// The key that identifies a conversation without an id: that of the first message that the person typed. The first
    /// node would not do, because slim exports leave out the hidden nodes at the top.
    pub(crate) fn first_key(&self) -> Option<&'a str> {
        let typed = |node: &&NodeLinks<'a>| {
            node.message.and_then(|at| self.facts.get(at)).is_some_and(|facts| facts.typed)
        };
        self.nodes.iter().find(typed).or(self.nodes.first()).map(|node| node.key)
    }

    /// The messages with what they say about memories.
    pub(crate) fn memories(&self) -> impl Iterator<Item = (&Message<'a>, &MemoryFacts<'a>)> {
        self.all.iter().zip(self.facts.iter().map(|facts| &facts.memory))
    }

    fn join_outputs(&mut self, tree: &Tree<'a>) {
        if !self.all.iter().any(|message| message.role == Role::Tool) {
            return;
        }
        for node in 0..self.nodes.len() {
            let is_tool = |at: &usize| self.all.get(*at).is_some_and(|message| message.role == Role::Tool);
            let Some(answer) = self.index_of(node).filter(is_tool) else { continue };
            let name = self.facts.get(answer).and_then(|facts| facts.tool);
            let step = |node| self.step_at(node);
            let call = match tree.parent(node) {
                Parent::Node(_) => tools::find_call(tools::ancestors(node, tree), step, name),
                // Exports that leave out nodes lose links too, but keep the order.
                Parent::Root | Parent::Absent(_) => {
                    let before = (0..node).rev().filter(|at| self.index_of(*at).is_some());
                    tools::find_call(before, step, name)
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
        let answered = self.facts.get(answer).filter(|facts| !facts.pending);
        let confirmed = tools::confirms_memory(answered.and_then(|facts| facts.tool), &text);
        let target = self.all.get_mut(call).and_then(|message| message.tool_calls.first_mut());
        let (Some(target), Some(facts)) = (target, self.facts.get_mut(call)) else { return };
        facts.memory.confirmed |= confirmed && target.name == tools::MEMORY;
        tools::append_line(&mut target.output, text);
    }

    /// The index of a node's message.
    fn index_of(&self, node: usize) -> Option<usize> {
        self.nodes.get(node).and_then(|node| node.message)
    }

    fn message_of(&self, node: usize) -> Option<&Message<'a>> {
        self.index_of(node).and_then(|at| self.all.get(at))
    }

    fn step_at(&self, node: usize) -> tools::Step<'_> {
        let message = |at| Some((at, self.all.get(at)?));
        let Some((at, message)) = self.index_of(node).and_then(message) else { return tools::Step::Stop };
        match message.tool_calls.first() {
            _ if message.role == Role::Tool => tools::Step::Tool,
            Some(call) => tools::Step::Call(at, &call.name),
            None => tools::Step::Stop,
        }
    }
}

/// The `real_author_type` of a scheduled task.
const AUTOMATION: &str = "automation";
/// Nodes between one canvas call and the next.
const MAX_STEPS_TO_CANVAS: usize = 10_000;
/// Approximate bytes of a node; a low estimate, because growing moves all messages.
const BYTES_PER_NODE: usize = 1024;
