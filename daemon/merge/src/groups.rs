//! Conversations that an importer grouped from rows without conversation ids. Parts that share a row are one
//! conversation.
//!
//! An export that begins or ends in the middle of a conversation contains only a part of it. The conversation that is
//! shown is a function of all parts, regardless of the order in which they arrived: parts that have a message in common
//! unite, and the oldest message determines the id.

mod grow;
mod partition;

use std::collections::HashSet;

use satchel_pam::{ids, raw::RawObject};

use super::{
    conversation::{ConversationPlan, ConversationReport, MessageCounts, ReportedNode, Union, UnionChange},
    tree::{self, TreeNode},
};

pub use grow::{TitleKey, grow};
pub use partition::{Outline, OutlineRow};
use partition::{Partition, partition};

/// The key of `raw_metadata` by which an importer states that it grouped the rows itself; the value states by what.
const GROUPED_BY: &str = "grouped_by";
/// The key of `raw_metadata` by which a conversation that is no longer shown names the one that now has its messages.
pub const CONTINUED_IN: &str = "continued_in";
/// What one export reports about a conversation.
pub type GroupPart = (ConversationReport, Vec<ReportedNode>);

/// Parts that belong together.
#[derive(Debug)]
pub struct GroupedConversation {
    /// The id of their conversation.
    pub id: String,
    /// The parts, in the order in which they were given.
    pub parts: Vec<PartOutcome>,
    /// The union of the parts.
    pub planned: ConversationPlan,
    /// The part that the title comes from.
    pub title_key: TitleKey,
}

/// How one part relates to the parts before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOutcome {
    /// Its index among all parts that were given.
    pub at: usize,
    /// The number of earlier conversations that it joined into one with itself.
    pub joins: usize,
    /// Counts of its messages.
    pub messages: MessageCounts,
    /// Whether the part changed the conversation.
    pub changed: bool,
}

impl PartOutcome {
    fn new(at: usize, joins: usize, added: &UnionChange) -> Self {
        Self { at, joins, messages: added.messages, changed: added.changed || joins > 1 }
    }
}

/// Returns whether the importer grouped the conversation itself because the provider has no id for it.
#[must_use]
pub fn grouped(provider_conversation_id: Option<&str>, raw_metadata: Option<&RawObject>) -> bool {
    provider_conversation_id.is_none()
        && raw_metadata.is_some_and(|raw| {
            // Few conversations have this key. Searching for its text first avoids parsing all the others.
            raw.as_str().contains(GROUPED_BY)
                && raw.to_map().get(GROUPED_BY).is_some_and(serde_json::Value::is_string)
        })
}

/// Returns the id of a conversation that consists of `nodes`.
#[must_use]
pub fn conversation_id(platform: &str, account: Option<&str>, nodes: &[ReportedNode]) -> String {
    id_from_first(platform, account, first_message(nodes))
}

/// Returns the message that determines the id of a conversation of `nodes`: the oldest one that is not an event.
#[must_use]
pub fn first_message(nodes: &[ReportedNode]) -> &str {
    let view: Vec<TreeNode<'_>> = nodes
        .iter()
        .map(|node| TreeNode { id: &node.id, parents: node.parent.as_slice(), time: node.time })
        .collect();
    let mut placed = tree::place(&view, 0).into_iter().map(|place| &nodes[place.node]);
    let first = placed.clone().find(|node| !node.hidden).or_else(|| placed.next());
    first.map_or("", |node| &node.id)
}

fn id_from_first(platform: &str, account: Option<&str>, first: &str) -> String {
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
    part: &mut dyn FnMut(usize) -> Result<GroupPart, E>,
) -> Result<Vec<GroupedConversation>, E> {
    let Partition { mut sets, joins } = partition(outlines);
    sets.sort_by_cached_key(|set| set.iter().map(|at| outlines[*at].begin()).min());
    let mut events: HashSet<String> = HashSet::new();
    let mut components = Vec::with_capacity(sets.len());
    for set in sets {
        let Some(titled) = set.iter().map(|at| &outlines[*at].title_key).min() else { continue };
        let (planned, places) = unite_parts(&set, part, &mut events)?;
        let parts =
            set.iter().zip(&places).map(|(at, added)| PartOutcome::new(*at, joins[*at], added)).collect();
        let planned = with_title(planned, titled);
        components.push(GroupedConversation {
            id: plan_id(platform, &planned),
            parts,
            planned,
            title_key: titled.clone(),
        });
    }
    Ok(components)
}

fn plan_id(platform: &str, planned: &ConversationPlan) -> String {
    let first = planned.nodes.iter().find(|node| !node.state.hidden).or(planned.nodes.first());
    id_from_first(platform, planned.report.account.as_deref(), first.map_or("", |node| &node.state.id))
}

/// Unites the parts of a set, leaving out the `events` of older conversations, and adds the events of this set to them.
fn unite_parts<E>(
    set: &[usize],
    part: &mut dyn FnMut(usize) -> Result<GroupPart, E>,
    events: &mut HashSet<String>,
) -> Result<(ConversationPlan, Vec<UnionChange>), E> {
    let (mut union, mut places, mut hidden) = (Union::default(), Vec::with_capacity(set.len()), Vec::new());
    for at in set {
        let (report, mut nodes) = part(*at)?;
        let stays = |node: &ReportedNode| !(node.hidden && events.contains(&node.id));
        if nodes.iter().any(stays) {
            nodes.retain(stays);
        }
        hidden.extend(nodes.iter().filter(|node| node.hidden).map(|node| node.id.clone()));
        places.push(union.add(report, nodes, &mut |_| Ok(None))?);
    }
    events.extend(hidden);
    Ok((union.planned(), places))
}

/// Sets the title of the conversation and the times of its messages.
fn with_title(mut planned: ConversationPlan, titled: &TitleKey) -> ConversationPlan {
    let report = ConversationReport { title: titled.title.clone(), ..with_message_times(&planned) };
    planned.report = report;
    planned
}

/// Returns the report with the times of the messages. The times in the parts also count events that may belong to
/// another conversation.
fn with_message_times(planned: &ConversationPlan) -> ConversationReport {
    let times = || planned.nodes.iter().filter_map(|node| node.state.time);
    let ConversationReport { created_at, updated_at, .. } = planned.report;
    ConversationReport {
        created_at: times().min().or(created_at),
        updated_at: times().max().or(updated_at),
        ..planned.report.clone()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
