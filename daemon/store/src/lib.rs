//! The store of Satchel: a checksummed, hash-chained journal is the source of truth, and sled answers the queries.
//!
//! **Invariant:** a commit is durable when [`Store::commit`] returns. The journal's fsync is the commit point, and everything
//! else can be rebuilt from the journal. Held by `tests::crash`. `FORMAT.md` describes the bytes on disk.

mod apply;
mod blob;
mod change;
mod check;
mod codec;
mod decompress;
mod disk;
mod encrypt;
mod engine;
mod entry;
mod erase;
mod error;
mod journal;
mod keys;
mod ledger;
mod lock;
mod lookup;
mod open;
mod options;
mod pending_purge;
mod preserve;
mod purge;
mod query;
mod read;
mod recent_evidence;
mod record;
mod report;
mod revision;
mod sha256;
mod snapshot;
mod stats;
mod store;
mod store_id;
mod swap;
#[cfg(any(test, feature = "failpoints"))]
mod test_damage;
#[cfg(test)]
mod tests;
mod value;

pub use blob::{BlobReader, BlobRef};
pub use change::{Batch, Change, ConversationWrite, EvidenceWrite, MessageHead, MessageWrite, Origin};
pub use encrypt::{StagedEncryption, finish_encryption, stage_encryption};
pub use erase::erase;
pub use error::StoreError;
pub use keys::{id_too_long, record_key};
pub use ledger::{Durability, Ledger, LedgerEntry, LedgerWrite};
pub use lock::{StoreLock, lock_store};
pub use options::OpenOptions;
pub use pending_purge::has_journal;
pub use preserve::{preserve_database, restore_preserved_database};
pub use purge::{
    Eraser, OpaqueEntry, check_purge, empty_conversation, empty_memory, erased, erased_conversation, purge,
};
pub use query::{ConversationQuery, Cursor, MemoryOrder, MemoryQuery, Page, TimeRange, UNKNOWN_TIME};
pub use read::{EvidenceIter, MessageBodies};
pub use record::{
    BodyPlace, ChangeKind, ChangeLogEntry, ChangeOp, ChangePosition, ConversationRecord, ConversationSummary,
    EmbeddingRecord, EvidenceRecord, MemoryRecord, RelationRecord,
};
pub use report::{CheckProgress, CheckReport, Damage, Health, OpenEvent, StateDigest, Stats};
pub use revision::Revision;
pub use sha256::Sha256;
pub use snapshot::{SnapshotSegment, StoreSnapshot};
pub use store::Store;
pub use store_id::assign_new_store_id;
