//! What the store says about itself: on open, in checks, in numbers.

use std::{
    collections::BTreeMap,
    fmt,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use crate::revision::Revision;

/// What happens while a store is opened, so that a long start can say why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenEvent {
    /// The engine is behind the journal; the rest is applied again.
    Replaying {
        /// The last revision that the engine holds.
        from: Revision,
    },
    /// The engine is set aside and built again from the journal.
    Rebuilding {
        /// Why it is not trusted.
        reason: String,
    },
    /// A rebuild or replay goes on.
    Progress {
        /// Bytes of the journal that are done.
        done: u64,
        /// Bytes of the journal in all.
        total: u64,
    },
    /// The unfinished end of the journal was cut; nothing in it had been acknowledged.
    TailCut {
        /// How many bytes.
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

/// A place in the journal that no longer reads as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The segment's file.
    pub file: PathBuf,
    /// First byte.
    pub offset: u64,
    /// How many bytes; 0 where a frame is whole but does not belong.
    pub length: u64,
    /// Revisions of which something is lost; empty where only ledger entries or nothing at all is touched.
    pub revisions: Vec<RangeInclusive<u64>>,
    /// What is wrong.
    pub problem: String,
}

impl Damage {
    /// Damage that touches no revision as far as is known.
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

/// Whether the store takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It does.
    Good,
    /// The journal is damaged; what is left can be read.
    Damaged(Vec<Damage>),
    /// An fsync or the engine failed; nothing is written until a restart.
    Stopped(String),
    /// It was opened to be read, as its disk takes nothing, and why.
    ReadOnly(String),
}

/// A digest of all shown records; equal content gives equal digests, whatever the commits that led there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateDigest(pub(crate) [u64; 4]);

impl fmt::Display for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|word| write!(f, "{word:016x}"))
    }
}

/// Numbers about the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// All memories, whatever their status.
    pub memories: u64,
    /// By PAM type.
    pub memories_by_type: BTreeMap<String, u64>,
    /// By PAM status.
    pub memories_by_status: BTreeMap<String, u64>,
    /// By `provenance.platform`.
    pub memories_by_platform: BTreeMap<String, u64>,
    /// All conversations.
    pub conversations: u64,
    /// By `provider.name`.
    pub conversations_by_platform: BTreeMap<String, u64>,
    /// All messages, hidden ones too.
    pub messages: u64,
    /// Relations that stand.
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

/// How far a check has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read.
    pub total: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Frames of the journal that were read.
    pub frames: u64,
    /// Records of the engine that were compared.
    pub records: u64,
    /// Blobs that were hashed.
    pub blobs: u64,
    /// Places of the journal that do not check.
    pub damage: Vec<Damage>,
    /// Records of the engine that differ from the journal; a rebuild mends them.
    pub engine_problems: Vec<String>,
    /// Blobs whose bytes do not fit their name.
    pub blob_problems: Vec<String>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.damage.is_empty() && self.engine_problems.is_empty() && self.blob_problems.is_empty()
    }
}
