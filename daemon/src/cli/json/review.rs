//! JSON documents for memories that agents wrote.

use satchel_proto::v1;
use serde::Serialize;

use super::{memory::Memory, non_empty, timestamp};
use crate::cli::labels;

/// `memories review`, as a list.
#[derive(Debug, Serialize)]
pub(crate) struct QuarantinedMemories<'a> {
    pub memories: Vec<QuarantinedMemory<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
}

document! {
    /// A memory that an agent wrote.
    QuarantinedMemory<'a> from entry: v1::QuarantinedMemory {
        /// `waiting`, `approved` or `rejected`.
        state: String = labels::quarantine_state(entry.state),
        device_id: &'a str = &entry.device_id,
        /// The name that the device had.
        device: &'a str = &entry.device_name,
        written_at: Option<String> = timestamp(entry.written_at.as_ref()),
        reason: Option<&'a str> = non_empty(&entry.reason),
        reviewed_at: Option<String> = timestamp(entry.reviewed_at.as_ref()),
        reviewed_by: Option<&'a str> = non_empty(&entry.reviewed_by),
        review_reason: Option<&'a str> = non_empty(&entry.review_reason),
        memory: Option<Memory<'a>> = entry.memory.as_ref().map(Memory::new),
    }
}

/// `memories review` with a decision.
#[derive(Debug, Serialize)]
pub(crate) struct Review<'a> {
    pub reviewed: Vec<ReviewedMemory<'a>>,
    /// Each undoes the approvals of up to 100 memories.
    pub undo_tokens: &'a [String],
}

document! {
    /// A memory that was approved or rejected.
    ReviewedMemory<'a> from entry: v1::QuarantinedMemory {
        id: &'a str = entry.memory.as_ref().map_or("", |memory| memory.id.as_str()),
        state: String = labels::quarantine_state(entry.state),
        /// If approved: the id of the memory with this content.
        memory_id: Option<&'a str> = non_empty(&entry.memory_id),
        /// True if a memory with this content existed, so that none was created.
        existed: bool = entry.existed,
    }
}
