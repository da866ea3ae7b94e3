//! The known names of a folder, with running counts: among ten thousand files it would be too slow to count again at
//! each change.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
};

use crate::verdicts::{FileVerdict, KnownFile};

/// The known names and their verdicts.
#[derive(Debug, Default)]
pub(super) struct KnownFiles {
    verdicts: BTreeMap<Box<OsStr>, KnownFile>,
    imported: usize,
    unrecognised: usize,
    failed: BTreeSet<Box<OsStr>>,
}

impl KnownFiles {
    pub(super) fn get(&self, name: &OsStr) -> Option<&KnownFile> {
        self.verdicts.get(name)
    }

    pub(super) fn insert(&mut self, name: &OsStr, known: KnownFile) {
        self.remove(name);
        match known.verdict {
            FileVerdict::Imported => self.imported += 1,
            FileVerdict::Unrecognised { .. } => self.unrecognised += 1,
            FileVerdict::Failed(_) => {
                self.failed.insert(name.into());
            }
            FileVerdict::Cancelled => {}
        }
        self.verdicts.insert(name.into(), known);
    }

    /// Removes a name. Returns false if it was not known.
    pub(super) fn remove(&mut self, name: &OsStr) -> bool {
        let Some(known) = self.verdicts.remove(name) else { return false };
        match known.verdict {
            FileVerdict::Imported => self.imported -= 1,
            FileVerdict::Unrecognised { .. } => self.unrecognised -= 1,
            FileVerdict::Failed(_) => {
                self.failed.remove(name);
            }
            FileVerdict::Cancelled => {}
        }
        true
    }

    /// Returns the known names that no longer exist.
    pub(super) fn missing(&self, exists: impl Fn(&OsStr) -> bool) -> Vec<OsString> {
        self.verdicts.keys().filter(|name| !exists(name)).map(|name| name.as_ref().to_owned()).collect()
    }

    pub(super) fn imported(&self) -> usize {
        self.imported
    }

    pub(super) fn unrecognised(&self) -> usize {
        self.unrecognised
    }

    /// Returns the names that failed, in order.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&OsStr, &KnownFile)> {
        self.failed.iter().filter_map(|name| Some((name.as_ref(), self.verdicts.get(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{settle::Stamp, verdicts::FailedImport};

    fn known(verdict: FileVerdict) -> KnownFile {
        KnownFile { stamp: Stamp { bytes: 1, modified: 0, inode: 1, below: 0 }, verdict }
    }

    /// At worst, a B-tree has room for twice its entries, and the allocation of a name takes its length and half as
    /// much again. So ten thousand files with names of 64 bytes take less than 3 MB.
    #[test]
    fn a_watched_file_takes_less_than_three_hundred_bytes() {
        let entry = size_of::<(Box<OsStr>, KnownFile)>();
        assert!(2 * entry + 64 * 3 / 2 < 300, "{entry} bytes for each");
    }

    #[test]
    fn the_counts_match_the_known_files() {
        let failed = || {
            FileVerdict::Failed(Box::new(FailedImport {
                reason: "bad".into(),
                tries: 1,
                importers: "v1".into(),
            }))
        };
        let mut known_files = KnownFiles::default();
        for (name, verdict) in [
            ("a", FileVerdict::Imported),
            ("b", failed()),
            ("c", FileVerdict::Unrecognised { importers: "v1".into() }),
            ("d", FileVerdict::Imported),
            ("e", FileVerdict::Cancelled),
            // The second verdict replaces the first.
            ("a", failed()),
            ("b", FileVerdict::Imported),
            ("b", FileVerdict::Imported),
        ] {
            known_files.insert(OsStr::new(name), known(verdict));
        }
        let counts = |known_files: &KnownFiles| {
            let failed: Vec<OsString> = known_files.failed().map(|(name, _)| name.to_owned()).collect();
            (known_files.imported(), known_files.unrecognised(), failed)
        };
        assert_eq!(counts(&known_files), (2, 1, vec!["a".into()]));
        let missing = known_files.missing(|name| name != "d" && name != "c");
        assert_eq!(missing, ["c", "d"]);
        assert!(missing.iter().all(|name| known_files.remove(name)));
        assert_eq!(counts(&known_files), (1, 0, vec!["a".into()]));
        assert!(known_files.remove(OsStr::new("a")) && !known_files.remove(OsStr::new("a")));
        assert_eq!(counts(&known_files), (1, 0, vec![]));
    }
}
