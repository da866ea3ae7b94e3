//! The store during one import or undo: look-ups and commits under the write lock.

use std::collections::BTreeSet;

use satchel_host::Throttle;
use satchel_source::CancelToken;
use satchel_store::{Batch, Change, Origin, Store, StoreError};

use super::{error::IngestError, receipt::ImportRecord};
use crate::{
    edits,
    provenance::{self, ContributionKind, EvidenceKey, UndoneImports},
    write_lock::{WriteGuard, WriteLock},
};

/// Divisor of the batch size while clients make requests: the engine blocks reads while it applies a batch.
const BUSY_DIVISOR: usize = 16;

/// Access to the store for one import, which takes turns with others by the write lock.
pub(crate) struct Session<'a> {
    pub(super) store: &'a Store,
    /// Held from a look-up until its commit: two imports may contain the same conversation.
    write_lock: &'a WriteLock,
    guard: Option<WriteGuard<'a>>,
    /// Raised when the import is cancelled.
    pub(super) cancel: CancelToken,
    /// Says whether clients make requests.
    pace: Throttle,
    pub(super) origin: Origin,
    /// Nothing is stored.
    pub(super) dry_run: bool,
    /// The imports that do not count, as of the time when the lock was taken.
    pub(super) undone: UndoneImports,
    /// The parts of conversations that only those imports brought.
    pub(super) left_out: BTreeSet<EvidenceKey>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        store: &'a Store,
        (write_lock, cancel, pace): (&'a WriteLock, CancelToken, Throttle),
        origin: Origin,
        dry_run: bool,
    ) -> Self {
        let (undone, left_out) = (UndoneImports::new(), BTreeSet::new());
        Self { store, write_lock, guard: None, cancel, pace, origin, dry_run, undone, left_out }
    }

    /// Takes the write lock if it is not held. A change by hand that a full disk left incomplete is completed first, as
    /// this import may be about to replace the mark that records it by its own.
    pub(crate) fn lock(&mut self) -> Result<(), IngestError> {
        if self.guard.is_none() {
            self.guard = Some(self.write_lock.lock(&self.cancel).ok_or(IngestError::Cancelled)?);
            if !self.dry_run {
                edits::complete_interrupted(self.store)?;
            }
            self.undone = provenance::undone_imports(self.store)?;
            self.left_out =
                provenance::excluded_keys(self.store, ContributionKind::Contributions, &self.undone)?;
        }
        Ok(())
    }

    pub(super) fn unlock(&mut self) {
        self.guard = None;
    }

    pub(super) fn locked(&self) -> bool {
        self.guard.is_some()
    }

    /// Commits `changes` as one batch. Durable when this returns.
    pub(super) fn commit(&self, changes: Vec<Change>, record: &mut ImportRecord) -> Result<(), IngestError> {
        let batch = Batch { origin: self.origin.clone(), changes };
        let raises = batch.raises_revision();
        self.store.expect_readers(self.pace.recently_requested());
        let committed = self.store.commit(batch);
        self.store.expect_readers(true);
        let revision = committed?;
        if raises {
            let revision = revision.get();
            let first = record.revisions.map_or(revision, |[first, _]| first);
            record.revisions = Some([first, revision]);
        }
        Ok(())
    }

    /// Returns the divisor of the batch size at present.
    pub(super) fn batch_divisor(&self) -> usize {
        if self.pace.recently_requested() { BUSY_DIVISOR } else { 1 }
    }

    /// Fails once the import is cancelled.
    pub(super) fn check_cancelled(&self) -> Result<(), IngestError> {
        if self.cancel.cancelled() { Err(IngestError::Cancelled) } else { Ok(()) }
    }

    /// Returns the reason why the store would not accept a change; `Err` is an error that does not concern the change
    /// itself.
    pub(super) fn refusal(&self, change: &Change) -> Result<Option<StoreError>, IngestError> {
        match self.store.validate(std::slice::from_ref(change)) {
            Ok(()) => Ok(None),
            Err(refusal) if refusal.concerns_record() => Ok(Some(refusal)),
            Err(error) => Err(error.into()),
        }
    }
}
