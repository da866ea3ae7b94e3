//! Keeps what was recorded among what imports reported about the same conversation.

use std::collections::HashMap;

use satchel_merge::conversation::{ConversationPlan, ConversationReport, ReportedNode, unite_all};
use satchel_store::{Change, ConversationRecord, Store};

use super::{RecordingError, unencodable};
use crate::provenance::{
    self, Contribution, ContributionKind, ContributionReader, ContributionSkeleton, ConversationProvenance,
    StoredContribution, shown,
};

/// Begins the digest of a contribution that was recorded. It is no digest of its contents, as these grow, and no import
/// lists it, so it always counts.
const RECORDED: &str = "recorded ";

/// Returns the conversation with further recorded messages, and the changes to its provenance.
pub(super) fn extended(
    store: &Store,
    stored: &ConversationRecord,
    report: ConversationReport,
    nodes: Vec<ReportedNode>,
) -> Result<(ConversationPlan, Vec<Change>), RecordingError> {
    let id = &stored.header.id;
    let mut family = ConversationProvenance::load(store, id, Some(stored))?;
    let undone = provenance::undone_imports(store)?;
    let excluded = provenance::excluded_keys(store, ContributionKind::Contributions, &undone)?;
    if family.is_superseded_by(None, &excluded) {
        let problem = "the conversation comes from a document of somebody whom you do not trust; trust its key with `satchel keys \
                       trust`, or record a new conversation";
        return Err(RecordingError::state(id, problem));
    }
    let mut reading = ContributionReader::new(store);
    let at = family.contributions.iter().position(is_recorded);
    let earlier = at.map(|at| family.contributions.remove(at));
    let earlier = earlier.map(|earlier| reading.read(id, &earlier)).transpose()?;
    let (report, nodes) = match earlier {
        Some(earlier) => flattened(united([Ok(earlier), Ok((report, nodes))].into_iter())?)?,
        None => (report, nodes),
    };
    let skeleton = ContributionSkeleton::of(id, &report, &nodes)?;
    let bodies: Vec<(String, Vec<u8>)> =
        nodes.iter().map(|node| (node.id.clone(), node.bytes.clone())).collect();
    let others = family.included(&excluded, true).map(|part| Ok(reading.read(id, part)?));
    let planned = united(others.chain([Ok((report, nodes))]))?;
    let bodies: HashMap<&str, &[u8]> =
        bodies.iter().map(|(id, bytes)| (id.as_str(), bytes.as_slice())).collect();
    let contribution =
        StoredContribution::from_skeleton(skeleton, &shown(&planned), &bodies, stored.version + 1)?;
    let digest = format!("{RECORDED}{id}");
    let mut changes = vec![contribution.to_change(&digest)?];
    family.contributions.push(Contribution { digest, version: None, conversation: None, untrusted: None });
    changes.push(family.to_change(id)?);
    Ok((planned, changes))
}

/// Returns whether a contribution was recorded. One without a digest is the conversation as it was when the first
/// import contained it.
pub(super) fn is_recorded(part: &Contribution) -> bool {
    part.digest.is_empty() || part.digest.starts_with(RECORDED)
}

fn united(
    parts: impl Iterator<Item = Result<(ConversationReport, Vec<ReportedNode>), RecordingError>>,
) -> Result<ConversationPlan, RecordingError> {
    unite_all(parts)?.ok_or_else(unencodable)
}

/// Returns a plan as one report.
fn flattened(planned: ConversationPlan) -> Result<(ConversationReport, Vec<ReportedNode>), RecordingError> {
    let node = |node: satchel_merge::conversation::PlannedNode| {
        let bytes = node.body.ok_or_else(unencodable)?;
        let parent = node.state.parents.into_iter().next();
        ReportedNode::read(node.state.id, parent, bytes).map_err(|_| unencodable())
    };
    let nodes = planned.nodes.into_iter().map(node).collect::<Result<_, _>>()?;
    Ok((planned.report, nodes))
}
