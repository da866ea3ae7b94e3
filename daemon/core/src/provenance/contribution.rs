//! The report of one export about one conversation: identified by its digest, and stored separately if no version of
//! the conversation equals it.

use std::collections::HashMap;

use satchel_merge::{
    body::Digest16,
    conversation::{ConversationPlan, ConversationReport, ReportedNode},
};
use satchel_pam::hash::Sha256Digest;
use satchel_store::Change;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{EvidenceKey, OTHER_ENTRIES, ProvenanceError, decode, encode, put};

/// Hex digits of a digest.
const DIGITS: usize = 32;
pub(super) const WHAT: &str = "what an import said of a conversation";

/// The skeleton of an export's report about a conversation: everything except the bodies.
#[derive(Clone)]
pub struct ContributionSkeleton {
    /// Digest of the whole report, 32 hex digits.
    pub digest: String,
    report: ConversationReport,
    nodes: Vec<(String, Option<String>, Digest16)>,
}

impl ContributionSkeleton {
    /// Returns the skeleton of a report about the conversation `id`.
    ///
    /// # Errors
    /// None in practice.
    pub fn of(
        id: &str,
        report: &ConversationReport,
        nodes: &[ReportedNode],
    ) -> Result<Self, ProvenanceError> {
        let nodes: Vec<(String, Option<String>, Digest16)> =
            nodes.iter().map(|node| (node.id.clone(), node.parent.clone(), node.digest)).collect();
        let mut sorted: Vec<&(String, Option<String>, Digest16)> = nodes.iter().collect();
        sorted.sort_unstable();
        let mut digest = Sha256Digest::of(&encode(&(id, report, sorted), WHAT)?).to_hex();
        digest.truncate(DIGITS);
        Ok(Self { digest, report: report.clone(), nodes })
    }

    /// Attributes the report to an untrusted `signer`. The report gets a digest of its own, so that it can be undone separately.
    #[must_use]
    pub fn attributed_to(mut self, signer: Option<&str>) -> Self {
        if let Some(signer) = signer {
            self.digest = Sha256Digest::of(format!("{}\n{signer}", self.digest).as_bytes()).to_hex();
            self.digest.truncate(DIGITS);
        }
        self
    }

    /// Returns the key under which an import lists the report.
    #[must_use]
    pub fn key(&self) -> EvidenceKey {
        parse_key(&self.digest).unwrap_or_default()
    }
}

/// A report that does not equal a version of the conversation, as stored in the ledger.
#[derive(Serialize, Deserialize)]
pub struct StoredContribution {
    pub(super) report: ConversationReport,
    pub(super) nodes: Vec<StoredNode>,
    /// The version of the conversation that contains the bodies that are not stored here.
    pub(super) base: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredNode {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Box<RawValue>>,
}

impl StoredContribution {
    /// Stores the report `skeleton` after it was merged into the visible conversation `shown`, which is version `base`.
    /// `spare` holds bodies of the report that differ from those of the visible conversation.
    ///
    /// # Errors
    /// A body is not JSON.
    pub fn from_skeleton(
        skeleton: ContributionSkeleton,
        shown: &HashMap<&str, Digest16>,
        spare: &HashMap<&str, &[u8]>,
        base: u32,
    ) -> Result<Self, ProvenanceError> {
        let ContributionSkeleton { digest: _, report, nodes } = skeleton;
        let mut stored = Vec::with_capacity(nodes.len());
        for (id, parent, digest) in nodes {
            let spare_body =
                if shown.get(id.as_str()) == Some(&digest) { None } else { spare.get(id.as_str()) };
            let body = spare_body.map(|bytes| decode(bytes, WHAT)).transpose()?;
            stored.push(StoredNode { id, parent, body });
        }
        Ok(Self { report, nodes: stored, base })
    }

    /// Returns the change that stores it.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_change(&self, digest: &str) -> Result<Change, ProvenanceError> {
        Ok(put(entry_id(digest), OTHER_ENTRIES, encode(self, WHAT)?))
    }
}

/// Returns the digest of each message that `planned` shows.
#[must_use]
pub fn shown(planned: &ConversationPlan) -> HashMap<&str, Digest16> {
    planned.nodes.iter().map(|node| (node.state.id.as_str(), node.state.digest)).collect()
}

/// Returns the bytes of a digest.
pub(super) fn parse_key(digest: &str) -> Option<EvidenceKey> {
    u128::from_str_radix(digest, 16).ok().map(u128::to_be_bytes)
}

pub(super) fn entry_id(digest: &str) -> String {
    format!("said {digest}")
}
