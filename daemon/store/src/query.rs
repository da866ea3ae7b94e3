//! The queries of callers, and the pages that they return.

use satchel_pam::memory::{Memory, MemoryType, Status};

use crate::{
    entry::{facets, summary},
    read,
    record::ConversationRecord,
};

/// The time of a record whose creation time is unknown, in microseconds since the Unix epoch. Such a record comes last in every
/// list that is ordered by time, and is in no time range.
pub const UNKNOWN_TIME: i64 = 0;

/// A half-open range of microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first time in the range.
    pub from: Option<i64>,
    /// The first time after the range.
    pub until: Option<i64>,
}

impl TimeRange {
    pub(crate) fn holds(self, micros: i64) -> bool {
        let open = self == Self::default();
        (open || micros != UNKNOWN_TIME)
            && self.from.is_none_or(|from| micros >= from)
            && self.until.is_none_or(|until| micros < until)
    }
}

/// The order of memories. Those of [`UNKNOWN_TIME`] come last in an order by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryOrder {
    /// Most recently updated first.
    #[default]
    UpdatedDescending,
    /// Oldest first.
    CreatedAscending,
    /// By id, compared by code points, as required for the checksum of PAM.
    IdAscending,
}

/// A filter for memories. An empty field does not filter.
#[derive(Clone, Debug, Default)]
pub struct MemoryQuery {
    /// Any of these.
    pub types: Vec<MemoryType>,
    /// Any of these.
    pub statuses: Vec<Status>,
    /// Any of these `provenance.platform`.
    pub platforms: Vec<String>,
    /// Any of these `provenance.platform_user_id`.
    pub accounts: Vec<String>,
    /// At least one of these.
    pub tags_any: Vec<String>,
    /// All of these.
    pub tags_all: Vec<String>,
    /// `provenance.conversation_ref`.
    pub conversation: Option<String>,
    /// `temporal.created_at`.
    pub created: TimeRange,
    /// `temporal.updated_at`, or `created_at` if there is none.
    pub updated: TimeRange,
    /// `content_hash` as PAM writes it.
    pub content_hash: Option<String>,
    /// Memories that are valid at this time, in microseconds: `temporal.valid_from` is absent or not later, and
    /// `temporal.valid_until` is absent or later.
    pub valid_at: Option<i64>,
    /// Memories that are no longer valid at this time: `temporal.valid_until` is not later.
    pub expired_at: Option<i64>,
    /// Memories that have not expired by this time: `temporal.valid_until` is absent or later.
    pub unexpired_at: Option<i64>,
    /// Any of these ids; at most [`MemoryQuery::MAX_IDS`].
    pub ids: Vec<String>,
    /// The order.
    pub order: MemoryOrder,
}

impl MemoryQuery {
    /// Maximum number of ids in one query, because they are looked up one by one and sorted in memory.
    pub const MAX_IDS: usize = 1_000;

    /// Returns whether a memory matches, by everything except the order.
    #[must_use]
    pub fn matches(&self, memory: &Memory) -> bool {
        (self.ids.is_empty() || self.ids.contains(&memory.id))
            && read::memory::matches(self, &facets(memory))
            && read::memory::valid(self, memory)
    }
}

/// A filter for conversations. An empty field does not filter. The most recently updated ones come first.
#[derive(Clone, Debug, Default)]
pub struct ConversationQuery {
    /// Any of these `provider.name`.
    pub platforms: Vec<String>,
    /// Any of these `provider.account_id`.
    pub accounts: Vec<String>,
    /// At least one of these.
    pub tags_any: Vec<String>,
    /// All of these.
    pub tags_all: Vec<String>,
    /// Whether the user archived the conversation.
    pub archived: Option<bool>,
    /// `temporal.created_at`.
    pub created: TimeRange,
    /// `temporal.updated_at`, or `created_at` if there is none.
    pub updated: TimeRange,
    /// A part of the title; letter case is ignored.
    pub title_contains: Option<String>,
}

impl ConversationQuery {
    /// Returns whether a version of a conversation matches.
    #[must_use]
    pub fn matches(&self, record: &ConversationRecord) -> bool {
        let title = self.title_contains.as_ref().map(|title| title.to_lowercase());
        let messages = u32::try_from(record.heads.len()).unwrap_or(u32::MAX);
        read::conversation::matches(self, title.as_deref(), &summary(&record.header, messages))
    }
}

/// The end of a page. A cursor is valid only for the query, order and revision that returned it. The caller seals it before it
/// leaves the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub(crate) Vec<u8>);

impl Cursor {
    /// Returns the bytes for a page token.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Makes a cursor from the bytes of a page token that the caller has checked. Any bytes are safe; wrong ones give a wrong
    /// page.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

/// The rows of a page, and where the next page begins.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The rows, in order.
    pub items: Vec<T>,
    /// `None` if this is the last page.
    pub next: Option<Cursor>,
}
