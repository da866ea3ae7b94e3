//! A buffered window over a file.

use std::io::{self, BufRead};

/// The bytes that were read and not taken yet.
pub(super) struct Stream<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    /// Offset in the file of the first byte of `buffer`.
    base: u64,
    ended: bool,
    /// Bytes that may still be read.
    budget: usize,
}

impl<R: BufRead> Stream<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), start: 0, base: 0, ended: false, budget: usize::MAX }
    }

    /// Reads at most `budget` bytes.
    pub(super) fn limited(self, budget: usize) -> Self {
        Self { budget, ..self }
    }

    /// The bytes that were read and not taken.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Whether nothing more can be read.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Offset in the file of the first byte that was not taken.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Drops the first `count` bytes.
    pub(super) fn take(&mut self, count: usize) {
        self.start = self.buffer.len().min(self.start + count);
    }

    /// Reads more; false at the end of the file or if the budget is used up.
    pub(super) fn more(&mut self) -> io::Result<bool> {
        self.ended |= self.budget == 0;
        if self.ended {
            return Ok(false);
        }
        let chunk = self.reader.fill_buf()?;
        let count = chunk.len().min(self.budget);
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.base += self.start as u64;
            self.start = 0;
        }
        self.buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
        self.reader.consume(count);
        self.budget -= count;
        self.ended = count == 0;
        Ok(!self.ended)
    }

    /// The first byte; reads more if necessary. None at the end.
    pub(super) fn first(&mut self) -> io::Result<Option<u8>> {
        while self.bytes().is_empty() && self.more()? {}
        Ok(self.bytes().first().copied())
    }

    /// Takes leading white space and returns the first byte behind it.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let spaces =
                self.bytes().iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
            self.take(spaces);
            if !self.bytes().is_empty() || !self.more()? {
                return Ok(self.bytes().first().copied());
            }
        }
    }
}
