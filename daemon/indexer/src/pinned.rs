//! Snapshots that are kept, so that all pages of a list show the same.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use satchel_search::index::Snapshot;

/// Snapshots that are kept. Each holds the files of its segments, which a merge has perhaps removed.
const MAX_SNAPSHOTS: usize = 8;
/// After so long without a page, a snapshot is dropped.
const MAX_IDLE: Duration = Duration::from_mins(10);

/// A snapshot and the time that it was first searched for.
#[derive(Clone)]
pub struct PinnedSnapshot {
    pub snapshot: Snapshot,
    /// Microseconds since the Unix epoch. Newer hits count more, so that the order depends on it.
    pub now: i64,
}

/// The snapshots, the one that was used last at the end.
#[derive(Default)]
pub(crate) struct PinnedSnapshots(Mutex<VecDeque<(Instant, PinnedSnapshot)>>);

impl PinnedSnapshots {
    /// Keeps a snapshot, unless one of its revision is kept already.
    pub(crate) fn insert(&self, snapshot: PinnedSnapshot) {
        let mut kept = self.lock();
        kept.retain(|(used, _)| used.elapsed() < MAX_IDLE);
        if kept.iter().any(|(_, one)| one.snapshot.revision() == snapshot.snapshot.revision()) {
            return;
        }
        if kept.len() == MAX_SNAPSHOTS {
            kept.pop_front();
        }
        kept.push_back((Instant::now(), snapshot));
    }

    /// Returns the snapshot of a revision.
    pub(crate) fn get(&self, revision: u64) -> Option<PinnedSnapshot> {
        let mut kept = self.lock();
        let at = kept.iter().position(|(_, one)| one.snapshot.revision() == revision)?;
        let (_, snapshot) = kept.remove(at)?;
        kept.push_back((Instant::now(), snapshot.clone()));
        Some(snapshot)
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, PinnedSnapshot)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
