//! The records of an import on their way from its reader to the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use satchel_host::channel::SizeEstimate;
use satchel_merge::evidence::{DocumentEvidence, StoredEvidence};
use satchel_pam::{
    embedding::Embedding,
    hash::ContentHash,
    record::{AccountRecord, EmbeddingRecord, RelationRecord, Skip, Warning},
    relation::Relation,
};

use super::{
    normalise::NormalisedConversation,
    pieces::{PieceResult, PieceToCache},
};
use crate::{
    export_ledger::{DocumentInfo, ExportRecord},
    provenance::vectors,
};

/// How long the writer waits for the next record before it commits the open batch.
pub(super) const IDLE: Duration = Duration::from_millis(200);

/// An item that the second thread passes to the third.
pub(super) enum ImportItem {
    Conversation(Box<NormalisedConversation>),
    Evidence(Vec<StoredEvidence>),
    Document(Box<DocumentEvidence>),
    Account(AccountRecord),
    Skip(Skip),
    Warning(Warning),
    Stored,
    /// The start of a piece of the source.
    Piece,
    /// A piece to be cached.
    Known(Box<PieceToCache>),
    /// A piece whose cached result is used.
    Again(Box<PieceResult>),
}

/// Records that are stored at the end of a run. Relations and embeddings refer to items by keys that are only resolved
/// by then.
#[derive(Default)]
pub(super) struct DeferredRecords {
    pub(super) relations: Vec<RelationRecord>,
    pub(super) embeddings: Vec<EmbeddingRecord>,
    /// Memory ids by item key.
    pub(super) keys: BTreeMap<String, String>,
    /// Relations of PAM documents, which refer to memories by id.
    pub(super) drawn: Vec<Relation>,
    pub(super) vectors: Vec<DocumentVector>,
    /// Other statements of the document on vectors.
    pub(super) vector_statements: vectors::DocumentVectors,
    /// Relations that were withdrawn at the origin of the document, with the time of that statement in microseconds.
    pub(super) withdrawn: Vec<(String, i64)>,
    /// Files of the export that are attachments of messages.
    pub(super) attached: BTreeSet<String>,
    /// The document, for the ledger of exports.
    pub(super) applied: Option<Box<ReadDocument>>,
    /// The stranger whose PAM documents they are: a key, or the marker for unsigned documents.
    pub(super) untrusted: Option<String>,
}

/// A vector of a PAM document.
pub(super) struct DocumentVector {
    pub(super) embedding: Embedding,
    /// A fingerprint of the content of its memory in the same documents, if they hold the memory.
    pub(super) of: Option<u64>,
}

/// Returns the fingerprint of a memory's content: its first 64 bits tell apart texts that have the same key.
pub(super) fn content_fingerprint(content: &ContentHash) -> u64 {
    fingerprint(content.as_bytes())
}

/// Returns the first 64 bits of a digest.
pub(super) fn fingerprint(digest: &[u8; 32]) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// A document that was read.
pub(super) struct ReadDocument {
    /// Its entry for the ledger of exports; `None` if it has no export id.
    pub(super) record: Option<ExportRecord>,
    /// The owner of its memories, and the description of their meaning.
    pub(super) about: DocumentInfo,
}

impl DeferredRecords {
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            relations,
            embeddings,
            keys: _,
            drawn,
            vectors,
            vector_statements,
            withdrawn,
            attached: _,
            applied: _,
            untrusted: _,
        } = self;
        relations.is_empty()
            && embeddings.is_empty()
            && drawn.is_empty()
            && vectors.is_empty()
            && vector_statements.withdrawn.is_empty()
            && withdrawn.is_empty()
    }
}

impl SizeEstimate for ImportItem {
    fn size_estimate(&self) -> usize {
        match self {
            Self::Conversation(conversation) => conversation.weight,
            Self::Evidence(evidence) => evidence.len() * 1024,
            Self::Document(document) => document.memory.content.len() * 2 + 1024,
            Self::Account(_) | Self::Skip(_) | Self::Warning(_) | Self::Stored | Self::Piece => 256,
            Self::Known(known) => known.note.len() + 512,
            Self::Again(_) => 512,
        }
    }
}
