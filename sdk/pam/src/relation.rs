//! Edges between memories (PAM 1.0 §13).

use serde::{Deserialize, Serialize};

use crate::{names::names, time::Timestamp};

names! {
    /// What one memory is to another.
    RelationType {
        /// Speaks for it.
        Supports = "supports",
        /// Speaks against it.
        Contradicts = "contradicts",
        /// Says more.
        Extends = "extends",
        /// Took its place.
        Supersedes = "supersedes",
        /// Has to do with it.
        RelatedTo = "related_to",
        /// Follows from it.
        DerivedFrom = "derived_from",
    }
}

/// One edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// Unique in its document.
    pub id: String,
    /// The id of a memory.
    pub from: String,
    /// The id of another.
    pub to: String,
    /// What the first is to the second.
    #[serde(rename = "type")]
    pub relation_type: RelationType,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// When it was drawn.
    pub created_at: Timestamp,
}
