//! A folder of encrypted files, for the index of an encrypted store.
//!
//! Each file is a header with a random salt, and blocks of 64 KiB that are sealed one by one with a key that is derived from the
//! data key and the salt. Each block is bound to the name of the file, its number, and whether it is the last one, so that a
//! block that was changed, moved, cut off or appended does not open. Nothing is written before it is sealed.
//!
//! **What stays visible:** the names of the files, which are the random ids of segments, and their sizes and times. The two lock
//! files are empty. A whole file that is replaced by an older version of itself is not detected.
//!
//! Crashes are survived as with [`MmapDirectory`]: the files of a segment are durable before `meta.json` names them, and
//! `meta.json` is replaced as a whole. A file whose writer was killed has no last block, does not open, and is named by no commit.

mod block_reader;
mod block_writer;
mod cache;
mod layout;
mod sealed_file;

use std::{
    collections::HashMap,
    fmt,
    fs::{File, OpenOptions},
    io::{self, BufWriter},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use satchel_seal::Seal;
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
    error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError},
};

use self::{
    block_reader::BlockReader, block_writer::BlockWriter, cache::BlockCache, sealed_file::SealedFile,
};

/// Decrypted blocks that one directory keeps in memory, in bytes: what a query reads again and again, such as the times of all
/// documents, of an index of a few hundred thousand messages.
const CACHE_BYTES: usize = 32 << 20;

/// An encrypted [`Directory`] on the disk. Clones share it.
///
/// An open file holds one file descriptor; a segment has seven files.
#[derive(Clone)]
pub(super) struct SealedDirectory(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    /// The same folder, for what does not depend on the contents of files: names, locks, durability.
    plain: MmapDirectory,
    seal: Seal,
    cache: Arc<BlockCache>,
    /// The files that are open, so that all readers of a file share its descriptor and its blocks in the cache.
    open: Mutex<HashMap<PathBuf, Weak<SealedFile>>>,
}

impl SealedDirectory {
    /// Opens an existing folder. The key is used when a file is opened.
    pub(super) fn open(folder: &Path, seal: &Seal) -> Result<Self, OpenDirectoryError> {
        Self::with_cache(folder, seal, CACHE_BYTES)
    }

    fn with_cache(folder: &Path, seal: &Seal, cache_bytes: usize) -> Result<Self, OpenDirectoryError> {
        let plain = MmapDirectory::open(folder)?;
        // An absolute path: the working directory may change.
        let folder = folder
            .canonicalize()
            .map_err(|error| OpenDirectoryError::wrap_io_error(error, folder.to_owned()))?;
        let cache = Arc::new(BlockCache::new(cache_bytes));
        Ok(Self(Arc::new(Shared { folder, plain, seal: seal.clone(), cache, open: Mutex::default() })))
    }

    fn open_blocks(&self, name: &Path) -> io::Result<BlockReader> {
        BlockReader::open(File::open(self.0.folder.join(name))?, name, &self.0.seal)
    }

    /// Those who open this name next get the file that has it then, not the one that had it before.
    fn forget(&self, name: &Path) {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

impl fmt::Debug for SealedDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedDirectory({:?})", self.0.folder)
    }
}

impl Directory for SealedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(path).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let blocks = self.open_blocks(path).map_err(|error| cannot_read(error, path))?;
        let file = SealedFile::open(blocks, Arc::clone(&self.0.cache));
        let file = Arc::new(file.map_err(|error| cannot_read(error, path))?);
        open.retain(|_, file| file.strong_count() > 0);
        open.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }

    /// Removes a file. Those who have it open can still read it.
    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.forget(path);
        self.0.plain.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.0.plain.exists(path)
    }

    /// Creates a file. It is durable after it was terminated and [`Directory::sync_directory`] has returned.
    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let create = || {
            let file = OpenOptions::new().write(true).create_new(true).open(self.0.folder.join(path))?;
            BlockWriter::new(file, path, &self.0.seal)
        };
        match create() {
            Ok(writer) => Ok(BufWriter::new(Box::new(writer))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpenWriteError::FileAlreadyExists(path.to_owned()))
            }
            Err(error) => Err(OpenWriteError::wrap_io_error(error, path.to_owned())),
        }
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let read = || self.open_blocks(path)?.read_all();
        read().map_err(|error| cannot_read(error, path))
    }

    /// Replaces a file as a whole: seals into a temporary file, which is made durable and renamed. Durable when this returns.
    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let sealed = block_writer::seal_all(data, path, &self.0.seal)?;
        self.0.plain.atomic_write(path, &sealed)?;
        self.forget(path);
        self.0.plain.sync_directory()
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.plain.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.0.plain.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.0.plain.watch(watch_callback)
    }
}

fn cannot_read(error: io::Error, path: &Path) -> OpenReadError {
    match error.kind() {
        io::ErrorKind::NotFound => OpenReadError::FileDoesNotExist(path.to_owned()),
        _ => OpenReadError::wrap_io_error(error, path.to_owned()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
