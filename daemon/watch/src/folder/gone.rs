//! Removal of names that left the folder, from memory and from the store. The cost depends on the names removed, not on
//! all known names.

use std::ffi::{OsStr, OsString};

use super::Folder;

impl Folder {
    /// Forgets the names that no longer exist. Running imports continue.
    pub(super) fn keep_only(&mut self, listed: &[OsString]) {
        let there = |name: &OsStr| listed.binary_search_by(|one| one.as_os_str().cmp(name)).is_ok();
        for name in self.known.gone(there) {
            self.unknow(&name);
        }
        // A truncated listing does not show which names are missing.
        if self.more {
            self.gone.clear();
        } else if !self.scanned
            && let Some((_, inode)) = self.identity
        {
            // The first scan finds the names that were removed while no watcher ran.
            self.parts.memory.keep_only(inode, &there);
        }
        self.settle.keep(there);
        self.ready.keep(there);
        self.retries.retain(|name, _| there(name));
        self.streaks.retain(|name, _| there(name));
        self.troubles.retain(|name, _| there(name));
        self.ears.keep(there);
    }

    /// Forgets a name that no longer exists.
    pub(super) fn forget(&mut self, name: &OsStr) {
        self.unknow(name);
        self.settle.gone(name);
        self.ready.remove(name);
        self.retries.remove(name);
        self.streaks.remove(name);
        self.troubles.remove(name);
    }

    fn unknow(&mut self, name: &OsStr) {
        if self.known.remove(name) {
            self.gone.insert(name.to_owned());
        }
    }

    /// Removes the store's entries of names that left the folder. If another volume or the bare mount point is now in
    /// the folder's place, nothing is removed, because the names may come back.
    pub(super) fn give_back(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let gone = std::mem::take(&mut self.gone);
        let Some((volume, inode)) = self.identity else { return };
        if self.parts.disk.identity().ok() != Some((volume, inode)) {
            return;
        }
        for name in gone.iter().filter(|name| self.known.get(name).is_none()) {
            self.parts.memory.forget(inode, name);
        }
    }
}
