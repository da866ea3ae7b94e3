//! The bounds of everything that is read from another store.

/// The version of the encoding of changes that this program writes, and the newest that it reads.
pub const VERSION: u16 = 1;

/// The greatest counter of a change: 2^26, about 67 million, so that a store that lies cannot fill the disks of others with one series
/// that has no end. A store begins a new series long before: see [`RENEWAL_COUNTER`].
pub const MAX_COUNTER: u64 = 1 << 26;

/// The counter after which a store begins a new series: 2^25. One that writes a change every second gets there in a year.
pub const RENEWAL_COUNTER: u64 = MAX_COUNTER / 2;

/// The most changes of a branch that another series repeats: 2^17, whose hashes have 4 MiB. Each store that knows of it has them in memory.
pub const MAX_REPEATED: usize = 1 << 17;

/// The most bytes of a payload: 1 GiB.
pub const MAX_PAYLOAD_BYTES: u64 = 1 << 30;

/// The most bytes of a payload that is with its change: 3 MiB. A change with the longest context fits in one gRPC message of 4 MiB, the
/// limit of the daemon and the default of most clients. Longer payloads, and attachments, are transferred by their digest.
pub const MAX_INLINE_BYTES: usize = 3 << 20;

/// The most origins in one frontier: 1,024, which take 56 KiB. A person has a few devices; each restored backup and each cloned disk
/// adds one origin, forever.
pub const MAX_ORIGINS: usize = 1_024;

/// The bytes of one origin in an encoded frontier: origin 16, counter 8, hash 32.
pub(crate) const FRONTIER_ENTRY_BYTES: usize = 56;

/// The bytes of an encoded change without the entries of its context, and without its payload and its length.
pub(crate) const CHANGE_FIXED_BYTES: usize = 169;

/// The most bytes of an encoded change, about 3.06 MiB.
pub const MAX_CHANGE_BYTES: usize =
    CHANGE_FIXED_BYTES + MAX_ORIGINS * FRONTIER_ENTRY_BYTES + 4 + MAX_INLINE_BYTES;

/// The most changes in one batch: 4,096. A receiver applies a batch in one transaction, and Ed25519 signatures of that many changes
/// are checked in less than a second.
pub const MAX_BATCH_CHANGES: u32 = 4_096;

/// The most bytes of one batch: 16 MiB, because a receiver that applies it in one transaction has it in memory. A longer run of changes
/// is several batches.
pub const MAX_BATCH_BYTES: u64 = 16 << 20;
