//! The messages of one conversation while they are read, and what binds them together.

use std::collections::BTreeMap;

use satchel_importer::{Message, Role};

use super::{
    message::Mapper,
    tools,
    tree::{Link, Parent, Tree},
};
use crate::{
    memory::Note,
    raw::{Node, Nodes, Rest, Slot},
};

/// The messages of one conversation, with what was read beside them.
pub(crate) struct Messages<'a> {
    mapper: Mapper<'a>,
    links: Vec<Link<'a>>,
    pub(crate) all: Vec<Message<'a>>,
    /// One for each message.
    pub(crate) facts: Vec<Facts<'a>>,
    /// Keys of nodes that hold something else than a message, and what is wrong.
    pub(crate) odd: Vec<(&'a str, &'static str)>,
}

/// What memories and tool calls need of a message.
#[derive(Debug, Default)]
pub(crate) struct Facts<'a> {
    /// The tool that speaks.
    tool: Option<&'a str>,
    /// The person typed it.
    typed: bool,
    /// Instructions or saved memories that the model was shown.
    pub(crate) note: Option<Box<Note<'a>>>,
    /// A tool confirmed what this call wrote to the saved memories.
    pub(crate) remembered: bool,
}

impl<'a> Nodes<'a> for Messages<'a> {
    fn begin(&mut self) {
        self.links.clear();
        self.all.clear();
        self.facts.clear();
        self.odd.clear();
    }

    fn node(&mut self, node: Node<'a>, rest: &mut Rest<'a>) {
        let Node { key, parent, children, message } = node;
        let mut link = Link { key, parent, children, message: None };
        match message {
            Slot::Message(raw) => {
                link.message = Some(self.all.len());
                let message = self.mapper.message(key, &raw, rest);
                self.facts.push(Facts {
                    tool: raw.name.filter(|_| message.role == Role::Tool),
                    typed: raw.role == Some("user") && raw.content.kind == Some("text"),
                    note: Note::read(&raw, self.mapper.arena),
                    remembered: false,
                });
                self.all.push(message);
            }
            Slot::Odd(problem) => self.odd.push((key, problem)),
            Slot::Empty => {}
        }
        self.links.push(link);
    }
}

impl<'a> Messages<'a> {
    /// Room for the messages of an element of so many `bytes`.
    pub(crate) fn with_room(mapper: Mapper<'a>, bytes: usize) -> Self {
        let nodes = bytes / BYTES_PER_NODE + 4;
        let (links, messages, facts) =
            (Vec::with_capacity(nodes), Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        Self { mapper, links, all: messages, facts, odd: Vec::new() }
    }

    /// Of nodes with the same key the last one stays; returns the keys of the others.
    pub(crate) fn drop_repeated(&mut self) -> Vec<&'a str> {
        let last: BTreeMap<&str, usize> =
            self.links.iter().enumerate().map(|(at, link)| (link.key, at)).collect();
        if last.len() == self.links.len() {
            return Vec::new();
        }
        let (mut links, mut messages, mut facts, mut gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut old = self.all.drain(..).zip(self.facts.drain(..));
        for (at, mut link) in self.links.drain(..).enumerate() {
            let content = link.message.and_then(|_| old.next());
            if last.get(link.key) != Some(&at) {
                gone.push(link.key);
                continue;
            }
            link.message = content.as_ref().map(|_| messages.len());
            links.push(link);
            if let Some((message, fact)) = content {
                messages.push(message);
                facts.push(fact);
            }
        }
        drop(old);
        (self.links, self.all, self.facts) = (links, messages, facts);
        gone
    }

    /// Hangs every message under its nearest ancestor with a message, and tools' answers on the calls they answer.
    pub(crate) fn link(&mut self) -> Tree<'a> {
        let tree = Tree::link(&self.links, self.mapper.arena);
        for (at, link) in self.links.iter().enumerate() {
            let parent = match tree.parent(at) {
                Parent::Root => None,
                Parent::Node(above) => self.links.get(above).map(|link| link.key),
                Parent::Absent(key) => Some(key),
            };
            if let Some(message) = link.message.and_then(|message| self.all.get_mut(message)) {
                message.parent = parent.map(Into::into);
            }
        }
        self.join_outputs(&tree);
        tree
    }

    pub(crate) fn key_at(&self, node: usize) -> Option<&'a str> {
        self.links.get(node).map(|link| link.key)
    }

    /// What names the conversation best where it has no id: the first thing that the person typed. Slim exports leave
    /// out the hidden nodes at the top, so the first node is not the same in both.
    pub(crate) fn first_key(&self) -> Option<&'a str> {
        let typed = |link: &&Link<'a>| {
            link.message.and_then(|at| self.facts.get(at)).is_some_and(|facts| facts.typed)
        };
        self.links.iter().find(typed).or(self.links.first()).map(|link| link.key)
    }

    fn join_outputs(&mut self, tree: &Tree<'a>) {
        if !self.all.iter().any(|message| message.role == Role::Tool) {
            return;
        }
        for node in 0..self.links.len() {
            let Some(answer) = self.at(node).filter(|at| self.is_tool(*at)) else { continue };
            let name = self.facts.get(answer).and_then(|facts| facts.tool);
            if let Some(call) = tools::call_above(node, tree, |node| self.step_at(node), name) {
                self.join(call, answer);
            }
        }
    }

    fn join(&mut self, call: usize, answer: usize) {
        let text = self.all.get(answer).and_then(|message| tools::text_of(message.content.as_ref()));
        let Some(text) = text else { return };
        let confirmed = tools::confirms_memory(self.facts.get(answer).and_then(|facts| facts.tool), &text);
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
        self.links.get(node).and_then(|link| link.message)
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

/// Bytes of the export for each node, about; generous, since growing moves all messages.
const BYTES_PER_NODE: usize = 1024;
