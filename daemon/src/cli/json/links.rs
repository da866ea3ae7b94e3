//! JSON documents for memories that are related, alike, or contradict each other.

use satchel_proto::{integers::unsigned, v1};
use serde::Serialize;

use super::{change::Relation, memory::Memory, non_empty};
use crate::cli::labels;

/// `memories related`.
#[derive(Debug, Serialize)]
pub(crate) struct RelatedMemories<'a> {
    pub id: &'a str,
    pub memories: Vec<RelatedMemory<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
    /// True if a limit of the daemon was reached.
    pub truncated: bool,
    pub revision: u64,
    pub store_id: &'a str,
}

document! {
    /// A related memory.
    RelatedMemory<'a> from related: v1::RelatedMemory {
        distance: u32 = unsigned(related.distance),
        path: Vec<MemoryLink<'a>> = related.path.iter().map(MemoryLink::new).collect(),
        memory: Option<Memory<'a>> = related.memory.as_ref().map(Memory::new),
    }
}

document! {
    /// A step of a path.
    MemoryLink<'a> from link: v1::MemoryLink {
        kind: String = labels::memory_link_kind(link.kind),
        memory_id: &'a str = &link.memory_id,
        relation_id: Option<&'a str> = non_empty(&link.relation_id),
        relation_type: Option<String> = (!link.relation_id.is_empty()).then(|| labels::relation_type(link.relation_type)),
        /// `out` if the relation goes out from the memory before the step, otherwise `in`.
        direction: Option<String> = (!link.relation_id.is_empty()).then(|| labels::direction(link.direction)),
        conversation_id: Option<&'a str> = non_empty(&link.conversation_id),
    }
}

/// `memories duplicates`.
#[derive(Debug, Serialize)]
pub(crate) struct DuplicateGroups<'a> {
    pub groups: Vec<DuplicateGroup<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
    /// True if a limit of the daemon was reached.
    pub truncated: bool,
    pub revision: u64,
    pub store_id: &'a str,
}

document! {
    /// Memories that say the same.
    DuplicateGroup<'a> from group: v1::DuplicateGroup {
        reason: String = labels::duplicate_reason(group.reason),
        similarity: f64 = group.similarity,
        /// All of the group; `memories` has at most 100.
        total: u64 = unsigned(group.total),
        memories: Vec<Memory<'a>> = group.memories.iter().map(Memory::new).collect(),
    }
}

/// `memories contradictions`.
#[derive(Debug, Serialize)]
pub(crate) struct Contradictions<'a> {
    pub contradictions: Vec<Contradiction<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
    pub revision: u64,
    pub store_id: &'a str,
}

document! {
    /// Two memories that contradict each other.
    Contradiction<'a> from contradiction: v1::Contradiction {
        reason: String = labels::contradiction_reason(contradiction.reason),
        settled: bool = contradiction.settled,
        /// Null if only `superseded_by` of the second memory says so.
        relation: Option<Relation<'a>> = contradiction.relation.as_ref().map(Relation::new),
        first: Option<Memory<'a>> = contradiction.first.as_ref().map(Memory::new),
        second: Option<Memory<'a>> = contradiction.second.as_ref().map(Memory::new),
    }
}
