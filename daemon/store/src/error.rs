//! The errors of the store.

use std::{io, path::PathBuf};

use crate::{engine::passes, report::Damage};

/// An error of the store. A call that returns one has written nothing, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller cancelled the operation.
    #[error("it was cancelled")]
    Cancelled,
    /// Another process has the store open.
    #[error("the store in {dir:?} is in use by process {pid}; stop it, or let commands go through it")]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// The process id in the lock file; `?` if there is none.
        pid: String,
    },
    /// The journal was written by a newer program.
    #[error("{file:?} has journal format {found}, this program knows up to {known}; use a newer satchel")]
    NewerFormat {
        /// The segment.
        file: PathBuf,
        /// Its version.
        found: u16,
        /// The newest version that this program knows.
        known: u16,
    },
    /// A frame or value is encrypted with a key that this program does not have.
    #[error("{place} is sealed with key {key}, which this program cannot open; use a newer satchel")]
    Sealed {
        /// The place of the frame or value.
        place: String,
        /// The key id.
        key: u16,
    },
    /// The journal is encrypted, and no key was given.
    #[error(
        "the journal in {folder:?} is encrypted, and the file with its wrapped key is missing; put keys/data-key.json of this store back, a backup holds it; nothing was changed"
    )]
    NoKey {
        /// The journal's folder.
        folder: PathBuf,
    },
    /// The journal is encrypted with another key.
    #[error(
        "the journal in {folder:?} does not open with the data key that was given: it is the key of another store; put keys/data-key.json of this store back; nothing was changed"
    )]
    WrongKey {
        /// The journal's folder.
        folder: PathBuf,
    },
    /// The journal is plain, although a key was given.
    #[error(
        "the journal in {folder:?} is not encrypted, though there is a key for it; run `satchel keys encrypt` to encrypt it"
    )]
    NotEncrypted {
        /// The journal's folder.
        folder: PathBuf,
    },
    /// The file system returned an error.
    #[error("cannot {action} {path:?}")]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The disk is full, or so nearly full that a write of the database might fail. The store continues once there is room again.
    #[error("no space left on the disk for {path:?}; free some and try again")]
    Full {
        /// The file or folder that was to be written.
        path: PathBuf,
    },
    /// The store was opened read-only, because its disk accepts no writes.
    #[error(
        "the store in {dir:?} is only read: {reason}; give it room, or a disk that can be written, and try again"
    )]
    ReadOnly {
        /// The folder.
        dir: PathBuf,
        /// Why nothing could be written.
        reason: String,
    },
    /// The store has to exist twice for a while, and the disk has no room for that. The space was checked before anything was
    /// written.
    #[error(
        "the disk of {dir:?} has {} free, and {} are needed: the store stands there twice for a while; free some and try again",
        megabytes(*.free),
        megabytes(*.needed)
    )]
    NoRoom {
        /// The folder.
        dir: PathBuf,
        /// Bytes that have to be free.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// An fsync or the engine failed earlier. Acknowledged data is safe.
    #[error("the store has stopped writing: {reason}; restart satchel")]
    Stopped {
        /// The failure.
        reason: String,
    },
    /// The journal is damaged. The store is read-only or, if nothing of the journal is left, it does not open.
    #[error(
        "the journal is damaged ({first}); nothing is written to it any more; restore it from a backup, or export what can still be read"
    )]
    DamagedJournal {
        /// The first damaged place.
        first: Damage,
    },
    /// A record needs bytes of the journal that are damaged.
    #[error("{what} cannot be read: {damage}")]
    DamagedRecord {
        /// The record.
        what: String,
        /// The damaged place.
        damage: Damage,
    },
    /// The engine failed; the journal is whole.
    #[error("the database failed: {problem}; restart satchel, it is rebuilt from the journal then")]
    Engine {
        /// The engine's message.
        problem: String,
    },
    /// A value in the engine cannot be decoded.
    #[error(
        "{what} in the database does not read: {problem}; restart satchel, it is rebuilt from the journal then"
    )]
    BadValue {
        /// The record.
        what: String,
        /// The problem.
        problem: String,
    },
    /// A batch contains the same record twice.
    #[error("{kind} {id:?} stands twice in one batch")]
    DuplicateRecord {
        /// The kind of the record.
        kind: &'static str,
        /// The id.
        id: String,
    },
    /// A message is to be kept that the conversation does not have.
    #[error("conversation {conversation:?} has no message {message:?} to keep")]
    UnknownMessage {
        /// The conversation.
        conversation: String,
        /// The message.
        message: String,
    },
    /// A relation is to be withdrawn that the store does not have.
    #[error("there is no relation {0:?} to withdraw")]
    UnknownRelation(String),
    /// Two ids have the same key.
    #[error("the id {id:?} collides with {other:?}; give one of them another id")]
    IdCollision {
        /// The new id.
        id: String,
        /// The id that already exists.
        other: String,
    },
    /// Something is longer than the formats allow.
    #[error("{what} has {size}, the limit is {limit}")]
    TooLarge {
        /// The thing that is too long.
        what: String,
        /// Bytes or items.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A revision was requested that the store has not reached.
    #[error("revision {asked} is in the future, the store is at {current}")]
    FutureRevision {
        /// The requested revision.
        asked: u64,
        /// The current revision.
        current: u64,
    },
    /// A record cannot be written as JSON.
    #[error("{what} cannot be written as JSON")]
    Json {
        /// The record.
        what: String,
        /// The cause.
        source: serde_json::Error,
    },
}

impl StoreError {
    /// Returns whether the contents of a record were refused. All other errors concern the store itself.
    #[must_use]
    pub fn concerns_record(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::IdCollision { .. } | Self::DuplicateRecord { .. })
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// The action of a [`StoreError::Io`] after which the content of the disk is unknown.
pub(crate) const FSYNC: &str = "fsync";

impl StoreError {
    /// Makes a [`StoreError::Io`] or [`StoreError::Full`], for `map_err`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            // An fsync that finds no room may have lost the bytes, like any other fsync that fails.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if action != FSYNC => {
                Self::Full { path }
            }
            _ => Self::Io { action, path, source },
        }
    }

    /// Returns [`StoreError::DamagedJournal`] if anything is damaged.
    pub(crate) fn check(damage: Vec<Damage>) -> Result<(), Self> {
        damage.into_iter().next().map_or(Ok(()), |first| Err(Self::DamagedJournal { first }))
    }

    /// Returns whether the disk accepts no writes, now or ever. Existing data can still be read.
    #[must_use]
    pub fn unwritable(&self) -> bool {
        match self {
            Self::Full { .. } | Self::ReadOnly { .. } => true,
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
            }
            Self::Engine { problem } => passes(problem),
            _ => false,
        }
    }

    /// Returns whether an fsync failed: the system may have dropped the bytes, and a second fsync would succeed without them.
    pub(crate) fn unconfirmed(&self) -> bool {
        matches!(self, Self::Io { action: FSYNC, .. })
    }
}
