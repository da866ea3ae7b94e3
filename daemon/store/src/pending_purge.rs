//! An erasure whose new store is complete: it replaces the old one, also after an interruption, before the store is opened again.

use std::{io, path::Path};

use crate::{erase::erase, error::StoreError, swap};

/// The folder in which the store without the content is built.
pub(crate) const BUILT: &str = "purging.new";
/// Its name once it is complete.
pub(crate) const READY: &str = "purging";
/// The pieces that replace those of the old store.
pub(crate) const PIECES: [&str; 3] = ["journal", "db", "db.state"];

/// Returns whether there is a journal in `dir`. While an erasure replaces the old store, the only journal may still be beside it;
/// the next open resumes the replacement.
#[must_use]
pub fn has_journal(dir: &Path) -> bool {
    dir.join("journal").is_dir() || dir.join(READY).is_dir()
}

/// Resumes an interrupted erasure; the caller must hold the lock of the store. An erasure whose new store was not complete is discarded.
pub(crate) fn finish(dir: &Path) -> Result<(), StoreError> {
    if dir.join(READY).symlink_metadata().is_ok() {
        swap::replace_some(dir, READY, &PIECES, usize::MAX)?;
    }
    let built = dir.join(BUILT);
    erase(&built).map_err(StoreError::io("remove", &built))
}

/// Fails if an erasure was interrupted while its new store replaced the old one: the files are then a mixture of the two.
pub(crate) fn check_none(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(READY);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let source = io::Error::other("the disk accepts no writes, so the erasure cannot be completed");
    Err(StoreError::Io { action: "finish the erasure in", path, source })
}
