//! The files of one call, with a count of the bytes read from each.

use std::{
    collections::HashMap,
    io::{self, Read},
    sync::Arc,
};

use satchel_source::{FileEntry, FileSet};

use super::read_ahead::ReadAhead;
use crate::{error::PluginErrorKind, limits::MIB, text};

/// Bytes that are left in a file, or were read one after the other, from which a thread for read-ahead pays off.
const READ_AHEAD_MIN_BYTES: u64 = MIB as u64;

/// A read error as it is reported to the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadFailure {
    pub(crate) kind: PluginErrorKind,
    pub(crate) message: String,
    pub(crate) locator: Option<String>,
}

/// The index of each path in the list of files. Clones share it.
#[derive(Clone)]
pub(crate) struct PathIndex(Arc<HashMap<String, usize>>);

/// The files that the plugin was given.
pub(crate) struct ExportFiles {
    files: Arc<dyn FileSet>,
    paths: PathIndex,
    /// Bytes read from each file, by all its readers.
    read_per_file: Vec<u64>,
    /// Bytes that may be read from each file.
    max_bytes_per_file: u64,
    /// Sums over all files: bytes stated, bytes read, and bytes read for the first time. They are kept up to date
    /// because there may be 10^5 files.
    size: u64,
    bytes_read: u64,
    new_bytes_read: u64,
}

/// A position in a file. The file is opened at the first read, and again after a seek.
#[expect(unreachable_pub, reason = "the generated bindings name it in their own public names")]
pub struct FileReader {
    file: usize,
    path: String,
    size: u64,
    position: u64,
    source: Option<ReaderSource>,
    /// Bytes that were read one after the other since a seek; none if there was no seek yet.
    since_seek: Option<u64>,
}

/// The source of the bytes.
enum ReaderSource {
    Plain(Box<dyn Read + Send>),
    ReadAhead(ReadAhead),
}

impl PathIndex {
    fn of(files: &dyn FileSet) -> Self {
        let entries = files.list().iter().enumerate();
        Self(Arc::new(entries.map(|(at, entry)| (entry.path.clone(), at)).collect()))
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }
}

impl ExportFiles {
    pub(crate) fn new(files: Arc<dyn FileSet>, max_bytes_per_file: u64) -> Self {
        let paths = PathIndex::of(&*files);
        let read_per_file = vec![0; files.list().len()];
        let size = files.list().iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
        Self { files, paths, read_per_file, max_bytes_per_file, size, bytes_read: 0, new_bytes_read: 0 }
    }

    pub(crate) fn entries(&self) -> &[FileEntry] {
        self.files.list()
    }

    pub(crate) fn paths(&self) -> PathIndex {
        self.paths.clone()
    }

    /// Returns the stated size of all files together, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns the bytes of the files that were read so far; bytes that were read twice count once.
    pub(crate) fn new_bytes_read(&self) -> u64 {
        self.new_bytes_read
    }

    pub(crate) fn open(&self, path: &str) -> Result<FileReader, ReadFailure> {
        let entry = self.paths.0.get(path).and_then(|at| Some((*at, self.files.list().get(*at)?)));
        let Some((file, entry)) = entry else {
            let message = format!("this export has no file \"{}\"", text::clean(path));
            return Err(ReadFailure { kind: PluginErrorKind::Io, message, locator: None });
        };
        Ok(FileReader {
            file,
            path: path.to_owned(),
            size: entry.size,
            position: 0,
            source: None,
            since_seek: None,
        })
    }

    /// Reads at most `len` bytes from the position of `reader`; empty at the end of the file.
    pub(crate) fn read(&mut self, reader: &mut FileReader, len: usize) -> Result<Vec<u8>, ReadFailure> {
        let read_before = self.read_per_file.get(reader.file).copied().unwrap_or_default();
        let left = self.max_bytes_per_file.saturating_sub(read_before);
        if left == 0 {
            let message = format!("at most {} bytes of a file may be read here", self.max_bytes_per_file);
            return Err(reader.failure(PluginErrorKind::Limit, message));
        }
        let wanted = len.min(usize::try_from(left).unwrap_or(usize::MAX));
        let out = self.next(reader, wanted).map_err(|error| {
            // The source may be past bytes that the plugin never received, so another attempt opens the file again.
            reader.source = None;
            reader.failure(PluginErrorKind::Io, error.to_string())
        })?;
        let got = u64::try_from(out.len()).unwrap_or(u64::MAX);
        reader.position = reader.position.saturating_add(got);
        reader.since_seek = reader.since_seek.map(|before| before.saturating_add(got));
        self.count(reader, got);
        Ok(out)
    }

    fn count(&mut self, reader: &FileReader, got: u64) {
        self.bytes_read = self.bytes_read.saturating_add(got);
        if let Some(read) = self.read_per_file.get_mut(reader.file) {
            let before = (*read).min(reader.size);
            *read = read.saturating_add(got);
            self.new_bytes_read = self.new_bytes_read.saturating_add((*read).min(reader.size) - before);
        }
    }

    fn next(&self, reader: &mut FileReader, wanted: usize) -> io::Result<Vec<u8>> {
        let source = match reader.source.take() {
            Some(ReaderSource::Plain(source)) => self.read_ahead(reader, source)?,
            Some(source) => source,
            None => self.read_ahead(reader, self.files.open(&reader.path, reader.position)?)?,
        };
        match reader.source.insert(source) {
            ReaderSource::ReadAhead(ahead) => ahead.next(wanted),
            ReaderSource::Plain(source) => {
                let mut out = Vec::with_capacity(wanted);
                source.take(wanted as u64).read_to_end(&mut out)?;
                Ok(out)
            }
        }
    }

