//! The operations on Satchel's store: imports and their undo, memories, edits, exports, backups.
//!
//! Nothing in this crate depends on gRPC, the command line or watched folders.

pub mod backup;
pub mod clock;
pub mod conversation_record;
pub mod data_dir;
mod derived;
pub mod edits;
pub mod export;
pub mod export_ledger;
pub mod ingest;
pub mod integrity;
pub mod key_checksum;
pub mod open_store;
pub mod plain_file;
pub mod plugins;
pub mod provenance;
pub mod purge;
pub mod residue;
pub mod schedule;
pub mod trust;
pub mod vault;
mod write_lock;

/// Creates the parent folders of a file, accessible to this user only. Existing folders are not changed.
pub fn make_parents(file: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    match file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent),
        None => Ok(()),
    }
}

/// Returns the known word that `word` is likely a misspelling of.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    /// One edit per this many characters is still considered the same word.
    const NEAR: usize = 3;
    let distance = |known: &str| strsim::damerau_levenshtein(word, known);
    let nearest = known.iter().copied().min_by_key(|known| distance(known))?;
    (distance(nearest) <= nearest.chars().count().div_ceil(NEAR)).then_some(nearest)
}
