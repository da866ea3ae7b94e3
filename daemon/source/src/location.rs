//! Where the bytes of a file are: in a file of the machine, or in an archive.

use std::{path::PathBuf, sync::Arc};

use super::{
    archive::{PackedEntry, SharedFile},
    identity::SourceStamp,
};

/// The location of a file.
#[derive(Clone)]
pub(super) enum FileLocation {
    /// A file of the machine, with its state when it was examined.
    Plain(PathBuf, SourceStamp),
    /// The first bytes of a file of the machine to which a program appends, with their state when they were examined.
    Appended(PathBuf, SourceStamp),
    /// A file that is not a file of the machine.
    Stored(SharedFile),
    Packed(PackedEntry, Arc<ContainingArchive>),
    /// A database in an archive, unpacked, because it is read in any order.
    Unpacked(SharedFile, PackedEntry, Arc<ContainingArchive>),
}

/// An archive that contains files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContainingArchive {
    /// Its name in the source.
    pub(super) name: Arc<str>,
    /// The number of archives around its files, including itself.
    pub(super) nesting: usize,
}
