//! The few file system calls that the journal and the blobs use, behind a trait so that tests can make each of them fail.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::error::StoreError;

/// A file system.
pub(crate) trait Disk: Send + Sync {
    /// Creates a file that does not exist yet.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file for reading, or for reading and writing.
    fn open(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a folder and its parents, accessible to the owner only.
    fn create_folders(&self, path: &Path) -> io::Result<()>;
    /// Returns the names in a folder, sorted.
    fn names(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Renames a file and replaces an existing one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Returns the number of bytes that can still be written below a folder, or the maximum if the file system does not report
    /// it.
    fn free(&self, path: &Path) -> u64;
}

/// An open file. Offsets are explicit, so readers and the writer can share it.
pub(crate) trait DiskFile: Send + Sync {
    /// Writes all bytes at an offset.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Reads up to the buffer's length; fewer bytes only at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Makes the bytes and the length durable.
    fn sync(&self) -> io::Result<()>;
    /// Truncates or extends the file.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Returns the length.
    fn length(&self) -> io::Result<u64>;
}

/// The file system of the operating system.
pub(crate) struct OsDisk;

impl Disk for OsDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Arc::new(OsFile(file)))
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OsFile(fs::OpenOptions::new().read(true).write(write).open(path)?)))
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn free(&self, path: &Path) -> u64 {
        match rustix::fs::statvfs(path) {
            // Some network file systems report zeros.
            Ok(found) if found.f_blocks > 0 => found.f_bavail.saturating_mul(found.f_frsize),
            Ok(_) | Err(_) => u64::MAX,
        }
    }
}

struct OsFile(fs::File);

impl DiskFile for OsFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// Reads at most `limit` bytes of a small file. Returns `None` if it does not exist.
pub(crate) fn read_small(disk: &dyn Disk, path: &Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let file = match disk.open(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(StoreError::io("open", path))?,
    };
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(file.length()?.min(limit)).unwrap_or(0)];
        let filled = file.read_at(0, &mut bytes)?;
        bytes.truncate(filled);
        Ok(bytes)
    };
    read().map(Some).map_err(StoreError::io("read", path))
}

/// Removes all permissions of everybody except the owner.
pub(crate) fn close_to_others(path: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    let owners = mode & !0o077;
    if owners == mode { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(owners)) }
}

/// Replaces the content of `path` atomically: temporary sibling, fsync, rename, fsync of the folder.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary: PathBuf = path.with_extension("new");
    match disk.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = disk.create(&temporary)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    disk.rename(&temporary, path)?;
    path.parent().map_or(Ok(()), |folder| disk.sync_folder(folder))
}
