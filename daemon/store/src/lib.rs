//! The store of Satchel: a checksummed, hash-chained journal is the source of truth, and sled answers the queries.
//!
//! **Invariant:** a commit is durable when [`Store::commit`] returns. The journal's fsync is the commit point, and everything
//! else can be rebuilt from the journal. Held by `tests::crash`. `FORMAT.md` describes the bytes on disk.

mod apply;
mod blob;
mod change;
mod check;
mod codec;
mod disk;
mod encrypt;
mod engine;
mod entry;
mod erase;
mod error;
mod journal;
mod keep;
mod keys;
mod ledger;
mod open;
mod pin;
mod purge;
mod query;
mod read;
mod record;
mod renew;
mod report;
mod revision;
mod sha256;
#[cfg(any(test, feature = "failpoints"))]
mod spoil;
mod stats;
mod store;
mod swap;
#[cfg(test)]
mod tests;
mod value;

pub use blob::{BlobReader, BlobRef};
pub use change::{Batch, Change, ConversationWrite, EvidenceWrite, MessageHead, MessageWrite, Origin};
pub use encrypt::{Staged, finish, stage};
pub use error::StoreError;
pub use keep::{keep_database, put_back_database};
pub use keys::{id_too_long, key_of};
pub use ledger::{Durability, Ledger, LedgerEntry, LedgerWrite};
pub use open::{Claim, claim};
pub use pin::{Pinned, PinnedSegment};
pub use purge::{Eraser, Text, empty_conversation, empty_memory, erased, has_journal, purge, purge_ready};
pub use query::{ConversationQuery, Cursor, MemoryOrder, MemoryQuery, Page, TimeRange, UNKNOWN_TIME};
pub use read::{Bodies, EvidenceIter};
pub use record::{
    BodyPlace, ChangeKind, ChangeLogEntry, ChangeOp, ChangePosition, ConversationRecord, ConversationSummary,
    EmbeddingRecord, EvidenceRecord, MemoryRecord, RelationRecord,
};
pub use renew::renew;
pub use report::{CheckProgress, CheckReport, Damage, Health, OpenEvent, StateDigest, Stats};
pub use revision::Revision;
pub use sha256::Sha256;
pub use store::{OpenOptions, Store};
