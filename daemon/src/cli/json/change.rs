//! JSON documents for edits of memories and relations.

use satchel_proto::v1;
use serde::Serialize;

use super::{memory::Memory, timestamp};
use crate::cli::labels;

/// `memories add`, `memories edit`, and `memories status` for one memory.
#[derive(Debug, Serialize)]
pub(crate) struct EditedMemory<'a> {
    pub memory: Memory<'a>,
    pub version: u32,
    /// True if nothing was added because the memory existed already.
    pub existed: bool,
    /// Null if nothing was changed.
    pub undo_token: Option<&'a str>,
    pub revision: u64,
}

/// `memories status` for all matching memories.
#[derive(Debug, Serialize)]
pub(crate) struct Bulk<'a> {
    pub matched: u64,
    /// At most 100.
    pub ids: &'a [String],
    pub dry_run: bool,
    pub undo_token: Option<&'a str>,
    pub revision: u64,
}

/// `memories undo`.
#[derive(Debug, Serialize)]
pub(crate) struct Undone<'a> {
    pub matched: u64,
    /// At most 100.
    pub ids: Vec<&'a str>,
    pub undo_token: Option<&'a str>,
    pub revision: u64,
}

/// `relations list`.
#[derive(Debug, Serialize)]
pub(crate) struct Relations<'a> {
    pub relations: Vec<Relation<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
}

/// `relations add` and `relations withdraw`.
#[derive(Debug, Serialize)]
pub(crate) struct ChangedRelation<'a> {
    pub relation: Relation<'a>,
    /// True if nothing was added because the relation existed already.
    pub existed: bool,
    pub undo_token: Option<&'a str>,
    pub revision: u64,
}

/// One relation, with the keys of PAM.
#[derive(Debug, Serialize)]
pub(crate) struct Relation<'a> {
    pub id: &'a str,
    pub from: &'a str,
    pub to: &'a str,
    #[serde(rename = "type")]
    pub relation_type: String,
    pub confidence: Option<f64>,
    pub created_at: Option<String>,
    pub withdrawn: bool,
}

impl<'a> Relation<'a> {
    pub(crate) fn new(relation: &'a v1::Relation) -> Self {
        let v1::Relation { id, from_id, to_id, r#type, confidence, created_at, withdrawn, mod_revision: _ } =
            relation;
        Self {
            id,
            from: from_id,
            to: to_id,
            relation_type: labels::relation_type(*r#type),
            confidence: *confidence,
            created_at: timestamp(created_at.as_ref()),
            withdrawn: *withdrawn,
        }
    }
}
