//! Takes plain files from the disk: their bytes are overwritten before their names go. A disk that writes elsewhere than it is told
//! (flash memory, file systems that copy on write, snapshots) may keep them all the same; the README says so.

use std::{fs, io, io::Write as _, path::Path};

/// Bytes that are overwritten at once.
const PIECE: usize = 1 << 20;

/// Overwrites and removes a file, or a folder with all below it. What is not there is erased.
pub(crate) fn erase(path: &Path) -> io::Result<()> {
    let about = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    if about.is_dir() {
        for entry in fs::read_dir(path)? {
            erase(&entry?.path())?;
        }
        return fs::remove_dir(path);
    }
    if about.is_file() {
        overwrite(path, about.len())?;
    }
    fs::remove_file(path)
}

fn overwrite(path: &Path, length: u64) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    let zeros = vec![0; PIECE];
    let mut left = length;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
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
    fn bytes_are_gone_before_names() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("plain/inner");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        fs::write(&path, vec![b'x'; PIECE + 7]).unwrap();
        // Whoever has it open still sees what the disk holds.
        let mut open = fs::File::open(&path).unwrap();
        erase(&dir.path().join("plain")).unwrap();
        let mut bytes = Vec::new();
        open.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len(), bytes.iter().all(|byte| *byte == 0)), (PIECE + 7, true));
        assert!(!dir.path().join("plain").exists());
        erase(&dir.path().join("plain")).unwrap();
    }

    #[test]
    fn a_link_goes_and_what_it_names_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "tea").unwrap();
        std::os::unix::fs::symlink(dir.path().join("mine"), dir.path().join("link")).unwrap();
        erase(&dir.path().join("link")).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("mine")).unwrap(), "tea");
    }
}
