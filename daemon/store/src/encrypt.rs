//! Switches encryption on for an existing store. The complete sealed store is built beside the plain one and compared with it.
//! Only then is the plain store erased piece by piece and replaced by the sealed one. Both phases can be interrupted at any
//! point: the first one starts again from the beginning, the second one is resumed.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_seal::Seal;

use crate::{
    blob::{self, BlobReader, blob_path, file_name},
    check::blobs,
    disk::{Disk, OsDisk},
    erase::erase,
    error::{FSYNC, StoreError},
    journal::{rewrite::rewrite, segments::Segments},
    lock::{StoreLock, lock_store},
    options::OpenOptions,
    pending_purge,
    report::{CheckProgress, Damage, Health, StateDigest},
    revision::Revision,
    store::Store,
    swap,
};

/// The folder in which the sealed store is built.
const STAGE: &str = "encrypting";
/// The pieces that are replaced, in this order. The order does not matter, because nothing opens the store before all are
/// replaced.
const PIECES: [&str; 4] = ["journal", "blobs", "db", "db.state"];
/// Bytes that must stay free while both stores exist.
const HEADROOM: u64 = 64 << 20;

/// A sealed store that is ready to replace the plain one. No process can open either while this value exists.
#[derive(Debug)]
pub struct StagedEncryption {
    dir: PathBuf,
    _lock: StoreLock,
}

impl StagedEncryption {
    /// Replaces the plain store with the sealed one and erases the plain one. The caller must have recorded durably that the
    /// replacement is due: once it has begun, [`finish_encryption`] is the only way on.
    ///
    /// # Errors
    /// Any error of the file system; [`finish_encryption`] then resumes the replacement.
    pub fn replace(&self) -> Result<(), StoreError> {
        replace_some(&self.dir, usize::MAX).map(|_| ())
    }
}

/// Resumes an interrupted replacement. Does nothing if it was completed.
///
/// # Errors
/// [`StoreError::Locked`] if another process has the store open; any error of the file system.
pub fn finish_encryption(dir: &Path) -> Result<(), StoreError> {
    let _lock = lock_store(dir)?;
    replace_some(dir, usize::MAX).map(|_| ())
}

/// Builds a copy of the store in `dir`, sealed with `seal`, beside the plain one, and checks that both show the same content. The
/// plain store is not changed. Remains of an earlier attempt are removed first, unless `begun` reports that a replacement has
/// begun since the caller checked: the remains are then the only copy, and `None` is returned.
///
/// # Errors
/// [`StoreError::Locked`] if a process has the store open, [`StoreError::DamagedJournal`] if it is damaged; any error of the file
/// system.
pub fn stage_encryption(
    dir: &Path,
    seal: &Seal,
    begun: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<Option<StagedEncryption>, StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let first = lock_store(dir)?;
    if begun() {
        return Ok(None);
    }
    // If an erasure has begun to replace the store, its files are the only copy.
    pending_purge::finish(dir)?;
    swap::check_replaceable(dir, &PIECES, &[])?;
    let stage = dir.join(STAGE);
    erase(&stage).map_err(StoreError::io("remove", &stage))?;
    if PIECES.iter().all(|name| !dir.join(name).exists()) {
        return Ok(Some(StagedEncryption { dir: dir.to_owned(), _lock: first }));
    }
    drop(first);
    // Opening the store truncates an unfinished tail that a kill left, and reports damage.
    let before = read_content(dir, None)?;
    let staged = StagedEncryption { dir: dir.to_owned(), _lock: lock_store(dir)? };
    if begun() {
        return Ok(None);
    }
    swap::check_space(dir, before.bytes.saturating_add(HEADROOM), disk.as_ref())?;
    match build(dir, seal, &before, &disk, progress) {
        Ok(()) => Ok(Some(staged)),
        Err(error) => {
            // An incomplete copy is of no use. Files that cannot be removed now are removed by the next attempt.
            if let Err(problem) = erase(&stage) {
                tracing::warn!(%problem, "what was sealed of a store stays behind");
            }
            Err(error)
        }
    }
}

