//! Counts conversations, their messages and their tokens, in groups.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
};

use satchel_pam::{conversation::Role, raw::RawObject, time::Timestamp};
use satchel_store::{ConversationRecord, MessageHead, Store, StoreError, UNKNOWN_TIME};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// Groups that are told apart; the others are counted together.
const MAX_GROUPS: usize = 10_000;
/// Longest name of a group, in bytes.
const MAX_NAME_BYTES: usize = 1_024;
/// Highest cost of a message that is believed. Sums stay far below what fits.
const MAX_COST_DOLLARS: f64 = 1e6;
/// Bytes of `2026-03` in RFC 3339.
const MONTH_BYTES: usize = 7;

/// By what conversations are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// The platform.
    Platform,
    /// The directory in which a coding agent worked.
    Project,
    /// The model of each message of the assistant.
    Model,
    /// The month of each message, in UTC.
    Month,
}

/// Counts of conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Conversations.
    pub conversations: u64,
    /// Messages, including hidden ones and thoughts.
    pub messages: u64,
    /// The sum of their `token_count`.
    pub tokens: u64,
    /// What they cost, in millionths of a US dollar, as far as their `raw_metadata` says it.
    pub cost_micros: u64,
    /// The times of the oldest and the newest message, in microseconds since the Unix epoch; `None` if none is known.
    pub times: Option<(i64, i64)>,
}

impl Totals {
    fn of_message(time: i64, fields: &CountedFields<'_>) -> Self {
        Self {
            conversations: 0,
            messages: 1,
            tokens: fields.token_count.unwrap_or(0),
            cost_micros: fields.raw_metadata.map_or(0, |raw| cost_micros(raw.get())),
            times: (time != UNKNOWN_TIME).then_some((time, time)),
        }
    }

    fn add(&mut self, other: Self) {
        self.conversations = self.conversations.saturating_add(other.conversations);
        self.messages = self.messages.saturating_add(other.messages);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
        self.times = match (self.times, other.times) {
            (Some((first, last)), Some((other_first, other_last))) => {
                Some((first.min(other_first), last.max(other_last)))
            }
            (times, other) => times.or(other),
        };
    }
}

/// Conversations that have something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they have in common; empty if it is not known.
    pub name: String,
    /// Their counts.
    pub totals: Totals,
}

/// Groups and what is left of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LargestGroups {
    /// Those with the most messages first; months are those with the newest messages, newest first.
    pub groups: Vec<Group>,
    /// All further groups together.
    pub others: Totals,
    /// The number of further groups.
    pub other_groups: u64,
    /// All conversations, each counted once.
    pub total: Totals,
}

/// Counts conversations one by one.
#[derive(Debug)]
pub struct ConversationStats {
    grouping: Grouping,
    groups: BTreeMap<String, Totals>,
    /// What came after [`MAX_GROUPS`].
    rest: Totals,
    total: Totals,
}

/// The counts of one conversation. Its messages may be of as many groups as there are messages, so that there is a limit
/// here as well.
#[derive(Debug, Default)]
struct ConversationCounts {
    groups: BTreeMap<String, Totals>,
    /// What came after [`MAX_GROUPS`], unless its group is known from other conversations.
    rest: Option<Totals>,
}

impl ConversationCounts {
    fn add(&mut self, name: String, message: Totals, known: &BTreeMap<String, Totals>) {
        if self.groups.len() < MAX_GROUPS || self.groups.contains_key(&name) || known.contains_key(&name) {
            self.groups.entry(name).or_default().add(message);
        } else {
            self.rest.get_or_insert_default().add(message);
        }
    }
}

/// The fields of a stored message that are counted.
#[derive(Default, Deserialize)]
struct CountedFields<'a> {
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    token_count: Option<u64>,
    #[serde(borrow, default)]
    raw_metadata: Option<&'a RawValue>,
}

/// The fields of a message's metadata that say what it cost, in US dollars.
#[derive(Deserialize)]
struct CostFields {
    /// `OpenCode`.
    #[serde(default)]
    cost: Value,
    /// Claude Code, until version 1.0.
    #[serde(default, rename = "costUSD")]
    cost_usd: Value,
    /// Goose, in `usage.cost`.
    #[serde(default)]
    metadata: Value,
}

/// The fields of a conversation's metadata that name the directory in which a coding agent worked.
#[derive(Deserialize)]
struct WorkingDirectory {
    /// Claude Code, Codex, Gemini CLI, VS Code.
    #[serde(default)]
    cwd: Value,
    /// `OpenCode`.
    #[serde(default)]
    directory: Value,
    /// Goose.
    #[serde(default)]
    working_dir: Value,
}

impl ConversationStats {
    /// Returns the counts of no conversations.
    #[must_use]
    pub fn new(grouping: Grouping) -> Self {
        Self { grouping, groups: BTreeMap::new(), rest: Totals::default(), total: Totals::default() }
    }

