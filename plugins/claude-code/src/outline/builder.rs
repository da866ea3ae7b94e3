//! Collects the outline line by line.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use satchel_importer::{Element, natural_key, tree::node_id};

use super::{
    Node, Outline, Place, chain,
    continuation::join_continuations,
    head::{Head, QUEUE, What},
    queue::Queue,
    title::{SUMMARY, Titles},
};

/// Lines of one file. The tree of all of them is in memory.
const MAX_LINES: u64 = 200_000;
/// Types of lines without a message that are kept or counted by name; real sessions have about 25.
const MAX_TYPES: usize = 100;
/// Summaries that are kept.
const MAX_SUMMARIES: usize = 100;
/// The longest line without a message that is kept, in bytes.
const MAX_ASIDE: usize = 64 * 1024;
/// The longest id, in bytes. The host accepts no message with a longer one.
const MAX_ID: usize = 1024;

/// Collects the outline.
#[derive(Default)]
pub(super) struct Builder {
    outline: Outline,
    /// How many lines have each id.
    ids: BTreeMap<String, u32>,
    /// The last node of each message, and whether a part of it has ended.
    parts: BTreeMap<u64, usize>,
    ended: BTreeSet<u64>,
    /// The message of the last answer.
    last_message: Option<u64>,
    /// Digests of what the person said.
    said: BTreeSet<u64>,
    queue: Queue,
    titles: Titles,
    names_parents: bool,
    /// The last node, and the last one that is not a subagent's.
    last: Option<usize>,
    last_of_session: Option<usize>,
}

