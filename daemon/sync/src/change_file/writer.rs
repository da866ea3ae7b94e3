//! Writes a change file.

use std::io::{self, Read, Write};

use ed25519_dalek::{Signer as _, SigningKey};
use satchel_pam::hash::Sha256Digest;
use sha2::{Digest as _, Sha256};

use super::{BATCH, ChangeFileHeader, END, FILE, MAGIC, VERSION, signed_bytes};
use crate::{
    batch::{BatchWriter, Pushed},
    change::SignedChange,
    cursor::length_u32,
};

/// Bytes that are copied at once.
const COPIED_BYTES: usize = 64 << 10;

/// Writes changes and files of attachments. Without [`ChangeFileWriter::finish`], readers report the file as truncated.
pub struct ChangeFileWriter<W: Write> {
    /// `None` only while a batch is being ended.
    state: Option<State<W>>,
}

enum State<W: Write> {
    Between(Hashed<W>),
    Batch(BatchWriter<Hashed<W>>),
}

/// A sink, with the digest of what was written to it.
struct Hashed<W> {
    sink: W,
    digest: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl<W: Write> ChangeFileWriter<W> {
    /// Begins a file. Writes in small pieces; buffer files.
    ///
    /// # Errors
    /// If `sink` fails.
    pub fn begin(sink: W, header: &ChangeFileHeader) -> io::Result<Self> {
        let mut sink = Hashed { sink, digest: Sha256::new() };
        sink.write_all(MAGIC)?;
        sink.write_all(&VERSION.to_be_bytes())?;
        sink.write_all(&[0; 2])?;
        let header = header.encode();
        sink.write_all(&length_u32(header.len()))?;
        sink.write_all(&header)?;
        Ok(Self { state: Some(State::Between(sink)) })
    }

    /// Writes a change. Those of one origin must be in the order of their counters.
    ///
    /// # Errors
    /// If the sink fails. The file is unusable then.
    pub fn push(&mut self, change: &SignedChange) -> io::Result<()> {
        let mut batch = match self.state.take() {
            Some(State::Batch(batch)) => batch,
            other => begin_batch(between(other)?)?,
        };
        while batch.push(change)? == Pushed::Full {
            batch = begin_batch(batch.finish()?)?;
        }
        self.state = Some(State::Batch(batch));
        Ok(())
    }

    /// Writes the file of an attachment, `length` bytes of `source`.
    ///
    /// # Errors
    /// If the sink or the source fails, or the source is shorter. The file is unusable then.
    pub fn push_file(&mut self, digest: Sha256Digest, length: u64, source: &mut dyn Read) -> io::Result<()> {
        let mut sink = between(self.state.take())?;
        sink.write_all(&[FILE])?;
        sink.write_all(digest.as_bytes())?;
        sink.write_all(&length.to_be_bytes())?;
        let (mut left, mut buffer) = (length, vec![0; COPIED_BYTES]);
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let part = buffer.get_mut(..wanted).unwrap_or_default();
            source.read_exact(part)?;
            sink.write_all(part)?;
            left -= part.len() as u64;
        }
        self.state = Some(State::Between(sink));
        Ok(())
    }

    /// Ends and signs the file with the key of the sender, and returns the sink without flushing it.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self, key: &SigningKey) -> io::Result<W> {
        let mut sink = between(self.state.take())?;
        sink.write_all(&[END])?;
        let signature = key.sign(&signed_bytes(&sink.digest.clone().finalize()));
        sink.sink.write_all(&signature.to_bytes())?;
        Ok(sink.sink)
    }
}

fn begin_batch<W: Write>(mut sink: Hashed<W>) -> io::Result<BatchWriter<Hashed<W>>> {
    sink.write_all(&[BATCH])?;
    BatchWriter::begin(sink)
}

/// Ends the batch that is being written, if any.
fn between<W: Write>(state: Option<State<W>>) -> io::Result<Hashed<W>> {
    match state {
        Some(State::Between(sink)) => Ok(sink),
        Some(State::Batch(batch)) => batch.finish(),
        None => Err(io::Error::other("writing has failed before")),
    }
}
