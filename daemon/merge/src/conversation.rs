//! Unites the stored state of a conversation with the report of an export.
//!
//! Nodes unite by id and are never deleted. For the fields that people change (title, archived, the leaf they look at),
//! the newest export that has a value wins. Every other field keeps the richer value.

mod union;

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    conversation::{ConversationHeader, Participant, Role},
    raw::RawObject,
};
use serde::{Deserialize, Serialize};

use super::{
    body::{self, Body, Digest16, earlier, richer, union_of_raw},
    tree::TimeSource,
};

pub use union::{Union, UnionChange, unite, unite_all};

/// When the value of each changeable field was reported, in microseconds of the export's own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FieldTimestamps {
    title: i64,
    model: i64,
    system_instruction: i64,
    archived: i64,
    current: i64,
    format: i64,
}

/// The fields of a conversation as one export reports them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConversationReport {
    /// See `record::ConversationRecord` for all of these fields.
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

/// One node as an export reports it. The body is held only in encoded form, because a single conversation can take up
/// most of the available memory.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedNode {
    /// Message id.
    pub id: String,
    /// Message id of the parent.
    pub parent: Option<String>,
    /// The node's own time in microseconds, if the export has one.
    pub time: Option<i64>,
    pub role: Role,
    pub hidden: bool,
    pub thought: bool,
    /// The message body, an encoded [`Body`].
    pub bytes: Vec<u8>,
    /// The digest of `bytes`.
    pub digest: Digest16,
}

impl ReportedNode {
    /// Creates a node with `body`.
    ///
    /// # Errors
    /// If the body cannot be written as JSON.
    pub fn new(id: String, parent: Option<String>, body: &Body) -> serde_json::Result<Self> {
        let (bytes, digest) = body.encode()?;
        Ok(Self::encoded(id, parent, body, (bytes, digest)))
    }

    /// Creates a node from `bytes`, an encoded body.
    ///
    /// # Errors
    /// If `bytes` are not a body.
    pub fn read(id: String, parent: Option<String>, bytes: Vec<u8>) -> serde_json::Result<Self> {
        let (body, digest) = (Body::decode(&bytes)?, body::digest(&bytes));
        Ok(Self::encoded(id, parent, &body, (bytes, digest)))
    }

    fn encoded(
        id: String,
        parent: Option<String>,
        body: &Body,
        (bytes, digest): (Vec<u8>, Digest16),
    ) -> Self {
        let (time, role, hidden, thought) = (body.created_at, body.role, body.hidden(), body.is_thought);
        Self { id, parent, time, role, hidden, thought, bytes, digest }
    }
}

/// The stored state of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationState {
    pub report: ConversationReport,
    pub timestamps: FieldTimestamps,
    pub nodes: Vec<NodeState>,
}

/// The stored state of a node, without its body.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeState {
    pub id: String,
    /// Every parent under which any export showed it.
    pub parents: Vec<String>,
    /// The node's own time, if any export had one.
    pub time: Option<i64>,
    pub role: Role,
    pub hidden: bool,
    pub thought: bool,
    pub digest: Digest16,
}

/// A node placed in the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedNode {
    pub state: NodeState,
    /// The parent, chosen from all that exports showed.
    pub parent: Option<String>,
    /// Microseconds.
    pub time: i64,
    pub source: TimeSource,
    /// The new body; `None` if the stored one stays.
    pub body: Option<Vec<u8>>,
}

/// The planned new state of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationPlan {
    pub report: ConversationReport,
    pub timestamps: FieldTimestamps,
    /// In tree order.
    pub nodes: Vec<PlannedNode>,
    pub messages: MessageCounts,
    /// Whether anything differs from the stored state.
    pub changed: bool,
    /// Whether the result is exactly what the report says, with nothing from other reports.
    pub equals_report: bool,
    /// Bodies of the report that differ from those in the union, by message.
    pub differing_bodies: Vec<(String, Vec<u8>)>,
}

/// How many messages of the report are new, updated or unchanged. Each message is counted in exactly one field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    pub new: u64,
    pub updated: u64,
    pub unchanged: u64,
}

impl ConversationPlan {
    /// Returns the stored state after this plan was applied.
    #[must_use]
    pub fn state(&self) -> ConversationState {
        ConversationState {
            report: self.report.clone(),
            timestamps: self.timestamps.clone(),
            nodes: self.nodes.iter().map(|node| node.state.clone()).collect(),
        }
    }
}

impl ConversationState {
    /// Returns whether both have the same content, regardless of the order of their nodes.
    #[must_use]
    pub fn same_content(&self, other: &Self) -> bool {
        let nodes = |known: &Self| -> BTreeMap<String, NodeState> {
            known.nodes.iter().map(|node| (node.id.clone(), node.clone())).collect()
        };
        self.report == other.report && self.timestamps == other.timestamps && nodes(self) == nodes(other)
    }

    /// Returns whether a reader sees nothing in it that is not in the report of an export and its `nodes`.
    #[must_use]
    pub fn same_visible_content(&self, report: &ConversationReport, nodes: &[ReportedNode]) -> bool {
        let visible_fields = |report: &ConversationReport| {
            let ConversationReport { title, model, system_instruction, is_archived, tags, .. } =
                report.clone();
            (title, model, system_instruction, is_archived, tags)
        };
        let shown: BTreeMap<&str, Digest16> =
            self.nodes.iter().map(|node| (node.id.as_str(), node.digest)).collect();
        let reported = nodes.iter().map(|node| (node.id.as_str(), node.digest)).collect();
        visible_fields(&self.report) == visible_fields(report) && shown == reported
    }
}

impl FieldTimestamps {
    /// Returns stamps in which every field was reported at `stamp`.
    pub(super) fn all(stamp: i64) -> Self {
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

fn unite_reports(
    old: ConversationReport,
    stamps: FieldTimestamps,
    new: ConversationReport,
    stamp: i64,
) -> (ConversationReport, FieldTimestamps) {
    let (title, title_at) = newest((old.title, stamps.title), (new.title, stamp));
    let (model, model_at) = newest((old.model, stamps.model), (new.model, stamp));
    let (system_instruction, system_at) =
        newest((old.system_instruction, stamps.system_instruction), (new.system_instruction, stamp));
    let (archived, archived_at) =
        newest((Some(old.is_archived), stamps.archived), (Some(new.is_archived), stamp));
    let (current, current_at) = newest((old.current, stamps.current), (new.current, stamp));
    let (format, format_at) = newest((old.format, stamps.format), (new.format, stamp));
    let report = ConversationReport {
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
    let stamps = FieldTimestamps {
        title: title_at,
        model: model_at,
        system_instruction: system_at,
        archived: archived_at,
        current: current_at,
        format: format_at,
    };
    (report, stamps)
}

/// Returns the value that was reported last, or the richer one if both were reported at the same time. An absent value
/// never wins.
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

/// Returns the report that a stored header corresponds to.
pub fn report_of(header: &ConversationHeader, current: Option<&str>) -> ConversationReport {
    ConversationReport {
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
