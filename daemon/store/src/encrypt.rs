//! Switches encryption on for a store that stands. The sealed store is built whole beside the plain one and compared with it; only
//! then, piece by piece, the plain one is erased and the sealed one takes its place. Both halves can be cut off at any point: the
//! first is begun anew, the second goes on.

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
    open::{Claim, claim},
    purge,
    report::{CheckProgress, Damage, Health, StateDigest},
    revision::Revision,
    store::{OpenOptions, Store},
    swap,
};

/// Where the sealed store is built.
const STAGE: &str = "encrypting";
/// What takes its place, in this order, which does not matter: nothing opens the store before all is done.
const PIECES: [&str; 4] = ["journal", "blobs", "db", "db.state"];
/// Bytes that must stay free while the store stands twice.
const HEADROOM: u64 = 64 << 20;

/// A sealed store that waits to take the place of the plain one. Nobody opens either while it lives.
#[derive(Debug)]
pub struct Staged {
    dir: PathBuf,
    _claim: Claim,
}

impl Staged {
    /// Lets the sealed store take the plain one's place, and erases that. Whoever calls it has written down durably that it has to be
    /// done: from the first moment on [`finish`] is the only way.
    ///
    /// # Errors
    /// What the file system refuses; [`finish`] goes on then.
    pub fn replace(&self) -> Result<(), StoreError> {
        replace_some(&self.dir, usize::MAX).map(|_| ())
    }
}

/// Goes on with a replacement that was cut off; does nothing if it was done.
///
/// # Errors
/// [`StoreError::Locked`] if another process has the store; what the file system refuses.
pub fn finish(dir: &Path) -> Result<(), StoreError> {
    let _claim = claim(dir)?;
    replace_some(dir, usize::MAX).map(|_| ())
}

/// Builds the store in `dir`, sealed with `seal`, beside the plain one, and makes sure that it shows the same. The plain one stays as
/// it is. What an earlier try left is removed first, unless `begun` says that a replacement has begun since the caller looked: then
/// that holds the only copy, and the answer is none.
///
/// # Errors
/// [`StoreError::Locked`] if a process has the store, [`StoreError::DamagedJournal`] if it is damaged, and what the file system refuses.
pub fn stage(
    dir: &Path,
    seal: &Seal,
    begun: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<Option<Staged>, StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let first = claim(dir)?;
    if begun() {
        return Ok(None);
    }
    // What an erasure has begun to put in place is the only copy.
    purge::finish(dir)?;
    swap::replaceable(dir, &PIECES, &[])?;
    let stage = dir.join(STAGE);
    erase(&stage).map_err(StoreError::io("remove", &stage))?;
    if PIECES.iter().all(|name| !dir.join(name).exists()) {
        return Ok(Some(Staged { dir: dir.to_owned(), _claim: first }));
    }
    drop(first);
    // An open cuts the unfinished tail that a kill left, and tells what is damaged.
    let before = shown(dir, None)?;
    let staged = Staged { dir: dir.to_owned(), _claim: claim(dir)? };
    if begun() {
        return Ok(None);
    }
    swap::room(dir, before.bytes.saturating_add(HEADROOM), disk.as_ref())?;
    match build(dir, seal, &before, &disk, progress) {
        Ok(()) => Ok(Some(staged)),
        Err(error) => {
            // Nobody needs half of it; what cannot be removed goes with the next try.
            if let Err(problem) = erase(&stage) {
                tracing::warn!(%problem, "what was sealed of a store stays behind");
            }
            Err(error)
        }
    }
}

/// Builds the sealed store and compares it with the plain one, which shows `before`.
fn build(
    dir: &Path,
    seal: &Seal,
    before: &Shown,
    disk: &Arc<dyn Disk>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<(), StoreError> {
    let (stage, journal) = (dir.join(STAGE), dir.join("journal"));
    disk.create_folders(&stage).map_err(StoreError::io("create", &stage))?;
    let Some(old) = Segments::list(disk, journal, None)? else {
        return Err(StoreError::DamagedJournal { first: differs(dir) });
    };
    rewrite(disk, &old, stage.join("journal"), Some(seal), None, progress)?;
    copy_blobs(dir, &stage, seal, disk.as_ref())?;
    let after = shown(&stage, Some(seal))?;
    if (after.revision, after.digest, after.broken) != (before.revision, before.digest, before.broken) {
        return Err(StoreError::DamagedJournal { first: differs(dir) });
    }
    for folder in [&stage, dir] {
        disk.sync_folder(folder).map_err(StoreError::io(FSYNC, folder))?;
    }
    Ok(())
}

/// What a store shows, and the bytes that it takes.
struct Shown {
    revision: Revision,
    digest: StateDigest,
    bytes: u64,
    /// Attachments whose bytes are missing or damaged: they stay so.
    broken: usize,
}

fn shown(dir: &Path, seal: Option<&Seal>) -> Result<Shown, StoreError> {
    let options = OpenOptions { seal: seal.cloned(), ..OpenOptions::default() };
    let store = Store::open(dir, options, &mut |_| {})?;
    if let Health::Damaged(places) = store.health()
        && let Some(first) = places.into_iter().next()
    {
        return Err(StoreError::DamagedJournal { first });
    }
    // Every byte is opened once: what is plain goes after this.
    let report = store.check(true, &mut |_| {})?;
    let differing = (!report.engine_problems.is_empty()).then(|| differs(dir));
    if let Some(first) = report.damage.into_iter().next().or(differing) {
        return Err(StoreError::DamagedJournal { first });
    }
    let broken = report.blob_problems.len();
    let stats = store.stats()?;
    let bytes = stats.journal_bytes + stats.engine_bytes + stats.blob_bytes;
    let shown = Shown { revision: store.revision(), digest: store.state_digest(), bytes, broken };
    store.close()?;
    Ok(shown)
}

fn differs(dir: &Path) -> Damage {
    let problem = "a sealed copy that shows something else; nothing was changed; the place";
    Damage::new(&dir.join("journal"), 0, 0, problem)
}

/// Seals every attachment, one whose bytes are damaged too, under the name that it has.
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

/// Makes up to `most` steps of the replacement; true if there are no more. Each step can be cut off and made again.
pub(crate) fn replace_some(dir: &Path, most: usize) -> Result<bool, StoreError> {
    swap::replace_some(dir, STAGE, &PIECES, most)
}
