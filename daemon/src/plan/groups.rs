//! Conversations that an importer made of rows without ids: those that share a row are one.
//!
//! An export that begins or ends in the middle of a conversation shows a part of it. What is shown is a function of all
//! parts, whatever the order in which they came: parts with a message in common unite, and the oldest message names them.

mod grown;

use std::collections::{BTreeMap, HashMap, HashSet};

use satchel_pam::{ids, raw::RawObject};

use super::{
    conversation::{Planned, Report, ReportedNode, unite_all},
    tree::{self, Node},
};

pub use grown::{Titled, grown};

/// The key of `raw_metadata` by which an importer says that it grouped the rows itself; its value says by what.
const MARK: &str = "grouped_by";
/// The key of `raw_metadata` by which a conversation that is shown no more names the one that has its messages.
pub const CONTINUED: &str = "continued_in";
/// Where rows without a time stand among the others.
const UNDATED: i64 = i64::MAX;

/// What one export says of a conversation.
pub type Part = (Report, Vec<ReportedNode>);

/// Parts that belong together.
#[derive(Debug)]
pub struct Component {
    /// The id of their conversation.
    pub id: String,
    /// Their places among the parts that were given.
    pub parts: Vec<usize>,
    /// What they come to.
    pub planned: Planned,
    /// Whose title it has.
    pub titled: Titled,
}

/// Whether the importer put the conversation together, for want of a provider's id.
#[must_use]
pub fn grouped(provider_conversation_id: Option<&str>, raw_metadata: Option<&RawObject>) -> bool {
    provider_conversation_id.is_none()
        && raw_metadata.is_some_and(|raw| {
            // The key stands in few conversations; looking for its text first spares the parse in all others.
            raw.as_str().contains(MARK) && raw.to_map().get(MARK).is_some_and(serde_json::Value::is_string)
        })
}

/// The id of a conversation that consists of `nodes`.
#[must_use]
pub fn id_of(platform: &str, account: Option<&str>, nodes: &[ReportedNode]) -> String {
    named(platform, account, first(nodes))
}

/// The message that names a conversation of `nodes`: the oldest that is no event.
#[must_use]
pub fn first(nodes: &[ReportedNode]) -> &str {
    let view: Vec<Node<'_>> = nodes
        .iter()
        .map(|node| Node { id: &node.id, parents: node.parent.as_slice(), time: node.body.created_at })
        .collect();
    let mut placed = tree::place(&view, 0).into_iter().map(|place| &nodes[place.node]);
    let first = placed.clone().find(|node| !node.body.hidden()).or_else(|| placed.next());
    first.map_or("", |node| &node.id)
}

fn named(platform: &str, account: Option<&str>, first: &str) -> String {
    ids::conversation_id(platform, account, first).to_string()
}

/// What `parts` come to, oldest conversation first.
///
/// An event, which is a hidden message, joins nothing: exports put it to the conversation that goes on around it as far as
/// they show it. One that stands in several conversations stays in the oldest, which went on before it.
///
/// # Errors
/// When bytes are not a body.
pub fn components(platform: &str, parts: Vec<Part>) -> serde_json::Result<Vec<Component>> {
    let mut sets = joined(&parts);
    sets.sort_by_cached_key(|set| set.iter().map(|at| begin(&parts[*at])).min());
    let mut parts: Vec<Option<Part>> = parts.into_iter().map(Some).collect();
    let mut events: HashSet<String> = HashSet::new();
    let mut components = Vec::with_capacity(sets.len());
    for set in sets {
        let mine: Vec<Part> = set.iter().filter_map(|at| parts[*at].take()).collect();
        let Some(titled) = mine.iter().map(Titled::of).min() else { continue };
        if let Some(planned) = united(mine, &mut events)? {
            let planned = entitled(planned, &titled);
            components.push(Component { id: name_of(platform, &planned), parts: set, planned, titled });
        }
    }
    Ok(components)
}

fn name_of(platform: &str, planned: &Planned) -> String {
    let first = planned.nodes.iter().find(|node| !node.known.hidden).or(planned.nodes.first());
    named(platform, planned.report.account.as_deref(), first.map_or("", |node| &node.known.id))
}

/// The parts that have a message in common, directly or by others between them.
fn joined(parts: &[Part]) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..parts.len()).collect();
    let mut owner: HashMap<&str, usize> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        for node in spoken(part) {
            let other = *owner.entry(&node.id).or_insert(at);
            let (one, other) = (root(&mut group, at), root(&mut group, other));
            group[one.max(other)] = one.min(other);
        }
    }
    let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in 0..parts.len() {
        sets.entry(root(&mut group, at)).or_default().push(at);
    }
    sets.into_values().collect()
}

fn root(group: &mut [usize], mut at: usize) -> usize {
    while group[at] != at {
        group[at] = group[group[at]];
        at = group[at];
    }
    at
}

/// The messages of a part in which somebody speaks; all, if nobody does.
fn spoken(part: &Part) -> impl Iterator<Item = &ReportedNode> {
    let silent = part.1.iter().all(|node| node.body.hidden());
    part.1.iter().filter(move |node| silent || !node.body.hidden())
}

/// When a part begins, and with which message.
fn begin(part: &Part) -> (i64, &str) {
    let first = spoken(part).map(|node| (node.body.created_at.unwrap_or(UNDATED), node.id.as_str())).min();
    first.unwrap_or((UNDATED, ""))
}

/// Unites parts without the `events` of older conversations, and notes their own.
fn united(mut parts: Vec<Part>, events: &mut HashSet<String>) -> serde_json::Result<Option<Planned>> {
    let mut elsewhere = Vec::new();
    for (_, nodes) in &mut parts {
        elsewhere.clear();
        let stays = |node: &ReportedNode| !(node.body.hidden() && events.contains(&node.id));
        if nodes.iter().any(stays) {
            let (own, others): (Vec<_>, Vec<_>) = std::mem::take(nodes).into_iter().partition(stays);
            *nodes = own;
            elsewhere.extend(others.into_iter().map(|node| (node.id, node.bytes)));
        }
    }
    let hidden = parts.iter().flat_map(|(_, nodes)| nodes).filter(|node| node.body.hidden());
    let own: Vec<String> = hidden.map(|node| node.id.clone()).collect();
    events.extend(own);
    let Some(mut planned) = unite_all(parts)? else { return Ok(None) };
    planned.sole &= elsewhere.is_empty();
    // What the last part says beside the union is kept with it.
    planned.spare.append(&mut elsewhere);
    Ok(Some(planned))
}

/// With its title, and the times of its messages.
fn entitled(mut planned: Planned, titled: &Titled) -> Planned {
    let report = Report { title: titled.title.clone(), ..dated(&planned) };
    planned.sole &= report == planned.report;
    planned.report = report;
    planned
}

/// The report with the times of the messages: those of the parts count events that may be elsewhere.
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
