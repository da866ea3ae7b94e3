//! A database that holds what a damaged journal has lost is kept beside the one that is built in its place, and can be put back.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    error::{FSYNC, StoreError},
    open::Claim,
};

/// How the folder of a kept database begins; the note on it has the same name and this ending.
pub(crate) const KEPT: &str = "db.kept-";
const NOTE: &str = ".state";

/// Sets the database of the store in `dir` aside, which was closed in order; none: there is none. Its note stays too, for it says how
/// far the journal reached.
///
/// # Errors
/// What the file system refuses.
pub fn keep_database(_claim: &Claim, dir: &Path) -> Result<Option<PathBuf>, StoreError> {
    let database = dir.join("db");
    if !database.is_dir() {
        return Ok(None);
    }
    let number = numbers(dir).map_err(StoreError::io("list", dir))?.into_iter().max().unwrap_or(0) + 1;
    let kept = dir.join(format!("{KEPT}{number}"));
    let note = note_of(dir, number);
    // The note first: a folder without one cannot be put back.
    fs::copy(dir.join("db.state"), &note).map_err(StoreError::io("copy", dir.join("db.state")))?;
    fs::File::open(&note).and_then(|file| file.sync_all()).map_err(StoreError::io(FSYNC, &note))?;
    fs::rename(&database, &kept).map_err(StoreError::io("rename", &database))?;
    synced(dir)?;
    Ok(Some(kept))
}

/// Puts the database that was kept last back in the place of the one that was built; none: none is kept. What is built from the
/// journal can be built again, so that the other one goes.
///
/// # Errors
/// What the file system refuses.
pub fn put_back_database(_claim: &Claim, dir: &Path) -> Result<Option<PathBuf>, StoreError> {
    let listed = numbers(dir).map_err(StoreError::io("list", dir))?;
    let whole = listed.into_iter().filter(|number| note_of(dir, *number).is_file());
    let Some(number) = whole.max() else { return Ok(None) };
    let (kept, database) = (dir.join(format!("{KEPT}{number}")), dir.join("db"));
    match fs::remove_dir_all(&database) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(StoreError::io("remove", database)(error));
        }
        _ => {}
    }
    fs::rename(&kept, &database).map_err(StoreError::io("rename", &kept))?;
    let note = note_of(dir, number);
    fs::rename(&note, dir.join("db.state")).map_err(StoreError::io("rename", &note))?;
    synced(dir)?;
    Ok(Some(kept))
}

/// The numbers of the databases that are kept.
fn numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        found.extend(name.strip_prefix(KEPT).and_then(|number| number.parse::<u32>().ok()));
    }
    Ok(found)
}

fn note_of(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{KEPT}{number}{NOTE}"))
}

fn synced(dir: &Path) -> Result<(), StoreError> {
    fs::File::open(dir).and_then(|folder| folder.sync_all()).map_err(StoreError::io(FSYNC, dir))
}
