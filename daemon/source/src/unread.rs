//! A file of a source that was not read, and the reason.

/// A file that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadFile {
    /// Its name in the source.
    pub name: String,
    /// The reason, for the user.
    pub reason: String,
    /// The kind of reason.
    pub kind: UnreadKind,
}

/// The kind of reason why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadKind {
    /// The file is left out; the others are read without it.
    Skipped,
    /// An archive that cannot be opened: its contents are unknown.
    Damaged,
    /// A backup of a data directory.
    Backup,
    /// An unfinished download.
    Downloading,
}
