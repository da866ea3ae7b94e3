//! Appends exports to the store's own series, so that the other machines of a person list them.

use super::{BATCH, Sync, SyncError, machine_name};
use crate::{
    export_ledger::{self, ExportRecord},
    series::{NewPlace, entries, payload::Payload},
};

impl Sync {
    /// Appends the exports that were made here and are in no series, oldest first.
    pub(super) fn record_exports(&self) -> Result<u64, SyncError> {
        let (store, mut pending, mut failed) = (self.0.store(), Vec::new(), None);
        export_ledger::for_each(store, |record| {
            match entries::is_export_recorded(store, &record.export_id) {
                Ok(false) if !record.applied => pending.push(record),
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
            failed.is_none()
        })?;
        failed.map_or(Ok(()), |error| Err(SyncError::from(error)))?;
        pending.reverse();
        for batch in pending.chunks(BATCH) {
            self.append_all(batch, |series, record| {
                let machine = record.machine.clone().or_else(machine_name);
                let export = Payload::Export(Box::new(ExportRecord { machine, ..record.clone() }));
                series.append(&export, NewPlace::Inline)?;
                series.note(entries::put_export_recorded(&record.export_id));
                Ok(())
            })?;
        }
        Ok(pending.len() as u64)
    }
}
