//! The store's own series of signed changes, and those of other stores, as the ledger keeps them.
//!
//! Edits and undos append to the own series in the commit in which they take effect. What the changes contain is in section 8 of
//! `daemon/sync/FORMAT.md`; how they are exchanged and take effect in other stores is in [`crate::sync`].

pub(crate) mod continuations;
pub(crate) mod counters;
pub(crate) mod entries;
pub(crate) mod large;
mod local;
pub(crate) mod payload;

use satchel_store::StoreError;
use satchel_sync::{AuthorError, FrontierError, OriginId};

pub(crate) use self::local::{LocalSeries, NewPlace, SeriesKey, applied_frontier, edit_origin};

/// The latest time of a step of an edit, 2100-01-01, in microseconds since the Unix epoch. A step of the year 9000 would prevail over all
/// concurrent ones for good; a clock that is so far ahead is broken.
pub(crate) const LATEST_MICROS: i64 = 4_102_444_800_000_000;

/// Why a series cannot be read or continued.
#[derive(Debug, thiserror::Error)]
pub enum SeriesStoreError {
    /// The key of the store's own series is not known to this process.
    #[error(
        "the key of this store's own series of changes (origin {0}) is missing; put it back from a backup"
    )]
    NoKey(OriginId),
    /// The clock of this machine, or the date of the memory, is far in the future.
    #[error("the time of this change would be after the year 2100; set the clock of this machine")]
    TooLate,
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    Randomness,
    /// A payload is too large, even in parts.
    #[error("what is to be exchanged has {0} bytes, more than a change can have in parts")]
    TooLarge(usize),
    /// The own series cannot be continued.
    #[error(transparent)]
    Author(Box<AuthorError>),
    /// A frontier cannot be extended.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug in Satchel.
    #[error("what the store has of a series of changes cannot be read; please report this")]
    Unreadable,
}

impl From<AuthorError> for SeriesStoreError {
    fn from(error: AuthorError) -> Self {
        Self::Author(Box::new(error))
    }
}
