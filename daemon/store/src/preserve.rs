//! Keeps a database that contains data lost from a damaged journal, beside the one that is built in its place, and puts it back
//! on request.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    error::{FSYNC, StoreError},
    lock::StoreLock,
};

/// The name prefix of a kept database's folder. The copy of its `db.state` has the same name and the extension below.
pub(crate) const PRESERVED_PREFIX: &str = "db.kept-";
const STATE_SUFFIX: &str = ".state";

/// Sets aside the database of the store in `dir`, which must have been closed cleanly. Returns `None` if there is no database. A
/// copy of its `db.state` is kept too, because it records how far the journal reached.
///
/// # Errors
/// Any error of the file system.
pub fn preserve_database(_lock: &StoreLock, dir: &Path) -> Result<Option<PathBuf>, StoreError> {
    let database = dir.join("db");
    if !database.is_dir() {
        return Ok(None);
    }
    let number = numbers(dir).map_err(StoreError::io("list", dir))?.into_iter().max().unwrap_or(0) + 1;
    let preserved = dir.join(format!("{PRESERVED_PREFIX}{number}"));
    let state = state_path(dir, number);
    // The copy of `db.state` comes first: a folder without one cannot be put back.
    fs::copy(dir.join("db.state"), &state).map_err(StoreError::io("copy", dir.join("db.state")))?;
    fs::File::open(&state).and_then(|file| file.sync_all()).map_err(StoreError::io(FSYNC, &state))?;
    fs::rename(&database, &preserved).map_err(StoreError::io("rename", &database))?;
    sync_folder(dir)?;
    Ok(Some(preserved))
}

/// Puts the database that was kept last back in place of the current one. Returns `None` if none is kept. The current database is
/// removed, because it can be rebuilt from the journal.
///
/// # Errors
/// Any error of the file system.
pub fn restore_preserved_database(_lock: &StoreLock, dir: &Path) -> Result<Option<PathBuf>, StoreError> {
    let listed = numbers(dir).map_err(StoreError::io("list", dir))?;
    let whole = listed.into_iter().filter(|number| state_path(dir, *number).is_file());
    let Some(number) = whole.max() else { return Ok(None) };
    let (preserved, database) = (dir.join(format!("{PRESERVED_PREFIX}{number}")), dir.join("db"));
    match fs::remove_dir_all(&database) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(StoreError::io("remove", database)(error));
        }
        _ => {}
    }
    fs::rename(&preserved, &database).map_err(StoreError::io("rename", &preserved))?;
    let state = state_path(dir, number);
    fs::rename(&state, dir.join("db.state")).map_err(StoreError::io("rename", &state))?;
    sync_folder(dir)?;
    Ok(Some(preserved))
}

/// Returns the numbers of the databases that are kept.
fn numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        found.extend(name.strip_prefix(PRESERVED_PREFIX).and_then(|number| number.parse::<u32>().ok()));
    }
    Ok(found)
}

fn state_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{PRESERVED_PREFIX}{number}{STATE_SUFFIX}"))
}

fn sync_folder(dir: &Path) -> Result<(), StoreError> {
    fs::File::open(dir).and_then(|folder| folder.sync_all()).map_err(StoreError::io(FSYNC, dir))
}
