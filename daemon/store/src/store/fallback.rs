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
use crate::{apply::Applier, error::StoreError, journal::segments::Segments, open};

impl StoreInner {
    /// Replaces a failed engine by one in memory. The caller is the writer and has no group in progress.
    pub(super) fn use_memory_engine(&self, writer: &mut StoreWriter) -> Result<(), StoreError> {
        tracing::warn!(
            "the database finds no room on its disk; a copy in memory stands in until there is some"
        );
        let (applier, outcome) = open::in_memory::build(&self.segments()?, self.committed(), &mut |_| {})?;
        self.record_damage(&outcome.damage);
        writer.in_memory = true;
        self.replace_applier(writer, applier);
        Ok(())
    }

    /// Replaces a failed engine for a reader, unless a writer is active: the writer notices the failure itself.
    pub(super) fn repair_for_reader(&self) -> bool {
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return false,
        };
        if writer.in_memory {
            return true;
        }
        let mended = self.use_memory_engine(&mut writer);
        mended.inspect_err(|error| tracing::error!(%error, "the database cannot be built in memory")).is_ok()
    }

    /// Builds a database on disk again if one in memory is in use and there is room.
    pub(super) fn rebuild_on_disk(&self, writer: &mut StoreWriter) -> Result<(), StoreError> {
        if !writer.in_memory {
            return Ok(());
        }
        self.check_space(&self.dir)?;
        let applier = open::rebuild_on_disk(&self.state_file, &self.segments()?, self.committed())?;
        tracing::info!("there is room again: the database is on the disk");
        writer.in_memory = false;
        self.replace_applier(writer, applier);
        Ok(())
    }

    /// Fails unless there is room for a commit.
    pub(super) fn check_space(&self, dir: &Path) -> Result<(), StoreError> {
        if self.reader.disk().free(dir) < self.headroom {
            return Err(StoreError::Full { path: dir.to_owned() });
        }
        Ok(())
    }

    fn replace_applier(&self, writer: &mut StoreWriter, mut applier: Applier) {
        // A check in progress has counted records, which are the same in both engines.
        *applier.digest_walk() = writer.applier.digest_walk().take();
        self.engine.replace(applier.engine());
        self.publish(applier.meta().revision);
        writer.applier = applier;
    }

    fn segments(&self) -> Result<Segments, StoreError> {
        let context = self.reader.context();
        let found = Segments::list(self.reader.disk(), context.folder.clone(), context.seal.clone())?;
        found.ok_or_else(|| StoreError::DamagedJournal { first: open::missing_journal(&context.folder) })
    }

    fn committed(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }
}
