//! Checks whether an erasure can be completed, while nothing has changed yet. Once the new store is complete, every open has to
//! resume the erasure, so an obstacle at that stage would make the store inaccessible.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_seal::Seal;

use crate::{
    blob::{blob_path, file_name},
    disk::{Disk, OsDisk},
    error::StoreError,
    journal::segments::Segments,
    pending_purge::PIECES,
    swap,
};

/// Bytes that must stay free while both stores exist.
const HEADROOM: u64 = 64 << 20;

/// Checks that [`super::purge`] can be completed in `dir`: there is room for a second store, everything that is overwritten is in
/// `dir` itself, and this user may write it. `attachments` may be erased with it. The store may be open in the calling process;
/// nothing is changed.
///
/// # Errors
/// [`StoreError::NoRoom`], and [`StoreError::Io`] with the file that is in the way and what to do about it.
pub fn check_purge(
    dir: &Path,
    seal: Option<&Seal>,
    attachments: &BTreeSet<[u8; 32]>,
) -> Result<(), StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let Some(old) = Segments::list(&disk, dir.join("journal"), seal.cloned())? else { return Ok(()) };
    check(dir, &old, attachments, disk.as_ref())
}

pub(crate) fn check(
    dir: &Path,
    old: &Segments,
    attachments: &BTreeSet<[u8; 32]>,
    disk: &dyn Disk,
) -> Result<(), StoreError> {
    check_replaceable(dir, old, attachments)?;
    // Once the journal for the new one, which is not longer, and twice for its database. A store of mostly short memories needs
    // more; the erasure then fails before anything is replaced.
    let needed = old.bytes_from(Segments::beginning()).saturating_mul(3).saturating_add(HEADROOM);
    swap::check_space(dir, needed, disk)
}

/// Checks that everything that is erased can be overwritten.
pub(super) fn check_replaceable(
    dir: &Path,
    old: &Segments,
    attachments: &BTreeSet<[u8; 32]>,
) -> Result<(), StoreError> {
    let seal = old.context.seal.as_ref();
    let blobs: Vec<PathBuf> =
        attachments.iter().map(|sha256| blob_path(dir, &file_name(sha256, seal))).collect();
    swap::check_replaceable(dir, &PIECES, &blobs)
}
