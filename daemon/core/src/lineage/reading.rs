//! Reads reports about conversations, part by part. The bodies of parts that were imported together are stored in one
//! version, which is read once for all of them.

use std::collections::HashMap;

use satchel_merge::{
    body::Body,
    conversation::{Known, KnownNode, Report, ReportedNode},
    groups::{Outline, Row},
};
use satchel_store::{ConversationRecord, Ledger, Store};

use super::{
    LineageError, Part, decode,
    said::{self, Kept, KeptNode, WHAT},
};
use crate::conversation_record;

/// A reader that holds the version that was used last, and nothing else.
pub struct Reading<'a> {
    store: &'a Store,
    base: Option<Base>,
}

/// A version that contains the bodies of separately stored parts.
struct Base {
    conversation: String,
    version: u32,
    record: ConversationRecord,
    /// The properties of its messages that an outline needs; computed on first use.
    nodes: Option<HashMap<String, (bool, Option<i64>)>>,
    /// The bodies; read on first use.
    bodies: Option<HashMap<String, Vec<u8>>>,
}

impl<'a> Reading<'a> {
    /// Creates a reader for `store`.
    #[must_use]
    pub fn new(store: &'a Store) -> Self {
        Self { store, base: None }
    }

    /// Returns what was reported about the conversation `id`, with all bodies.
    ///
    /// # Errors
    /// Stored data is missing or cannot be decoded.
    pub fn part(&mut self, id: &str, part: &Part) -> Result<(Report, Vec<ReportedNode>), LineageError> {
        let id = part.home.as_deref().unwrap_or(id);
        if let Some(version) = part.version {
            return whole(self.store, &version_of(self.store, id, version)?);
        }
        let kept = self.kept(part)?;
        let needed = kept.nodes.iter().any(|node| node.body.is_none());
        let bodies = if needed { Some(self.bodies(id, kept.base)?) } else { None };
        let mut nodes = Vec::with_capacity(kept.nodes.len());
        for KeptNode { id, parent, body } in kept.nodes {
            let bytes = match body {
                Some(body) => body.get().as_bytes().to_vec(),
                None => bodies.and_then(|bodies| bodies.get(&id)).cloned().ok_or_else(missing)?,
            };
            nodes.push(node(id, parent, bytes)?);
        }
        Ok((kept.report, nodes))
    }

    /// Returns the outline of what [`Reading::part`] would return. Bodies are read only if they are stored with the
    /// part.
    ///
    /// # Errors
    /// As [`Reading::part`].
    pub fn outline(&mut self, id: &str, part: &Part) -> Result<Outline, LineageError> {
        let id = part.home.as_deref().unwrap_or(id);
        if let Some(version) = part.version {
            let Known { report, nodes, .. } =
                conversation_record::known(&version_of(self.store, id, version)?);
            return Ok(Outline::of(&report, nodes.iter().map(row)));
        }
        let kept = self.kept(part)?;
        let mut rows: Vec<(&str, bool, Option<i64>)> = Vec::with_capacity(kept.nodes.len());
        for KeptNode { id: node, body, .. } in &kept.nodes {
            let (hidden, time) = match body {
                Some(body) => {
                    let body = decoded(body.get().as_bytes())?;
                    (body.hidden(), body.created_at)
                }
                None => *self.base(id, kept.base)?.nodes().get(node).ok_or_else(missing)?,
            };
            rows.push((node, hidden, time));
        }
        let rows = rows.iter().map(|(id, hidden, time)| Row { id, hidden: *hidden, time: *time });
        Ok(Outline::of(&kept.report, rows))
    }

    fn kept(&self, part: &Part) -> Result<Kept, LineageError> {
        let entry = self.store.ledger_get(Ledger::Lineage, &said::name(&part.digest))?;
        decode(&entry.ok_or_else(missing)?.value, WHAT)
    }

    fn base(&mut self, id: &str, version: u32) -> Result<&mut Base, LineageError> {
        match &mut self.base {
            Some(base) if base.conversation == id && base.version == version => {}
            other => {
                let record = version_of(self.store, id, version)?;
                let conversation = id.to_owned();
                *other = Some(Base { conversation, version, record, nodes: None, bodies: None });
            }
        }
        self.base.as_mut().ok_or_else(missing)
    }

    fn bodies(&mut self, id: &str, version: u32) -> Result<&HashMap<String, Vec<u8>>, LineageError> {
        let store = self.store;
        let base = self.base(id, version)?;
        match &mut base.bodies {
            Some(bodies) => Ok(bodies),
            empty => Ok(empty.insert(store.all_bodies(&base.record).collect::<Result<_, _>>()?)),
        }
    }
}

impl Base {
    fn nodes(&mut self) -> &HashMap<String, (bool, Option<i64>)> {
        let record = &self.record;
        self.nodes.get_or_insert_with(|| {
            let nodes = conversation_record::known(record).nodes.into_iter();
            nodes.map(|node| (node.id, (node.hidden, node.time))).collect()
        })
    }
}

fn row(node: &KnownNode) -> Row<'_> {
    Row { id: &node.id, hidden: node.hidden, time: node.time }
}

fn missing() -> LineageError {
    LineageError::Unreadable { what: WHAT }
}

fn version_of(store: &Store, id: &str, version: u32) -> Result<ConversationRecord, LineageError> {
    satchel_failpoints::reached("version of a conversation read");
    let found = store.conversation_version(id, version)?;
    found.ok_or(LineageError::Unreadable { what: "an older version of a conversation" })
}

/// Returns a version as if it were the report of an export.
fn whole(store: &Store, record: &ConversationRecord) -> Result<(Report, Vec<ReportedNode>), LineageError> {
    let known = conversation_record::known(record);
    let mut nodes = Vec::with_capacity(known.nodes.len());
    for (known, body) in known.nodes.into_iter().zip(store.all_bodies(record)) {
        nodes.push(node(known.id, known.parents.into_iter().next(), body?.1)?);
    }
    Ok((known.report, nodes))
}

fn node(id: String, parent: Option<String>, bytes: Vec<u8>) -> Result<ReportedNode, LineageError> {
    ReportedNode::read(id, parent, bytes).map_err(|_| LineageError::Unreadable { what: "a stored message" })
}

fn decoded(bytes: &[u8]) -> Result<Body, LineageError> {
    Body::decode(bytes).map_err(|_| LineageError::Unreadable { what: "a stored message" })
}
