//! The files of an export as a plugin may see them.

use std::{
    collections::BTreeSet,
    io::{self, Read},
    sync::Arc,
};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name inside the export, with `/` between folders; never a path of the machine.
    pub path: String,
    /// Bytes, as the container states it; may be a lie.
    pub size: u64,
}

/// A set of named files, read only. The caller opens archives and bounds what comes out of them.
pub trait Files: Send + Sync {
    /// All files, in a stable order, no path twice.
    fn list(&self) -> &[Entry];

    /// The bytes of `path` from `offset` on.
    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>>;
}

/// Some of the files of another set: what a detection claimed.
pub struct Subset {
    whole: Arc<dyn Files>,
    entries: Vec<Entry>,
}

impl Subset {
    /// Those of `paths` that `whole` has, in its order.
    pub fn new(whole: Arc<dyn Files>, paths: &[String]) -> Self {
        let wanted: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
        let entries =
            whole.list().iter().filter(|entry| wanted.contains(entry.path.as_str())).cloned().collect();
        Self { whole, entries }
    }
}

impl Files for Subset {
    fn list(&self) -> &[Entry] {
        &self.entries
    }

    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        if self.entries.iter().any(|entry| entry.path == path) {
            self.whole.open(path, offset)
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "not a file of this export"))
        }
    }
}
