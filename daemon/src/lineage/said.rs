//! What one export said of one conversation: told apart by its digest, kept where no version of the conversation is it.

use std::collections::HashMap;

use satchel_pam::hash::Sha256Digest;
use satchel_store::{Change, ConversationRecord, Ledger, Store};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Key, LineageError, Part, REST, decode, encode, put};
use crate::plan::{
    assemble,
    body::{Body, Digest16, digest},
    conversation::{Planned, Report, ReportedNode},
};

/// Hex digits of a digest.
const DIGITS: usize = 32;
const WHAT: &str = "what an import said of a conversation";

/// The skeleton of what an export says of a conversation: all but the bodies.
pub struct Said {
    /// Of all of it, 32 hex digits.
    pub digest: String,
    report: Report,
    nodes: Vec<(String, Option<String>, Digest16)>,
}

impl Said {
    /// Of the conversation `id`.
    ///
    /// # Errors
    /// None in practice.
    pub fn of(id: &str, report: &Report, nodes: &[ReportedNode]) -> Result<Self, LineageError> {
        let nodes: Vec<(String, Option<String>, Digest16)> =
            nodes.iter().map(|node| (node.id.clone(), node.parent.clone(), node.digest)).collect();
        let mut sorted: Vec<&(String, Option<String>, Digest16)> = nodes.iter().collect();
        sorted.sort_unstable();
        let mut digest = Sha256Digest::of(&encode(&(id, report, sorted), WHAT)?).to_hex();
        digest.truncate(DIGITS);
        Ok(Self { digest, report: report.clone(), nodes })
    }

    /// The key under which an import brings it.
    #[must_use]
    pub fn key(&self) -> Key {
        key(&self.digest).unwrap_or_default()
    }
}

/// What was said and is no version of the conversation, as it lies in the ledger.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    report: Report,
    nodes: Vec<KeptNode>,
    /// The version of the conversation that has the bodies that do not stand here.
    base: u32,
}

#[derive(Serialize, Deserialize)]
struct KeptNode {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
}

impl Kept {
    /// Keeps what was `said`, once it has become part of `planned`, which is version `base`.
    ///
    /// # Errors
    /// When a body is no JSON.
    pub fn of(said: Said, planned: &Planned, base: u32) -> Result<Self, LineageError> {
        let shown: HashMap<&str, Digest16> =
            planned.nodes.iter().map(|node| (node.known.id.as_str(), node.known.digest)).collect();
        let spare: HashMap<&str, &[u8]> =
            planned.spare.iter().map(|(id, bytes)| (id.as_str(), bytes.as_slice())).collect();
        let Said { digest: _, report, nodes } = said;
        let mut kept = Vec::with_capacity(nodes.len());
        for (id, parent, digest) in nodes {
            let own = if shown.get(id.as_str()) == Some(&digest) { None } else { spare.get(id.as_str()) };
            let body = own.map(|bytes| decode(bytes, WHAT)).transpose()?;
            kept.push(KeptNode { id, parent, body });
        }
        Ok(Self { report, nodes: kept, base })
    }

    /// What stores it.
    ///
    /// # Errors
    /// None in practice.
    pub fn change(&self, digest: &str) -> Result<Change, LineageError> {
        Ok(put(name(digest), REST, encode(self, WHAT)?))
    }
}

/// The bytes of a digest.
pub(super) fn key(digest: &str) -> Option<Key> {
    u128::from_str_radix(digest, 16).ok().map(u128::to_be_bytes)
}

pub(super) fn name(digest: &str) -> String {
    format!("said {digest}")
}

impl Part {
    /// What was said of the conversation `id`, with all bodies.
    ///
    /// # Errors
    /// When it is not where it should be.
    pub fn load(&self, store: &Store, id: &str) -> Result<(Report, Vec<ReportedNode>), LineageError> {
        let id = self.home.as_deref().unwrap_or(id);
        match self.version {
            Some(version) => whole(store, &version_of(store, id, version)?),
            None => self.kept(store, id),
        }
    }

    fn kept(&self, store: &Store, id: &str) -> Result<(Report, Vec<ReportedNode>), LineageError> {
        let entry = store.ledger_get(Ledger::Lineage, &name(&self.digest))?;
        let kept: Kept = decode(&entry.ok_or(LineageError::Unreadable { what: WHAT })?.value, WHAT)?;
        let mut bodies = HashMap::new();
        if kept.nodes.iter().any(|node| node.body.is_none()) {
            let base = version_of(store, id, kept.base)?;
            bodies = store.all_bodies(&base).collect::<Result<_, _>>()?;
        }
        let mut nodes = Vec::with_capacity(kept.nodes.len());
        for KeptNode { id, parent, body } in kept.nodes {
            let bytes = match body {
                Some(body) => body.get().as_bytes().to_vec(),
                None => bodies.remove(&id).ok_or(LineageError::Unreadable { what: WHAT })?,
            };
            nodes.push(node(id, parent, bytes)?);
        }
        Ok((kept.report, nodes))
    }
}

fn version_of(store: &Store, id: &str, version: u32) -> Result<ConversationRecord, LineageError> {
    let found = store.conversation_version(id, version)?;
    found.ok_or(LineageError::Unreadable { what: "an older version of a conversation" })
}

/// A version as if an export had said it.
fn whole(store: &Store, record: &ConversationRecord) -> Result<(Report, Vec<ReportedNode>), LineageError> {
    let known = assemble::known(record);
    let mut nodes = Vec::with_capacity(known.nodes.len());
    for (known, body) in known.nodes.into_iter().zip(store.all_bodies(record)) {
        nodes.push(node(known.id, known.parents.into_iter().next(), body?.1)?);
    }
    Ok((known.report, nodes))
}

fn node(id: String, parent: Option<String>, bytes: Vec<u8>) -> Result<ReportedNode, LineageError> {
    let body = Body::decode(&bytes).map_err(|_| LineageError::Unreadable { what: "a stored message" })?;
    let digest = digest(&bytes);
    Ok(ReportedNode { id, parent, body, bytes, digest })
}
