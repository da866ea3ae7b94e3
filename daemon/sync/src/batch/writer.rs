//! Writes a batch.

use std::io::{self, Write};

use sha2::{Digest, Sha256};

use super::{END_BYTES, HEADER_BYTES, MAGIC, VERSION};
use crate::{
    change::SignedChange,
    cursor::length_u32,
    limits::{MAX_BATCH_BYTES, MAX_BATCH_CHANGES},
};

/// Writes changes as one batch. Without [`BatchWriter::finish`], readers report it as truncated.
pub struct BatchWriter<W> {
    sink: W,
    digest: Sha256,
    changes: u32,
    bytes: u64,
}

/// Whether a change was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pushed {
    /// It is in this batch.
    Written,
    /// It would exceed [`MAX_BATCH_CHANGES`] or [`MAX_BATCH_BYTES`], and nothing was written: it belongs in the next batch.
    Full,
}

impl<W: Write> BatchWriter<W> {
    /// Begins a batch. Writes in small pieces; buffer files.
    ///
    /// # Errors
    /// If `sink` fails.
    pub fn begin(sink: W) -> io::Result<Self> {
        let mut writer = Self { sink, digest: Sha256::new(), changes: 0, bytes: 0 };
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..10].copy_from_slice(&VERSION.to_be_bytes());
        writer.write(&header)?;
        Ok(writer)
    }

    /// Writes a change. Its series needs no check; the order should be that of the counters, or the reader finds gaps.
    ///
    /// # Errors
    /// If the sink fails. The batch is unusable then.
    pub fn push(&mut self, change: &SignedChange) -> io::Result<Pushed> {
        let change = change.encode();
        let length = length_u32(change.len());
        let bytes = self.bytes + (length.len() + change.len()) as u64;
        if self.changes == MAX_BATCH_CHANGES || bytes + END_BYTES > MAX_BATCH_BYTES {
            return Ok(Pushed::Full);
        }
        self.write(&length)?;
        self.write(&change)?;
        self.changes += 1;
        Ok(Pushed::Written)
    }

    /// Ends the batch, and returns the sink without flushing it.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.write(&[0; 4])?;
        self.write(&self.changes.to_be_bytes())?;
        let digest = self.digest.finalize();
        self.sink.write_all(&digest)?;
        Ok(self.sink)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        self.sink.write_all(bytes)
    }
}
