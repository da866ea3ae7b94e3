//! The evidence of one import, held back until the end of its reading, so that it is stored together with the memories
//! that follow from it, and no other import counts those as its own.

use std::collections::BTreeSet;

use satchel_merge::evidence::{DocumentEvidence, RelationEvidence, StoredEvidence, memories_of, successors};
use satchel_store::record_key;
use uuid::Uuid;

use super::error::IngestError;
use crate::provenance::{ContributionKind, EvidenceKey, KeyPages, PackedMap};

/// The evidence of an import that is not stored yet.
pub(super) struct PendingEvidence {
    /// Keys of the memories that the import mentions.
    pub(super) memories: BTreeSet<EvidenceKey>,
    /// Encoded evidence.
    pub(super) encoded: PackedMap,
    /// Evidence that refers to other items by their keys, which are resolved at the end of the run.
    pub(super) unresolved: Vec<StoredEvidence>,
    /// The number of memories of PAM documents among the evidence.
    pub(super) documents: u64,
    /// The number of all pieces of evidence, with those from the cache.
    pub(super) count: u64,
    /// Keys of evidence in pieces that are taken from the cache.
    pub(super) cached: Vec<EvidenceKey>,
    /// The imports that read those pieces.
    pub(super) readers: BTreeSet<Uuid>,
    /// Keys of evidence that this import brought, not yet recorded in the ledger.
    pub(super) key_pages: KeyPages,
}

impl PendingEvidence {
    pub(super) fn new(import: Uuid) -> Self {
        Self {
            memories: BTreeSet::new(),
            encoded: PackedMap::default(),
            unresolved: Vec::new(),
            documents: 0,
            count: 0,
            cached: Vec::new(),
            readers: BTreeSet::new(),
            key_pages: KeyPages::new(import, ContributionKind::Evidence),
        }
    }

    /// Adds a piece of evidence; returns its key, unless it is only known at the end.
    pub(super) fn add(&mut self, evidence: StoredEvidence) -> Result<Option<EvidenceKey>, IngestError> {
        self.count += 1;
        self.memories.extend(memories_of(&evidence.claim).iter().map(|id| record_key(id)));
        if !successors(&evidence.claim).is_empty() {
            self.unresolved.push(evidence);
            return Ok(None);
        }
        let (key, json) = encode_evidence(&evidence)?;
        self.encoded.insert(key, &json)?;
        Ok(Some(key))
    }

    /// Adds a memory of a PAM document.
    pub(super) fn add_document(&mut self, document: &DocumentEvidence) -> Result<(), IngestError> {
        self.count += 1;
        self.documents += 1;
        self.memories.insert(record_key(&document.memory.id));
        let (key, json) = encode_document(document)?;
        Ok(self.encoded.insert(key, &json)?)
    }

    /// Adds evidence that an earlier import stored; `memories` are the ids of the memories that it concerns.
    pub(super) fn add_cached(&mut self, reader: Uuid, keys: Vec<EvidenceKey>, memories: &[String]) {
        self.readers.insert(reader);
        self.count += keys.len() as u64;
        self.memories.extend(memories.iter().map(|id| record_key(id)));
        self.cached.extend(keys);
    }
}

/// Returns the key under which a memory of a document is stored as evidence, and its encoded bytes.
pub(super) fn encode_document(document: &DocumentEvidence) -> Result<(EvidenceKey, Vec<u8>), IngestError> {
    let (id, json) =
        document.encode().map_err(|_| IngestError::Unencodable { what: "a memory of a document" })?;
    Ok((record_key(&id), json))
}

/// Works as [`encode_document`].
pub(super) fn encode_evidence(evidence: &StoredEvidence) -> Result<(EvidenceKey, Vec<u8>), IngestError> {
    evidence.encode().map_err(|_| IngestError::Unencodable { what: "evidence" })
}

/// Works as [`encode_document`].
pub(super) fn encode_edge(edge: &RelationEvidence) -> Result<(EvidenceKey, Vec<u8>), IngestError> {
    let (id, json) = edge.encode().map_err(|_| IngestError::Unencodable { what: "a relation" })?;
    Ok((record_key(&id), json))
}