impl Builder {
    /// Adds the next line.
    pub(super) fn add(&mut self, element: &Element<'_>) {
        let Some(index) = usize::try_from(element.index()).ok().filter(|_| element.index() < MAX_LINES)
        else {
            return;
        };
        let place = match Head::read(element) {
            Ok(Some(head)) => self.add_line(&head, element),
            // The second pass says what is wrong.
            Ok(None) | Err(_) => Place::Foreign,
        };
        // A line that is too long is not seen here.
        self.outline.places.resize(index, Place::Foreign);
        self.outline.places.push(place);
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
            What::Message => self.add_message(head, true),
            What::State => {
                self.count_left_out(head.kind);
                if own_id(head).is_some() && self.add_message(head, false) == Place::Repeated {
                    return Place::Repeated;
                }
                Place::LeftOut
            }
            What::Queue => self.add_queued(head),
            What::Aside => self.add_aside(head, element),
        }
    }

    fn add_message(&mut self, head: &Head<'_>, kept: bool) -> Place {
        let Some(id) = self.new_id(head) else { return Place::Repeated };
        let last = self.last_id();
        let own_id = own_id(head).is_some();
        let parent = if own_id { head.parent.or(head.logical_parent) } else { last.as_deref() };
        let node = Node {
            id,
            parent: parent.map(|parent| node_id(parent).to_owned()),
            kept,
            time: head.time,
            own_id,
            continues: head.continues,
            sidechain: head.sidechain,
            message: head.message_id.map(digest),
            ..Node::default()
        };
        let at = self.outline.nodes.len();
        if let Some(message) = node.message {
            self.parts.insert(message, at);
            self.last_message = Some(message);
            if head.ends {
                self.ended.insert(message);
            }
        }
        self.outline.nodes.push(node);
        if kept {
            self.note_times(head.time);
            if let Some(model) = head.model.filter(|model| !model.starts_with('<')) {
                self.outline.model = Some(model.to_owned());
            }
            self.said.extend(head.said.iter().map(|text| digest(text)));
            self.last = Some(at);
            if !head.sidechain {
                self.last_of_session = Some(at);
            }
        }
        Place::Message(at)
    }

    /// A text that was typed while the model worked. Usually a line with the same text follows.
    fn add_queued(&mut self, head: &Head<'_>) -> Place {
        let text = head.queued.as_deref().filter(|text| !text.trim().is_empty());
        let typed = text.is_some() && matches!(head.operation, Some("enqueue") | None);
        let at = self.outline.nodes.len();
        self.queue.add(head.operation, text.map(digest), typed.then_some(at));
        if !typed {
            self.count_left_out(head.kind);
            return Place::LeftOut;
        }
        let Some(id) = self.new_id(head) else { return Place::Repeated };
        self.outline.nodes.push(Node { id, parent: self.last_id(), time: head.time, ..Node::default() });
        Place::Message(at)
    }

    fn add_aside(&mut self, head: &Head<'_>, element: &Element<'_>) -> Place {
        let kind = head.kind.unwrap_or("unknown");
        let outline = &mut self.outline;
        if head.unread
            && outline.unknown.len() < MAX_TYPES
            && !outline.unknown.iter().any(|known| known == kind)
        {
            outline.unknown.push(kind.to_owned());
        }
        let fits = element.text().len() <= MAX_ASIDE;
        if kind == SUMMARY && fits && outline.summaries.len() < MAX_SUMMARIES {
            outline.summaries.push(element.text().to_owned());
            return Place::Aside;
        }
        let known = outline.asides.contains_key(kind);
        if kind == SUMMARY || !fits || (!known && outline.asides.len() >= MAX_TYPES) {
            self.count_left_out(Some(kind));
            return Place::LeftOut;
        }
        if outline.asides.insert(kind.to_owned(), element.text().to_owned()).is_some() {
            // An earlier line of this type is not kept.
            self.count_left_out(Some(kind));
        }
        Place::Aside
    }

    /// The id of a line: its own, or one of its contents. None if an earlier line has it.
    fn new_id(&mut self, head: &Head<'_>) -> Option<String> {
        let natural = || {
            let time = head.time.map(|time| time.to_string());
            let text = head.said.first().copied().or(head.queued.as_deref()).or(head.message_id);
            natural_key(&[head.kind, time.as_deref(), text])
        };
        let own = own_id(head);
        let id = own.map_or_else(natural, ToOwned::to_owned);
        let count = self.ids.entry(id.clone()).or_default();
        *count += 1;
        match (*count, own) {
            (1, _) => Some(id),
            (_, Some(_)) => None,
            (count, None) => Some(format!("{id}:{count}")),
        }
    }

    fn last_id(&self) -> Option<String> {
        let last = self.last_of_session.or(self.last)?;
        self.outline.nodes.get(last).map(|node| node.id.clone())
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
        let kind = if counts.len() < MAX_TYPES || counts.contains_key(kind) { kind } else { "others" };
        *counts.entry(kind.to_owned()).or_default() += 1;
    }

    /// Completes the outline when all lines were added.
    pub(super) fn finish(mut self) -> Outline {
        self.keep_queued();
        self.count_tokens();
        let mut outline = self.outline;
        let kept = || outline.nodes.iter().filter(|node| node.kept);
        outline.chained = !self.names_parents && kept().count() > 1;
        if outline.chained {
            chain(&mut outline.nodes);
        } else {
            join_continuations(&mut outline.nodes);
        }
        let shown = |node: &Node| node.kept && !node.sidechain;
        let last = outline.nodes.iter().rposition(shown);
        outline.current = last.or_else(|| outline.nodes.iter().rposition(|node| node.kept));
        let ids: BTreeSet<&str> = outline.nodes.iter().map(|node| node.id.as_str()).collect();
        (outline.title, outline.titled_by_prompt) = self.titles.finish(|id| ids.contains(id));
        outline.link();
        outline
    }

    /// Keeps the texts that the model got and that no other line has.
    fn keep_queued(&mut self) {
        let kept = std::mem::take(&mut self.queue).handed_over();
        let mut dropped = 0;
        for place in &mut self.outline.places {
            let Place::Message(at) = *place else { continue };
            let Some(node) = self.outline.nodes.get_mut(at).filter(|node| !node.kept) else { continue };
            match kept.get(&at) {
                Some(text) if self.said.insert(*text) => node.kept = true,
                _ => {
                    *place = Place::LeftOut;
                    dropped += 1;
                }
            }
        }
        (0..dropped).for_each(|_| self.count_left_out(Some(QUEUE)));
    }

    /// Marks the last part of each message that is complete: it has ended, or another one follows. The number of tokens of
    /// any other part may still grow.
    fn count_tokens(&mut self) {
        for (message, at) in &self.parts {
            let complete = self.ended.contains(message) || self.last_message != Some(*message);
            if let Some(node) = self.outline.nodes.get_mut(*at).filter(|_| complete) {
                node.last_part = true;
            }
        }
    }
}

/// The id of a line that can be the id of a message.
fn own_id<'a>(head: &Head<'a>) -> Option<&'a str> {
    head.uuid.filter(|uuid| uuid.len() <= MAX_ID)
}

/// A digest of a text without the white space around it.
pub(super) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.trim().hash(&mut hasher);
    hasher.finish()
}
