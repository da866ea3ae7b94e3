//! Whether an erasure would come to its end, asked while nothing has changed yet. From the moment on at which the new store is whole every
//! open has to go on with it, so what stands in its way then shuts the store.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_seal::Seal;

use super::PIECES;
use crate::{
    blob::{blob_path, file_name},
    disk::{Disk, OsDisk},
    error::StoreError,
    journal::segments::Segments,
    swap,
};

/// Bytes that must stay free while the store stands twice.
const HEADROOM: u64 = 64 << 20;

/// Makes sure that [`super::purge`] would come to its end in `dir`: there is room for the store a second time, all that it overwrites lies
/// in `dir` itself, and this user may write it. `attachments` may go with it. Whoever has the store open may ask; nothing is changed.
///
/// # Errors
/// [`StoreError::NoRoom`], and [`StoreError::Io`] with the file that stands in the way and what to do about it.
pub fn purge_ready(
    dir: &Path,
    seal: Option<&Seal>,
    attachments: &BTreeSet<[u8; 32]>,
) -> Result<(), StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let Some(old) = Segments::list(&disk, dir.join("journal"), seal.cloned())? else { return Ok(()) };
    ready(dir, &old, attachments, disk.as_ref())
}

pub(crate) fn ready(
    dir: &Path,
    old: &Segments,
    attachments: &BTreeSet<[u8; 32]>,
    disk: &dyn Disk,
) -> Result<(), StoreError> {
    replaceable(dir, old, attachments)?;
    // The journal again, and a database, which is about as large.
    let needed = old.bytes_from(Segments::beginning()).saturating_mul(3).saturating_add(HEADROOM);
    swap::room(dir, needed, disk)
}

/// Whether all that goes can be overwritten.
pub(super) fn replaceable(
    dir: &Path,
    old: &Segments,
    attachments: &BTreeSet<[u8; 32]>,
) -> Result<(), StoreError> {
    let seal = old.home.seal.as_ref();
    let blobs: Vec<PathBuf> =
        attachments.iter().map(|sha256| blob_path(dir, &file_name(sha256, seal))).collect();
    swap::replaceable(dir, &PIECES, &blobs)
}
