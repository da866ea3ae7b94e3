//! Counts the memories of each device that wait for review, so that no device fills the disk.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use satchel_store::{Cursor, Ledger, Store};

use super::{EditError, QuarantinedMemory};
use crate::each_row;

/// Maximum number of memories of one device that wait.
const MAX_MEMORIES: u64 = 1_000;
/// Maximum size of the memories of one device that wait, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// Entries that are read per page.
const PAGE: usize = 500;

/// Number and size of the memories of a device that wait.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    memories: u64,
    bytes: u64,
}

/// The counts by device id, changed only under the write lock; `None` until they are needed, and after an error. Clones
/// share the counts.
#[derive(Clone, Debug, Default)]
pub(in crate::edits) struct WaitingCounts(Arc<Mutex<Option<BTreeMap<String, Waiting>>>>);

impl WaitingCounts {
    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<String, Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a memory that is about to be stored.
    ///
    /// # Errors
    /// [`EditError::QuarantineFull`], or an error of the store.
    pub(super) fn add(&self, store: &Store, entry: &QuarantinedMemory) -> Result<(), EditError> {
        let bytes = size(entry)?;
        let mut counts = self.lock();
        let counts = loaded(&mut counts, store)?;
        let waiting = counts.get(&entry.device).copied().unwrap_or_default();
        let sum = Waiting {
            memories: waiting.memories.saturating_add(1),
            bytes: waiting.bytes.saturating_add(bytes),
        };
        if sum.memories > MAX_MEMORIES || sum.bytes > MAX_BYTES {
            let problem = format!(
                "{} memories of the device {:?} wait for review, and at most {MAX_MEMORIES} of {} MiB may; the owner can settle them with `satchel memories review`",
                waiting.memories,
                entry.device_name,
                MAX_BYTES >> 20
            );
            return Err(EditError::QuarantineFull { problem });
        }
        counts.insert(entry.device.clone(), sum);
        Ok(())
    }

    /// Counts a memory as reviewed.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn remove(&self, store: &Store, entry: &QuarantinedMemory) -> Result<(), EditError> {
        let bytes = size(entry)?;
        let mut counts = self.lock();
        if let Some(waiting) = loaded(&mut counts, store)?.get_mut(&entry.device) {
            waiting.memories = waiting.memories.saturating_sub(1);
            waiting.bytes = waiting.bytes.saturating_sub(bytes);
        }
        Ok(())
    }

    /// Forgets the counts if a change was counted but not stored.
    pub(super) fn recount_after_error<T>(&self, outcome: &Result<T, EditError>) {
        if outcome.is_err() {
            self.forget();
        }
    }

    /// Forgets the counts. They are determined anew when they are needed.
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    /// Returns the number of memories of all devices.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn total(&self, store: &Store) -> Result<u64, EditError> {
        let known = self.lock().as_ref().map(total);
        // Without the write lock, what is counted may be outdated before it could be remembered.
        known.map_or_else(|| Ok(total(&count(store)?)), Ok)
    }
}

fn total(counts: &BTreeMap<String, Waiting>) -> u64 {
    counts.values().map(|waiting| waiting.memories).sum()
}

fn size(entry: &QuarantinedMemory) -> Result<u64, EditError> {
    Ok(entry.encode()?.len() as u64)
}

fn loaded<'c>(
    counts: &'c mut Option<BTreeMap<String, Waiting>>,
    store: &Store,
) -> Result<&'c mut BTreeMap<String, Waiting>, EditError> {
    if counts.is_none() {
        *counts = Some(count(store)?);
    }
    Ok(counts.get_or_insert_with(BTreeMap::new))
}

fn count(store: &Store) -> Result<BTreeMap<String, Waiting>, EditError> {
    let mut counts: BTreeMap<String, Waiting> = BTreeMap::new();
    let page = |after: Option<&Cursor>| Ok(store.ledger_list(Ledger::Quarantine, after, PAGE)?);
    each_row::<_, EditError>(page, |entry| {
        let waiting = counts.entry(QuarantinedMemory::decode(&entry)?.device).or_default();
        waiting.memories = waiting.memories.saturating_add(1);
        waiting.bytes = waiting.bytes.saturating_add(entry.value.len() as u64);
        Ok(())
    })?;
    Ok(counts)
}
