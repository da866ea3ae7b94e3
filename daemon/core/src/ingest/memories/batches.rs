//! Stores what follows from evidence, a bounded piece of it at a time.

use satchel_store::Change;

use super::known;
use crate::ingest::{IngestError, receipt::ImportRecord, write::Writer};

/// Changes of one batch: the more there are, the fewer leaves of the database are written more than once.
const BATCH_CHANGES: usize = 4_000;
/// Encoded bytes of one batch; a memory grows with its evidence, and the journal takes no endless frame.
const BATCH_BYTES: usize = 8 << 20;

/// Changes on their way to the store.
#[derive(Default)]
pub(super) struct Batches {
    pub(super) batch: Vec<Change>,
    bytes: usize,
    /// Who is to be named where more than one batch stores what belongs together.
    by: Option<String>,
    /// Whether the ledger says that what is stored is not all.
    pub(super) marked: bool,
    /// Whether a batch was full.
    pub(super) begun: bool,
}

impl Batches {
    /// For the import `by`; `marked`: the ledger says already that what is stored is not all.
    pub(super) fn of(by: &str, marked: bool) -> Self {
        Self { by: Some(by.to_owned()), marked, ..Self::default() }
    }

    pub(super) fn put(
        &mut self,
        change: Change,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        self.bytes += weight(&change);
        self.batch.push(change);
        if self.batch.len() >= BATCH_CHANGES / writer.part() || self.bytes >= BATCH_BYTES {
            if let Some(by) = self.by.as_deref().filter(|_| !self.marked) {
                self.batch.push(known::mark(by));
                self.marked = true;
            }
            self.begun = true;
            self.commit(writer, record)?;
        }
        Ok(())
    }

    /// Commits what waits; a dry run stores nothing.
    pub(super) fn commit(
        &mut self,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() || writer.dry_run {
            return Ok(());
        }
        // What follows from the batches that are stored is completed by the next import: the ledger says that it is owed.
        writer.wanted()?;
        writer.commit(batch, record)?;
        satchel_failpoints::reached("memories stored");
        Ok(())
    }
}

/// Bytes of what can be long.
fn weight(change: &Change) -> usize {
    match change {
        Change::Evidence(write) => write.json.len(),
        Change::Memory(memory) => serde_json::to_vec(memory).map_or(0, |json| json.len()),
        _ => 0,
    }
}
