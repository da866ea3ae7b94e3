//! Converts between a planned conversation and its record in the store, and from the record to PAM.

use std::collections::{BTreeSet, HashMap};

use satchel_merge::{
    body::{Body, Digest16, MessagePosition},
    conversation::{
        ConversationPlan, ConversationReport, ConversationState, FieldTimestamps, NodeState, PlannedNode,
        report_of,
    },
    document::LINEAR,
    notes, stub,
    tree::{PlacedNode, TimeSource, newest_leaf},
};
use satchel_pam::{
    conversation::{ConversationHeader, ConversationTemporal, ImportMetadata, Message, Provider},
    time::Timestamp,
};
use satchel_store::{Change, ConversationRecord, ConversationWrite, MessageHead, MessageWrite};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Additional data that the store keeps with a conversation for the next merge.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ConversationMemo {
    #[serde(default)]
    stamps: FieldTimestamps,
    /// The creation time that an export gave.
    #[serde(default)]
    created_at: Option<i64>,
}

/// Additional data that the store keeps with a head. Empty if the node has its own time and always had the same parent.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HeadMemo {
    #[serde(default, rename = "t", skip_serializing_if = "Option::is_none")]
    source: Option<u8>,
    #[serde(default, rename = "p", skip_serializing_if = "Option::is_none")]
    parents: Option<Vec<String>>,
}

const SOURCES: [TimeSource; 4] =
    [TimeSource::Message, TimeSource::Parent, TimeSource::Child, TimeSource::Conversation];

/// The data that a write needs besides the plan.
pub struct WriteLabels<'a> {
    pub id: &'a str,
    pub platform: &'a str,
    /// The creation time of a conversation without any time, in microseconds.
    pub fallback: i64,
    pub import: ImportMetadata,
}

/// Returns the write that makes the store hold `planned`.
pub fn to_write(planned: ConversationPlan, labels: WriteLabels<'_>) -> ConversationWrite {
    let ConversationPlan { report, timestamps: stamps, nodes, .. } = planned;
    let memo = ConversationMemo { stamps, created_at: report.created_at };
    let first =
        nodes.iter().filter(|node| node.source != TimeSource::Conversation).map(|node| node.time).min();
    let created = report.created_at.or(first).or(report.updated_at).unwrap_or(labels.fallback);
    let current = report.current.clone();
    let header = header_of(report, created, &labels);
    let messages = nodes.into_iter().map(|node| message_write(node, created)).collect();
    ConversationWrite { header, current, opaque: serde_json::to_vec(&memo).unwrap_or_default(), messages }
}

/// Returns the change that shows `planned`. Bodies that the stored version has, visible or not, are not stored twice.
pub(crate) fn write_of(
    planned: ConversationPlan,
    labels: WriteLabels<'_>,
    stored: Option<&ConversationRecord>,
) -> Change {
    let held: HashMap<&str, Digest16> =
        stored.iter().flat_map(|stored| &stored.heads).map(|head| (head.id.as_str(), head.digest)).collect();
    let mut write = to_write(planned, labels);
    for message in &mut write.messages {
        if held.get(message.head().id.as_str()) == Some(&message.head().digest) {
            *message = MessageWrite::Keep { head: message.head().clone() };
        }
    }
    Change::Conversation(Box::new(write))
}

fn header_of(report: ConversationReport, created: i64, labels: &WriteLabels<'_>) -> ConversationHeader {
    let ConversationReport {
        provider_conversation_id,
        account,
        format,
        title,
        created_at: _,
        updated_at,
        participants,
        model,
        system_instruction,
        is_archived,
        tags,
        current: _,
        raw_metadata,
    } = report;
    ConversationHeader {
        id: labels.id.to_owned(),
        provider: Provider {
            name: labels.platform.to_owned(),
            conversation_id: provider_conversation_id,
            account_id: account,
            export_format_version: format,
        },
        title,
        temporal: ConversationTemporal {
            created_at: Timestamp::saturating(created),
            updated_at: updated_at.map(Timestamp::saturating),
        },
        participants,
        model,
        system_instruction,
        is_archived,
        tags,
        raw_metadata,
        import_metadata: Some(labels.import.clone()),
    }
}

