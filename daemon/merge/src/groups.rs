//! Conversations that an importer grouped from rows without conversation ids. Parts that share a row are one
//! conversation.
//!
//! An export that begins or ends in the middle of a conversation contains only a part of it. The conversation that is
//! shown is a function of all parts, regardless of the order in which they arrived: parts that have a message in common
//! unite, and the oldest message determines the id.

mod grown;
mod joined;

use std::collections::HashSet;

use satchel_pam::{ids, raw::RawObject};

use super::{
    conversation::{Added, Planned, Report, ReportedNode, Tally, Union},
    tree::{self, Node},
};

pub use grown::{Titled, grown};
use joined::{Joined, joined};
pub use joined::{Outline, Row};

/// The key of `raw_metadata` by which an importer states that it grouped the rows itself; the value states by what.
const MARK: &str = "grouped_by";
/// The key of `raw_metadata` by which a conversation that is no longer shown names the one that now has its messages.
pub const CONTINUED: &str = "continued_in";
/// What one export reports about a conversation.
pub type Part = (Report, Vec<ReportedNode>);

/// Parts that belong together.
#[derive(Debug)]
pub struct Component {
    /// The id of their conversation.
    pub id: String,
    /// The parts, in the order in which they were given.
    pub parts: Vec<Place>,
    /// The union of the parts.
    pub planned: Planned,
    /// The part that the title comes from.
    pub titled: Titled,
}

/// How one part relates to the parts before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its index among all parts that were given.
    pub at: usize,
    /// The number of earlier conversations that it joined into one with itself.
    pub joins: usize,
    /// Counts of its messages.
    pub messages: Tally,
    /// Whether the part changed the conversation.
    pub changed: bool,
}

impl Place {
    fn new(at: usize, joins: usize, added: &Added) -> Self {
        Self { at, joins, messages: added.messages, changed: added.changed || joins > 1 }
    }
}

/// Returns whether the importer grouped the conversation itself because the provider has no id for it.
#[must_use]
pub fn grouped(provider_conversation_id: Option<&str>, raw_metadata: Option<&RawObject>) -> bool {
    provider_conversation_id.is_none()
        && raw_metadata.is_some_and(|raw| {
            // Few conversations have this key. Searching for its text first avoids parsing all the others.
            raw.as_str().contains(MARK) && raw.to_map().get(MARK).is_some_and(serde_json::Value::is_string)
        })
}

/// Returns the id of a conversation that consists of `nodes`.
#[must_use]
pub fn id_of(platform: &str, account: Option<&str>, nodes: &[ReportedNode]) -> String {
    named(platform, account, first(nodes))
}

/// Returns the message that determines the id of a conversation of `nodes`: the oldest one that is not an event.
#[must_use]
pub fn first(nodes: &[ReportedNode]) -> &str {
    let view: Vec<Node<'_>> = nodes
        .iter()
        .map(|node| Node { id: &node.id, parents: node.parent.as_slice(), time: node.time })
        .collect();
    let mut placed = tree::place(&view, 0).into_iter().map(|place| &nodes[place.node]);
    let first = placed.clone().find(|node| !node.hidden).or_else(|| placed.next());
    first.map_or("", |node| &node.id)
}

fn named(platform: &str, account: Option<&str>, first: &str) -> String {
    ids::conversation_id(platform, account, first).to_string()
}

/// Unites the parts with these `outlines` into conversations, oldest first. `part` reads one of them and is called once
/// for each.
///
/// An event is a hidden message, and it does not join parts: exports attach an event to the conversation that surrounds
/// it, as far as they contain that conversation. An event that occurs in several conversations stays in the oldest,
/// which was already running before it.
///
/// # Errors
/// Those of `part`.
pub fn components<E>(
    platform: &str,
    outlines: &[Outline],
    part: &mut dyn FnMut(usize) -> Result<Part, E>,
) -> Result<Vec<Component>, E> {
    let Joined { mut sets, joins } = joined(outlines);
    sets.sort_by_cached_key(|set| set.iter().map(|at| outlines[*at].begin()).min());
    let mut events: HashSet<String> = HashSet::new();
    let mut components = Vec::with_capacity(sets.len());
    for set in sets {
        let Some(titled) = set.iter().map(|at| &outlines[*at].titled).min() else { continue };
        let (planned, places) = united(&set, part, &mut events)?;
        let parts = set.iter().zip(&places).map(|(at, added)| Place::new(*at, joins[*at], added)).collect();
        let planned = entitled(planned, titled);
        components.push(Component {
            id: name_of(platform, &planned),
            parts,
            planned,
            titled: titled.clone(),
        });
    }
    Ok(components)
}

fn name_of(platform: &str, planned: &Planned) -> String {
    let first = planned.nodes.iter().find(|node| !node.known.hidden).or(planned.nodes.first());
    named(platform, planned.report.account.as_deref(), first.map_or("", |node| &node.known.id))
}

/// Unites the parts of a set, leaving out the `events` of older conversations, and adds the events of this set to them.
fn united<E>(
    set: &[usize],
    part: &mut dyn FnMut(usize) -> Result<Part, E>,
    events: &mut HashSet<String>,
) -> Result<(Planned, Vec<Added>), E> {
    let (mut union, mut places, mut own) = (Union::default(), Vec::with_capacity(set.len()), Vec::new());
    for at in set {
        let (report, mut nodes) = part(*at)?;
        let stays = |node: &ReportedNode| !(node.hidden && events.contains(&node.id));
        if nodes.iter().any(stays) {
            nodes.retain(stays);
        }
        own.extend(nodes.iter().filter(|node| node.hidden).map(|node| node.id.clone()));
        places.push(union.add(report, nodes, &mut |_| Ok(None))?);
    }
    events.extend(own);
    Ok((union.planned(), places))
}

/// Sets the title of the conversation and the times of its messages.
fn entitled(mut planned: Planned, titled: &Titled) -> Planned {
    let report = Report { title: titled.title.clone(), ..dated(&planned) };
    planned.report = report;
    planned
}

/// Returns the report with the times of the messages. The times in the parts also count events that may belong to
/// another conversation.
fn dated(planned: &Planned) -> Report {
    let times = || planned.nodes.iter().filter_map(|node| node.known.time);
    let Report { created_at, updated_at, .. } = planned.report;
    Report {
        created_at: times().min().or(created_at),
        updated_at: times().max().or(updated_at),
        ..planned.report.clone()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
