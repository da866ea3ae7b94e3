//! The file system operations that the watcher needs on a watched folder.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
};

use super::settle::Observation;

/// A watched folder. [`super::scan::OsFolder`] is the real one; tests use one that fails like a network share.
pub(super) trait FolderFs: Send {
    /// Returns the identity of the folder. If it changes, another volume is mounted there.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be read.
    fn identity(&self) -> io::Result<(u64, u64)>;

    /// Returns whether the system reports changes that others make there.
    fn reports_changes(&self) -> bool;

    /// Returns the names in the folder that may matter, and whether there are more names than the list holds.
    ///
    /// # Errors
    /// As for `identity`.
    fn list(&self) -> io::Result<(Vec<OsString>, bool)>;

    /// Inspects one entry; a folder is inspected with everything below it.
    ///
    /// # Errors
    /// If the entry cannot be read, or contains too many files.
    fn inspect(&self, name: &OsStr) -> io::Result<Inspection>;

    /// Checks whether a file is complete up to its end; for a folder, whether each of its files is. Otherwise returns a
    /// description of the missing part.
    ///
    /// # Errors
    /// If the entry cannot be read.
    fn check_complete(&self, name: &OsStr) -> io::Result<Result<(), String>>;
}

/// The result of inspecting a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inspection {
    /// `None` if there is nothing under the name, or nothing that an importer might read.
    pub observation: Option<Observation>,
    /// The folder and the folders below it, whose changes matter too.
    pub folders: Vec<PathBuf>,
    /// Other names to inspect: that to which this one belongs; for a folder, those in it.
    pub related: Vec<OsString>,
}
