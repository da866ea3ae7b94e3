//! The union of what a store holds of a conversation and what an export says of it.
//!
//! Nodes unite by id and never vanish. Of the fields that people change (title, archived, the leaf they look at) the value of
//! the newest export wins that has one; all other fields keep the richer value.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use satchel_pam::{
    conversation::{ConversationHeader, Participant, Role},
    raw::RawObject,
};
use serde::{Deserialize, Serialize};

use super::{
    body::{Body, Digest16, earlier, richer, union_of_raw},
    tree::{self, Node, TimeSource},
};

/// When the value of each changeable field was reported, in microseconds of the export's own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stamps {
    title: i64,
    model: i64,
    system_instruction: i64,
    archived: i64,
    current: i64,
    format: i64,
}

/// The fields of a conversation as one export reports them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// See `record::ConversationRecord` for all of these.
    pub provider_conversation_id: Option<String>,
    pub account: Option<String>,
    pub format: Option<String>,
    pub title: Option<String>,
    pub created_at: Option<i64>,
    pub updated_at: Option<i64>,
    pub participants: Vec<Participant>,
    pub model: Option<String>,
    pub system_instruction: Option<String>,
    pub is_archived: bool,
    pub tags: Vec<String>,
    /// The message id of the leaf.
    pub current: Option<String>,
    pub raw_metadata: Option<RawObject>,
}

/// One node as an export reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedNode {
    /// Message id.
    pub id: String,
    /// Message id of the parent.
    pub parent: Option<String>,
    /// What is said.
    pub body: Body,
    /// `body` encoded.
    pub bytes: Vec<u8>,
    /// The digest of `bytes`.
    pub digest: Digest16,
}

/// What the store holds of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub report: Report,
    pub stamps: Stamps,
    pub nodes: Vec<KnownNode>,
}

/// What the store holds of a node, without its body.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownNode {
    pub id: String,
    /// Every parent under which any export showed it.
    pub parents: Vec<String>,
    /// Its own time, if any export had one.
    pub time: Option<i64>,
    pub role: Role,
    pub hidden: bool,
    pub thought: bool,
    pub digest: Digest16,
}

/// A node at its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedNode {
    pub known: KnownNode,
    /// The parent chosen from those seen.
    pub parent: Option<String>,
    /// Microseconds.
    pub time: i64,
    pub source: TimeSource,
    /// The new body; none: the stored one stays.
    pub body: Option<Vec<u8>>,
}

/// What becomes of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub report: Report,
    pub stamps: Stamps,
    /// In the order of the tree.
    pub nodes: Vec<PlannedNode>,
    pub messages: Tally,
    /// Whether anything differs from what the store holds.
    pub changed: bool,
    /// Whether it is what the report says, with nothing from elsewhere.
    pub sole: bool,
    /// Bodies of the report that the union has otherwise, by message.
    pub spare: Vec<(String, Vec<u8>)>,
}

/// Messages of the report: each is in exactly one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub new: u64,
    pub updated: u64,
    pub unchanged: u64,
}

/// Unites `report` with what is `known`; `stored` reads the body of a stored message.
///
/// # Errors
/// Those of `stored`.
pub fn unite<E>(
    report: Report,
    nodes: Vec<ReportedNode>,
    known: Option<Known>,
    stored: &mut dyn FnMut(&str) -> Result<Body, E>,
) -> Result<Planned, E> {
    let mut tally = Tally::default();
    let before =
        known.as_ref().map(|known| (known.report.clone(), known.stamps.clone(), parents_of(&known.nodes)));
    let stamp = report.updated_at.or(report.created_at).unwrap_or(i64::MIN);
    let alone = known.is_none();
    let said = (!alone).then(|| Said::of(&report, &nodes));
    let (report, stamps, held) = match known {
        Some(Known { report: old, stamps, nodes }) => {
            let (report, stamps) = unite_reports(old, stamps, report, stamp);
            (report, stamps, nodes)
        }
        None => (report, Stamps::all(stamp), Vec::new()),
    };
    let mut all: Vec<(KnownNode, Option<Vec<u8>>)> = held.into_iter().map(|node| (node, None)).collect();
    let mut index: HashMap<String, usize> =
        all.iter().enumerate().map(|(at, (node, _))| (node.id.clone(), at)).collect();
    let mut spare = Vec::new();
    for node in nodes {
        if let Some(&at) = index.get(&node.id) {
            spare.extend(unite_nodes(&mut all[at], node, &mut tally, stored)?);
        } else {
            tally.new += 1;
            index.insert(node.id.clone(), all.len());
            all.push(fresh(node));
        }
    }
    let after: Vec<_> = all.iter().map(|(node, _)| (node.id.clone(), node.parents.clone())).collect();
    let same = before.is_some_and(|before| before == (report.clone(), stamps.clone(), after));
    let changed = !same || tally.new + tally.updated > 0;
    let sole = alone || said.is_some_and(|said| said.is_all(&report, &stamps, stamp, &all));
    let nodes = placed(all, report.created_at.or(report.updated_at).unwrap_or(0));
    Ok(Planned { report, stamps, nodes, messages: tally, changed, sole, spare })
}

