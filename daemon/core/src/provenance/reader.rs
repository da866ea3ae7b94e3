//! Reads reports about conversations, part by part. The bodies of parts that were imported together are stored in one
//! version, which is read once for all of them.

use std::collections::HashMap;

use satchel_merge::{
    body::Body,
    conversation::{ConversationReport, ConversationState, NodeState, ReportedNode},
    groups::{Outline, OutlineRow},
};
use satchel_store::{ConversationRecord, Ledger, Store};

use super::{
    Contribution, ProvenanceError,
    contribution::{self, StoredContribution, StoredNode, WHAT},
    decode,
};
use crate::conversation_record;

/// A reader that holds the version that was used last, and nothing else.
pub struct ContributionReader<'a> {
    store: &'a Store,
    base: Option<BaseVersion>,
}

/// A version that contains the bodies of separately stored parts.
struct BaseVersion {
    conversation: String,
    version: u32,
    record: ConversationRecord,
    /// The properties of its messages that an outline needs; computed on first use.
    nodes: Option<HashMap<String, (bool, Option<i64>)>>,
    /// The bodies; read on first use.
    bodies: Option<HashMap<String, Vec<u8>>>,
}

impl<'a> ContributionReader<'a> {
    /// Creates a reader for `store`.
    #[must_use]
    pub fn new(store: &'a Store) -> Self {
        Self { store, base: None }
    }

    /// Returns what was reported about the conversation `id`, with all bodies.
    ///
    /// # Errors
    /// Stored data is missing or cannot be decoded.
    pub fn read(
        &mut self,
        id: &str,
        part: &Contribution,
    ) -> Result<(ConversationReport, Vec<ReportedNode>), ProvenanceError> {
        let id = part.conversation.as_deref().unwrap_or(id);
        if let Some(version) = part.version {
            return version_as_report(self.store, &load_version(self.store, id, version)?);
        }
        let stored = self.load_stored(part)?;
        let needed = stored.nodes.iter().any(|node| node.body.is_none());
        let bodies = if needed { Some(self.load_bodies(id, stored.base)?) } else { None };
        let mut nodes = Vec::with_capacity(stored.nodes.len());
        for StoredNode { id, parent, body } in stored.nodes {
            let bytes = match body {
                Some(body) => body.get().as_bytes().to_vec(),
                None => bodies.and_then(|bodies| bodies.get(&id)).cloned().ok_or_else(missing)?,
            };
            nodes.push(parse_node(id, parent, bytes)?);
        }
        Ok((stored.report, nodes))
    }

    /// Returns the outline of what [`ContributionReader::read`] would return. Bodies are read only if they are stored with the
    /// part.
    ///
    /// # Errors
    /// As [`ContributionReader::read`].
    pub fn read_outline(&mut self, id: &str, part: &Contribution) -> Result<Outline, ProvenanceError> {
        let id = part.conversation.as_deref().unwrap_or(id);
        if let Some(version) = part.version {
            let ConversationState { report, nodes, .. } =
                conversation_record::known(&load_version(self.store, id, version)?);
            return Ok(Outline::of(&report, nodes.iter().map(outline_row)));
        }
        let stored = self.load_stored(part)?;
        let mut rows: Vec<(&str, bool, Option<i64>)> = Vec::with_capacity(stored.nodes.len());
        for StoredNode { id: node, body, .. } in &stored.nodes {
            let (hidden, time) = match body {
                Some(body) => {
                    let body = decode_body(body.get().as_bytes())?;
                    (body.hidden(), body.created_at)
                }
                None => *self.load_base(id, stored.base)?.nodes().get(node).ok_or_else(missing)?,
            };
            rows.push((node, hidden, time));
        }
        let rows = rows.iter().map(|(id, hidden, time)| OutlineRow { id, hidden: *hidden, time: *time });
        Ok(Outline::of(&stored.report, rows))
    }

    fn load_stored(&self, part: &Contribution) -> Result<StoredContribution, ProvenanceError> {
        let entry = self.store.ledger_get(Ledger::Provenance, &contribution::entry_id(&part.digest))?;
        decode(&entry.ok_or_else(missing)?.value, WHAT)
    }

    fn load_base(&mut self, id: &str, version: u32) -> Result<&mut BaseVersion, ProvenanceError> {
        match &mut self.base {
            Some(base) if base.conversation == id && base.version == version => {}
            other => {
                let record = load_version(self.store, id, version)?;
                let conversation = id.to_owned();
                *other = Some(BaseVersion { conversation, version, record, nodes: None, bodies: None });
            }
        }
        self.base.as_mut().ok_or_else(missing)
    }

    fn load_bodies(&mut self, id: &str, version: u32) -> Result<&HashMap<String, Vec<u8>>, ProvenanceError> {
        let store = self.store;
        let base = self.load_base(id, version)?;
        match &mut base.bodies {
            Some(bodies) => Ok(bodies),
            empty => Ok(empty.insert(store.all_bodies(&base.record).collect::<Result<_, _>>()?)),
        }
    }
}

impl BaseVersion {
    fn nodes(&mut self) -> &HashMap<String, (bool, Option<i64>)> {
        let record = &self.record;
        self.nodes.get_or_insert_with(|| {
            let nodes = conversation_record::known(record).nodes.into_iter();
            nodes.map(|node| (node.id, (node.hidden, node.time))).collect()
        })
    }
}

fn outline_row(node: &NodeState) -> OutlineRow<'_> {
    OutlineRow { id: &node.id, hidden: node.hidden, time: node.time }
}

fn missing() -> ProvenanceError {
    ProvenanceError::Unreadable { what: WHAT }
}

fn load_version(store: &Store, id: &str, version: u32) -> Result<ConversationRecord, ProvenanceError> {
    satchel_failpoints::reached("version of a conversation read");
    let found = store.conversation_version(id, version)?;
    found.ok_or(ProvenanceError::Unreadable { what: "an older version of a conversation" })
}

/// Returns a version as if it were the report of an export.
pub(crate) fn version_as_report(
    store: &Store,
    record: &ConversationRecord,
) -> Result<(ConversationReport, Vec<ReportedNode>), ProvenanceError> {
    let known = conversation_record::known(record);
    let mut nodes = Vec::with_capacity(known.nodes.len());
    for (known, body) in known.nodes.into_iter().zip(store.all_bodies(record)) {
        nodes.push(parse_node(known.id, known.parents.into_iter().next(), body?.1)?);
    }
    Ok((known.report, nodes))
}

fn parse_node(id: String, parent: Option<String>, bytes: Vec<u8>) -> Result<ReportedNode, ProvenanceError> {
    ReportedNode::read(id, parent, bytes)
        .map_err(|_| ProvenanceError::Unreadable { what: "a stored message" })
}

fn decode_body(bytes: &[u8]) -> Result<Body, ProvenanceError> {
    Body::decode(bytes).map_err(|_| ProvenanceError::Unreadable { what: "a stored message" })
}
