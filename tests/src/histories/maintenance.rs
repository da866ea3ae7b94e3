//! Actions that close and reopen a data directory: permanent erasure, and restored backups.

use std::{mem, path::Path};

use anyhow::Result;
use satchel_core::{
    backup::{create, restore},
    purge,
    vault::UnlockOptions,
};
use satchel_store::Store;

use super::History;
use crate::test_core::TestCore;

impl History {
    pub(super) fn rotate_key(&mut self) -> Result<()> {
        self.steps.push("another key signs".to_owned());
        self.local.exports.rotate_key()?;
        Ok(())
    }

    /// Makes a backup or restores an earlier one.
    pub(super) fn back_up_or_restore(&mut self) -> Result<()> {
        if self.backups.is_empty() || self.rng.chance(50) {
            let backup = self.new_path("backup");
            self.steps.push(format!("backed up to {}", backup.display()));
            create::create(&self.local.store, self.local.store.dir(), &backup, 1, &mut |_| true)?;
            self.backups.push(backup);
            return Ok(());
        }
        let at = usize::try_from(self.rng.below(self.backups.len() as u64))?;
        let backup = self.backups[at].clone();
        self.steps.push(format!("{} is put back", backup.display()));
        self.with_closed_store(|store, dir| {
            store.close()?;
            restore::restore(&backup, dir, true, &UnlockOptions::default(), &mut |_| true)?;
            Ok(())
        })
    }

    /// Erases purged records from the disk.
    pub(super) fn erase(&mut self) -> Result<()> {
        self.steps.push("what was purged is erased".to_owned());
        self.with_closed_store(|store, dir| {
            purge::erase_recorded(dir, store, None, &mut |_| {})?;
            Ok(())
        })
    }

    /// Runs an action that needs exclusive access to the data directory; `act` closes the store.
    fn with_closed_store(&mut self, act: impl FnOnce(Store, &Path) -> Result<()>) -> Result<()> {
        let dir = self.local.store.dir().to_owned();
        let spare = TestCore::open(&self.folder.join("spare"))?;
        act(mem::replace(&mut self.local, spare).into_store()?, &dir)?;
        mem::replace(&mut self.local, TestCore::open(&dir)?).close()
    }
}
