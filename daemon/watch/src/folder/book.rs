//! The known names of a folder, with running counts: among ten thousand files it would be too slow to count again at
//! each change.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
};

use crate::memory::{Known, Verdict};

/// The known names and their verdicts.
#[derive(Debug, Default)]
pub(super) struct Book {
    all: BTreeMap<Box<OsStr>, Known>,
    imported: usize,
    unrecognised: usize,
    failed: BTreeSet<Box<OsStr>>,
}

impl Book {
    pub(super) fn get(&self, name: &OsStr) -> Option<&Known> {
        self.all.get(name)
    }

    pub(super) fn insert(&mut self, name: &OsStr, known: Known) {
        self.remove(name);
        match known.verdict {
            Verdict::Imported => self.imported += 1,
            Verdict::Unrecognised { .. } => self.unrecognised += 1,
            Verdict::Failed(_) => {
                self.failed.insert(name.into());
            }
            Verdict::Cancelled => {}
        }
        self.all.insert(name.into(), known);
    }

    /// Removes a name. Returns false if it was not known.
    pub(super) fn remove(&mut self, name: &OsStr) -> bool {
        let Some(known) = self.all.remove(name) else { return false };
        match known.verdict {
            Verdict::Imported => self.imported -= 1,
            Verdict::Unrecognised { .. } => self.unrecognised -= 1,
            Verdict::Failed(_) => {
                self.failed.remove(name);
            }
            Verdict::Cancelled => {}
        }
        true
    }

    /// Returns the known names that no longer exist.
    pub(super) fn gone(&self, there: impl Fn(&OsStr) -> bool) -> Vec<OsString> {
        self.all.keys().filter(|name| !there(name)).map(|name| name.as_ref().to_owned()).collect()
    }

    pub(super) fn imported(&self) -> usize {
        self.imported
    }

    pub(super) fn unrecognised(&self) -> usize {
        self.unrecognised
    }

    /// Returns the names that failed, in order.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&OsStr, &Known)> {
        self.failed.iter().filter_map(|name| Some((name.as_ref(), self.all.get(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::Failure, settle::Stamp};

    fn known(verdict: Verdict) -> Known {
        Known { stamp: Stamp { bytes: 1, modified: 0, inode: 1, below: 0 }, verdict }
    }

    /// At worst, a B-tree has room for twice its entries, and the allocation of a name takes its length and half as
    /// much again. So ten thousand files with names of 64 bytes take less than 3 MB.
    #[test]
    fn a_watched_file_takes_less_than_three_hundred_bytes() {
        let entry = size_of::<(Box<OsStr>, Known)>();
        assert!(2 * entry + 64 * 3 / 2 < 300, "{entry} bytes for each");
    }

    #[test]
    fn the_counts_are_those_of_what_is_known() {
        let failed =
            || Verdict::Failed(Box::new(Failure { reason: "bad".into(), tries: 1, importers: "v1".into() }));
        let mut book = Book::default();
        for (name, verdict) in [
            ("a", Verdict::Imported),
            ("b", failed()),
            ("c", Verdict::Unrecognised { importers: "v1".into() }),
            ("d", Verdict::Imported),
            ("e", Verdict::Cancelled),
            // The second verdict replaces the first.
            ("a", failed()),
            ("b", Verdict::Imported),
            ("b", Verdict::Imported),
        ] {
            book.insert(OsStr::new(name), known(verdict));
        }
        let counts = |book: &Book| {
            let failed: Vec<OsString> = book.failed().map(|(name, _)| name.to_owned()).collect();
            (book.imported(), book.unrecognised(), failed)
        };
        assert_eq!(counts(&book), (2, 1, vec!["a".into()]));
        let gone = book.gone(|name| name != "d" && name != "c");
        assert_eq!(gone, ["c", "d"]);
        assert!(gone.iter().all(|name| book.remove(name)));
        assert_eq!(counts(&book), (1, 0, vec!["a".into()]));
        assert!(book.remove(OsStr::new("a")) && !book.remove(OsStr::new("a")));
        assert_eq!(counts(&book), (1, 0, vec![]));
    }
}
