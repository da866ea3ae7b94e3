//! What a run delivers, and how large it is.

use std::collections::BTreeMap;

use satchel_pam::record::{
    AccountRecord, ConversationRecord, EmbeddingRecord, Evidence, RecordKind, RelationRecord, Skip, Warning,
};

/// One delivery of a run, already checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Emitted {
    /// A whole conversation: ids unique, parents without cycles.
    Conversation(Box<ConversationRecord>),
    /// What the export says about memories.
    Evidence(Vec<Evidence>),
    /// Edges between items.
    Relations(Vec<RelationRecord>),
    /// Vectors of items.
    Embeddings(Vec<EmbeddingRecord>),
    /// An account whose export it is.
    Account(AccountRecord),
    /// A record that was found and left out, by the plugin or by the host's checks.
    Skip(Skip),
    /// Something read otherwise than it stood.
    Warning(Warning),
    /// A piece of the source begins: what follows came of it, up to [`Emitted::Again`], [`Emitted::Noted`] or the next piece.
    Piece,
    /// The piece was not read, as it gives what it gave before; the account that [`crate::Memo`] gave.
    Again(Vec<u8>),
    /// The piece was read without a skip or a warning, and may be remembered.
    Noted {
        /// What it is known by.
        digest: [u8; 32],
        /// The plugin's note, to be given back.
        note: Vec<u8>,
    },
    /// Bytes read so far, by the host's count, and bytes that the files state; `done` never passes `total`.
    Progress {
        /// Read.
        done: u64,
        /// To read; attachments that no record needs may stay unread.
        total: u64,
    },
}

/// The sink's answer to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Proceed,
    /// End the run.
    Stop,
}

/// The host's own count of a run that ended well; what the plugin claims is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes that the plugin read.
    pub bytes_read: u64,
    /// Whole conversations delivered.
    pub conversations: u64,
    /// Messages in them.
    pub messages: u64,
    /// Pieces of evidence delivered.
    pub evidence: u64,
    /// Relations delivered.
    pub relations: u64,
    /// Embeddings delivered.
    pub embeddings: u64,
    /// Records left out by kind, those past [`crate::Limits::skips`] too. The messages of a conversation that is
    /// left out are counted, though they are not named one by one.
    pub skipped: BTreeMap<RecordKind, u64>,
    /// Warnings, those past [`crate::Limits::warnings`] too.
    pub warnings: u64,
}
