//! What a caller asks for, and the pages it gets.

use satchel_pam::memory::{MemoryType, Status};

/// The time of a record of which nobody knows when it was made, in microseconds since the Unix epoch. Such a record comes last in
/// every list that is ordered by time, and fits no range.
pub const UNKNOWN_TIME: i64 = 0;

/// Half-open range of microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// First that counts.
    pub from: Option<i64>,
    /// First that does not.
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

/// In which order memories come. Those of [`UNKNOWN_TIME`] come last in an order by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryOrder {
    /// Newest update first.
    #[default]
    UpdatedDescending,
    /// Oldest first.
    CreatedAscending,
    /// By id, by code point, as the checksum of PAM wants them.
    IdAscending,
}

/// Which memories; an empty field asks for nothing.
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
    /// `temporal.updated_at`, or `created_at` where there is none.
    pub updated: TimeRange,
    /// `content_hash` as PAM writes it.
    pub content_hash: Option<String>,
    /// Those that hold at this time, in microseconds: `temporal.valid_until` is absent or later.
    pub valid_at: Option<i64>,
    /// Those that held no more at this time: `temporal.valid_until` is not later.
    pub expired_at: Option<i64>,
    /// Any of these ids; at most [`MemoryQuery::MAX_IDS`].
    pub ids: Vec<String>,
    /// The order.
    pub order: MemoryOrder,
}

impl MemoryQuery {
    /// Most ids in one query: they are looked up one by one and sorted in memory.
    pub const MAX_IDS: usize = 1_000;
}

/// Which conversations; an empty field asks for nothing. Newest update first.
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
    /// Whether the person archived it.
    pub archived: Option<bool>,
    /// `temporal.created_at`.
    pub created: TimeRange,
    /// `temporal.updated_at`, or `created_at` where there is none.
    pub updated: TimeRange,
    /// A part of the title; letter case does not count.
    pub title_contains: Option<String>,
}

/// Where a page ended. It fits only the query, order and revision that gave it; the caller seals it before it leaves the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub(crate) Vec<u8>);

impl Cursor {
    /// Returns the bytes for a page token.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes the bytes of a page token that the caller has checked. Any bytes are safe; wrong ones give a wrong page.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

/// Some rows, and where the next ones begin.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The rows, in order.
    pub items: Vec<T>,
    /// None: that was the last page.
    pub next: Option<Cursor>,
}