/// Builds the sealed store and compares it with the plain one, whose content is `before`.
fn build(
    dir: &Path,
    seal: &Seal,
    before: &StoreContent,
    disk: &Arc<dyn Disk>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<(), StoreError> {
    let (stage, journal) = (dir.join(STAGE), dir.join("journal"));
    disk.create_folders(&stage).map_err(StoreError::io("create", &stage))?;
    let Some(old) = Segments::list(disk, journal, None)? else {
        return Err(StoreError::DamagedJournal { first: mismatch(dir) });
    };
    rewrite(disk, &old, stage.join("journal"), Some(seal), None, progress)?;
    copy_blobs(dir, &stage, seal, disk.as_ref())?;
    let after = read_content(&stage, Some(seal))?;
    if (after.revision, after.digest, after.damaged_blobs)
        != (before.revision, before.digest, before.damaged_blobs)
    {
        return Err(StoreError::DamagedJournal { first: mismatch(dir) });
    }
    for folder in [&stage, dir] {
        disk.sync_folder(folder).map_err(StoreError::io(FSYNC, folder))?;
    }
    Ok(())
}

/// The content of a store in short, and the bytes that it takes.
struct StoreContent {
    revision: Revision,
    digest: StateDigest,
    bytes: u64,
    /// The number of attachments whose bytes are missing or damaged. They stay so in the sealed store.
    damaged_blobs: usize,
}

fn read_content(dir: &Path, seal: Option<&Seal>) -> Result<StoreContent, StoreError> {
    let options = OpenOptions { seal: seal.cloned(), ..OpenOptions::default() };
    let store = Store::open(dir, options, &mut |_| {})?;
    if let Health::Damaged(places) = store.health()
        && let Some(first) = places.into_iter().next()
    {
        return Err(StoreError::DamagedJournal { first });
    }
    // Every byte is read and opened once, because the plain store is erased afterwards.
    let report = store.check(true, &mut |_| {})?;
    let differing = (!report.engine_problems.is_empty()).then(|| mismatch(dir));
    if let Some(first) = report.damage.into_iter().next().or(differing) {
        return Err(StoreError::DamagedJournal { first });
    }
    let damaged_blobs = report.blob_problems.len();
    let stats = store.stats()?;
    let bytes = stats.journal_bytes + stats.engine_bytes + stats.blob_bytes;
    let content =
        StoreContent { revision: store.revision(), digest: store.state_digest(), bytes, damaged_blobs };
    store.close()?;
    Ok(content)
}

fn mismatch(dir: &Path) -> Damage {
    let problem = "a sealed copy that shows something else; nothing was changed; the place";
    Damage::new(&dir.join("journal"), 0, 0, problem)
}

/// Seals every attachment, even one whose bytes are damaged, under the name that it has.
fn copy_blobs(dir: &Path, stage: &Path, seal: &Seal, disk: &dyn Disk) -> Result<(), StoreError> {
    let mut folders = vec![stage.join("blobs")];
    for sha256 in blobs::list(dir, None)? {
        let path = blob_path(dir, &sha256);
        let file = disk.open(&path, false).map_err(StoreError::io("open", &path))?;
        let to = blob_path(stage, &file_name(&sha256, Some(seal)));
        let folder = to.parent().unwrap_or(stage).to_owned();
        disk.create_folders(&folder).map_err(StoreError::io("create", &folder))?;
        let mut bytes = BlobReader::plain(file, u64::MAX);
        let (_, sealed) = blob::copy(disk, &mut bytes, &to, Some((seal, Some(sha256))))?;
        sealed.sync().map_err(StoreError::io(FSYNC, &to))?;
        folders.push(folder);
    }
    folders.dedup();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        disk.sync_folder(folder).map_err(StoreError::io(FSYNC, folder))?;
    }
    Ok(())
}

/// Performs up to `most` steps of the replacement. Returns true if none are left. Each step can be interrupted and repeated.
pub(crate) fn replace_some(dir: &Path, most: usize) -> Result<bool, StoreError> {
    swap::replace_some(dir, STAGE, &PIECES, most)
}
