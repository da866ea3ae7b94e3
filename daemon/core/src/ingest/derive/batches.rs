//! Stores derived records in batches of bounded size.

use satchel_store::Change;

use crate::{
    derived,
    ingest::{error::IngestError, receipt::ImportRecord, session::Session},
};

/// Maximum number of changes of one batch: larger batches write fewer leaves of the database more than once.
const BATCH_CHANGES: usize = 4_000;
/// Maximum encoded bytes of one batch: a memory grows with its evidence, and the size of a journal frame is limited.
const BATCH_BYTES: usize = 8 << 20;

/// Changes that wait to be committed.
#[derive(Default)]
pub(super) struct Batches {
    pub(super) batch: Vec<Change>,
    bytes: usize,
    /// The import to name in the mark, if related changes need more than one batch.
    by: Option<String>,
    /// Whether the mark in the ledger says that the stored records are incomplete.
    pub(super) marked: bool,
    /// Whether a full batch was committed.
    pub(super) begun: bool,
}

impl Batches {
    /// Returns empty batches for the import `by`; `marked`: the ledger already has the mark.
    pub(super) fn of(by: &str, marked: bool) -> Self {
        Self { by: Some(by.to_owned()), marked, ..Self::default() }
    }

    pub(super) fn put(
        &mut self,
        change: Change,
        session: &Session<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        self.bytes += weight(&change);
        self.batch.push(change);
        if self.batch.len() >= BATCH_CHANGES / session.batch_divisor() || self.bytes >= BATCH_BYTES {
            if let Some(by) = self.by.as_deref().filter(|_| !self.marked) {
                self.batch.push(derived::mark_pending(by));
                self.marked = true;
            }
            self.begun = true;
            self.commit(session, record)?;
        }
        Ok(())
    }

    /// Commits the pending changes; a dry run stores nothing.
    pub(super) fn commit(
        &mut self,
        session: &Session<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() || session.dry_run {
            return Ok(());
        }
        // If the import is cancelled here, the next import completes what follows from the stored batches: the mark in
        // the ledger says that they are incomplete.
        session.check_cancelled()?;
        session.commit(batch, record)?;
        satchel_failpoints::reached("memories stored");
        Ok(())
    }
}

/// Returns the encoded bytes of changes that can be long.
fn weight(change: &Change) -> usize {
    match change {
        Change::Evidence(write) => write.json.len(),
        Change::Memory(memory) => serde_json::to_vec(memory).map_or(0, |json| json.len()),
        _ => 0,
    }
}
