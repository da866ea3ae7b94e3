//! The operations on Satchel's store: imports and their undo, memories, edits, exports, backups.
//!
//! Nothing in this crate depends on gRPC, the command line or watched folders.

pub mod backup;
pub mod clock;
pub mod contradictions;
pub mod conversation_record;
pub mod conversation_stats;
pub mod data_dir;
mod derived;
pub mod edits;
pub mod embeddings;
pub mod export;
pub mod export_ledger;
pub mod ingest;
pub mod integrity;
pub mod key_checksum;
pub mod open_store;
pub mod plain_file;
pub mod priority;
pub mod provenance;
pub mod purge;
pub mod recording;
pub mod related;
pub mod request;
pub mod residue;
pub mod schedule;
pub mod series;

pub mod sync;
pub mod trust;
pub mod uploads;
pub mod vault;
mod write_lock;

use std::{
    fs::{DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

use satchel_store::{Cursor, Page};

/// Reads page after page, and passes each row to `visit`.
pub(crate) fn each_row<T, E>(
    mut next: impl FnMut(Option<&Cursor>) -> Result<Page<T>, E>,
    mut visit: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let mut after = None;
    loop {
        let page = next(after.as_ref())?;
        page.items.into_iter().try_for_each(&mut visit)?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Returns the folder that contains a file.
pub(crate) fn parent_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Creates the parent folders of a file, accessible to this user only. Existing folders are not changed.
pub fn make_parents(file: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(parent_of(file))
}

/// Returns the known word that `word` is likely a misspelling of.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    /// One edit per this many characters is still considered the same word.
    const NEAR: usize = 3;
    let distance = |known: &str| strsim::damerau_levenshtein(word, known);
    let nearest = known.iter().copied().min_by_key(|known| distance(known))?;
    (distance(nearest) <= nearest.chars().count().div_ceil(NEAR)).then_some(nearest)
}
