//! Opens a path that the user names (a file, a folder, a ZIP) as named, size-limited, read-only files.
//!
//! **Invariant:** a name from an archive is only ever a lookup key, never a path of the machine
//! (`names_from_an_archive_never_become_paths` in `tests/`).

mod appended;
mod archive;
mod beneath;
mod builder;
mod bundle;
mod cancel;
pub mod completeness;
mod database;
mod downloads;
mod entry;
pub mod envelope;
mod fault;
mod files;
mod formats;
mod heartbeat;
mod identity;
mod location;
pub mod names;
mod nested;
mod open_files;
pub mod pam;
mod read_at;
mod sniff;
mod source;
mod source_text;
mod spill;
mod tree;
pub mod zip_directory;

pub use bundle::Bundle;
pub use cancel::CancelToken;
pub use fault::{ReadFault, UnreadFile, UnreadKind};
pub use files::{FileEntry, FileSet};
pub use heartbeat::Heartbeat;
pub use nested::OpenedArchives;
pub use read_at::{ReadAt, ReadAtCursor};
pub use sniff::{HEAD_BYTES, SniffedContent};
pub use source::Source;
pub use source_text::SourceText;

use std::{io, path::PathBuf};

use crate::envelope::EnvelopeOpenError;

/// Limits for what is unpacked, in actual bytes and counted entries. They can be configured to lower values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of one archive, and files of one source in total.
    pub entries: usize,
    /// Bytes that one entry may unpack to.
    pub entry_bytes: u64,
    /// Bytes that all entries together may unpack to in one run; also the bytes that archives inside archives may take
    /// up on the disk.
    pub total_bytes: u64,
    /// Unpacked bytes for each packed byte, checked once more than `RATIO_AFTER` bytes of an entry were unpacked.
    pub ratio: u64,
    /// Levels of folders below the one that was named.
    pub depth: usize,
    /// Levels of archives inside each other: a ZIP in a ZIP is two.
    pub nesting: usize,
}

impl Default for Limits {
    /// The largest known exports are a few GiB; these limits leave room for ten times that.
    fn default() -> Self {
        Self {
            entries: 100_000,
            entry_bytes: 4 << 30,
            total_bytes: 32 << 30,
            ratio: 200,
            depth: 32,
            nesting: 4,
        }
    }
}

/// Small entries, for example of spaces, compress beyond any ratio and do no harm.
const RATIO_AFTER: u64 = 10 << 20;

/// Why a source could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The path does not exist.
    #[error("{path:?} does not exist; check the spelling, or whether the download has finished")]
    Missing { path: PathBuf },
    /// The path is a device, a socket or the like.
    #[error("{path:?} is neither a file nor a folder")]
    NotAFile { path: PathBuf },
    /// The file system refused.
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    /// The file was changed between two reads.
    #[error(
        "{path:?} changed while it was read; import it again when its download, or the program that writes it, has finished"
    )]
    Changed { path: PathBuf },
    /// The ZIP is incomplete or damaged.
    #[error("{}", fault::describe_damaged_archive(name, problem))]
    DamagedArchive { name: String, problem: &'static str },
    /// The export is encrypted, and its key is missing or wrong.
    #[error("{path:?} cannot be opened")]
    Encrypted { path: PathBuf, source: EnvelopeOpenError },
    /// An archive inside another one cannot be unpacked.
    #[error("{sentence}")]
    NestedArchive { sentence: String },
    /// The archive is built to mislead a reader.
    #[error("{path:?} is refused: {problem}")]
    HostileArchive { path: PathBuf, problem: String },
    /// Not an export, but a backup of a whole data directory.
    #[error("{path:?} is a backup of Satchel, not an export; `satchel restore {path:?}` puts it back")]
    Backup { path: PathBuf },
    /// The caller cancelled the operation.
    #[error("reading {path:?} was stopped")]
    Cancelled { path: PathBuf },
    /// More files than any export has.
    #[error("{path:?} holds more than {limit} files; import the folder of the export itself")]
    TooManyFiles { path: PathBuf, limit: usize },
}

impl SourceError {
    fn read(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path: path.to_owned() },
            _ => Self::Read { path: path.to_owned(), source },
        }
    }
}

/// Formats an error and its causes in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Formats names for a sentence: the first few, and how many more there are.
#[must_use]
pub fn quoted_list(names: &[&str]) -> String {
    const NAMED: usize = 8;
    let mut list = names.iter().take(NAMED).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        list.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    list
}
