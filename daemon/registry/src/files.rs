//! Files of the folder of installed importers: written whole and durably, or not at all.

use std::{
    fs::{DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

/// Prefix of files that are being written.
const UNFINISHED: &str = ".new-";

/// Returns whether a write to `path` was interrupted.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(UNFINISHED))
}

/// Creates the folder with mode 0700, if it does not exist.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Ok(()) => folder.parent().map_or(Ok(()), sync_folder),
        error => error,
    }
}

/// Replaces `path` with a file of mode 0600. When this returns, the file survives a power cut.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    satchel_failpoints::reached("plugin file synced");
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// Writes a file that is removed when it is dropped.
pub(crate) fn write_temporary(folder: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.flush()?;
    Ok(file)
}

/// Reads a file of at most `limit` bytes.
pub(crate) fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    // An empty path is the current folder.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}
