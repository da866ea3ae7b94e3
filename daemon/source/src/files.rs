//! The files of an export as a plugin may see them.

use std::{
    collections::HashSet,
    io::{self, Read},
    sync::Arc,
};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name inside the export, with `/` between folders; never a path of the machine.
    pub path: String,
    /// The size in bytes as the container states it, which may be false.
    pub size: u64,
}

/// A set of named files, read-only. The caller opens archives and limits what is unpacked from them.
pub trait Files: Send + Sync {
    /// Returns all files in a stable order, without duplicate paths.
    fn list(&self) -> &[Entry];

    /// Opens `path` for reading from `offset` on; past the end there are no bytes. The plugin sees the text of an
    /// error, so it must not contain a path of the machine.
    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>>;
}

/// A subset of another set of files: those that a detection claimed.
pub struct Subset {
    whole: Arc<dyn Files>,
    entries: Vec<Entry>,
    names: HashSet<String>,
}

impl Subset {
    /// Creates the subset of those `paths` that `whole` contains, in the order of `whole`.
    pub fn new(whole: Arc<dyn Files>, paths: &[String]) -> Self {
        let wanted: HashSet<&str> = paths.iter().map(String::as_str).collect();
        let kept = whole.list().iter().filter(|entry| wanted.contains(entry.path.as_str()));
        let entries: Vec<Entry> = kept.cloned().collect();
        let names = entries.iter().map(|entry| entry.path.clone()).collect();
        Self { whole, entries, names }
    }
}

impl Files for Subset {
    fn list(&self) -> &[Entry] {
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

    struct Two(Vec<Entry>);

    impl Files for Two {
        fn list(&self) -> &[Entry] {
            &self.0
        }

        fn open(&self, _: &str, _: u64) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(io::empty()))
        }
    }

    #[test]
    fn a_subset_shows_and_opens_only_what_was_named() {
        let entry = |path: &str| Entry { path: path.to_owned(), size: 1 };
        let whole = Arc::new(Two(vec![entry("a"), entry("b")]));
        let subset = Subset::new(whole, &["b".to_owned(), "c".to_owned()]);
        assert_eq!(subset.list(), [entry("b")]);
        assert!(subset.open("b", 0).is_ok());
        assert!(subset.open("a", 0).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
    }
}