    /// Reads a long file ahead that may be read completely. After a seek, such as those in a database, another one may follow soon: it is
    /// not read ahead before much of it was read without one.
    fn read_ahead(&self, reader: &FileReader, source: Box<dyn Read + Send>) -> io::Result<ReaderSource> {
        let long = self.max_bytes_per_file == u64::MAX
            && reader.size.saturating_sub(reader.position) >= READ_AHEAD_MIN_BYTES;
        if long && reader.since_seek.is_none_or(|bytes| bytes >= READ_AHEAD_MIN_BYTES) {
            ReadAhead::start(source).map(ReaderSource::ReadAhead)
        } else {
            Ok(ReaderSource::Plain(source))
        }
    }
}

impl FileReader {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Continues from `offset`, which may be past the end.
    pub(crate) fn seek(&mut self, offset: u64) {
        if offset != self.position {
            self.position = offset;
            self.source = None;
            self.since_seek = Some(0);
        }
    }

    pub(crate) fn failure(&self, kind: PluginErrorKind, message: String) -> ReadFailure {
        ReadFailure { kind, message, locator: Some(format!("{}@{}", self.path, self.position)) }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Cursor,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;

    struct SingleFileSet(Vec<FileEntry>, Vec<u8>);

    impl FileSet for SingleFileSet {
        fn list(&self) -> &[FileEntry] {
            &self.0
        }

        fn open(&self, _: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.1.len());
            Ok(Box::new(Cursor::new(self.1[from..].to_vec())))
        }
    }

    fn files(bytes: &[u8], per_file: u64) -> ExportFiles {
        let entry = FileEntry { path: "a.json".to_owned(), size: bytes.len() as u64 };
        ExportFiles::new(Arc::new(SingleFileSet(vec![entry], bytes.to_vec())), per_file)
    }

    #[test]
    fn reads_continue_and_seeks_reposition() -> Result<(), ReadFailure> {
        let mut files = files(b"0123456789", u64::MAX);
        let mut reader = files.open("a.json")?;
        assert_eq!(files.read(&mut reader, 3)?, b"012");
        assert_eq!(files.read(&mut reader, 3)?, b"345");
        reader.seek(1);
        assert_eq!(files.read(&mut reader, 100)?, b"123456789");
        assert_eq!(files.read(&mut reader, 100)?, b"");
        reader.seek(99);
        assert_eq!(files.read(&mut reader, 100)?, b"");
        assert_eq!(files.bytes_read(), 15);
        assert_eq!(files.new_bytes_read(), 10);
        Ok(())
    }

    #[test]
    fn a_file_is_read_ahead_unless_seeks_follow_each_other() -> Result<(), ReadFailure> {
        let mut files = files(&vec![7; 4 * MIB], u64::MAX);
        let mut reader = files.open("a.json")?;
        let ahead = |reader: &FileReader| matches!(reader.source, Some(ReaderSource::ReadAhead(_)));
        files.read(&mut reader, 10)?;
        assert!(ahead(&reader), "from the start");
        for offset in [100, 4000, 90] {
            reader.seek(offset);
            files.read(&mut reader, 10)?;
            assert!(!ahead(&reader), "{offset}");
        }
        for _ in 0..65 {
            files.read(&mut reader, MIB / 64)?;
        }
        assert!(ahead(&reader), "when much was read one after the other");
        assert_eq!(reader.position, (90 + 10 + 65 * MIB / 64) as u64);
        Ok(())
    }

    #[test]
    fn reads_stop_at_the_limit_of_a_file() -> Result<(), ReadFailure> {
        let mut files = files(b"0123456789", 4);
        let mut reader = files.open("a.json")?;
        assert_eq!(files.read(&mut reader, 100)?, b"0123");
        let mut again = files.open("a.json")?;
        assert_eq!(files.read(&mut again, 1).map_err(|failure| failure.kind), Err(PluginErrorKind::Limit));
        Ok(())
    }

    /// Files that return some bytes, then fail once.
    struct FailingOnce {
        entries: Vec<FileEntry>,
        failed: AtomicBool,
    }

    impl FileSet for FailingOnce {
        fn list(&self) -> &[FileEntry] {
            &self.entries
        }

        fn open(&self, _: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = b"0123456789"[from..].to_vec();
            if self.failed.swap(true, Ordering::Relaxed) {
                return Ok(Box::new(Cursor::new(bytes)));
            }
            Ok(Box::new(Cursor::new(bytes).take(4).chain(Broken)))
        }
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the archive is cut"))
        }
    }

    #[test]
    fn a_read_after_a_failed_read_loses_no_byte() -> Result<(), ReadFailure> {
        let entries = vec![FileEntry { path: "a.json".to_owned(), size: 10 }];
        let mut files =
            ExportFiles::new(Arc::new(FailingOnce { entries, failed: AtomicBool::new(false) }), u64::MAX);
        let mut reader = files.open("a.json")?;
        assert!(files.read(&mut reader, 10).is_err_and(|failure| failure.message.contains("is cut")));
        assert_eq!(files.read(&mut reader, 10)?, b"0123456789");
        Ok(())
    }

    #[test]
    fn an_unknown_file_is_named_in_the_error() {
        let refused = files(b"", 1).open("../etc/passwd");
        assert!(refused.is_err_and(|failure| failure.message.contains("../etc/passwd")));
    }
}
