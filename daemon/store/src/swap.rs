//! Replaces a store with another one that was built beside it, piece by piece. The replacement can be interrupted at any point
//! and is resumed.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    disk::{Disk, OsDisk},
    erase::{check_erasable, check_no_link, check_writable, erase},
    error::{FSYNC, StoreError},
    preserve::PRESERVED_PREFIX,
};

/// The file in a staged folder that lists, one per line and relative to the data directory, the files that are erased with the
/// old store.
pub(crate) const ERASE_LIST: &str = "goes";

/// Checks that a replacement of `pieces`, with which the files in `more` are erased, can be completed: everything that is erased
/// is in the data directory itself and may be overwritten. Called while the old store is still complete.
pub(crate) fn check_replaceable(dir: &Path, pieces: &[&str], more: &[PathBuf]) -> Result<(), StoreError> {
    check_writable(dir)?;
    let aside = leftovers(dir).map_err(StoreError::io("list", dir))?;
    for path in pieces.iter().map(|name| dir.join(name)).chain(aside) {
        check_erasable(&path)?;
    }
    // The same rule applies to everything that contains content, whether some of it is erased this time or not.
    check_no_link(&dir.join("blobs"))?;
    for path in more {
        if let Some(folder) = path.parent() {
            check_no_link(folder)?;
            check_writable(folder)?;
        }
        check_erasable(path)?;
    }
    Ok(())
}

/// Checks that there is room for `needed` more bytes.
pub(crate) fn check_space(dir: &Path, needed: u64, disk: &dyn Disk) -> Result<(), StoreError> {
    let free = disk.free(dir);
    if free < needed { Err(StoreError::NoRoom { dir: dir.to_owned(), needed, free }) } else { Ok(()) }
}

/// Performs up to `most` steps of the replacement of `pieces` by those in the folder `stage`. Returns true if none are left. Each
/// step can be interrupted and repeated. The order of the pieces does not matter, because nothing opens the store before all are
/// replaced.
pub(crate) fn replace_some(
    dir: &Path,
    stage: &str,
    pieces: &[&str],
    most: usize,
) -> Result<bool, StoreError> {
    let stage = dir.join(stage);
    let mut left = most;
    let mut step = |work: &mut dyn FnMut() -> Result<(), StoreError>| -> Result<bool, StoreError> {
        left = match left.checked_sub(1) {
            Some(left) => left,
            None => return Ok(false),
        };
        work()?;
        satchel_failpoints::reached("piece replaced");
        Ok(true)
    };
    for name in pieces {
        let (from, to) = (stage.join(name), dir.join(name));
        match from.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // It is then unknown whether the piece was moved already, and anything left of it in the staged folder would be
            // erased below.
            Err(error) => return Err(StoreError::io("look at", &from)(error)),
            Ok(_) => {}
        }
        let done = step(&mut || erase(&to).map_err(StoreError::io("erase", &to)))?
            && step(&mut || move_into_place(&from, &to, dir))?;
        if !done {
            return Ok(false);
        }
    }
    let mut erased = listed_files(dir, &stage)?;
    erased.extend(leftovers(dir).map_err(StoreError::io("list", dir))?);
    for path in &erased {
        if !step(&mut || erase(path).map_err(StoreError::io("erase", path)))? {
            return Ok(false);
        }
    }
    // The list of the files to erase must not be removed before they are.
    let done = step(&mut || {
        sync_folders(&erased)?;
        satchel_failpoints::reached("erasures synced");
        erase(&stage).map_err(StoreError::io("erase", &stage))
    })?;
    if done {
        OsDisk.sync_folder(dir).map_err(StoreError::io(FSYNC, dir))?;
    }
    Ok(done)
}

/// Makes the removal of files durable.
fn sync_folders(erased: &[PathBuf]) -> Result<(), StoreError> {
    let folders: BTreeSet<&Path> = erased.iter().filter_map(|path| path.parent()).collect();
    // A folder that does not exist never contained any.
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        OsDisk.sync_folder(folder).map_err(StoreError::io(FSYNC, folder))?;
    }
    Ok(())
}

fn move_into_place(from: &Path, to: &Path, dir: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::io("rename", from))?;
    OsDisk.sync_folder(dir).map_err(StoreError::io(FSYNC, dir))
}

/// Returns the files that the staged folder lists for erasure.
fn listed_files(dir: &Path, stage: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let path = stage.join(ERASE_LIST);
    match fs::read_to_string(&path) {
        Ok(names) => Ok(names.lines().map(|name| dir.join(name)).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

/// Returns databases that were set aside, and an unfinished `db.state`.
fn leftovers(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("db.broken-") || name.starts_with(PRESERVED_PREFIX) || name == "db.new" {
            found.push(entry.path());
        }
    }
    Ok(found)
}
