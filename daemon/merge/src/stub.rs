//! Conversations that are known only from the index of a memory store, because their file was never imported. The store
//! holds them as conversations without messages. Facts that only the index has are kept in `raw_metadata`, under
//! Satchel's own key.
//!
//! As soon as the conversation itself is imported, it alone counts, whichever came first.

use satchel_pam::{
    raw::RawObject,
    store::{IndexEntry, StorageReference},
};
use serde::{Deserialize, Serialize};

use super::{conversation::ConversationReport, notes};

/// The name of the note, among Satchel's own notes, that holds the facts of an index.
const KEY: &str = "index";

/// The facts in an index entry that have no field in the header of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The number of messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_count: Option<u64>,
    /// Ids of memories that were derived from the conversation; sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived_memories: Vec<String>,
    /// The storage location of the conversation, if it is not in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageReference>,
}

/// Reads the facts of an index from `raw_metadata`.
#[must_use]
pub fn read(raw: &RawObject) -> Option<Facts> {
    serde_json::from_value(notes::get(Some(raw), KEY)?).ok()
}

/// Converts an index entry to the report of a conversation. `tags` and `raw` must be valid for a conversation. A file
/// does not count as a storage location, because it was not imported.
#[must_use]
pub fn report(entry: IndexEntry, tags: Vec<String>, raw: Option<RawObject>) -> ConversationReport {
    let IndexEntry { id: _, platform: _, title, message_count, temporal, tags: _, derived_memories, storage } =
        entry;
    let mut facts = Facts { message_count, derived_memories, storage };
    facts.derived_memories.sort_unstable();
    facts.derived_memories.dedup();
    ConversationReport {
        title,
        created_at: Some(temporal.created_at.micros()),
        updated_at: temporal.updated_at.map(satchel_pam::time::Timestamp::micros),
        tags,
        raw_metadata: Some(with_facts(raw, &facts)),
        ..ConversationReport::default()
    }
}

/// Returns `raw` with the facts of an index.
#[must_use]
pub(crate) fn with_facts(raw: Option<RawObject>, facts: &Facts) -> RawObject {
    notes::with_one(raw, KEY, serde_json::to_value(facts).unwrap_or_default()).unwrap_or_default()
}

/// Returns the index facts in a report without messages.
#[must_use]
pub(crate) fn facts_of(report: &ConversationReport) -> Option<Facts> {
    report.raw_metadata.as_ref().and_then(read)
}

/// Unites the facts of two indexes about one conversation: the greater count, and the memories of both.
#[must_use]
pub(crate) fn union(one: Facts, other: Facts) -> Facts {
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
