//! A log file that is rotated when it is full, so that the log uses a limited part of the disk.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use tracing_subscriber::fmt::MakeWriter;

/// `satchel.log`, and the rotated files from `satchel.log.1`, the newest, to `satchel.log.<keep>`.
pub(super) struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    /// Guards the file that is being written.
    current: Mutex<CurrentFile>,
}

struct CurrentFile {
    file: File,
    bytes: u64,
}

impl RotatingFile {
    /// Opens the file at `path` for appending, or creates it; only its user may access it.
    pub(super) fn open(path: PathBuf, max_bytes: u64, keep: u32) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let current = Mutex::new(open_current(&path)?);
        Ok(Self { path, max_bytes, keep, current })
    }

    fn rotate(&self) -> io::Result<CurrentFile> {
        for number in (1..self.keep).rev() {
            match fs::rename(rotated_path(&self.path, number), rotated_path(&self.path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, rotated_path(&self.path, 1))?;
        open_current(&self.path)
    }
}

impl Write for &RotatingFile {
    /// Writes one event, which is never split between two files.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let length = event.len() as u64;
        if current.bytes > 0 && current.bytes.saturating_add(length) > self.max_bytes {
            // If the folder refuses the rotation, the log continues in the old file: a file that is too long is better
            // than no log.
            if let Ok(fresh) = self.rotate() {
                *current = fresh;
            }
        }
        current.file.write_all(event)?;
        current.bytes += length;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RotatingFile {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

fn open_current(path: &Path) -> io::Result<CurrentFile> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    // A file that existed before may be accessible to others.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    let bytes = file.metadata()?.len();
    Ok(CurrentFile { file, bytes })
}

fn rotated_path(path: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn write(log: &RotatingFile, event: &str) {
        let mut log = log;
        log.write_all(event.as_bytes()).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_full_file_is_rotated_and_a_limited_number_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/satchel.log");
        let log = RotatingFile::open(path.clone(), 10, 2).unwrap();
        for number in 0..9 {
            write(&log, &format!("line {number}\n"));
        }
        assert_eq!(names(&folder.path().join("logs")), ["satchel.log", "satchel.log.1", "satchel.log.2"]);
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!(read(&path), "line 8\n");
        assert_eq!(read(&rotated_path(&path, 1)), "line 7\n");
        assert_eq!(read(&rotated_path(&path, 2)), "line 6\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&rotated_path(&path, 2))), (0o600, 0o600));
    }

    #[test]
    fn a_log_file_is_appended_to_and_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("satchel.log");
        fs::write(&path, "before\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&RotatingFile::open(path.clone(), 100, 1).unwrap(), "after\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "before\nafter\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        write(&RotatingFile::open(path.clone(), 10, 1).unwrap(), "new\n");
        assert_eq!(names(folder.path()), ["satchel.log", "satchel.log.1"]);
    }

    #[test]
    fn an_event_longer_than_a_file_is_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("satchel.log");
        let log = RotatingFile::open(path.clone(), 4, 1).unwrap();
        write(&log, "longer than that\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "longer than that\n");
        assert_eq!(names(folder.path()), ["satchel.log"]);
    }
}
