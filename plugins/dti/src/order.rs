//! The order of the messages. The schema prescribes none: a first pass reads the times, a second one the messages.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Element, ImportError, JsonArray, Role, natural_key, order::sort_by_time, title,
};

use crate::{
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
    pub(crate) list: Vec<Place>,
    /// By the index of the element.
    places: BTreeMap<u64, usize>,
    /// The messages had to be sorted.
    pub(crate) sorted: bool,
    /// A message names the only AI as its sender.
    pub(crate) has_ai: bool,
    /// The key of the oldest message.
    pub(crate) first: Option<String>,
    /// The first line of what the person wrote first.
    pub(crate) title: Option<String>,
    /// How many messages have a sender of an uncertain role; all known senders count as the first one.
    pub(crate) uncertain: BTreeMap<Sender, u64>,
}

/// One message.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) id: String,
    index: u64,
    pub(crate) sender: Sender,
    pub(crate) time: Option<i64>,
}

/// The earliest message of a sender so far.
type Earliest = ((bool, Option<i64>, u64), String);

impl Order {
    /// Reads the order of the messages of a file.
    pub(crate) fn read(bundle: &Bundle, path: &str, senders: &Senders) -> Result<Self, ImportError> {
        let mut order = Self::default();
        let (mut seen, mut titles) = (BTreeMap::new(), BTreeMap::new());
        let read = JsonArray::new(path).pointer("/messages").survey(bundle, |element| {
            if order.list.len() < MAX_MESSAGES
                && let Some(message) = Message::peek(&element)
            {
                order.add(&element, &message, senders, &mut seen, &mut titles);
            }
            Ok(true)
        });
        absent_is_empty(read)?;
        order.finish(senders, titles);
        Ok(order)
    }

    /// The place in the list of the element `index`; none if it is no message or one beyond the limit.
    pub(crate) fn place(&self, index: u64) -> Option<usize> {
        self.places.get(&index).copied()
    }

    fn add(
        &mut self,
        element: &Element<'_>,
        message: &Message<'_>,
        senders: &Senders,
        seen: &mut BTreeMap<String, u32>,
        titles: &mut BTreeMap<Sender, Earliest>,
    ) {
        let sender = senders.find(message.sender);
        self.has_ai |= sender == Sender::Ai;
        let key = key(message, element.text());
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        let id = if *count == 1 { key } else { format!("{key}:{count}") };
        let age = (message.sent.is_none(), message.sent, element.index());
        if titles.get(&sender).is_none_or(|(earliest, _)| age < *earliest)
            && let Some(line) = message.text.and_then(|text| title::first_line(text, MAX_TITLE))
        {
            titles.insert(sender, (age, line));
        }
        self.list.push(Place { id, index: element.index(), sender, time: message.sent });
    }

    fn finish(&mut self, senders: &Senders, titles: BTreeMap<Sender, Earliest>) {
        let has_ai = self.has_ai;
        let role = |sender| senders.role(sender, has_ai);
        for place in &self.list {
            if !role(place.sender).1 {
                let kind = if let Sender::Known(_) = place.sender { Sender::Known(0) } else { place.sender };
                *self.uncertain.entry(kind).or_default() += 1;
            }
        }
        // The order of the file does not count, since another export may list messages of one time differently.
        let oldest = self.list.iter().min_by_key(|place| (place.time.is_none(), place.time, &place.id));
        self.first = oldest.map(|place| place.id.clone());
        let of_person = titles.into_iter().filter(|(sender, _)| role(*sender).0 == Role::User);
        self.title = of_person.map(|(_, earliest)| earliest).min().map(|(_, line)| line);
        self.sorted = sort_by_time(&mut self.list, |place| (role(place.sender).0, place.time));
        self.places = self.list.iter().enumerate().map(|(at, place)| (place.index, at)).collect();
    }
}

/// A key that the message has in every export: the format has no ids. Who sent it does not count, because an address can change.
fn key(message: &Message<'_>, element: &str) -> String {
    let time = message.sent.map(|time| time.to_string());
    natural_key(&[time.as_deref(), Some(message.text.unwrap_or(element))])
}