/// Unites all reports of a conversation; every message of the outcome has its body.
///
/// # Errors
/// When bytes are not a body.
pub fn unite_all(parts: Vec<(Report, Vec<ReportedNode>)>) -> serde_json::Result<Option<Planned>> {
    let mut bodies: HashMap<String, Vec<u8>> = HashMap::new();
    let mut outcome: Option<Planned> = None;
    for (report, nodes) in parts {
        let known = outcome.take().map(|planned| planned.known());
        let mut planned = unite(report, nodes, known, &mut |id| {
            Body::decode(bodies.get(id).map(Vec::as_slice).unwrap_or_default())
        })?;
        for node in &mut planned.nodes {
            if let Some(body) = node.body.take() {
                bodies.insert(node.known.id.clone(), body);
            }
        }
        outcome = Some(planned);
    }
    Ok(outcome.map(|mut planned| {
        planned.nodes.iter_mut().for_each(|node| node.body = bodies.remove(&node.known.id));
        planned
    }))
}

impl Planned {
    /// What a store that holds it knows.
    #[must_use]
    pub fn known(&self) -> Known {
        Known {
            report: self.report.clone(),
            stamps: self.stamps.clone(),
            nodes: self.nodes.iter().map(|node| node.known.clone()).collect(),
        }
    }
}

impl Known {
    /// Whether both show the same, in whatever order their nodes stand.
    #[must_use]
    pub fn shows(&self, other: &Self) -> bool {
        let nodes = |known: &Self| -> BTreeMap<String, KnownNode> {
            known.nodes.iter().map(|node| (node.id.clone(), node.clone())).collect()
        };
        self.report == other.report && self.stamps == other.stamps && nodes(self) == nodes(other)
    }
}

/// What a report says, to tell it from the union that it became part of.
struct Said {
    report: Report,
    nodes: BTreeMap<String, (Option<String>, Digest16)>,
}

impl Said {
    fn of(report: &Report, nodes: &[ReportedNode]) -> Self {
        let nodes = nodes.iter().map(|node| (node.id.clone(), (node.parent.clone(), node.digest)));
        Self { report: report.clone(), nodes: nodes.collect() }
    }

    fn is_all(
        &self,
        report: &Report,
        stamps: &Stamps,
        stamp: i64,
        all: &[(KnownNode, Option<Vec<u8>>)],
    ) -> bool {
        self.report == *report
            && *stamps == Stamps::all(stamp)
            && self.nodes.len() == all.len()
            && all.iter().all(|(node, _)| {
                self.nodes.get(&node.id).is_some_and(|(parent, digest)| {
                    *digest == node.digest && node.parents.as_slice() == parent.as_slice()
                })
            })
    }
}

fn parents_of(nodes: &[KnownNode]) -> Vec<(String, Vec<String>)> {
    nodes.iter().map(|node| (node.id.clone(), node.parents.clone())).collect()
}

fn fresh(node: ReportedNode) -> (KnownNode, Option<Vec<u8>>) {
    let ReportedNode { id, parent, body, bytes, digest } = node;
    let known = KnownNode {
        id,
        parents: parent.into_iter().collect(),
        time: body.created_at,
        role: body.role,
        hidden: body.hidden(),
        thought: body.is_thought,
        digest,
    };
    (known, Some(bytes))
}

fn unite_nodes<E>(
    held: &mut (KnownNode, Option<Vec<u8>>),
    node: ReportedNode,
    tally: &mut Tally,
    stored: &mut dyn FnMut(&str) -> Result<Body, E>,
) -> Result<Option<(String, Vec<u8>)>, E> {
    let mut parents: BTreeSet<String> = held.0.parents.drain(..).collect();
    parents.extend(node.parent);
    held.0.parents = parents.into_iter().collect();
    if node.digest == held.0.digest {
        tally.unchanged += 1;
        return Ok(None);
    }
    // A body of this very import that is not stored yet can only be met when an export lists a node twice, which the
    // sandbox refuses; then the stored body is the older report and the union below still holds.
    let old = match &held.1 {
        Some(bytes) => Body::decode(bytes).ok(),
        None => Some(stored(&held.0.id)?),
    };
    let Some(old) = old else { return Ok(None) };
    let union = old.union(&node.body);
    if union == old {
        tally.unchanged += 1;
        return Ok(Some((node.id, node.bytes)));
    }
    tally.updated += 1;
    if let Ok((bytes, digest)) = union.encode() {
        held.0.time = union.created_at;
        held.0.role = union.role;
        held.0.hidden = union.hidden();
        held.0.thought = union.is_thought;
        held.0.digest = digest;
        held.1 = Some(bytes);
    }
    Ok((held.0.digest != node.digest).then_some((node.id, node.bytes)))
}

