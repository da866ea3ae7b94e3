//! Actions that close and reopen a data directory: permanent erasure, and restored backups.

use std::{mem, path::Path};

use anyhow::Result;
use satchel_core::{
    backup::{create, restore},
    ingest::purge,
    vault::Unlock,
};
use satchel_store::Store;

use super::History;
use crate::archive::Archive;

impl History {
    pub(super) fn rotate_key(&mut self) -> Result<()> {
        self.told.push("another key signs".to_owned());
        self.here.exports.rotate_key()?;
        Ok(())
    }

    /// Makes a backup or restores an earlier one.
    pub(super) fn back_up_or_restore(&mut self) -> Result<()> {
        if self.backups.is_empty() || self.dice.chance(50) {
            let backup = self.path("backup");
            self.told.push(format!("backed up to {}", backup.display()));
            create::create(&self.here.store, self.here.store.dir(), &backup, 1, &mut |_| true)?;
            self.backups.push(backup);
            return Ok(());
        }
        let at = usize::try_from(self.dice.below(self.backups.len() as u64))?;
        let backup = self.backups[at].clone();
        self.told.push(format!("{} is put back", backup.display()));
        self.closed(|store, dir| {
            store.close()?;
            restore::restore(&backup, dir, true, &Unlock::default(), &mut |_| true)?;
            Ok(())
        })
    }

    /// Erases purged records from the disk.
    pub(super) fn erase(&mut self) -> Result<()> {
        self.told.push("what was purged is erased".to_owned());
        self.closed(|store, dir| {
            purge::carry_out(dir, store, None, &mut |_| {})?;
            Ok(())
        })
    }

    /// Runs an action that needs exclusive access to the data directory; `act` closes the store.
    fn closed(&mut self, act: impl FnOnce(Store, &Path) -> Result<()>) -> Result<()> {
        let dir = self.here.store.dir().to_owned();
        let spare = Archive::open(&self.folder.join("spare"))?;
        act(mem::replace(&mut self.here, spare).into_store()?, &dir)?;
        mem::replace(&mut self.here, Archive::open(&dir)?).close()
    }
}
