//! The lock of a store: either one process writes to it, or several read it.

use std::{
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    thread,
    time::Duration,
};

use crate::{
    disk::close_to_others,
    engine::folder::{EngineFolder, SledFolder},
    error::StoreError,
    options::OpenOptions,
};

/// How often the lock file is tried, and the time between two attempts: half a second in all.
const LOCK_ATTEMPTS: u32 = 25;
const LOCK_WAIT: Duration = Duration::from_millis(20);
/// Maximum number of bytes that are read from a lock file, which contains a process id.
const MAX_PID_BYTES: u64 = 32;
/// Used as the process id if the lock file contains none.
const UNKNOWN_PID: &str = "?";

/// The lock of a store: no other process can open the store while this value exists.
#[derive(Debug)]
pub struct StoreLock {
    _file: fs::File,
}

/// Checks that no process has the store in `dir` open, and prevents others from opening it while the lock is held. Neither reads
/// nor changes the store's data.
///
/// # Errors
/// [`StoreError::Locked`] if another process has the store open; any error of the file system.
pub fn lock_store(dir: &Path) -> Result<StoreLock, StoreError> {
    let options = OpenOptions::default();
    Ok(StoreLock { _file: acquire(dir, &SledFolder::new(dir, options.cache_bytes))? })
}

/// Checks that no other process has the store open, and takes the lock, which is held while the returned file is open.
pub(crate) fn acquire(dir: &Path, db: &dyn EngineFolder) -> Result<fs::File, StoreError> {
    create_folder(dir).map_err(StoreError::io("create", dir))?;
    let lock = lock_file(dir)?;
    if db.released().map_err(StoreError::io("look at the database in", dir))? {
        return Ok(lock);
    }
    Err(StoreError::Locked { dir: dir.to_owned(), pid: UNKNOWN_PID.to_owned() })
}

/// Locks out writers and admits other readers. If there is no lock file because none can be created, nobody can write either.
pub(crate) fn lock_shared(dir: &Path) -> Result<Option<fs::File>, StoreError> {
    let path = dir.join("store.lock");
    let file = match fs::File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(StoreError::io("open", &path))?,
    };
    match lock_with_retries(|| file.try_lock_shared()) {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Err(locked_error(dir, &file)),
        Err(fs::TryLockError::Error(source)) => Err(StoreError::Io { action: "lock", path, source }),
    }
}

/// Creates the store's own folder, durable under its name.
fn create_folder(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    match dir.parent() {
        Some(above) if !above.as_os_str().is_empty() => fs::File::open(above)?.sync_all(),
        Some(_) | None => Ok(()),
    }
}

/// Takes a lock, with several attempts: a child process that another thread starts also holds our files until it executes its own
/// program.
fn lock_with_retries(lock: impl Fn() -> Result<(), fs::TryLockError>) -> Result<(), fs::TryLockError> {
    for _ in 0..LOCK_ATTEMPTS {
        match lock() {
            Err(fs::TryLockError::WouldBlock) => thread::sleep(LOCK_WAIT),
            result => return result,
        }
    }
    lock()
}

/// Returns the error for a store that is in use, with the process id from the lock file.
fn locked_error(dir: &Path, file: &fs::File) -> StoreError {
    let mut pid = String::new();
    let read = file.take(MAX_PID_BYTES).read_to_string(&mut pid).is_ok();
    let pid = if read && !pid.trim().is_empty() { pid.trim().to_owned() } else { UNKNOWN_PID.to_owned() };
    StoreError::Locked { dir: dir.to_owned(), pid }
}

/// Takes the lock file and writes the id of this process into it.
fn lock_file(dir: &Path) -> Result<fs::File, StoreError> {
    let path = dir.join("store.lock");
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path).map_err(StoreError::io("open", &path))?;
    match lock_with_retries(|| file.try_lock()) {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Err(locked_error(dir, &file)),
        Err(fs::TryLockError::Error(source)) => return Err(StoreError::Io { action: "lock", path, source }),
    }
    let mut write = || {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())?;
        close_to_others(&path)
    };
    write().map_err(StoreError::io("write", &path))?;
    Ok(file)
}
