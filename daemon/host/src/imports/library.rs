//! The files of one call, with a count of the bytes read from each.

use std::{
    collections::HashMap,
    io::{self, Read},
    sync::Arc,
};

use satchel_source::{Entry, Files};

use super::ahead::Ahead;
use crate::{error::ErrorKind, limits::MIB, text};

/// File size in bytes from which a thread for read-ahead pays off.
const LONG: u64 = MIB as u64;

/// A read error as it is reported to the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) locator: Option<String>,
}

/// The index of each path in the list of files. Clones share it.
#[derive(Clone)]
pub(crate) struct Paths(Arc<HashMap<String, usize>>);

/// The files that the plugin was given.
pub(crate) struct Library {
    files: Arc<dyn Files>,
    paths: Paths,
    /// Bytes read from each file, by all its readers.
    read: Vec<u64>,
    /// Bytes that may be read from each file.
    per_file: u64,
    /// Sums over all files: bytes stated, bytes read, and bytes read for the first time. They are kept up to date
    /// because there may be 10^5 files.
    size: u64,
    bytes_read: u64,
    progress: u64,
}

/// A position in a file. The file is opened at the first read, and again after a seek.
#[expect(unreachable_pub, reason = "the generated bindings name it in their own public names")]
pub struct Reader {
    file: usize,
    path: String,
    size: u64,
    position: u64,
    source: Option<Source>,
}

/// The source of the bytes.
enum Source {
    Plain(Box<dyn Read + Send>),
    Ahead(Ahead),
}

impl Paths {
    fn of(files: &dyn Files) -> Self {
        let places = files.list().iter().enumerate();
        Self(Arc::new(places.map(|(at, entry)| (entry.path.clone(), at)).collect()))
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }
}

impl Library {
    pub(crate) fn new(files: Arc<dyn Files>, per_file: u64) -> Self {
        let paths = Paths::of(&*files);
        let read = vec![0; files.list().len()];
        let size = files.list().iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
        Self { files, paths, read, per_file, size, bytes_read: 0, progress: 0 }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        self.files.list()
    }

    pub(crate) fn paths(&self) -> Paths {
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
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    pub(crate) fn open(&self, path: &str) -> Result<Reader, Failure> {
        let entry = self.paths.0.get(path).and_then(|at| Some((*at, self.files.list().get(*at)?)));
        let Some((file, entry)) = entry else {
            let message = format!("this export has no file \"{}\"", text::clean(path));
            return Err(Failure { kind: ErrorKind::Io, message, locator: None });
        };
        Ok(Reader { file, path: path.to_owned(), size: entry.size, position: 0, source: None })
    }

    /// Reads at most `len` bytes from the position of `reader`; empty at the end of the file.
    pub(crate) fn read(&mut self, reader: &mut Reader, len: usize) -> Result<Vec<u8>, Failure> {
        let read_before = self.read.get(reader.file).copied().unwrap_or_default();
        let left = self.per_file.saturating_sub(read_before);
        if left == 0 {
            let message = format!("only {} bytes of a file may be read here", self.per_file);
            return Err(reader.failure(ErrorKind::Limit, message));
        }
        let wanted = len.min(usize::try_from(left).unwrap_or(usize::MAX));
        let out = self.next(reader, wanted).map_err(|error| {
            // The source may be past bytes that the plugin never received, so another attempt opens the file again.
            reader.source = None;
            reader.failure(ErrorKind::Io, error.to_string())
        })?;
        let got = u64::try_from(out.len()).unwrap_or(u64::MAX);
        reader.position = reader.position.saturating_add(got);
        self.count(reader, got);
        Ok(out)
    }

    fn count(&mut self, reader: &Reader, got: u64) {
        self.bytes_read = self.bytes_read.saturating_add(got);
        if let Some(read) = self.read.get_mut(reader.file) {
            let before = (*read).min(reader.size);
            *read = read.saturating_add(got);
            self.progress = self.progress.saturating_add((*read).min(reader.size) - before);
        }
    }

    fn next(&self, reader: &mut Reader, wanted: usize) -> io::Result<Vec<u8>> {
        let source = match &mut reader.source {
            Some(source) => source,
            None => reader.source.insert(self.source(reader.size, &reader.path, reader.position)?),
        };
        match source {
            Source::Ahead(ahead) => ahead.next(wanted),
            Source::Plain(source) => {
                let mut out = Vec::with_capacity(wanted);
                source.take(wanted as u64).read_to_end(&mut out)?;
                Ok(out)
            }
        }
    }

    /// Opens a file. A long file that may be read completely is read ahead.
    fn source(&self, size: u64, path: &str, position: u64) -> io::Result<Source> {
        let source = self.files.open(path, position)?;
        let long = self.per_file == u64::MAX && size.saturating_sub(position) >= LONG;
        if long { Ahead::start(source).map(Source::Ahead) } else { Ok(Source::Plain(source)) }
    }
}

impl Reader {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Continues from `offset`, which may be past the end.
    pub(crate) fn seek(&mut self, offset: u64) {
        if offset != self.position {
            self.position = offset;
            self.source = None;
        }
    }

