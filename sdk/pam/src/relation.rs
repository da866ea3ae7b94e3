//! Relations between memories (PAM 1.0 §13).

use serde::{Deserialize, Serialize};

use crate::{names::names, time::Timestamp};

names! {
    /// The type of a relation, from the memory `from` to the memory `to` (§13).
    RelationType {
        /// `from` is evidence for `to`.
        Supports = "supports",
        /// `from` contradicts `to`.
        Contradicts = "contradicts",
        /// `from` adds detail to `to`.
        Extends = "extends",
        /// `from` replaces `to`.
        Supersedes = "supersedes",
        /// The two are related.
        RelatedTo = "related_to",
        /// `from` was derived from `to`.
        DerivedFrom = "derived_from",
    }
}

/// A relation between two memories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// Unique in its document.
    pub id: String,
    /// Id of the first memory.
    pub from: String,
    /// Id of the second memory.
    pub to: String,
    /// Type of the relation.
    #[serde(rename = "type")]
    pub relation_type: RelationType,
    /// Confidence, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// When the relation was created.
    pub created_at: Timestamp,
}
