//! What can go wrong in the store.

use std::{io, path::PathBuf};

use crate::{engine::passes, report::Damage};

/// A refusal of the store. Nothing is written by a call that returns one, unless the variant says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Whoever asked for it stopped it.
    #[error("it was cancelled")]
    Cancelled,
    /// Another process has the folder.
    #[error("the store in {dir:?} is in use by process {pid}; stop it, or let commands go through it")]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// As the lock file says; `?` if it says nothing.
        pid: String,
    },
    /// The journal was written by a newer program.
    #[error("{file:?} has journal format {found}, this program knows up to {known}; use a newer satchel")]
    NewerFormat {
        /// The segment.
        file: PathBuf,
        /// Its version.
        found: u16,
        /// Our version.
        known: u16,
    },
    /// A frame or value is encrypted with a key that this program does not have.
    #[error("{place} is sealed with key {key}, which this program cannot open; use a newer satchel")]
    Sealed {
        /// Where.
        place: String,
        /// The key id.
        key: u16,
    },
    /// The journal is encrypted, and nothing to open it with was given.
    #[error(
        "the journal in {folder:?} is encrypted, and the file with its wrapped key is missing; put keys/data-key.json of this store back, a backup holds it; nothing was changed"
    )]
    NoKey {
        /// The journal.
        folder: PathBuf,
    },
    /// The journal is encrypted with another key.
    #[error(
        "the journal in {folder:?} does not open with the data key that was given: it is the key of another store; put keys/data-key.json of this store back; nothing was changed"
    )]
    WrongKey {
        /// The journal.
        folder: PathBuf,
    },
    /// The journal is plain, though there is a key.
    #[error(
        "the journal in {folder:?} is not encrypted, though there is a key for it; run `satchel keys encrypt` to encrypt it"
    )]
    NotEncrypted {
        /// The journal.
        folder: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} {path:?}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The disk is full, or so nearly that the database might not be written to its end. The store goes on when there is room again.
    #[error("no space left on the disk for {path:?}; free some and try again")]
    Full {
        /// What was to be written.
        path: PathBuf,
    },
    /// The store was opened to be read, as its disk takes nothing.
    #[error(
        "the store in {dir:?} is only read: {reason}; give it room, or a disk that can be written, and try again"
    )]
    ReadOnly {
        /// The folder.
        dir: PathBuf,
        /// Why nothing could be written.
        reason: String,
    },
    /// The store has to stand twice for a while, and the disk has no room for that; it was looked at before anything was written.
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
        /// Bytes that are.
        free: u64,
    },
    /// An fsync or the engine failed before; what was acknowledged is safe.
    #[error("the store has stopped writing: {reason}; restart satchel")]
    Stopped {
        /// What failed.
        reason: String,
    },
    /// The journal is damaged: the store is read-only, or, if nothing of the journal is left, it does not open.
    #[error(
        "the journal is damaged ({first}); nothing is written to it any more; restore it from a backup, or export what can still be read"
    )]
    DamagedJournal {
        /// The first place.
        first: Damage,
    },
    /// A record needs bytes of the journal that do not check.
    #[error("{what} cannot be read: {damage}")]
    DamagedRecord {
        /// Which record.
        what: String,
        /// The place.
        damage: Damage,
    },
    /// The engine failed; the journal is whole.
    #[error("the database failed: {problem}; restart satchel, it is rebuilt from the journal then")]
    Engine {
        /// What it said.
        problem: String,
    },
    /// A value in the engine does not read as one of ours.
    #[error(
        "{what} in the database does not read: {problem}; restart satchel, it is rebuilt from the journal then"
    )]
    BadValue {
        /// Which record.
        what: String,
        /// What is wrong.
        problem: String,
    },
    /// A record stands twice in one batch.
    #[error("{kind} {id:?} stands twice in one batch")]
    Twice {
        /// What.
        kind: &'static str,
        /// Which.
        id: String,
    },
    /// A message is to be kept that the conversation does not have.
    #[error("conversation {conversation:?} has no message {message:?} to keep")]
    UnknownMessage {
        /// Which conversation.
        conversation: String,
        /// Which message.
        message: String,
    },
    /// A relation is to be withdrawn that the store does not have.
    #[error("there is no relation {0:?} to withdraw")]
    UnknownRelation(String),
    /// Two ids share their key.
    #[error("the id {id:?} collides with {other:?}; give one of them another id")]
    IdCollision {
        /// The new one.
        id: String,
        /// The one that stands.
        other: String,
    },
    /// Something is longer than the formats allow.
    #[error("{what} has {size}, the limit is {limit}")]
    TooLarge {
        /// What.
        what: String,
        /// Bytes or items.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A revision is asked for that the store has not reached.
    #[error("revision {asked} is in the future, the store is at {current}")]
    FutureRevision {
        /// Asked for.
        asked: u64,
        /// Now.
        current: u64,
    },
    /// A record does not become JSON.
    #[error("{what} cannot be written as JSON")]
    Json {
        /// Which record.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// The action of a [`StoreError::Io`] after which nobody knows what the disk holds.
pub(crate) const FSYNC: &str = "fsync";

impl StoreError {
    /// Makes an [`StoreError::Io`], or [`StoreError::Full`], for `map_err`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            // An fsync that finds no room has lost what it was asked for, like any other that fails.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if action != FSYNC => {
                Self::Full { path }
            }
            _ => Self::Io { action, path, source },
        }
    }

    /// Whether the disk takes nothing at the moment, or never: what is there can be read all the same.
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

    /// Whether an fsync failed: the system may have dropped the bytes, and a second fsync would succeed without them.
    pub(crate) fn unconfirmed(&self) -> bool {
        matches!(self, Self::Io { action: FSYNC, .. })
    }
}
