//! The attachments of an open store: put, opened and removed.

use std::{
    io::{self, Read},
    sync::atomic::{AtomicU64, Ordering},
};

use satchel_seal::Seal;

use super::Store;
use crate::{
    blob::{BlobReader, BlobRef, PendingBlob, blob_path, copy, file_name},
    codec::hex,
    error::{FSYNC, StoreError},
};

/// Maximum number of blobs that wait for a commit; each one is an open file.
const MAX_PENDING_BLOBS: usize = 64;

/// A counter for the names of this process's unfinished blobs.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl Store {
    /// Copies all bytes of `source` into the store. The blob is durable, and [`Store::blob_open`] finds it, once the next commit
    /// has returned. Putting the same bytes again changes nothing.
    ///
    /// # Errors
    /// Any error of `source` or the file system.
    pub fn blob_put(&self, source: &mut dyn Read) -> Result<BlobRef, StoreError> {
        let disk = self.reader().disk().as_ref();
        let folder = self.dir().join("blobs").join("tmp");
        disk.create_folders(&folder).map_err(StoreError::io("create", &folder))?;
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!("{}-{number}", std::process::id()));
        if let Err(error) = disk.remove(&temporary)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(StoreError::Io { action: "remove", path: temporary, source: error });
        }
        let seal = self.seal();
        match copy(disk, source, &temporary, seal.map(|seal| (seal, None))) {
            Ok((blob, file)) => {
                satchel_failpoints::reached("blob copied");
                let pending_blobs = self.pending_blobs();
                let name = file_name(&blob.sha256, seal);
                if pending_blobs.add(PendingBlob { temporary, file, name }) >= MAX_PENDING_BLOBS {
                    pending_blobs
                        .publish(disk, self.dir())
                        .inspect_err(|error| self.record_failure(error))?;
                }
                Ok(blob)
            }
            Err(error) => {
                if let Err(error) = disk.remove(&temporary) {
                    tracing::debug!(path = %temporary.display(), %error, "an unfinished blob stays until the next start");
                }
                Err(error)
            }
        }
    }

    /// Opens a blob. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn blob_open(&self, sha256: &[u8; 32]) -> Result<Option<BlobReader>, StoreError> {
        let name = file_name(sha256, self.seal());
        let path = blob_path(self.dir(), &name);
        let failed = |source| StoreError::Io { action: "open", path: path.clone(), source };
        let file = match self.reader().disk().open(&path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        BlobReader::open(file, &name, self.seal()).map(Some).map_err(failed)
    }

    /// Opens the file of a blob as it is on disk, sealed or not, and returns its name below `blobs`. Returns `None` if it does
    /// not exist.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn blob_file(&self, sha256: &[u8; 32]) -> Result<Option<(String, BlobReader)>, StoreError> {
        let name = file_name(sha256, self.seal());
        let path = blob_path(self.dir(), &name);
        match self.reader().disk().open(&path, false) {
            Ok(file) => Ok(Some((hex(&name), BlobReader::plain(file, u64::MAX)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { action: "open", path, source }),
        }
    }

    /// Removes a blob and returns the bytes that it took on disk, or 0 if it does not exist. The caller must know that nothing
    /// refers to the blob, as after a commit that never happened, and that nobody puts it at the same time. Durable when this returns.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn blob_remove(&self, sha256: &[u8; 32]) -> Result<u64, StoreError> {
        let path = blob_path(self.dir(), &file_name(sha256, self.seal()));
        let disk = self.reader().disk().as_ref();
        let length = match disk.open(&path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            file => file.and_then(|file| file.length()).map_err(StoreError::io("look at", &path))?,
        };
        disk.remove(&path).map_err(StoreError::io("remove", &path))?;
        let folder = path.parent().unwrap_or(&path);
        disk.sync_folder(folder).map_err(StoreError::io(FSYNC, folder))?;
        Ok(length)
    }

    /// Returns the seal of the store, if it is encrypted.
    pub(crate) fn seal(&self) -> Option<&Seal> {
        self.reader().context().seal.as_ref()
    }
}
