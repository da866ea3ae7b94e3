//! The files of an export as a plugin may see them.

use std::{
    collections::HashSet,
    io::{self, Read},
    sync::Arc,
};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The name inside the export, with `/` between folders; never a path of the machine.
    pub path: String,
    /// The size in bytes as the container states it, which may be false.
    pub size: u64,
}

/// A set of named files, read-only. The caller opens archives and limits what is unpacked from them.
pub trait FileSet: Send + Sync {
    /// Returns all files in a stable order, without duplicate paths.
    fn list(&self) -> &[FileEntry];

    /// Opens `path` for reading from `offset` on; past the end there are no bytes. The plugin sees the text of an
    /// error, so it must not contain a path of the machine.
    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>>;
}

/// A subset of another set of files: those that a detection claimed.
pub struct Subset {
    whole: Arc<dyn FileSet>,
    entries: Vec<FileEntry>,
    names: HashSet<String>,
}

impl Subset {
    /// Creates the subset of those `paths` that `whole` contains, in the order of `whole`.
    pub fn new(whole: Arc<dyn FileSet>, paths: &[String]) -> Self {
        let wanted: HashSet<&str> = paths.iter().map(String::as_str).collect();
        let kept = whole.list().iter().filter(|entry| wanted.contains(entry.path.as_str()));
        let entries: Vec<FileEntry> = kept.cloned().collect();
        let names = entries.iter().map(|entry| entry.path.clone()).collect();
        Self { whole, entries, names }
    }
}

impl FileSet for Subset {
    fn list(&self) -> &[FileEntry] {
        &self.entries
    }

    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        if self.names.contains(path) {
            self.whole.open(path, offset)
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "not a file of this export"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TwoFiles(Vec<FileEntry>);

    impl FileSet for TwoFiles {
        fn list(&self) -> &[FileEntry] {
            &self.0
        }

        fn open(&self, _: &str, _: u64) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(io::empty()))
        }
    }

    #[test]
    fn a_subset_shows_and_opens_only_what_was_named() {
        let entry = |path: &str| FileEntry { path: path.to_owned(), size: 1 };
        let whole = Arc::new(TwoFiles(vec![entry("a"), entry("b")]));
        let subset = Subset::new(whole, &["b".to_owned(), "c".to_owned()]);
        assert_eq!(subset.list(), [entry("b")]);
        assert!(subset.open("b", 0).is_ok());
        assert!(subset.open("a", 0).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
    }
}