fn message_write(node: PlannedNode, created: i64) -> MessageWrite {
    let PlannedNode { state: known, parent, time, source, body } = node;
    let is_default = source == TimeSource::Message && known.parents.as_slice() == parent.as_slice();
    let opaque = if is_default { Vec::new() } else { head_memo(source, &known.parents, parent.as_ref()) };
    let time = if source == TimeSource::Conversation { created } else { time };
    let head = MessageHead {
        id: known.id,
        parent,
        role: known.role,
        created_at_micros: time,
        hidden: known.hidden,
        thought: known.thought,
        digest: known.digest,
        opaque,
    };
    match body {
        Some(body) => MessageWrite::Put { head, body },
        None => MessageWrite::Keep { head },
    }
}

fn head_memo(source: TimeSource, parents: &[String], parent: Option<&String>) -> Vec<u8> {
    let memo = HeadMemo {
        source: SOURCES
            .iter()
            .position(|one| *one == source)
            .and_then(|at| u8::try_from(at).ok())
            .filter(|at| *at > 0),
        parents: (parents != parent.map(std::slice::from_ref).unwrap_or_default()).then(|| parents.to_vec()),
    };
    serde_json::to_vec(&memo).unwrap_or_default()
}

fn decode_head_memo(head: &MessageHead) -> (TimeSource, Vec<String>) {
    let memo: HeadMemo = serde_json::from_slice(&head.opaque).unwrap_or_default();
    let source =
        memo.source.and_then(|at| SOURCES.get(usize::from(at)).copied()).unwrap_or(TimeSource::Message);
    (source, memo.parents.unwrap_or_else(|| head.parent.iter().cloned().collect()))
}

/// Returns the contents of a stored record in the form that planning needs.
pub fn known(record: &ConversationRecord) -> ConversationState {
    let memo: ConversationMemo = serde_json::from_slice(&record.opaque).unwrap_or_default();
    let mut report = report_of(&record.header, record.current.as_deref());
    report.created_at = memo.created_at;
    let nodes = record
        .heads
        .iter()
        .map(|head| {
            let (source, parents) = decode_head_memo(head);
            NodeState {
                id: head.id.clone(),
                parents,
                time: (source == TimeSource::Message).then_some(head.created_at_micros),
                role: head.role,
                hidden: head.hidden,
                thought: head.thought,
                digest: head.digest,
            }
        })
        .collect();
    ConversationState { report, timestamps: memo.stamps, nodes }
}

/// Returns the header as PAM shows it, with the leaf that the user last saw, and with the origin of times that no
/// export contained.
pub fn shown_header(record: &ConversationRecord) -> ConversationHeader {
    let memo: ConversationMemo = serde_json::from_slice(&record.opaque).unwrap_or_default();
    let mut header = record.header.clone();
    let mut own = Map::new();
    let mut note = |key: &str, value: &str| own.insert(key.to_owned(), value.into());
    if memo.created_at.is_none() {
        note("created_at_source", "messages");
    }
    if let Some(updated) = header.temporal.updated_at.filter(|updated| *updated < header.temporal.created_at)
    {
        // PAM readers refuse such a pair of times; the provider's value is kept in the notes.
        note("updated_at_source", &updated.to_string());
        header.temporal.updated_at = None;
    }
    if let Some(leaf) = leaf(record) {
        note("current_message", leaf);
        if record.current.as_deref() != Some(leaf) {
            // No export named this leaf. Readers of the bundle have to know that, because a newer message replaces it.
            note("current_message_source", "newest");
        }
    }
    header.raw_metadata = notes::with(header.raw_metadata, own);
    header
}

/// Returns whether a conversation was imported as a line of messages without parents, and still is one, as PAM allows
/// (§25.3).
#[must_use]
pub fn is_line(record: &ConversationRecord) -> bool {
    let before = std::iter::once(None).chain(record.heads.iter().map(|head| Some(head.id.as_str())));
    notes::get(record.header.raw_metadata.as_ref(), LINEAR) == Some(Value::Bool(true))
        && record.heads.iter().zip(before).all(|(head, before)| head.parent.as_deref() == before)
}

