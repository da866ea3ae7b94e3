//! Entries that have their own log and no revision: imports, exports, sources.

use uuid::Uuid;

/// Which ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Ledger {
    /// One run of an importer or an applied bundle.
    Import,
    /// A source by its SHA-256: what was made of it.
    Source,
    /// A bundle that was written or applied.
    Export,
    /// A paired device.
    Device,
    /// An installed plugin.
    Plugin,
    /// A request id and its answer.
    Request,
    /// Who did what.
    Audit,
    /// A setting of the data directory.
    Setting,
    /// What each import said of a conversation, and which evidence it brought.
    Lineage,
    /// What was taken back, and brought again.
    Undo,
}

impl Ledger {
    pub(crate) const ALL: [Self; 10] = [
        Self::Import,
        Self::Source,
        Self::Export,
        Self::Device,
        Self::Plugin,
        Self::Request,
        Self::Audit,
        Self::Setting,
        Self::Lineage,
        Self::Undo,
    ];

    /// The byte in keys and frames; never reused.
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
            Self::Lineage => 9,
            Self::Undo => 10,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|ledger| ledger.code() == code)
    }
}

/// What is written to a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerWrite {
    /// Puts an entry; a second write under the same id replaces the first, and one without a byte takes it away.
    Entry {
        /// Which ledger.
        ledger: Ledger,
        /// The key: an import's UUID, a source's SHA-256 in hex.
        id: String,
        /// Where the entry stands in the list, newest first; microseconds since the Unix epoch.
        at_micros: i64,
        /// The bytes, JSON by agreement.
        value: Vec<u8>,
    },
    /// Puts one page of the issues of an import.
    Issues {
        /// The import.
        import: Uuid,
        /// From 0.
        page: u32,
        /// The bytes, JSON by agreement; keep a page under 64 KiB.
        value: Vec<u8>,
    },
    /// Remembers what was made of a piece of a source; a second write under the same digest replaces the first.
    Piece {
        /// What the piece is known by: a digest that nobody finds another piece for.
        digest: [u8; 32],
        /// The bytes.
        value: Vec<u8>,
    },
}

/// One entry as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The key.
    pub id: String,
    /// Where it stands in the list.
    pub at_micros: i64,
    /// The bytes as they were put.
    pub value: Vec<u8>,
}

/// When a ledger entry is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When the call returns.
    Now,
    /// With the next commit, or at a clean stop. For progress that a restart may forget.
    WithNextCommit,
}
