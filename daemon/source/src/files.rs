//! The files of an export as a plugin may see them.

use std::io::{self, Read};

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
