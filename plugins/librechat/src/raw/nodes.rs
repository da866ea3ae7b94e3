//! The messages of an export with their ids and parents.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{Arena, Parser, natural_key};

use super::{
    Export, Message,
    copies::{self, Copies},
};
use crate::split::Item;

/// Longer ids are replaced by a hash: ids of thoughts repeat them.
pub(crate) const MAX_ID: usize = 256;

/// One message with its place.
#[derive(Debug, Default)]
pub(crate) struct Node<'a> {
    /// Unique in the conversation.
    pub(crate) key: &'a str,
    /// Its id in the export, unless another message has the same or it is too long.
    pub(crate) id: Option<&'a str>,
    /// The key of the message above: of that which contains it, or else of that which it names.
    pub(crate) parent: Option<&'a str>,
    /// The index of its item.
    pub(crate) item: usize,
    pub(crate) message: Option<Message<'a>>,
    /// Why there is no message to emit.
    pub(crate) problem: Option<Cow<'static, str>>,
}

impl<'a> Node<'a> {
    /// The message, unless there is a problem.
    pub(crate) fn kept(&self) -> Option<&Message<'a>> {
        self.message.as_ref().filter(|_| self.problem.is_none())
    }

    fn of_item(item: &Item<'a>, index: usize, arena: &'a Arena) -> Self {
        let (message, problem) = match Message::read(&mut Parser::new(item.text, arena)) {
            Ok(Some(message)) if message.is_blank() => {
                (Some(message), Some("it has neither an id nor a text".into()))
            }
            Ok(Some(message)) => (Some(message), None),
            Ok(None) => (None, Some("it is not an object".into())),
            Err(error) => (None, Some(error.to_string().into())),
        };
        let id = message.as_ref().and_then(|message| message.id);
        Self { key: "", id, parent: None, item: index, message, problem }
    }
}

/// Reads the items of the lists into `export`.
pub(super) fn read<'a>(export: &mut Export<'a>, items: Vec<Item<'a>>, arena: &'a Arena) {
    let (mut keys, mut copies) = (Keys::default(), Copies::default());
    // The key of each item, for the messages that it contains.
    let mut of_items: Vec<&'a str> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if item.text == "null" {
            of_items.push("");
            continue;
        }
        let mut node = Node::of_item(item, index, arena);
        let original = node.id.and_then(|id| keys.named.get(id)).copied();
        let above = item.above.and_then(|above| of_items.get(above)).copied();
        if let Some((at, first)) = original.and_then(|at| Some((at, export.nodes.get_mut(at)?)))
            && let (Some(one), Some(other)) = (first.kept(), node.kept())
            && copies::says_the_same(one, other)
        {
            of_items.push(first.key);
            export.copies += 1;
            let text = items.get(first.item).map_or("", |item| item.text);
            // Both were parsed before.
            let (Ok(()) | Err(_)) = copies.add((at, first), (text, item.text), above, arena);
            continue;
        }
        node.key = keys.next(&node, export.nodes.len(), arena);
        export.clashes |= original.is_some();
        // The host refuses ids that are too long.
        if original.is_some() || node.id.is_some_and(|id| id.len() > MAX_ID) {
            node.hide_id();
        }
        of_items.push(node.key);
        node.link(above, arena);
        export.nodes.push(node);
    }
    copies.keep(&mut export.nodes);
    export.differing = copies.differing;
    export.items = items;
}

impl<'a> Node<'a> {
    /// Keeps an id that is no id of a record in the metadata.
    fn hide_id(&mut self) {
        if let (Some(id), Some(message)) = (self.id.take(), &mut self.message) {
            message.rest.add_text("messageId", id);
        }
    }

    /// Sets the parent: the message above, or else the one that it names. A name that says something else is kept.
    pub(super) fn link(&mut self, above: Option<&'a str>, arena: &'a Arena) {
        let named =
            self.message.as_ref().and_then(|message| message.parent).map(|id| (id, key_of(id, arena)));
        self.parent = above.or(named.map(|(_, key)| key));
        let other = named.filter(|(_, key)| self.parent != Some(*key));
        if let (Some(message), Some((id, _))) = (&mut self.message, other) {
            message.rest.add_text("parentMessageId", id);
        }
    }
}

/// The keys that are in use.
#[derive(Default)]
struct Keys<'a> {
    /// The first node with each id.
    named: BTreeMap<&'a str, usize>,
    /// How often each key was wanted.
    uses: BTreeMap<&'a str, usize>,
}

impl<'a> Keys<'a> {
    /// The key of the next node, which has the number `at`. It depends on nothing that changes when the conversation goes on.
    fn next(&mut self, node: &Node<'a>, at: usize, arena: &'a Arena) -> &'a str {
        let wanted = match (node.id, &node.message) {
            (Some(id), _) => {
                self.named.entry(id).or_insert(at);
                key_of(id, arena)
            }
            (None, Some(message)) => arena.alloc_str(&natural_key_of(message)),
            (None, None) => "?",
        };
        let mut key = wanted;
        loop {
            let uses = self.uses.entry(key).or_default();
            *uses += 1;
            if *uses == 1 {
                return key;
            }
            // The export may have this id too.
            key = arena.alloc_str(&format!("{wanted}#{uses}"));
        }
    }
}

/// The key for an id: a hash if the id is too long, or if thoughts could have it.
pub(crate) fn key_of<'a>(id: &'a str, arena: &'a Arena) -> &'a str {
    let plain = id.len() <= MAX_ID && !id.contains(':');
    if plain { id } else { arena.alloc_str(&natural_key(&[Some(id)])) }
}

fn natural_key_of(message: &Message<'_>) -> String {
    let created = message.created.map(|time| time.to_string());
    let role = message.by_user.map(|by_user| if by_user { "user" } else { "assistant" });
    let text = message.text.nonempty_text().or_else(|| message.content.raw());
    natural_key(&[role.or(message.sender), created.as_deref(), text])
}
