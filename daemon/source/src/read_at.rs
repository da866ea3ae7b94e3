//! Bytes that are read from any position, wherever they are.

use std::{fmt, fs::File, io};

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