    pub(crate) fn failure(&self, kind: ErrorKind, message: String) -> Failure {
        Failure { kind, message, locator: Some(format!("{}@{}", self.path, self.position)) }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Cursor,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;

    struct One(Vec<Entry>, Vec<u8>);

    impl Files for One {
        fn list(&self) -> &[Entry] {
            &self.0
        }

        fn open(&self, _: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.1.len());
            Ok(Box::new(Cursor::new(self.1[from..].to_vec())))
        }
    }

    fn library(bytes: &[u8], per_file: u64) -> Library {
        let entry = Entry { path: "a.json".to_owned(), size: bytes.len() as u64 };
        Library::new(Arc::new(One(vec![entry], bytes.to_vec())), per_file)
    }

    #[test]
    fn reads_go_on_and_seeks_jump() -> Result<(), Failure> {
        let mut library = library(b"0123456789", u64::MAX);
        let mut reader = library.open("a.json")?;
        assert_eq!(library.read(&mut reader, 3)?, b"012");
        assert_eq!(library.read(&mut reader, 3)?, b"345");
        reader.seek(1);
        assert_eq!(library.read(&mut reader, 100)?, b"123456789");
        assert_eq!(library.read(&mut reader, 100)?, b"");
        reader.seek(99);
        assert_eq!(library.read(&mut reader, 100)?, b"");
        assert_eq!(library.bytes_read(), 15);
        assert_eq!(library.progress(), 10);
        Ok(())
    }

    #[test]
    fn only_so_much_of_a_file_may_be_read() -> Result<(), Failure> {
        let mut library = library(b"0123456789", 4);
        let mut reader = library.open("a.json")?;
        assert_eq!(library.read(&mut reader, 100)?, b"0123");
        let mut again = library.open("a.json")?;
        assert_eq!(library.read(&mut again, 1).map_err(|failure| failure.kind), Err(ErrorKind::Limit));
        Ok(())
    }

    /// Files that return some bytes, then fail once.
    struct Failing {
        entries: Vec<Entry>,
        failed: AtomicBool,
    }

    impl Files for Failing {
        fn list(&self) -> &[Entry] {
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
    fn a_read_after_a_failed_one_misses_no_byte() -> Result<(), Failure> {
        let entries = vec![Entry { path: "a.json".to_owned(), size: 10 }];
        let mut library =
            Library::new(Arc::new(Failing { entries, failed: AtomicBool::new(false) }), u64::MAX);
        let mut reader = library.open("a.json")?;
        assert!(library.read(&mut reader, 10).is_err_and(|failure| failure.message.contains("is cut")));
        assert_eq!(library.read(&mut reader, 10)?, b"0123456789");
        Ok(())
    }

    #[test]
    fn an_unknown_file_is_named() {
        let refused = library(b"", 1).open("../etc/passwd");
        assert!(refused.is_err_and(|failure| failure.message.contains("../etc/passwd")));
    }
}
