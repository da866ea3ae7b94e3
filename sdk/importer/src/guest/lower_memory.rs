//! Evidence, relations and embeddings in the shape of the bindings.

use super::bindings::satchel::importer::types as wit;
use crate::{Arena, EmbeddingRecord, Evidence, RelationRecord};

pub(super) fn evidence<'b>(_evidence: &'b [Evidence], _arena: &'b Arena) -> &'b [wit::Evidence<'b>] {
    &[]
}

pub(super) fn relations<'b>(_relations: &'b [RelationRecord], _arena: &'b Arena) -> &'b [wit::Relation<'b>] {
    &[]
}

pub(super) fn embeddings<'b>(_embeddings: &'b [EmbeddingRecord], _arena: &'b Arena) -> &'b [wit::Embedding<'b>] {
    &[]
}
