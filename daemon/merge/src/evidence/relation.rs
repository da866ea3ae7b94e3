//! Relations that exports and documents name explicitly: the third kind of evidence.
//!
//! Relations that are derived from the evidence on memories take precedence over these. Of two reports of one edge, the
//! later counts.

use satchel_pam::{
    hash::Sha256Digest,
    ids,
    relation::{Relation, RelationType},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{DerivedMemories, edits};

/// Used in place of the platform in the ids of this evidence; no platform name contains a space.
const ID_NAMESPACE: &str = "named relation";
/// The beginning of the stored form.
const STORED_PREFIX: &[u8] = br#"{"edge":"#;

/// A relation as an export names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationEvidence {
    /// The relation.
    #[serde(rename = "edge")]
    pub relation: Relation,
    /// As in [`super::DocumentEvidence`].
    #[serde(default, rename = "stranger", skip_serializing_if = "Option::is_none")]
    pub untrusted_signer: Option<String>,
}

impl RelationEvidence {
    /// Returns whether the bytes of a stored piece of evidence are an edge.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(STORED_PREFIX)
    }

    /// Returns the evidence id, which is unique for each report of a relation, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text or a number.
    pub fn encode(&self) -> serde_json::Result<(String, Vec<u8>)> {
        let bytes = serde_json::to_vec(self)?;
        let report = Sha256Digest::of(&bytes).to_hex();
        Ok((ids::evidence_id(ID_NAMESPACE, Some(&self.relation.id), &report).to_string(), bytes))
    }
}

/// Returns the relation that says that `newer` superseded `older` at `at`, in microseconds.
#[must_use]
pub fn supersedes(newer: &str, older: &str, at: i64) -> Relation {
    Relation {
        id: ids::relation_id(newer, older, RelationType::Supersedes).to_string(),
        from: newer.to_owned(),
        to: older.to_owned(),
        relation_type: RelationType::Supersedes,
        confidence: None,
        created_at: Timestamp::saturating(at),
    }
}

/// Adds the edges whose ends are both known to the derived relations, except those that contradict a decision of the
/// user. A stranger's edge replaces no existing relation, and it may mark only the stranger's own memories as
/// superseded.
pub fn add_relations<'a>(
    derived: &mut DerivedMemories,
    edges: impl IntoIterator<Item = &'a RelationEvidence>,
) {
    let mut named: std::collections::BTreeMap<&str, &RelationEvidence> = std::collections::BTreeMap::new();
    for edge in edges {
        let known = named.entry(&edge.relation.id).or_insert(edge);
        if rank(edge) > rank(known) {
            *known = edge;
        }
    }
    for (id, RelationEvidence { relation, untrusted_signer: signer }) in named {
        let ends = [&relation.from, &relation.to].into_iter().all(|end| derived.memories.contains_key(end));
        let contradicted = derived.withdrawn_relations.contains(id)
            || edits::contradicts_user(&derived.memories, &derived.status_overrides, relation);
        let replaceable =
            derived.status_relations.contains(id) && signer.is_none() || !derived.relations.contains_key(id);
        if ends && !contradicted && replaceable && may_assert(derived, relation, signer.as_deref()) {
            derived.relations.insert(id.to_owned(), relation.clone());
        }
    }
}

/// Returns whether a stranger may add the relation. A stranger may mark as superseded only a memory that comes from
/// them alone.
pub fn may_assert(derived: &DerivedMemories, relation: &Relation, signer: Option<&str>) -> bool {
    signer.is_none()
        || relation.relation_type != RelationType::Supersedes
        || derived.untrusted.get(&relation.to).map(String::as_str) == signer
}

/// Returns the sort key: the user's own edges before those of strangers, then the later ones.
fn rank(edge: &RelationEvidence) -> (bool, i64, String) {
    let RelationEvidence { relation, untrusted_signer: signer } = edge;
    let text = serde_json::to_string(relation).unwrap_or_default();
    (signer.is_none(), relation.created_at.micros(), text)
}
