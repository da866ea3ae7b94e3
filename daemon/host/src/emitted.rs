//! The deliveries of a run, and its summary.

use std::collections::BTreeMap;

use satchel_pam::record::{
    AccountRecord, ConversationRecord, EmbeddingRecord, Evidence, RecordKind, RelationRecord, Skip, Warning,
};

/// Breaches of the interface's rules that a summary lists.
pub const MAX_LISTED_BREACHES: usize = 100;

/// One delivery of a run, already checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Emitted {
    /// A complete conversation: ids are unique and there are no cycles of parents.
    Conversation(Box<ConversationRecord>),
    /// Statements of the export about memories.
    Evidence(Vec<Evidence>),
    /// Edges between items.
    Relations(Vec<RelationRecord>),
    /// Vectors of items.
    Embeddings(Vec<EmbeddingRecord>),
    /// An account that the export belongs to.
    Account(AccountRecord),
    /// A record that was left out, by the plugin or by the checks of the host.
    Skip(Skip),
    /// A value that was changed while it was read.
    Warning(Warning),
    /// A piece of the source begins. The following deliveries come from it, up to [`Emitted::PieceUnchanged`],
    /// [`Emitted::PieceNoted`] or the next piece.
    PieceStarted,
    /// The piece was not read, because it gives the same records as before. The value is the result that
    /// [`crate::PieceMemo`] returned.
    PieceUnchanged(Vec<u8>),
    /// The piece was read without a skip or a warning, and may be remembered.
    PieceNoted {
        /// The key of the piece.
        digest: [u8; 32],
        /// The plugin's note, to be returned to the plugin on a later run.
        note: Vec<u8>,
    },
    /// Progress: bytes read so far by the host's count, and the size stated for the files. `done` never exceeds
    /// `total`.
    Progress {
        /// Bytes read.
        done: u64,
        /// Bytes to read. Attachments that no record refers to may stay unread.
        total: u64,
    },
}

/// The sink's answer to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkVerdict {
    /// Continue the run.
    Proceed,
    /// Stop the run.
    Stop,
}

/// The host's own counts for a run that succeeded. Counts reported by the plugin are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Bytes read by the plugin.
    pub bytes_read: u64,
    /// Complete conversations delivered.
    pub conversations: u64,
    /// Messages in those conversations.
    pub messages: u64,
    /// Pieces of evidence delivered.
    pub evidence: u64,
    /// Relations delivered.
    pub relations: u64,
    /// Embeddings delivered.
    pub embeddings: u64,
    /// Records left out, by kind, including those beyond [`crate::PluginLimits::skips`]. The messages of a conversation
    /// that is left out are counted, although they are not reported one by one.
    pub skipped: BTreeMap<RecordKind, u64>,
    /// Number of warnings, including those beyond [`crate::PluginLimits::warnings`].
    pub warnings: u64,
    /// The linear memory of the plugin at the end, in bytes. Memory is never given back, so this is also the peak.
    pub memory_bytes: usize,
    /// The records that the host left out or changed because they break a rule of the interface, the first
    /// [`MAX_LISTED_BREACHES`]. Each of them was also delivered as a skip or a warning.
    pub breaches: Vec<Warning>,
}
