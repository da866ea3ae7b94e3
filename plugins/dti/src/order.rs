//! The ids and the order of the messages: a first pass over a file finds them, a second one emits the messages.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, ImportError, JsonArray, Role, address::unsigned_json, natural_key, title};

use crate::{
    arrange::{arrange, clear_export_times},
    map::Details,
    raw::Message,
    run::absent_is_empty,
    senders::{Sender, Senders},
};

/// Messages of one history: their order is in memory.
pub(crate) const MAX_MESSAGES: usize = 200_000;
/// Characters of a title, which is the first line of a message.
const MAX_TITLE: usize = 120;

/// The messages of a history, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) list: Vec<OrderedMessage>,
    /// By the index of the element.
    positions: BTreeMap<u64, usize>,
    /// The messages had to be sorted.
    pub(crate) sorted: bool,
    /// How many messages have the time of the export instead of their own.
    pub(crate) undated: usize,
    /// A message names the only AI as its sender.
    pub(crate) has_ai: bool,
    /// The first line of the first message of the person that has one.
    pub(crate) title: Option<String>,
    /// How many messages have a sender of an uncertain role; all identified senders count as the first one.
    pub(crate) uncertain: BTreeMap<Sender, u64>,
}

/// What the first pass remembers of a message.
#[derive(Debug)]
pub(crate) struct OrderedMessage {
    pub(crate) id: String,
    index: u64,
    pub(crate) sender: Sender,
    pub(crate) time: Option<i64>,
}

impl Order {
    /// Reads the order of the messages of a file.
    pub(crate) fn read(
        bundle: &Bundle,
        path: &str,
        details: &Details,
        senders: &Senders,
    ) -> Result<Self, ImportError> {
        let mut order = Self::default();
        let read = JsonArray::new(path).pointer("/messages").survey(bundle, |element| {
            if let Some(message) = Message::peek(&element) {
                order.add(element.index(), message, senders);
            }
            Ok(order.list.len() < MAX_MESSAGES)
        });
        absent_is_empty(read)?;
        order.undated = clear_export_times(&mut order.list, details);
        order.finish(senders);
        order.read_title(bundle, path, senders)?;
        Ok(order)
    }

    /// The position in the list of the element `index`; none if it is no message or one beyond the limit.
    pub(crate) fn position(&self, index: u64) -> Option<usize> {
        self.positions.get(&index).copied()
    }

    fn add(&mut self, index: u64, message: Message<'_>, senders: &Senders) {
        let sender = senders.find(message.sender);
        self.has_ai |= sender == Sender::Ai;
        let time = message.sent;
        self.list.push(OrderedMessage { id: content_key(message), index, sender, time });
    }

    /// Sorts the messages. Equal ones are numbered afterwards, so that the order of the list does not count.
    fn finish(&mut self, senders: &Senders) {
        let has_ai = self.has_ai;
        let role = |sender| senders.role(sender, has_ai);
        self.sorted = arrange(&mut self.list, |message| role(message.sender).0 == Role::User);
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for (position, message) in self.list.iter_mut().enumerate() {
            self.positions.insert(message.index, position);
            if !role(message.sender).1 {
                let identified = matches!(message.sender, Sender::Identified(_));
                let kind = if identified { Sender::Identified(0) } else { message.sender };
                *self.uncertain.entry(kind).or_default() += 1;
            }
            let count = seen.entry(message.id.clone()).or_default();
            *count += 1;
            if *count > 1 {
                message.id = format!("{}:{count}", message.id);
            }
        }
    }

    /// Finds the title. Only one is in memory at a time, because those of all messages may be large.
    fn read_title(&mut self, bundle: &Bundle, path: &str, senders: &Senders) -> Result<(), ImportError> {
        let of_user = |message: &OrderedMessage| senders.role(message.sender, self.has_ai).0 == Role::User;
        let Some(oldest) = self.list.iter().position(of_user) else { return Ok(()) };
        let mut found: Option<(usize, String)> = None;
        let read = JsonArray::new(path).pointer("/messages").survey(bundle, |element| {
            let position = self.position(element.index()).filter(|position| {
                found.as_ref().is_none_or(|(earlier, _)| position < earlier)
                    && self.list.get(*position).is_some_and(of_user)
            });
            if let Some(position) = position
                && let Some(line) =
                    Message::peek(&element).and_then(|message| title::first_line(message.text?, MAX_TITLE))
            {
                found = Some((position, line));
            }
            Ok(found.as_ref().is_none_or(|(position, _)| *position != oldest))
        });
        absent_is_empty(read)?;
        self.title = found.map(|(_, line)| line);
        Ok(())
    }
}

/// A key of the content, which is the same in every export: the format has no ids, exporters replace missing times by that of the
/// export, and the address of the sender can change.
fn content_key(message: Message<'_>) -> String {
    let other = || message.rest.into_json().map(unsigned_json);
    match message.text {
        Some(text) => natural_key(&[Some("text"), Some(text)]),
        None => natural_key(&[Some("fields"), other().as_deref()]),
    }
}
