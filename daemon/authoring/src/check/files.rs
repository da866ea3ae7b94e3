//! The files of a fixture in memory, so that variants of them can be made.

use std::{
    collections::BTreeMap,
    io::{self, Cursor, Read},
    path::Path,
    sync::Arc,
};

use satchel_source::{Bundle, CancelToken, FileEntry, FileSet, Limits, Source};

use super::CheckError;

/// Bytes that a fixture may have. Fixtures are small; speed is measured on other files.
const MAX_FIXTURE_BYTES: u64 = 64 << 20;

/// Files in memory. Clones share their bytes.
#[derive(Clone, Debug)]
pub(super) struct MemoryFiles {
    entries: Vec<FileEntry>,
    bytes: BTreeMap<String, Arc<[u8]>>,
}

impl MemoryFiles {
    /// Reads all files of a folder, opened as imports do.
    pub(super) fn read(folder: &Path, cancel: &CancelToken) -> Result<Self, CheckError> {
        let bundle = Source::at(folder)?.open_cancellable(&Limits::default(), cancel)?;
        let too_large = || CheckError::TooLarge { path: folder.to_owned(), limit: MAX_FIXTURE_BYTES };
        if bundle.bytes() > MAX_FIXTURE_BYTES {
            return Err(too_large());
        }
        let mut bytes = BTreeMap::new();
        for entry in bundle.list() {
            let content = read_file(&bundle, &entry.path)
                .map_err(|source| CheckError::Read { path: folder.join(&entry.path), source })?;
            if content.len() as u64 > MAX_FIXTURE_BYTES {
                return Err(too_large());
            }
            bytes.insert(entry.path.clone(), content.into());
        }
        Ok(Self::of(bytes))
    }

    fn of(bytes: BTreeMap<String, Arc<[u8]>>) -> Self {
        let entry =
            |(path, bytes): (&String, &Arc<[u8]>)| FileEntry { path: path.clone(), size: bytes.len() as u64 };
        Self { entries: bytes.iter().map(entry).collect(), bytes }
    }

    /// Returns the paths and bytes of all files, sorted.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.bytes.iter().map(|(path, bytes)| (path.as_str(), &**bytes))
    }

    /// Returns only these files.
    pub(super) fn subset(&self, paths: &[String]) -> Self {
        let named = paths.iter().filter_map(|path| Some((path.clone(), self.bytes.get(path)?.clone())));
        Self::of(named.collect())
    }

    /// Returns the files with other bytes in one of them.
    pub(super) fn with(&self, path: &str, bytes: Vec<u8>) -> Self {
        let mut all = self.bytes.clone();
        all.insert(path.to_owned(), bytes.into());
        Self::of(all)
    }
}

/// Reads a little more than a fixture may have at most, so that a false size cannot fill the memory.
fn read_file(bundle: &Bundle, path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bundle.open(path, 0)?.take(MAX_FIXTURE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl FileSet for MemoryFiles {
    fn list(&self) -> &[FileEntry] {
        &self.entries
    }

    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let bytes = self.bytes.get(path).ok_or(io::ErrorKind::NotFound)?;
        let mut reader = Cursor::new(Arc::clone(bytes));
        reader.set_position(offset);
        Ok(Box::new(reader))
    }
}
