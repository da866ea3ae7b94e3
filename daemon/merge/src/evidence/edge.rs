//! Relations that exports and documents name themselves: the third kind of evidence.
//!
//! What follows from the evidence on memories stands as it follows; of two reports of one edge the later stands.

use satchel_pam::{
    hash::Sha256Digest,
    ids,
    relation::{Relation, RelationType},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Derived, word};

/// Stands for the platform in the ids of this evidence; no platform has a space.
const KIND: &str = "named relation";
/// How the stored form begins.
const START: &[u8] = br#"{"edge":"#;

/// A relation as an export names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// The relation.
    #[serde(rename = "edge")]
    pub relation: Relation,
    /// As of a [`super::Document`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stranger: Option<String>,
}

impl Edge {
    /// Whether the bytes of a stored piece of evidence are an edge.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(START)
    }

    /// The evidence's id, one for each report of a relation, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text or a number.
    pub fn encode(&self) -> serde_json::Result<(String, Vec<u8>)> {
        let bytes = serde_json::to_vec(self)?;
        let report = Sha256Digest::of(&bytes).to_hex();
        Ok((ids::evidence_id(KIND, Some(&self.relation.id), &report).to_string(), bytes))
    }
}

/// The relation that says which memory took the place of another, and since when, in microseconds.
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

/// Adds the edges whose both ends are known to what follows from the evidence; not those of which the person said otherwise. A
/// stranger's takes the place of nobody's, and says only of their own memories that another took their place.
pub fn add_edges<'a>(derived: &mut Derived, edges: impl IntoIterator<Item = &'a Edge>) {
    let mut named: std::collections::BTreeMap<&str, &Edge> = std::collections::BTreeMap::new();
    for edge in edges {
        let known = named.entry(&edge.relation.id).or_insert(edge);
        if rank(edge) > rank(known) {
            *known = edge;
        }
    }
    for (id, Edge { relation, stranger }) in named {
        let ends = [&relation.from, &relation.to].into_iter().all(|end| derived.memories.contains_key(end));
        let against =
            derived.withdrawn.contains(id) || word::denied(&derived.memories, &derived.ruled, relation);
        let free = derived.followed.contains(id) && stranger.is_none() || !derived.relations.contains_key(id);
        if ends && !against && free && may_say(derived, relation, stranger.as_deref()) {
            derived.relations.insert(id.to_owned(), relation.clone());
        }
    }
}

/// Whether a stranger may say it: that another took the place of a memory only of their own.
pub fn may_say(derived: &Derived, relation: &Relation, stranger: Option<&str>) -> bool {
    stranger.is_none()
        || relation.relation_type != RelationType::Supersedes
        || derived.foreign.get(&relation.to).map(String::as_str) == stranger
}

/// The person's own before a stranger's, then the later.
fn rank(edge: &Edge) -> (bool, i64, String) {
    let Edge { relation, stranger } = edge;
    let text = serde_json::to_string(relation).unwrap_or_default();
    (stranger.is_none(), relation.created_at.micros(), text)
}