/// Returns the leaf of the branch that the user last saw: the one named by the provider, or else the newest.
pub fn leaf(record: &ConversationRecord) -> Option<&str> {
    let ids: Vec<&str> = record.heads.iter().map(|head| head.id.as_str()).collect();
    if let Some(current) = record.current.as_deref().filter(|current| ids.contains(current)) {
        return Some(current);
    }
    let index: HashMap<&str, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let placed: Vec<PlacedNode> = record
        .heads
        .iter()
        .enumerate()
        .map(|(node, head)| PlacedNode {
            node,
            parent: head.parent.as_deref().and_then(|parent| index.get(parent).copied()),
            time: head.created_at_micros,
            source: TimeSource::Message,
        })
        .collect();
    newest_leaf(&placed, &ids).map(|at| ids[at])
}

/// Returns the messages from the root down to `leaf`.
pub fn branch<'a>(record: &'a ConversationRecord, leaf: &str) -> Vec<&'a str> {
    let heads: HashMap<&str, &MessageHead> =
        record.heads.iter().map(|head| (head.id.as_str(), head)).collect();
    let mut path = Vec::new();
    let mut seen = BTreeSet::new();
    let mut at = heads.get(leaf).copied();
    while let Some(head) = at.filter(|head| seen.insert(head.id.as_str())) {
        path.push(head.id.as_str());
        at = head.parent.as_deref().and_then(|parent| heads.get(parent).copied());
    }
    path.reverse();
    path
}

/// The position of each message in the tree of a conversation. Computed once; queried by the message's index in the
/// record.
pub struct MessageTree {
    /// The indices of all messages that have a parent, grouped by parent.
    children: Vec<usize>,
    /// Where the children of each message begin in `children`; has one more element than there are messages.
    child_offsets: Vec<usize>,
    active: Vec<bool>,
}

impl MessageTree {
    /// Computes the positions of all messages.
    pub fn new(record: &ConversationRecord) -> Self {
        let heads = &record.heads;
        let index: HashMap<&str, usize> =
            heads.iter().enumerate().map(|(at, head)| (head.id.as_str(), at)).collect();
        let parent = |head: &MessageHead| index.get(head.parent.as_deref()?).copied();
        let mut child_offsets = vec![0; heads.len() + 1];
        heads.iter().filter_map(parent).for_each(|parent| child_offsets[parent + 1] += 1);
        for at in 1..child_offsets.len() {
            child_offsets[at] += child_offsets[at - 1];
        }
        let (mut next, mut children) = (child_offsets.clone(), vec![0; child_offsets[heads.len()]]);
        for (at, head) in heads.iter().enumerate() {
            if let Some(parent) = parent(head) {
                children[next[parent]] = at;
                next[parent] += 1;
            }
        }
        let mut active = vec![false; heads.len()];
        let path = leaf(record).map(|leaf| branch(record, leaf)).unwrap_or_default();
        path.into_iter().filter_map(|id| index.get(id)).for_each(|at| active[*at] = true);
        Self { children, child_offsets, active }
    }

    /// Returns whether the message is on the branch that the user last saw.
    pub fn is_active(&self, at: usize) -> bool {
        self.active.get(at).copied().unwrap_or(false)
    }

    /// Returns the PAM message at an index of `record`, given its stored `body`.
    ///
    /// # Errors
    /// The bytes are not a body.
    pub fn message(
        &self,
        record: &ConversationRecord,
        at: usize,
        body: &[u8],
    ) -> serde_json::Result<Message> {
        let head = &record.heads[at];
        let (source, _) = decode_head_memo(head);
        let children = &self.children[self.child_offsets[at]..self.child_offsets[at + 1]];
        let position = MessagePosition {
            id: head.id.clone(),
            parent: head.parent.clone(),
            children: children.iter().map(|child| record.heads[*child].id.clone()).collect(),
            time: Timestamp::saturating(head.created_at_micros),
            source,
            active: self.is_active(at),
        };
        Ok(Body::decode(body)?.into_message(position))
    }
}

/// Returns whether the store knows a conversation only from an index.
#[must_use]
pub fn is_stub(record: &ConversationRecord) -> bool {
    index_facts(record).is_some()
}

/// Returns what an index says about a conversation that the store knows only from that index.
#[must_use]
pub fn index_facts(record: &ConversationRecord) -> Option<stub::Facts> {
    stub::read(record.header.raw_metadata.as_ref().filter(|_| record.heads.is_empty())?)
}
