//! Removal of names that left the folder, from memory and from the store. The cost depends on the names removed, not on
//! all known names.

use std::ffi::{OsStr, OsString};

use super::FolderWatcher;

impl FolderWatcher {
    /// Forgets the names that no longer exist. Running imports continue.
    pub(super) fn retain_listed(&mut self, listed: &[OsString]) {
        let exists =
            |name: &OsStr| listed.binary_search_by(|listed_name| listed_name.as_os_str().cmp(name)).is_ok();
        for name in self.known_files.missing(exists) {
            self.forget_verdict(&name);
        }
        // A truncated listing does not show which names are missing.
        if self.truncated {
            self.removed.clear();
        } else if !self.scanned
            && let Some((_, inode)) = self.identity
        {
            // The first scan finds the names that were removed while no watcher ran.
            self.dependencies.verdicts.retain(inode, &exists);
        }
        self.settle.retain(exists);
        self.ready.retain(exists);
        self.retries.retain(|name, _| exists(name));
        self.pauses.retain(|name, _| exists(name));
        self.streaks.retain(|name, _| exists(name));
        self.problems.retain(|name, _| exists(name));
        self.change_detection.retain(exists);
    }

    /// Forgets a name that no longer exists.
    pub(super) fn forget(&mut self, name: &OsStr) {
        self.forget_verdict(name);
        self.settle.remove(name);
        self.ready.remove(name);
        self.retries.remove(name);
        self.pauses.remove(name);
        self.streaks.remove(name);
        self.problems.remove(name);
    }

    fn forget_verdict(&mut self, name: &OsStr) {
        if self.known_files.remove(name) {
            self.removed.insert(name.to_owned());
        }
    }

    /// Removes the store's entries of names that left the folder. If another volume or the bare mount point is now in
    /// the folder's place, nothing is removed, because the names may come back.
    pub(super) fn remove_stored_verdicts(&mut self) {
        if self.removed.is_empty() {
            return;
        }
        let removed = std::mem::take(&mut self.removed);
        let Some((volume, inode)) = self.identity else { return };
        if self.dependencies.fs.identity().ok() != Some((volume, inode)) {
            return;
        }
        for name in removed.iter().filter(|name| self.known_files.get(name).is_none()) {
            self.dependencies.verdicts.remove(inode, name);
        }
    }
}
