//! Blobs that nothing refers to, because their commit never happened (for example after a kill) or the record that needed them
//! was left out.

use std::io;

use super::{blob_path, file_name};
use crate::{
    error::{FSYNC, StoreError},
    store::Store,
};

impl Store {
    /// Removes a blob and returns the bytes that it took on disk, or 0 if it does not exist. The caller must know that nothing
    /// refers to the blob and that nobody puts it at the same time. Durable when this returns.
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
}
