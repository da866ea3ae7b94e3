//! Entries that have a log of their own and no revision: imports, exports, sources and others.

use uuid::Uuid;

/// The ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Ledger {
    /// One run of an importer, or an applied bundle.
    Import,
    /// A source, by its SHA-256, and the result of reading it.
    Source,
    /// A bundle that was written or applied.
    Export,
    /// A paired device.
    Device,
    /// An installed plugin.
    Plugin,
    /// A request id and its answer.
    Request,
    /// The audit log of actions and their actors.
    Audit,
    /// A setting of the data directory.
    Setting,
    /// What each import reported about a conversation, and the evidence that it added.
    Provenance,
    /// Changes that were undone or restored.
    Undo,
    /// Memories that agents wrote and that wait for the owner's review.
    Quarantine,
    /// Memories that agents wrote and that the owner approved or rejected.
    Review,
    /// The series of changes that stores exchange.
    Sync,
}

impl Ledger {
    pub(crate) const ALL: [Self; 13] = [
        Self::Import,
        Self::Source,
        Self::Export,
        Self::Device,
        Self::Plugin,
        Self::Request,
        Self::Audit,
        Self::Setting,
        Self::Provenance,
        Self::Undo,
        Self::Quarantine,
        Self::Review,
        Self::Sync,
    ];

    /// Returns the byte for the ledger in keys and frames; codes are never reused.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Import => 1,
            Self::Source => 2,
            Self::Export => 3,
            Self::Device => 4,
            Self::Plugin => 5,
            Self::Request => 6,
            Self::Audit => 7,
            Self::Setting => 8,
            Self::Provenance => 9,
            Self::Undo => 10,
            Self::Quarantine => 11,
            Self::Review => 12,
            Self::Sync => 13,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|ledger| ledger.code() == code)
    }
}

/// A write to a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerWrite {
    /// Puts an entry. A second write under the same id replaces the first, and a write with an empty value removes the entry.
    Entry {
        /// The ledger.
        ledger: Ledger,
        /// The key: an import's UUID, a source's SHA-256 in hex.
        id: String,
        /// The position of the entry in the list, which is sorted newest first; microseconds since the Unix epoch.
        at_micros: i64,
        /// The bytes, JSON by convention.
        value: Vec<u8>,
    },
    /// Puts one page of the issues of an import.
    Issues {
        /// The import.
        import: Uuid,
        /// The page number, from 0.
        page: u32,
        /// The bytes, JSON by convention; keep a page under 64 KiB.
        value: Vec<u8>,
    },
    /// Stores the result of reading a piece of a source. A second write under the same digest replaces the first.
    Piece {
        /// The digest that identifies the piece; it must be collision-resistant.
        digest: [u8; 32],
        /// The bytes.
        value: Vec<u8>,
    },
}

/// One entry as it is stored now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The key.
    pub id: String,
    /// The position in the list.
    pub at_micros: i64,
    /// The bytes as they were put.
    pub value: Vec<u8>,
}

/// The moment at which a ledger entry is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When the call returns.
    Now,
    /// With the next commit, or at a clean stop. For progress that a restart may forget.
    WithNextCommit,
}
