//! Erasures of other stores.

use satchel_store::Change;

use super::{Applier, SyncError};
use crate::{
    provenance::PurgeRecord,
    purge::{planned_elsewhere, record_purge},
    series::{entries, payload::ErasurePayload},
};

impl Applier<'_> {
    /// Hides what another store has erased, and records that it has to leave the disk. `done` is written after it.
    pub(super) fn erase(&mut self, erasure: ErasurePayload, mut done: Vec<Change>) -> Result<(), SyncError> {
        let ErasurePayload { id, at, actor, memories, conversations, rows } = erasure;
        let (id, _guard) = (id.to_string(), self.inner.lock_writes());
        let record = PurgeRecord { id, at, actor, memories, conversations, rows, ..PurgeRecord::default() };
        let (record, more) = planned_elsewhere(self.store, record)?;
        // It may have been recorded before a crash; then the start of the program has completed it.
        if !PurgeRecord::list(self.store)?.iter().any(|known| known.id == record.id) {
            record_purge(self.store, &record)?;
            self.applied.erasures += 1;
        }
        if let Some(more) = more {
            record_purge(self.store, &more)?;
            self.applied.erasures += 1;
        }
        done.push(entries::put_erasure_recorded(&record.id));
        Ok(self.inner.commit_entries(done)?)
    }
}
