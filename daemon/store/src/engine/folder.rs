//! The folder of the engine's files: opened, set aside, and fingerprinted at a clean stop.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{Engine, EngineError, sled_engine::SledEngine};
use crate::disk::close_to_others;

/// Checksums at a clean stop and start are computed for at most this many bytes in all; reading more would take longer than a
/// second.
const CHECKSUM_BYTES: u64 = 256 << 20;

/// How often the program checks whether sled's lock is released, and the time between two checks: two seconds in all.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// One file of the engine at a clean stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileFingerprint {
    pub(crate) name: String,
    pub(crate) length: u64,
    /// CRC-32C; `None` if the files are too large in all.
    pub(crate) crc32c: Option<u32>,
}

/// The location of an engine's files.
pub(crate) trait EngineFolder: Send + Sync {
    /// Waits until nothing writes to the engine's files. Returns false if something still does after two seconds.
    fn released(&self) -> io::Result<bool>;
    /// Opens the engine, or creates an empty one.
    fn open(&self) -> Result<Arc<dyn Engine>, EngineError>;
    /// Moves the engine's files out of the way.
    fn set_aside(&self) -> io::Result<()>;
    /// Removes the files that were set aside, except the newest. Only called while the journal is whole, so that none of them is
    /// the only copy of anything.
    fn forget_older(&self) -> io::Result<()> {
        Ok(())
    }
    /// Makes the files durable; the engine must be closed.
    fn sync(&self) -> io::Result<()>;
    /// Describes the files; the engine must be closed.
    fn fingerprints(&self) -> io::Result<Vec<FileFingerprint>>;
}

/// sled's folder `db`, and `db.broken-<n>` for one that was set aside.
pub(crate) struct SledFolder {
    folder: PathBuf,
    cache_bytes: u64,
}

impl SledFolder {
    pub(crate) fn new(store: &Path, cache_bytes: u64) -> Self {
        Self { folder: store.join("db"), cache_bytes }
    }

    /// Restricts the modes of sled's files. sled creates them according to the umask, some of them only when it is closed.
    fn close_to_others(&self) -> io::Result<()> {
        let mut paths = vec![self.folder.clone()];
        while let Some(path) = paths.pop() {
            close_to_others(&path)?;
            if path.is_dir() {
                for entry in fs::read_dir(path)? {
                    paths.push(entry?.path());
                }
            }
        }
        Ok(())
    }

    /// Returns the databases that were set aside, with their numbers.
    fn old_databases(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut found = Vec::new();
        let Some(store) = self.folder.parent() else { return Ok(found) };
        for entry in fs::read_dir(store)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix("db.broken-").and_then(|number| number.parse::<u64>().ok());
            found.extend(number.map(|number| (number, entry.path())));
        }
        Ok(found)
    }

    fn files(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let mut files = Vec::new();
        let mut folders = vec![(String::new(), self.folder.clone())];
        while let Some((prefix, folder)) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if entry.file_type()?.is_dir() {
                    folders.push((format!("{name}/"), entry.path()));
                } else {
                    files.push((name, entry.path()));
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

impl EngineFolder for SledFolder {
    /// sled's threads outlive its close for a moment. The lock on its file is released when the last of them ends.
    fn released(&self) -> io::Result<bool> {
        let file = match fs::File::open(self.folder.join("db")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            file => file?,
        };
        for _ in 0..LOCK_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(true),
                Err(fs::TryLockError::WouldBlock) => thread::sleep(LOCK_WAIT),
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(false)
    }

    fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        let refused = |error: io::Error| EngineError(error.to_string());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(refused)?;
        let engine = SledEngine::open(&self.folder, self.cache_bytes)?;
        self.close_to_others().map_err(refused)?;
        Ok(Arc::new(engine))
    }

    fn set_aside(&self) -> io::Result<()> {
        if !self.folder.exists() {
            return Ok(());
        }
        let Some(store) = self.folder.parent() else { return Ok(()) };
        if !self.released()? {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the database is still in use"));
        }
        let newest = self.old_databases()?.into_iter().map(|(number, _)| number).max().unwrap_or(0);
        fs::rename(&self.folder, store.join(format!("db.broken-{}", newest + 1)))
    }

    /// The newest one is kept for finding out what went wrong, not for its data.
    fn forget_older(&self) -> io::Result<()> {
        let mut old_databases = self.old_databases()?;
        old_databases.sort();
        old_databases.pop();
        old_databases.into_iter().try_for_each(|(_, path)| fs::remove_dir_all(path))
    }

    fn sync(&self) -> io::Result<()> {
        self.close_to_others()?;
        for (_, path) in self.files()? {
            fs::File::open(path)?.sync_all()?;
        }
        fs::File::open(&self.folder)?.sync_all()
    }

    fn fingerprints(&self) -> io::Result<Vec<FileFingerprint>> {
        let files = self.files()?;
        let mut fingerprints = Vec::with_capacity(files.len());
        let mut total = 0;
        for (name, path) in &files {
            let length = fs::metadata(path)?.len();
            total += length;
            fingerprints.push(FileFingerprint { name: name.clone(), length, crc32c: None });
        }
        if total <= CHECKSUM_BYTES {
            for (fingerprint, (_, path)) in fingerprints.iter_mut().zip(&files) {
                fingerprint.crc32c = Some(checksum(path)?);
            }
        }
        Ok(fingerprints)
    }
}

fn checksum(path: &Path) -> io::Result<u32> {
    use io::Read as _;
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let mut crc = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(crc),
            read => crc = crc32c::crc32c_append(crc, &buffer[..read]),
        }
    }
}
