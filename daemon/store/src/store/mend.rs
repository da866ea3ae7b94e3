//! Replaces a database that fails because the disk accepts no writes: an engine in memory is used until there is room for a new
//! database.
//!
//! **Invariant:** everything that the journal has confirmed is shown, whatever happens to the database, and a commit that returns
//! an error is not in the journal (`tests::small_disk`).

use std::{
    path::Path,
    sync::{TryLockError, atomic::Ordering},
};

use super::{StoreInner, StoreWriter};
use crate::{
    apply::Applier,
    error::StoreError,
    journal::segments::Segments,
    open::{self, standing::in_memory},
};

impl StoreInner {
    /// Replaces a failed engine by one in memory. The caller is the writer and has no group in progress.
    pub(super) fn stand_in(&self, writer: &mut StoreWriter) -> Result<(), StoreError> {
        tracing::warn!(
            "the database finds no room on its disk; a copy in memory stands in until there is some"
        );
        let (applier, outcome) = in_memory(&self.segments()?, self.confirmed(), &mut |_| {})?;
        self.found_damage(&outcome.damage);
        writer.standing_in = true;
        self.take_over(writer, applier);
        Ok(())
    }

    /// Replaces a failed engine for a reader, unless a writer is active: the writer notices the failure itself.
    pub(super) fn mend_for_reader(&self) -> bool {
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return false,
        };
        if writer.standing_in {
            return true;
        }
        let mended = self.stand_in(&mut writer);
        mended.inspect_err(|error| tracing::error!(%error, "the database cannot be built in memory")).is_ok()
    }

    /// Builds a database on disk again if one in memory is in use and there is room.
    pub(super) fn settle_again(&self, writer: &mut StoreWriter) -> Result<(), StoreError> {
        if !writer.standing_in {
            return Ok(());
        }
        self.room(&self.dir)?;
        let applier = open::settle_again(&self.closing, &self.segments()?, self.confirmed())?;
        tracing::info!("there is room again: the database is on the disk");
        writer.standing_in = false;
        self.take_over(writer, applier);
        Ok(())
    }

    /// Fails unless there is room for a commit.
    pub(super) fn room(&self, dir: &Path) -> Result<(), StoreError> {
        if self.reader.disk().free(dir) < self.headroom {
            return Err(StoreError::Full { path: dir.to_owned() });
        }
        Ok(())
    }

    fn take_over(&self, writer: &mut StoreWriter, mut applier: Applier) {
        // A check in progress has counted records, which are the same in both engines.
        *applier.tally() = writer.applier.tally().take();
        self.engine.put(applier.engine());
        self.revision.store(applier.meta().revision, Ordering::Release);
        writer.applier = applier;
    }

    fn segments(&self) -> Result<Segments, StoreError> {
        let home = self.reader.home();
        let found = Segments::list(self.reader.disk(), home.folder.clone(), home.seal.clone())?;
        found.ok_or_else(|| StoreError::DamagedJournal { first: open::lost(&home.folder) })
    }

    fn confirmed(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }
}
