//! What is known of the names of a folder, counted as it changes: among ten thousand files nobody wants to count anew for each.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
};

use crate::watch::memory::{Known, Verdict};

/// What is known, by name.
#[derive(Debug, Default)]
pub(super) struct Book {
    all: BTreeMap<OsString, Known>,
    imported: usize,
    unrecognised: usize,
    failed: BTreeSet<OsString>,
}

impl Book {
    pub(super) fn get(&self, name: &OsStr) -> Option<&Known> {
        self.all.get(name)
    }

    pub(super) fn insert(&mut self, name: OsString, known: Known) {
        self.remove(&name);
        match known.verdict {
            Verdict::Imported => self.imported += 1,
            Verdict::Unrecognised { .. } => self.unrecognised += 1,
            Verdict::Failed { .. } => {
                self.failed.insert(name.clone());
            }
            Verdict::Cancelled => {}
        }
        self.all.insert(name, known);
    }

    pub(super) fn remove(&mut self, name: &OsStr) {
        let Some(known) = self.all.remove(name) else { return };
        match known.verdict {
            Verdict::Imported => self.imported -= 1,
            Verdict::Unrecognised { .. } => self.unrecognised -= 1,
            Verdict::Failed { .. } => {
                self.failed.remove(name);
            }
            Verdict::Cancelled => {}
        }
    }

    /// Forgets what is there no more.
    pub(super) fn keep(&mut self, there: impl Fn(&OsStr) -> bool) {
        let gone: Vec<OsString> = self.all.keys().filter(|name| !there(name)).cloned().collect();
        gone.iter().for_each(|name| self.remove(name));
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn imported(&self) -> usize {
        self.imported
    }

    pub(super) fn unrecognised(&self) -> usize {
        self.unrecognised
    }

    /// Those that failed, by name.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&OsString, &Known)> {
        self.failed.iter().filter_map(|name| Some((name, self.all.get(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::settle::Stamp;

    fn known(verdict: Verdict) -> Known {
        Known { stamp: Stamp { bytes: 1, modified: 0, inode: 1, below: 0 }, verdict, at: 0, place: None }
    }

    #[test]
    fn the_counts_are_those_of_what_is_known() {
        let failed = || Verdict::Failed { reason: "bad".into(), tries: 1, importers: "v1".into() };
        let mut book = Book::default();
        for (name, verdict) in [
            ("a", Verdict::Imported),
            ("b", failed()),
            ("c", Verdict::Unrecognised { importers: "v1".into() }),
            ("d", Verdict::Imported),
            ("e", Verdict::Cancelled),
            // Another verdict takes the place of the first.
            ("a", failed()),
            ("b", Verdict::Imported),
            ("b", Verdict::Imported),
        ] {
            book.insert(name.into(), known(verdict));
        }
        let counts = |book: &Book| {
            let failed: Vec<OsString> = book.failed().map(|(name, _)| name.clone()).collect();
            (book.imported(), book.unrecognised(), failed)
        };
        assert_eq!(counts(&book), (2, 1, vec!["a".into()]));
        book.keep(|name| name != "d" && name != "c");
        assert_eq!(counts(&book), (1, 0, vec!["a".into()]));
        book.remove(OsStr::new("a"));
        book.remove(OsStr::new("a"));
        assert_eq!(counts(&book), (1, 0, vec![]));
    }
}
