//! Bytes that are read from any position, wherever they are.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::Arc,
};

/// Bytes that do not change and can be read from any position by several threads.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// Reads bytes from `offset` on, at most as many as `buffer` holds. Returns how many were read; 0 at the end.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }
}

/// Reads such bytes from the start to the end, and seeks in them.
#[derive(Clone, Debug)]
pub struct ReadAtCursor {
    bytes: Arc<dyn ReadAt>,
    length: u64,
    position: u64,
}

impl ReadAtCursor {
    /// Returns a cursor at the start of `length` bytes.
    #[must_use]
    pub fn new(bytes: Arc<dyn ReadAt>, length: u64) -> Self {
        Self { bytes, length, position: 0 }
    }
}

impl Read for ReadAtCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let read = self.bytes.read_at(self.position, buffer.get_mut(..room).unwrap_or_default())?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for ReadAtCursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = sought(to, self.position, self.length)?;
        Ok(self.position)
    }
}

/// Returns the position to which `to` leads from `position` in `length` bytes.
///
/// # Errors
/// It is before the start.
pub(crate) fn sought(to: SeekFrom, position: u64, length: u64) -> io::Result<u64> {
    let position = match to {
        SeekFrom::Start(offset) => Some(offset),
        SeekFrom::Current(delta) => position.checked_add_signed(delta),
        SeekFrom::End(delta) => length.checked_add_signed(delta),
    };
    position.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
