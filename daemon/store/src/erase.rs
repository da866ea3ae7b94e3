//! Erases plain files: their bytes are overwritten before their names are removed. Storage that does not write in place (flash
//! memory, copy-on-write file systems, snapshots) may still keep the old bytes; the README points this out.

use std::{fs, io, io::Write as _, os::unix::fs::PermissionsExt as _, path::Path};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::error::StoreError;

/// Bytes that are overwritten at once.
const OVERWRITE_BYTES: usize = 1 << 20;

/// The owner's permissions that erasing needs on a folder, and on a file.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o200;

/// Overwrites and removes a file, or a folder with everything below it. A path that does not exist counts as erased. Permissions
/// that the owner lacks are granted first, because this is called when there is no way back.
///
/// # Errors
/// The file system refuses; the error names the path.
pub fn erase(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if metadata.is_dir() {
        if metadata.permissions().mode() & FOLDER != FOLDER {
            grant(path, FOLDER)?;
        }
        for entry in fs::read_dir(path)? {
            erase(&entry?.path())?;
        }
        return fs::remove_dir(path).map_err(with_path(path));
    }
    if metadata.is_file() {
        overwrite(path, metadata.len()).map_err(with_path(path))?;
    }
    fs::remove_file(path).map_err(with_path(path))
}

/// Adds the path to an error. A caller that erases a folder names only the folder; the file inside it says more.
fn with_path(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Checks, without changing anything, that [`erase`] would remove from the disk everything that a reader of `path` finds.
pub(crate) fn check_erasable(path: &Path) -> Result<(), StoreError> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata.map_err(StoreError::io("look at", path))?,
    };
    check_no_link(path)?;
    if metadata.is_dir() {
        check_writable(path)?;
        for entry in fs::read_dir(path).map_err(StoreError::io("list", path))? {
            check_erasable(&entry.map_err(StoreError::io("list", path))?.path())?;
        }
        return Ok(());
    }
    let opened =
        if metadata.is_file() { fs::OpenOptions::new().write(true).open(path).map(drop) } else { Ok(()) };
    check_allowed(path, opened)
}

/// Checks that names in a folder can be removed. A folder that does not exist needs no check.
pub(crate) fn check_writable(folder: &Path) -> Result<(), StoreError> {
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    check_allowed(folder, accessat(CWD, folder, access, AtFlags::EACCESS).map_err(io::Error::from))
}

/// Checks that `path` is not a link, so that the files that are erased under it are really stored there.
pub(crate) fn check_no_link(path: &Path) -> Result<(), StoreError> {
    if !path.is_symlink() {
        return Ok(());
    }
    let problem = "it is a link, and what it leads to would stay; let the data directory itself lie there, without links in it; \
                   nothing was changed";
    Err(StoreError::Io { action: "erase", path: path.to_owned(), source: io::Error::other(problem) })
}

fn check_allowed(path: &Path, tried: io::Result<()>) -> Result<(), StoreError> {
    match tried {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let remedy = "give your user the right to write it (`ls -ld` and `lsattr -d` say what is in the way), and try again; \
                          nothing was changed";
            let source = io::Error::new(error.kind(), format!("{error}; {remedy}"));
            Err(StoreError::Io { action: "overwrite", path: path.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn grant(path: &Path, right: u32) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(mode | right)).map_err(with_path(path))
}

fn overwrite(path: &Path, length: u64) -> io::Result<()> {
    let open = || fs::OpenOptions::new().write(true).open(path);
    let mut file = match open() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            grant(path, FILE)?;
            open()?
        }
        file => file?,
    };
    let zeros = vec![0; OVERWRITE_BYTES];
    let mut left = length;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(OVERWRITE_BYTES).min(OVERWRITE_BYTES);
        file.write_all(&zeros[..now])?;
        left -= now as u64;
    }
    file.sync_all()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn bytes_are_overwritten_before_names_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("plain/inner");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        fs::write(&path, vec![b'x'; OVERWRITE_BYTES + 7]).unwrap();
        // A reader that has the file open still sees the content of the disk.
        let mut open = fs::File::open(&path).unwrap();
        erase(&dir.path().join("plain")).unwrap();
        let mut bytes = Vec::new();
        open.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len(), bytes.iter().all(|byte| *byte == 0)), (OVERWRITE_BYTES + 7, true));
        assert!(!dir.path().join("plain").exists());
        erase(&dir.path().join("plain")).unwrap();
    }

    #[test]
    fn a_link_is_removed_and_its_target_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "tea").unwrap();
        std::os::unix::fs::symlink(dir.path().join("mine"), dir.path().join("link")).unwrap();
        erase(&dir.path().join("link")).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("mine")).unwrap(), "tea");
    }
}