    /// Counts a conversation, and reads its messages.
    ///
    /// # Errors
    /// When a message cannot be read.
    pub fn add(&mut self, store: &Store, record: &ConversationRecord) -> Result<(), StoreError> {
        let whole = self.name_of_conversation(record);
        // One that has no messages belongs to the group that it names all the same.
        let mut counts = ConversationCounts {
            groups: whole.iter().map(|name| (name.clone(), Totals::default())).collect(),
            rest: None,
        };
        for (head, body) in record.heads.iter().zip(store.all_bodies(record)) {
            let (id, body) = body?;
            let fields: CountedFields<'_> =
                serde_json::from_slice(&body).map_err(|error| StoreError::BadValue {
                    what: format!("message {id:?} of conversation {:?}", record.header.id),
                    problem: error.to_string(),
                })?;
            let message = Totals::of_message(head.created_at_micros, &fields);
            self.total.add(message);
            let name = whole.clone().or_else(|| self.name_of_message(record, head, fields.model));
            if let Some(name) = name {
                counts.add(name, message, &self.groups);
            }
        }
        self.total.conversations += 1;
        self.count_all(counts);
        Ok(())
    }

    /// Returns the `max` largest groups.
    #[must_use]
    pub fn largest(self, max: usize) -> LargestGroups {
        let mut groups: Vec<Group> =
            self.groups.into_iter().map(|(name, totals)| Group { name, totals }).collect();
        match self.grouping {
            Grouping::Month => groups.reverse(),
            _ => groups.sort_by_key(|group| Reverse((group.totals.messages, group.totals.conversations))),
        }
        let further = groups.split_off(max.min(groups.len()));
        let mut others = self.rest;
        further.iter().for_each(|group| others.add(group.totals));
        let other_groups = further.len() as u64 + u64::from(self.rest.conversations > 0);
        LargestGroups { groups, others, other_groups, total: self.total }
    }

    fn count_all(&mut self, counts: ConversationCounts) {
        for (name, totals) in counts.groups {
            self.count(name, Totals { conversations: 1, ..totals });
        }
        if let Some(rest) = counts.rest {
            self.rest.add(Totals { conversations: 1, ..rest });
        }
    }

    fn count(&mut self, name: String, totals: Totals) {
        let known = self.groups.len();
        match self.groups.entry(name) {
            Entry::Occupied(group) => group.into_mut().add(totals),
            Entry::Vacant(place) if known < MAX_GROUPS => {
                place.insert(totals);
            }
            Entry::Vacant(_) => self.rest.add(totals),
        }
    }

    /// Returns the group of a whole conversation; `None` if its messages may be of several.
    fn name_of_conversation(&self, record: &ConversationRecord) -> Option<String> {
        match self.grouping {
            Grouping::Platform => Some(record.header.provider.name.clone()),
            Grouping::Project => Some(working_directory(record.header.raw_metadata.as_ref())),
            Grouping::Model | Grouping::Month => None,
        }
    }

    /// Returns the group of a message; `None` if it counts in none.
    fn name_of_message(
        &self,
        record: &ConversationRecord,
        head: &MessageHead,
        model: Option<Cow<'_, str>>,
    ) -> Option<String> {
        match self.grouping {
            Grouping::Month => Some(month(head.created_at_micros)),
            _ if head.role == Role::Assistant => {
                let model = model.as_deref().or(record.header.model.as_deref());
                Some(model.map(shortened).unwrap_or_default())
            }
            _ => None,
        }
    }
}

/// Returns the directory that the metadata of a conversation names; an empty text if they name none.
fn working_directory(raw: Option<&RawObject>) -> String {
    let fields = raw.and_then(|raw| serde_json::from_str::<WorkingDirectory>(raw.as_str()).ok());
    let Some(WorkingDirectory { cwd, directory, working_dir }) = fields else { return String::new() };
    [cwd, directory, working_dir].iter().find_map(Value::as_str).map(shortened).unwrap_or_default()
}

/// Returns what the metadata of a message say that it cost, in millionths of a US dollar; 0 if they do not say it, or
/// nothing credible.
fn cost_micros(raw: &str) -> u64 {
    // Few messages say it, and to parse all metadata takes longer than to read the messages.
    if memchr::memmem::find(raw.as_bytes(), b"\"cost").is_none() {
        return 0;
    }
    let Ok(CostFields { cost, cost_usd, metadata }) = serde_json::from_str::<CostFields>(raw) else {
        return 0;
    };
    let usage = metadata.pointer("/usage/cost");
    let dollars = [Some(&cost), Some(&cost_usd), usage].into_iter().flatten().find_map(Value::as_f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is in the range")]
    dollars
        .filter(|dollars| (0.0..=MAX_COST_DOLLARS).contains(dollars))
        .map_or(0, |dollars| (dollars * 1e6).round() as u64)
}

fn shortened(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned()
}

/// Returns the month of a time, as RFC 3339 writes it; an empty text if the time is not known.
fn month(micros: i64) -> String {
    if micros == UNKNOWN_TIME {
        return String::new();
    }
    let mut text = Timestamp::saturating(micros).to_string();
    text.truncate(MONTH_BYTES);
    text
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
