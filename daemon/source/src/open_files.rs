//! The currently open files of a folder: only a few of them, however many the folder contains.
//!
//! **Invariant:** a reader always reads the file that was examined. The file is reopened by its path, and its identity,
//! length and time are compared (`a_file_that_was_replaced_is_not_read` below).

use std::{
    collections::VecDeque,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{beneath, identity::SourceStamp};

/// The maximum number of open files of one source. An importer reads one archive after the other; a second one may be
/// hashed at the same time.
const MAX_OPEN: usize = 8;

/// The open files of one source; clones share them.
#[derive(Clone, Default)]
pub(super) struct OpenFiles(Arc<Mutex<OpenFileList>>);

/// The most recently used file comes first.
type OpenFileList = VecDeque<(Arc<ExaminedFile>, Arc<File>)>;

/// A file, with its state when it was examined.
struct ExaminedFile {
    /// The folder that no link may lead out of.
    base: PathBuf,
    path: PathBuf,
    stamp: SourceStamp,
}

/// A file of a folder that is open only while its bytes are needed.
#[derive(Clone)]
pub(super) struct ReopenedFile {
    open_files: OpenFiles,
    examined: Arc<ExaminedFile>,
}

impl OpenFiles {
    /// Returns the file at `path` below `base`, with the `stamp` that was taken of it.
    pub(super) fn file(&self, base: &Path, path: &Path, stamp: SourceStamp) -> ReopenedFile {
        let named = ExaminedFile { base: base.to_owned(), path: path.to_owned(), stamp };
        ReopenedFile { open_files: self.clone(), examined: Arc::new(named) }
    }

    fn list(&self) -> MutexGuard<'_, OpenFileList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.list().len()
    }
}

impl ReopenedFile {
    pub(super) fn length(&self) -> u64 {
        self.examined.stamp.length()
    }

    pub(super) fn path(&self) -> &Path {
        &self.examined.path
    }

    /// Returns the open file. No lock is held while it is opened, so that an unresponsive network share does not block
    /// readers of other files.
    ///
    /// # Errors
    /// If there is another file at the path by now, or the file system refuses.
    pub(super) fn get(&self) -> io::Result<Arc<File>> {
        if let Some(file) = self.find_open() {
            return Ok(file);
        }
        let ExaminedFile { base, path, stamp } = self.examined.as_ref();
        let file = beneath::open_file(base, path)?;
        if SourceStamp::of(&rustix::fs::fstat(&file)?) != *stamp {
            return Err(io::Error::new(
                io::ErrorKind::StaleNetworkFileHandle,
                "it changed while it was read",
            ));
        }
        let file = Arc::new(file);
        let mut list = self.open_files.list();
        list.truncate(MAX_OPEN - 1);
        list.push_front((Arc::clone(&self.examined), Arc::clone(&file)));
        Ok(file)
    }

    /// Returns whether the same file is still at the path.
    pub(super) fn unchanged(&self) -> io::Result<bool> {
        let ExaminedFile { base, path, stamp } = self.examined.as_ref();
        Ok(SourceStamp::of(&beneath::stat(base, path)?) == *stamp)
    }

    fn find_open(&self) -> Option<Arc<File>> {
        let mut list = self.open_files.list();
        let at = list.iter().position(|(named, _)| Arc::ptr_eq(named, &self.examined))?;
        let entry = list.remove(at)?;
        let file = Arc::clone(&entry.1);
        list.push_front(entry);
        Some(file)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{fs, os::unix::fs::FileExt};

    use super::*;

    fn file(handles: &OpenFiles, base: &Path, name: &str) -> ReopenedFile {
        let path = base.join(name);
        let stamp = SourceStamp::of(&beneath::stat(base, &path).unwrap());
        handles.file(base, &path, stamp)
    }

    fn first(file: &ReopenedFile) -> io::Result<u8> {
        let mut byte = [0];
        file.get()?.read_exact_at(&mut byte, 0)?;
        Ok(byte[0])
    }

    #[test]
    fn only_a_few_files_are_open_however_many_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let handles = OpenFiles::default();
        let files: Vec<ReopenedFile> = (0..100_u8)
            .map(|n| {
                fs::write(folder.path().join(n.to_string()), [n]).unwrap();
                file(&handles, folder.path(), &n.to_string())
            })
            .collect();
        for _ in 0..2 {
            for (n, file) in (0..100_u8).zip(&files) {
                assert_eq!(first(file).unwrap(), n);
                assert_eq!(first(&files[0]).unwrap(), 0, "the one that is read again and again stays open");
                assert!(handles.count() <= MAX_OPEN);
            }
        }
    }

    #[test]
    fn a_file_that_was_replaced_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let handles = OpenFiles::default();
        for name in ["one", "other"] {
            fs::write(folder.path().join(name), "a").unwrap();
        }
        let replaced = file(&handles, folder.path(), "one");
        fs::rename(folder.path().join("other"), folder.path().join("one")).unwrap();
        assert_eq!(first(&replaced).unwrap_err().kind(), io::ErrorKind::StaleNetworkFileHandle);
        assert!(!replaced.unchanged().unwrap());
        fs::remove_file(folder.path().join("one")).unwrap();
        assert_eq!(first(&replaced).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
