//! Reads a change file.

use std::io::{self, Read};

use satchel_pam::hash::Sha256Digest;
use sha2::{Digest as _, Sha256};

use super::{
    BATCH, ChangeFileHeader, END, FILE, HeaderError, MAGIC, MAX_HEADER_BYTES, VERSION, signed_bytes,
};
use crate::{
    batch::{BatchError, BatchReader},
    change::SignedChange,
};

/// Why a change file cannot be read further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeFileError {
    /// The bytes do not begin as a change file does.
    #[error("this is not a file of changes")]
    Magic,
    /// A version that this program does not know.
    #[error("the file has format {found}; this program reads format {VERSION}")]
    UnknownVersion {
        /// The version of the file.
        found: u16,
    },
    /// What the file says about itself cannot be read.
    #[error("the header of the file is damaged")]
    Header(#[source] HeaderError),
    /// The bytes end before the file does.
    #[error("the file ends early")]
    Truncated,
    /// A batch in it cannot be read.
    #[error("the changes in the file cannot be read")]
    Batch(#[source] BatchError),
    /// A kind of section that this program does not know.
    #[error("the file has a part of kind {kind}, which this program does not know; use a newer satchel")]
    UnknownSection {
        /// The kind.
        kind: u8,
    },
    /// The signature at the end is not of the sender, or the bytes before it were changed.
    #[error("the signature of the file is not valid")]
    Signature,
    /// Bytes follow the signature.
    #[error("the file has bytes after its end")]
    Trailing,
    /// The source failed.
    #[error("the file cannot be read")]
    Read(#[source] io::Error),
}

/// Takes what a change file contains.
pub trait ChangeFileVisitor {
    /// Why the reading ends before the end of the file.
    type Error: From<ChangeFileError>;

    /// Takes the header, before everything else.
    ///
    /// # Errors
    /// The file is not to be read further.
    fn header(&mut self, header: &ChangeFileHeader) -> Result<(), Self::Error>;

    /// Takes a change. Its signature is not checked; [`crate::Series::accept`] does that.
    ///
    /// # Errors
    /// The file is not to be read further.
    fn change(&mut self, change: SignedChange) -> Result<(), Self::Error>;

    /// Takes the file of an attachment. What is not read from `source` is passed over. Whether it has the bytes of the digest is not
    /// checked.
    ///
    /// # Errors
    /// The file is not to be read further.
    fn file(&mut self, digest: Sha256Digest, length: u64, source: &mut dyn Read) -> Result<(), Self::Error>;
}

/// Reads a change file to its end, and checks its signature there: what `visitor` takes is unproven until this returns. Reads in small
/// pieces; buffer files.
///
/// # Errors
/// [`ChangeFileError`], or an error of `visitor`.
pub fn read<V: ChangeFileVisitor>(source: impl Read, visitor: &mut V) -> Result<(), V::Error> {
    let mut source = HashingReader { source, digest: Sha256::new() };
    let header = read_header(&mut source)?;
    visitor.header(&header)?;
    loop {
        match read_array(&mut source)? {
            [END] => break,
            [BATCH] => read_batch(&mut source, visitor)?,
            [FILE] => read_file(&mut source, visitor)?,
            [kind] => return Err(ChangeFileError::UnknownSection { kind }.into()),
        }
    }
    let digest = source.digest.clone().finalize();
    let signature = read_array(&mut source)?;
    if !header.sender.verifies(&signed_bytes(&digest), &signature) {
        return Err(ChangeFileError::Signature.into());
    }
    match source.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(ChangeFileError::Trailing.into()),
        Err(error) => Err(ChangeFileError::Read(error).into()),
    }
}

fn read_header(source: &mut impl Read) -> Result<ChangeFileHeader, ChangeFileError> {
    if &read_array(source)? != MAGIC {
        return Err(ChangeFileError::Magic);
    }
    let found = u16::from_be_bytes(read_array(source)?);
    if found != VERSION {
        return Err(ChangeFileError::UnknownVersion { found });
    }
    let zero: [u8; 2] = read_array(source)?;
    let length = u32::from_be_bytes(read_array(source)?) as usize;
    if zero != [0; 2] || length > MAX_HEADER_BYTES {
        return Err(ChangeFileError::Header(HeaderError::Length));
    }
    let mut header = vec![0; length];
    read_exact(source, &mut header)?;
    ChangeFileHeader::decode(&header).map_err(ChangeFileError::Header)
}

fn read_batch<V: ChangeFileVisitor>(source: &mut impl Read, visitor: &mut V) -> Result<(), V::Error> {
    let batch_error = |error| match error {
        BatchError::Truncated { .. } => ChangeFileError::Truncated,
        BatchError::Read(error) => ChangeFileError::Read(error),
        error => ChangeFileError::Batch(error),
    };
    let batch = BatchReader::open(source).map_err(batch_error)?.ok_or(ChangeFileError::Truncated)?;
    for change in batch {
        visitor.change(change.map_err(batch_error)?)?;
    }
    Ok(())
}

fn read_file<V: ChangeFileVisitor>(source: &mut impl Read, visitor: &mut V) -> Result<(), V::Error> {
    let digest = Sha256Digest::from_bytes(read_array(source)?);
    let length = u64::from_be_bytes(read_array(source)?);
    let mut file = source.take(length);
    visitor.file(digest, length, &mut file)?;
    io::copy(&mut file, &mut io::sink()).map_err(ChangeFileError::Read)?;
    if file.limit() > 0 { Err(ChangeFileError::Truncated.into()) } else { Ok(()) }
}

fn read_array<const N: usize>(source: &mut impl Read) -> Result<[u8; N], ChangeFileError> {
    let mut bytes = [0; N];
    read_exact(source, &mut bytes)?;
    Ok(bytes)
}

fn read_exact(source: &mut impl Read, bytes: &mut [u8]) -> Result<(), ChangeFileError> {
    source.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ChangeFileError::Truncated,
        _ => ChangeFileError::Read(error),
    })
}

/// A source, with the digest of what was read from it.
struct HashingReader<R> {
    source: R,
    digest: Sha256,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}