fn placed(all: Vec<(KnownNode, Option<Vec<u8>>)>, fallback: i64) -> Vec<PlannedNode> {
    let view: Vec<Node<'_>> =
        all.iter().map(|(node, _)| Node { id: &node.id, parents: &node.parents, time: node.time }).collect();
    let places = tree::place(&view, fallback);
    let ids: Vec<String> = all.iter().map(|(node, _)| node.id.clone()).collect();
    let mut all: Vec<Option<(KnownNode, Option<Vec<u8>>)>> = all.into_iter().map(Some).collect();
    places
        .into_iter()
        .filter_map(|place| {
            let (known, body) = all[place.node].take()?;
            let parent = place.parent.map(|at| ids[at].clone());
            Some(PlannedNode { known, parent, time: place.time, source: place.source, body })
        })
        .collect()
}

impl Stamps {
    fn all(stamp: i64) -> Self {
        Self {
            title: stamp,
            model: stamp,
            system_instruction: stamp,
            archived: stamp,
            current: stamp,
            format: stamp,
        }
    }
}

fn unite_reports(old: Report, stamps: Stamps, new: Report, stamp: i64) -> (Report, Stamps) {
    let (title, title_at) = newest((old.title, stamps.title), (new.title, stamp));
    let (model, model_at) = newest((old.model, stamps.model), (new.model, stamp));
    let (system_instruction, system_at) =
        newest((old.system_instruction, stamps.system_instruction), (new.system_instruction, stamp));
    let (archived, archived_at) =
        newest((Some(old.is_archived), stamps.archived), (Some(new.is_archived), stamp));
    let (current, current_at) = newest((old.current, stamps.current), (new.current, stamp));
    let (format, format_at) = newest((old.format, stamps.format), (new.format, stamp));
    let report = Report {
        provider_conversation_id: richer(&old.provider_conversation_id, &new.provider_conversation_id),
        account: richer(&old.account, &new.account),
        format,
        title,
        created_at: earlier(old.created_at, new.created_at),
        updated_at: old.updated_at.max(new.updated_at),
        participants: union_of_participants(old.participants, new.participants),
        model,
        system_instruction,
        is_archived: archived.unwrap_or(false),
        tags: union_of_tags(old.tags, new.tags),
        current,
        raw_metadata: union_of_raw(old.raw_metadata.as_ref(), new.raw_metadata.as_ref()),
    };
    let stamps = Stamps {
        title: title_at,
        model: model_at,
        system_instruction: system_at,
        archived: archived_at,
        current: current_at,
        format: format_at,
    };
    (report, stamps)
}

/// The value reported last; of two reported at once the richer. An absent value never wins.
fn newest<T: Serialize + Clone + PartialEq>(
    old: (Option<T>, i64),
    new: (Option<T>, i64),
) -> (Option<T>, i64) {
    match (&old.0, &new.0) {
        (None, None) => (None, old.1.max(new.1)),
        (None, Some(_)) => new,
        (Some(_), None) => old,
        (Some(_), Some(_)) if old.1 == new.1 => (richer(&old.0, &new.0), old.1),
        (Some(_), Some(_)) if old.1 > new.1 => old,
        (Some(_), Some(_)) => new,
    }
}

fn union_of_tags(old: Vec<String>, new: Vec<String>) -> Vec<String> {
    if old == new {
        return old;
    }
    old.into_iter().chain(new).collect::<BTreeSet<_>>().into_iter().collect()
}

fn union_of_participants(old: Vec<Participant>, new: Vec<Participant>) -> Vec<Participant> {
    if old == new {
        return old;
    }
    let mut all: BTreeMap<(Role, Option<String>), Participant> = BTreeMap::new();
    for one in old.into_iter().chain(new) {
        let key = (one.role, one.provider_id.clone().or_else(|| one.name.clone()));
        let name = richer(&all.get(&key).and_then(|known| known.name.clone()), &one.name);
        all.insert(key, Participant { name, ..one });
    }
    all.into_values().collect()
}

/// The report that a stored header stands for.
pub fn report_of(header: &ConversationHeader, current: Option<&str>) -> Report {
    Report {
        provider_conversation_id: header.provider.conversation_id.clone(),
        account: header.provider.account_id.clone(),
        format: header.provider.export_format_version.clone(),
        title: header.title.clone(),
        created_at: Some(header.temporal.created_at.micros()),
        updated_at: header.temporal.updated_at.map(satchel_pam::time::Timestamp::micros),
        participants: header.participants.clone(),
        model: header.model.clone(),
        system_instruction: header.system_instruction.clone(),
        is_archived: header.is_archived,
        tags: header.tags.clone(),
        current: current.map(str::to_owned),
        raw_metadata: header.raw_metadata.clone(),
    }
}

#[cfg(test)]
mod tests;
