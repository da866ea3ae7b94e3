//! The files of an export, read only.

use std::{
    cell::{Cell, RefCell},
    io::{self, BufRead, Read},
    rc::Rc,
};

use crate::{ErrorKind, ImportError, Summary, backend};

/// Bytes to request from the host at once. 64 to 256 KiB measured best.
pub(crate) const CHUNK: u32 = 256 * 1024;

/// One file of the export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path inside the export, with `/` between folders.
    pub path: String,
    /// Size in bytes, as stated by the container.
    pub size: u64,
}

/// The files of an export: all of them in `detect`, those that were claimed in `run`.
pub struct Bundle {
    entries: Vec<Entry>,
    files: backend::Files,
    read: Rc<Cell<u64>>,
    last: Last,
}

/// The path and the bytes of the last file that was read in one chunk. Importers look at the head of a file, then at all of it, and
/// then read it; in the sandbox, small files would cost more for each time than what is done with them.
type Last = Rc<RefCell<Option<(String, Rc<Vec<u8>>)>>>;

impl Bundle {
    pub(crate) fn new(files: backend::Files) -> Self {
        let mut entries = files.list();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Self { entries, files, read: Rc::default(), last: Rc::default() }
    }

    /// A bundle with one file in memory: a text inside of another file, such as a value of a database, that is read like a file. Its bytes
    /// are not counted by the bundle that they come from.
    #[must_use]
    pub fn in_memory(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        let path = path.into();
        let entries = vec![Entry { path: path.clone(), size: bytes.len() as u64 }];
        let last = Rc::new(RefCell::new(Some((path, Rc::new(bytes)))));
        Self { entries, files: backend::Files::none(), read: Rc::default(), last }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn files(&self) -> &backend::Files {
        &self.files
    }

    /// The files, ordered by path.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The file at `path`, if the export has it.
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        let found = self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path));
        found.ok().and_then(|index| self.entries.get(index))
    }

    /// Opens a file for streaming.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if there is no such file or it cannot be opened.
    pub fn open(&self, path: &str) -> Result<Reader, ImportError> {
        let known =
            self.last.borrow().as_ref().filter(|(last, _)| last == path).map(|(_, all)| Rc::clone(all));
        let source = match known {
            Some(all) => Source::Known(all),
            None => Source::File { file: self.files.open(path)?, path: path.to_owned() },
        };
        let size = match &source {
            Source::Known(all) => all.len() as u64,
            Source::File { file, .. } => file.size(),
        };
        let (read, last) = (Rc::clone(&self.read), Rc::clone(&self.last));
        Ok(Reader { source, size, chunk: Rc::default(), chunk_size: CHUNK, at: 0, position: 0, read, last })
    }

    /// Reads a small file whole.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if it has more than `limit` bytes, and [`ErrorKind::Io`] if it cannot be read.
    pub fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        let read = self.open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if read as u64 > limit {
            return Err(
                ImportError::new(ErrorKind::Limit, format!("the file is larger than {limit} bytes")).at(path)
            );
        }
        Ok(bytes)
    }

    /// Number of bytes read from all files so far.
    pub fn bytes_read(&self) -> u64 {
        self.read.get()
    }

    /// The summary that `run` returns.
    pub fn summary(&self) -> Summary {
        Summary { bytes: self.bytes_read() }
    }
}

/// An open file. An [`ImportError`] of the host passes unchanged through [`io::Error`] when you use `?`.
pub struct Reader {
    source: Source,
    size: u64,
    chunk: Rc<Vec<u8>>,
    /// Bytes to request at once.
    chunk_size: u32,
    at: usize,
    position: u64,
    read: Rc<Cell<u64>>,
    last: Last,
}

/// Where the bytes of a file come from.
enum Source {
    /// The host.
    File { file: backend::OpenFile, path: String },
    /// All of them are known.
    Known(Rc<Vec<u8>>),
}

impl Reader {
    /// Size in bytes, as stated by the container.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Offset in bytes of the next byte that will be read.
    pub fn position(&self) -> u64 {
        self.position - (self.chunk.len() - self.at) as u64
    }

    /// Requests at most `bytes` from the host at once, because no more are needed.
    pub(crate) fn in_chunks_of(self, bytes: usize) -> Self {
        Self { chunk_size: u32::try_from(bytes).unwrap_or(CHUNK).clamp(1, CHUNK), ..self }
    }

    /// Moves to `offset`, in bytes from the start of the file. What was read ahead is not read again.
    pub fn seek(&mut self, offset: u64) -> Result<(), ImportError> {
        let start = self.position - self.chunk.len() as u64;
        let inside = offset.checked_sub(start).and_then(|at| usize::try_from(at).ok());
        if let Some(at) = inside.filter(|at| *at < self.chunk.len()) {
            self.at = at;
            return Ok(());
        }
        if let Source::File { file, .. } = &mut self.source {
            file.seek(offset)?;
        }
        self.chunk = Rc::default();
        self.at = 0;
        self.position = offset;
        Ok(())
    }

    /// The bytes from the current position; none at the end of the file.
    fn next_chunk(&mut self) -> Result<Rc<Vec<u8>>, ImportError> {
        let (file, path) = match &mut self.source {
            Source::Known(all) => {
                let at = usize::try_from(self.position).unwrap_or(usize::MAX).min(all.len());
                let end = all.len().min(at.saturating_add(self.chunk_size as usize));
                // No more than the host would give, so that the same bytes count as read.
                let part = || Rc::new(all.get(at..end).unwrap_or_default().to_vec());
                return Ok(if at == 0 && end == all.len() { Rc::clone(all) } else { part() });
            }
            Source::File { file, path } => (file, path),
        };
        let chunk = Rc::new(file.read(self.chunk_size)?);
        if self.position == 0 && chunk.len() as u64 == self.size {
            *self.last.borrow_mut() = Some((path.clone(), Rc::clone(&chunk)));
        }
        Ok(chunk)
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.chunk.len() {
            self.chunk = self.next_chunk()?;
            self.at = 0;
            self.position += self.chunk.len() as u64;
            self.read.set(self.read.get() + self.chunk.len() as u64);
        }
        Ok(self.chunk.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.at = self.chunk.len().min(self.at + amount);
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.fill_buf()?;
        let amount = rest.read(buffer)?;
        self.consume(amount);
        Ok(amount)
    }
}
