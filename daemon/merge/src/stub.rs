//! Conversations that are known by the index of a memory store alone: their file never came. The store holds them as conversations
//! without messages; what only the index says stands in `raw_metadata`, under Satchel's own key.
//!
//! As soon as the conversation itself comes, it alone counts, whichever came first.

use satchel_pam::{
    raw::RawObject,
    store::{IndexEntry, StorageReference},
};
use serde::{Deserialize, Serialize};

use super::{conversation::Report, notes};

/// In Satchel's own notes: the facts of an index.
const KEY: &str = "index";

/// What an index says of a conversation that has no place in its header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// How many messages it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_count: Option<u64>,
    /// Memories that were made of it; sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived_memories: Vec<String>,
    /// Where it lies, if not in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageReference>,
}

/// What an index says, as it stands in `raw_metadata`.
#[must_use]
pub fn read(raw: &RawObject) -> Option<Facts> {
    serde_json::from_value(notes::get(Some(raw), KEY)?).ok()
}

/// The report of an entry, as if it was a conversation; `tags` and `raw` as they can stand in one. A file is no place where it lies:
/// it did not come.
#[must_use]
pub fn report(entry: IndexEntry, tags: Vec<String>, raw: Option<RawObject>) -> Report {
    let IndexEntry { id: _, platform: _, title, message_count, temporal, tags: _, derived_memories, storage } =
        entry;
    let mut facts = Facts { message_count, derived_memories, storage };
    facts.derived_memories.sort_unstable();
    facts.derived_memories.dedup();
    Report {
        title,
        created_at: Some(temporal.created_at.micros()),
        updated_at: temporal.updated_at.map(satchel_pam::time::Timestamp::micros),
        tags,
        raw_metadata: Some(noted(raw, &facts)),
        ..Report::default()
    }
}

/// `raw` with what an index says.
#[must_use]
pub fn noted(raw: Option<RawObject>, facts: &Facts) -> RawObject {
    notes::with_one(raw, KEY, serde_json::to_value(facts).unwrap_or_default()).unwrap_or_default()
}

/// What a report without messages says as an index.
#[must_use]
pub fn told(report: &Report) -> Option<Facts> {
    report.raw_metadata.as_ref().and_then(read)
}

/// What two indexes say of one conversation: the greater count, the memories of both.
#[must_use]
pub fn united(one: Facts, other: Facts) -> Facts {
    let mut derived_memories: Vec<String> =
        one.derived_memories.into_iter().chain(other.derived_memories).collect();
    derived_memories.sort_unstable();
    derived_memories.dedup();
    let storage = match (one.storage, other.storage) {
        (Some(one), Some(other)) => Some(if one.reference >= other.reference { one } else { other }),
        (one, other) => one.or(other),
    };
    let message_count = one.message_count.max(other.message_count);
    Facts { message_count, derived_memories, storage }
}
