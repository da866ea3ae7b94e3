//! The folder that the engine lives in: opened, set aside, and fingerprinted at a clean stop.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{Engine, EngineError, tree::SledEngine};

/// The checksums at a clean stop and start cover this many bytes; reading more would take longer than a second.
const CHECKSUM_BYTES: u64 = 256 << 20;

/// One file of the engine at a clean stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileMark {
    pub(crate) name: String,
    pub(crate) length: u64,
    /// CRC-32C; none where the files are too large in all.
    pub(crate) crc32c: Option<u32>,
}

/// Where an engine is kept.
pub(crate) trait House: Send + Sync {
    /// Opens the engine, or makes an empty one.
    fn open(&self) -> Result<Arc<dyn Engine>, EngineError>;
    /// Moves the engine's files out of the way.
    fn set_aside(&self) -> io::Result<()>;
    /// Makes the files durable; the engine must be closed.
    fn sync(&self) -> io::Result<()>;
    /// Describes the files; the engine must be closed.
    fn marks(&self) -> io::Result<Vec<FileMark>>;
}

/// sled's folder `db`, and `db.broken-<n>` for one that was set aside.
pub(crate) struct SledHouse {
    folder: PathBuf,
    cache_bytes: u64,
}

impl SledHouse {
    pub(crate) fn new(store: &Path, cache_bytes: u64) -> Self {
        Self { folder: store.join("db"), cache_bytes }
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

impl House for SledHouse {
    fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        let engine = SledEngine::open(&self.folder, self.cache_bytes)?;
        Ok(Arc::new(engine))
    }

    /// Keeps the newest set-aside folder only: it is for a look at what went wrong, not for its data.
    fn set_aside(&self) -> io::Result<()> {
        if !self.folder.exists() {
            return Ok(());
        }
        let Some(store) = self.folder.parent() else { return Ok(()) };
        let mut newest = 0;
        for entry in fs::read_dir(store)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(number) = name.strip_prefix("db.broken-").and_then(|number| number.parse::<u64>().ok())
            else {
                continue;
            };
            newest = newest.max(number);
            fs::remove_dir_all(entry.path())?;
        }
        fs::rename(&self.folder, store.join(format!("db.broken-{}", newest + 1)))
    }

    fn sync(&self) -> io::Result<()> {
        for (_, path) in self.files()? {
            fs::File::open(path)?.sync_all()?;
        }
        fs::File::open(&self.folder)?.sync_all()
    }

    fn marks(&self) -> io::Result<Vec<FileMark>> {
        let files = self.files()?;
        let mut marks = Vec::with_capacity(files.len());
        let mut total = 0;
        for (name, path) in &files {
            let length = fs::metadata(path)?.len();
            total += length;
            marks.push(FileMark { name: name.clone(), length, crc32c: None });
        }
        if total <= CHECKSUM_BYTES {
            for (mark, (_, path)) in marks.iter_mut().zip(&files) {
                mark.crc32c = Some(checksum(path)?);
            }
        }
        Ok(marks)
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
