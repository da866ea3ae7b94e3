//! What the watcher asks of a watched folder: its names, a look at one of them, and whether that one's end is there.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
};

use super::settle::Look;

/// A watched folder. The real one is [`super::scan::Ground`]; tests have one that fails as networks do.
pub(super) trait Disk: Send {
    /// Which folder it is: another number, and another volume is mounted there.
    ///
    /// # Errors
    /// When it is not there, or may not be read.
    fn identity(&self) -> io::Result<(u64, u64)>;

    /// Whether the system tells of changes by others there.
    fn tells(&self) -> bool;

    /// The names in it that may matter, and whether there are more than are listed.
    ///
    /// # Errors
    /// As `identity`.
    fn list(&self) -> io::Result<(Vec<OsString>, bool)>;

    /// Looks at one entry; a folder is looked at with all that lies below.
    ///
    /// # Errors
    /// When it may not be read, or holds too much.
    fn look(&self, name: &OsStr) -> io::Result<Sight>;

    /// Whether the end of a file is there, of each file of a folder; else what is missing.
    ///
    /// # Errors
    /// When it cannot be read.
    fn whole(&self, name: &OsStr) -> io::Result<Result<(), String>>;
}

/// What there is under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// None: nothing, or nothing that an importer might read.
    pub look: Option<Look>,
    /// The folder and those below, whose changes matter too.
    pub folders: Vec<PathBuf>,
}
