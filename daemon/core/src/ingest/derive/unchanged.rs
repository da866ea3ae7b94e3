//! The fast path for an import whose evidence is already stored: nothing is derived again.
//!
//! What is shown follows from all evidence. Evidence that is already stored therefore changes nothing, provided that
//! everything that follows from it was stored too. A mark in the ledger says that it was not: it is set with the first
//! of several batches and removed with the last.

use satchel_store::Store;

use super::Batches;
use crate::{
    derived,
    ingest::{
        error::IngestError, evidence::PendingEvidence, receipt::ImportRecord, records::DeferredRecords,
        session::Session,
    },
    provenance::{EvidenceKey, PackedMap},
};

/// If all evidence of the import is stored already, counts it, records that the import brought it, and returns true.
/// Otherwise returns false and changes nothing.
pub(super) fn finish(
    session: &Session<'_>,
    pending: &mut PendingEvidence,
    deferred: &DeferredRecords,
    record: &mut ImportRecord,
) -> Result<bool, IngestError> {
    let documents = pending.documents > 0;
    if !deferred.is_empty() || documents || !pending.unresolved.is_empty() || !session.undone.is_empty() {
        return Ok(false);
    }
    if derived::is_pending(session.store)? {
        return Ok(false);
    }
    let Some(mut keys) = stored_keys(session, pending)? else { return Ok(false) };
    pending.encoded = PackedMap::default();
    for id in std::mem::take(&mut pending.memories) {
        session.check_cancelled()?;
        count(session.store, id, record)?;
    }
    keys.append(&mut pending.cached);
    let mut batches = Batches::default();
    for key in keys {
        if let Some(page) = pending.key_pages.add(key) {
            batches.put(page, session, record)?;
        }
    }
    if let Some(page) = pending.key_pages.flush() {
        batches.put(page, session, record)?;
    }
    batches.commit(session, record)?;
    Ok(true)
}

/// Counts a memory on which the import has only evidence that was stored already.
pub(super) fn count(
    store: &Store,
    memory: EvidenceKey,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    if store.memory_visible(memory)? {
        record.memories.found += 1;
        record.memories.unchanged += 1;
    }
    Ok(())
}

/// Returns the keys of the import's evidence, if every piece is stored.
fn stored_keys(
    session: &Session<'_>,
    pending: &PendingEvidence,
) -> Result<Option<Vec<EvidenceKey>>, IngestError> {
    let mut keys = Vec::new();
    for key in pending.encoded.keys() {
        session.check_cancelled()?;
        if !session.store.has_evidence(*key)? {
            return Ok(None);
        }
        keys.push(*key);
    }
    Ok(Some(keys))
}
