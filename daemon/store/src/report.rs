//! The reports of the store: events during open, results of checks, statistics.

use std::{
    collections::BTreeMap,
    fmt,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use crate::revision::Revision;

/// An event during the opening of a store, so that a long start can be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenEvent {
    /// The engine is behind the journal; the missing commits are applied.
    Replaying {
        /// The last revision that the engine holds.
        from: Revision,
    },
    /// The engine is set aside and rebuilt from the journal.
    Rebuilding {
        /// The reason why it is not trusted.
        reason: String,
    },
    /// The progress of a rebuild or replay.
    Progress {
        /// Bytes of the journal that are processed.
        done: u64,
        /// Bytes of the journal in all.
        total: u64,
    },
    /// The unfinished end of the journal was truncated; nothing in it had been acknowledged.
    TailCut {
        /// The number of bytes that were removed.
        bytes: u64,
    },
    /// The journal is damaged; the store is read-only.
    Damaged(Damage),
    /// The engine is ready.
    Ready {
        /// The revision of the store.
        revision: Revision,
    },
}

/// A place in the journal whose bytes are no longer as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The segment's file.
    pub file: PathBuf,
    /// Offset of the first damaged byte.
    pub offset: u64,
    /// The number of bytes; 0 if a frame is whole but does not belong there.
    pub length: u64,
    /// Revisions of which something is lost; empty if only ledger entries or nothing at all is affected.
    pub revisions: Vec<RangeInclusive<u64>>,
    /// The problem.
    pub problem: String,
}

impl Damage {
    /// Returns damage that is not known to affect any revision.
    pub(crate) fn new(file: &Path, offset: u64, length: u64, problem: &str) -> Self {
        Self { file: file.to_owned(), offset, length, revisions: Vec::new(), problem: problem.to_owned() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at byte {} ({} bytes) of {}",
            self.problem,
            self.offset,
            self.length,
            self.file.display()
        )?;
        for (index, range) in self.revisions.iter().enumerate() {
            let lead = if index == 0 { ", revisions " } else { ", " };
            if range.start() == range.end() {
                write!(f, "{lead}{}", range.start())?;
            } else {
                write!(f, "{lead}{} to {}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

/// Whether the store accepts writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// The store accepts writes.
    Good,
    /// The journal is damaged; the undamaged part can be read.
    Damaged(Vec<Damage>),
    /// An fsync or the engine failed; nothing is written until a restart.
    Stopped(String),
    /// The store was opened read-only because its disk accepts no writes, with the reason.
    ReadOnly(String),
}

/// A digest of all shown records. Equal content gives equal digests, regardless of the commits that produced it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateDigest(pub(crate) [u64; 4]);

impl fmt::Display for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|word| write!(f, "{word:016x}"))
    }
}

/// Statistics of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// All memories, whatever their status.
    pub memories: u64,
    /// Memories by PAM type.
    pub memories_by_type: BTreeMap<String, u64>,
    /// Memories by PAM status.
    pub memories_by_status: BTreeMap<String, u64>,
    /// Memories by `provenance.platform`.
    pub memories_by_platform: BTreeMap<String, u64>,
    /// All conversations.
    pub conversations: u64,
    /// Conversations by `provider.name`.
    pub conversations_by_platform: BTreeMap<String, u64>,
    /// All messages, including hidden ones.
    pub messages: u64,
    /// Relations that are not withdrawn.
    pub relations: u64,
    /// Vectors.
    pub embeddings: u64,
    /// Pieces of evidence.
    pub evidence: u64,
    /// Bytes of the journal.
    pub journal_bytes: u64,
    /// Bytes of the engine's files.
    pub engine_bytes: u64,
    /// Bytes of the blobs.
    pub blob_bytes: u64,
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read.
    pub total: u64,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Frames of the journal that were read.
    pub frames: u64,
    /// Records of the engine that were compared.
    pub records: u64,
    /// Blobs that were hashed.
    pub blobs: u64,
    /// Damaged places of the journal.
    pub damage: Vec<Damage>,
    /// Records of the engine that differ from the journal; a rebuild repairs them.
    pub engine_problems: Vec<String>,
    /// Blobs whose bytes do not match their name.
    pub blob_problems: Vec<String>,
}

impl CheckReport {
    /// Returns whether nothing is wrong.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.damage.is_empty() && self.engine_problems.is_empty() && self.blob_problems.is_empty()
    }
}
