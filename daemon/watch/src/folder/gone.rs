//! What left the folder is forgotten, in memory and in the store, at a cost of its own and not of all that is known.

use std::ffi::{OsStr, OsString};

use super::Folder;

impl Folder {
    /// Forgets what is there no more. What runs goes on.
    pub(super) fn keep_only(&mut self, listed: &[OsString]) {
        let there = |name: &OsStr| listed.binary_search_by(|one| one.as_os_str().cmp(name)).is_ok();
        for name in self.known.gone(there) {
            self.unknow(&name);
        }
        // A folder that is cut short says nothing of what is gone.
        if self.more {
            self.gone.clear();
        } else if !self.scanned
            && let Some((_, inode)) = self.identity
        {
            // What went while nobody looked is found by the first look.
            self.parts.memory.keep_only(inode, &there);
        }
        self.settle.keep(there);
        self.ready.keep(there);
        self.retries.retain(|name, _| there(name));
        self.streaks.retain(|name, _| there(name));
        self.troubles.retain(|name, _| there(name));
        self.ears.keep(there);
    }

    /// Forgets a name that is there no more.
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

    /// Gives back what the store keeps of names that are gone. Where another volume, or the bare mount point, stands in the folder's
    /// place, nothing is gone for good.
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
