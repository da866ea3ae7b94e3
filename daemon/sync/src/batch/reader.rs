//! Reads a batch.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use super::{END_BYTES, HEADER_BYTES, MAGIC, VERSION};
use crate::{
    change::{ChangeError, SignedChange},
    limits::{MAX_BATCH_BYTES, MAX_BATCH_CHANGES, MAX_CHANGE_BYTES},
};

/// Reads the changes of one batch, in their order. Signatures are not checked; [`crate::Series::accept`] does that.
///
/// As an iterator, it ends after the end of the batch or after an error, with one exception: after [`BatchError::Change`], it goes on
/// with the next change, so that a change which this program cannot read stops only its own origin.
///
/// The memory that it allocates is in proportion to the bytes that it has read, and bounded by [`MAX_CHANGE_BYTES`].
pub struct BatchReader<R> {
    source: R,
    digest: Sha256,
    changes: u32,
    bytes: u64,
    change: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ended,
    Failed,
}

/// Why a batch cannot be read further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The bytes do not begin as a batch does.
    #[error("this is not a batch of changes")]
    Magic,
    /// A version that this program does not know.
    #[error("the batch has format {found}; this program reads format {VERSION}")]
    UnknownVersion {
        /// The version of the batch.
        found: u16,
    },
    /// The bytes end before the batch does. The changes that were read are usable.
    #[error("the batch ends early, after {changes} whole changes")]
    Truncated {
        /// The number of whole changes before the end.
        changes: u32,
    },
    /// A change claims to be longer than one can be.
    #[error("a change of {found} bytes is in the batch; at most {MAX_CHANGE_BYTES} are allowed")]
    ChangeTooLarge {
        /// The length that is claimed, in bytes.
        found: u32,
    },
    /// The batch is longer than one can be.
    #[error("the batch has more than {MAX_BATCH_BYTES} bytes")]
    BatchTooLarge,
    /// The batch has more changes than one can have.
    #[error("the batch has more than {MAX_BATCH_CHANGES} changes")]
    TooManyChanges,
    /// The end of the batch does not match the changes before it, or its header is invalid.
    #[error("the batch is damaged")]
    Damaged,
    /// A change cannot be read. The ones after it can: this error does not end the batch.
    #[error("change {position} of the batch cannot be read")]
    Change {
        /// Its position in the batch, from 1.
        position: u32,
        /// What is wrong with it.
        source: ChangeError,
    },
    /// The source failed.
    #[error("the batch cannot be read")]
    Read(#[source] io::Error),
}

impl<R: Read> BatchReader<R> {
    /// Reads the header of a batch. Reads in small pieces; buffer files. None if the source is at its end, after the last batch.
    ///
    /// # Errors
    /// If the source fails, or does not begin with the header of a batch in this version.
    pub fn open(source: R) -> Result<Option<Self>, BatchError> {
        let (digest, change) = (Sha256::new(), Vec::new());
        let mut reader = Self { source, digest, changes: 0, bytes: 0, change, state: State::Open };
        let mut header = [0; HEADER_BYTES];
        if !reader.read_first(&mut header[..1])? {
            return Ok(None);
        }
        reader.read(&mut header[1..])?;
        let (magic, rest) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(BatchError::Magic);
        }
        let found = u16::from_be_bytes([rest[0], rest[1]]);
        if found != VERSION {
            return Err(BatchError::UnknownVersion { found });
        }
        if rest[2..] != [0, 0] {
            return Err(BatchError::Damaged);
        }
        reader.digest.update(header);
        Ok(Some(reader))
    }

    /// Whether the end of the batch was read and matches.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.state == State::Ended
    }

    /// The source, after the bytes that were read: at the next batch if [`BatchReader::ended`].
    #[must_use]
    pub fn into_source(self) -> R {
        self.source
    }

    #[cfg(test)]
    pub(super) fn buffer_capacity(&self) -> usize {
        self.change.capacity()
    }

    /// Reads one change, or the end.
    fn read_change(&mut self) -> Result<Option<SignedChange>, BatchError> {
        let length = self.read_u32()?;
        if length == 0 {
            self.read_end()?;
            self.state = State::Ended;
            return Ok(None);
        }
        self.read_body(length)?;
        self.changes += 1;
        let (position, decoded) = (self.changes, SignedChange::decode(&self.change));
        decoded.map(Some).map_err(|source| BatchError::Change { position, source })
    }

    /// Reads the bytes of a change into the buffer, which grows with the bytes that arrive, not with the length that is claimed.
    fn read_body(&mut self, length: u32) -> Result<(), BatchError> {
        if self.changes == MAX_BATCH_CHANGES {
            return Err(BatchError::TooManyChanges);
        }
        if length as usize > MAX_CHANGE_BYTES {
            return Err(BatchError::ChangeTooLarge { found: length });
        }
        self.bytes += u64::from(length);
        if self.bytes + END_BYTES > MAX_BATCH_BYTES {
            return Err(BatchError::BatchTooLarge);
        }
        self.change.clear();
        let mut body = (&mut self.source).take(u64::from(length));
        let read = body.read_to_end(&mut self.change).map_err(BatchError::Read)?;
        if read < length as usize {
            return Err(BatchError::Truncated { changes: self.changes });
        }
        self.digest.update(&self.change);
        Ok(())
    }

    fn read_end(&mut self) -> Result<(), BatchError> {
        let changes = self.read_u32()?;
        let expected = self.digest.finalize_reset();
        let mut digest = [0; 32];
        self.read(&mut digest)?;
        if changes == self.changes && expected[..] == digest { Ok(()) } else { Err(BatchError::Damaged) }
    }

    fn read_u32(&mut self) -> Result<u32, BatchError> {
        let mut bytes = [0; 4];
        self.read(&mut bytes)?;
        self.digest.update(bytes);
        Ok(u32::from_be_bytes(bytes))
    }

    /// Reads bytes that have to be there.
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), BatchError> {
        self.bytes += bytes.len() as u64;
        self.source.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => BatchError::Truncated { changes: self.changes },
            _ => BatchError::Read(error),
        })
    }

    /// Reads the first byte; false if there is none.
    fn read_first(&mut self, byte: &mut [u8]) -> Result<bool, BatchError> {
        match self.read(byte) {
            Ok(()) => Ok(true),
            Err(BatchError::Truncated { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl<R: Read> Iterator for BatchReader<R> {
    type Item = Result<SignedChange, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state != State::Open {
            return None;
        }
        let read = self.read_change();
        if read.as_ref().is_err_and(|error| !matches!(error, BatchError::Change { .. })) {
            self.state = State::Failed;
        }
        read.transpose()
    }
}
