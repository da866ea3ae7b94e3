//! The fast path for an import whose evidence is already stored: nothing is derived again.
//!
//! What is shown follows from all evidence. Evidence that is already stored therefore changes nothing, provided that
//! everything that follows from it was stored too. A mark in the ledger says that it was not: it is set with the first
//! of several batches and removed with the last.

use satchel_store::{Change, Ledger, LedgerWrite, Store, StoreError};

use super::Batches;
use crate::{
    ingest::{IngestError, receipt::ImportRecord, run::Tail, write::Writer},
    lineage::{Key, Packed},
};

/// The id of the mark. Its value is the import that set it, or a change by hand, or empty.
const SETTLING: &str = "settling memories";
/// The id of the entry that names the version of the program which last derived all memories.
const DERIVED: &str = "memories derived by";
/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the change that sets the mark, or removes it if `by` is empty.
pub(in crate::ingest) fn mark(by: &str) -> Change {
    let (ledger, id, value) = (Ledger::Setting, SETTLING.to_owned(), by.as_bytes().to_vec());
    Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value })
}

/// Returns whether an import died before everything that follows from its evidence was stored.
pub(in crate::ingest) fn marked(store: &Store) -> Result<bool, IngestError> {
    Ok(by(store)?.is_some())
}

/// Returns what set the mark.
pub(in crate::ingest) fn by(store: &Store) -> Result<Option<Vec<u8>>, StoreError> {
    let mark = store.ledger_get(Ledger::Setting, SETTLING)?;
    Ok(mark.map(|mark| mark.value).filter(|value| !value.is_empty()))
}

/// Returns the change which records that this version of the program derived all memories.
pub(super) fn derived() -> Change {
    let (ledger, id, value) = (Ledger::Setting, DERIVED.to_owned(), VERSION.as_bytes().to_vec());
    Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value })
}

/// Returns whether this version of the program derived all memories; another version may derive them differently.
pub(super) fn derived_here(store: &Store) -> Result<bool, IngestError> {
    let by = store.ledger_get(Ledger::Setting, DERIVED)?;
    Ok(by.is_some_and(|by| by.value == VERSION.as_bytes()))
}

/// If all evidence of the import is stored already, counts it, records that the import brought it, and returns true.
/// Otherwise returns false and changes nothing.
pub(super) fn settle(
    store: &Store,
    writer: &mut Writer<'_>,
    tail: &Tail,
    record: &mut ImportRecord,
) -> Result<bool, IngestError> {
    if !tail.is_empty() || writer.documents > 0 || !writer.open.is_empty() || !writer.undone.is_empty() {
        return Ok(false);
    }
    if marked(store)? {
        return Ok(false);
    }
    let Some(mut keys) = stored_keys(store, writer)? else { return Ok(false) };
    writer.reports = Packed::default();
    for id in std::mem::take(&mut writer.touched) {
        writer.wanted()?;
        count(store, id, record)?;
    }
    keys.append(&mut writer.again);
    let mut batches = Batches::default();
    for key in keys {
        if let Some(page) = writer.brought.add(key) {
            batches.put(page, writer, record)?;
        }
    }
    if let Some(page) = writer.brought.rest() {
        batches.put(page, writer, record)?;
    }
    batches.commit(writer, record)?;
    writer.flush(record)?;
    Ok(true)
}

/// Counts a memory on which the import has only evidence that was stored already.
pub(super) fn count(store: &Store, memory: Key, record: &mut ImportRecord) -> Result<(), IngestError> {
    if store.shows_memory(memory)? {
        record.memories.found += 1;
        record.memories.unchanged += 1;
    }
    Ok(())
}

/// Returns the keys of the import's evidence, if every piece is stored.
fn stored_keys(store: &Store, writer: &Writer<'_>) -> Result<Option<Vec<Key>>, IngestError> {
    let mut keys = Vec::new();
    for key in writer.reports.keys() {
        writer.wanted()?;
        if !store.has_evidence(*key)? {
            return Ok(None);
        }
        keys.push(*key);
    }
    Ok(Some(keys))
}
