//! Change files: the changes that one store has and another one lacks, as one stream of bytes for a USB stick, with the files of
//! attachments. `FORMAT.md`, section 6, describes the bytes.
//!
//! The stream itself is neither compressed nor encrypted; whoever writes it to a disk encrypts it to the receiver. Both sides have one
//! change in memory at a time.

mod reader;
mod writer;

use satchel_pam::hash::Sha256Digest;

pub use self::{
    reader::{ChangeFileError, ChangeFileVisitor, read},
    writer::ChangeFileWriter,
};
use crate::{
    cursor::{Cursor, Truncated, length_u32},
    frontier::{Frontier, FrontierError},
    limits::{FRONTIER_ENTRY_BYTES, MAX_ORIGINS},
    origin::{OriginError, OriginKey},
};

/// What a change file begins with.
const MAGIC: &[u8; 8] = b"SATCHELX";
/// The version of the encoding. Batches and changes have their own.
const VERSION: u16 = 1;
/// What is signed before the digest of the file, so that the signature has no other meaning anywhere.
const DOMAIN: &[u8] = b"satchel-sync-change-file-v1\0";
/// The most bytes of the receiver's name.
const MAX_RECEIVER_BYTES: usize = 256;
/// The most digests of wanted files in a header. A store that lacks more asks for the rest in its next file.
pub const MAX_WANTED: usize = 1_000;
/// The most bytes of a header, without its length.
const MAX_HEADER_BYTES: usize = OriginKey::BYTES
    + 8
    + 3 * 4
    + 4
    + MAX_RECEIVER_BYTES
    + 2 * MAX_ORIGINS * FRONTIER_ENTRY_BYTES
    + 32 * MAX_WANTED;

/// The kinds of sections.
const END: u8 = 0;
const BATCH: u8 = 1;
const FILE: u8 = 2;

/// What a change file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeFileHeader {
    /// The series of the sender. The file is signed with this key.
    pub sender: OriginKey,
    /// For whom the file is encrypted, at most 256 bytes. Signed with everything else, so that the receiver cannot pass the file on as one
    /// that the sender made for somebody else.
    pub receiver: String,
    /// When the file was written, in microseconds since the Unix epoch, by the clock of the sender.
    pub created_at: i64,
    /// Which changes the sender has.
    pub frontier: Frontier,
    /// Which changes the receiver has, as far as the sender knows. The file contains what follows.
    pub base: Frontier,
    /// The files of attachments that the sender lacks, in ascending order, at most [`MAX_WANTED`].
    pub wanted: Vec<Sha256Digest>,
}

/// Why a header is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// It ends within a field, or has bytes after the last one.
    #[error("it has another length than its fields")]
    Length,
    /// The sender's key.
    #[error(transparent)]
    Sender(#[from] OriginError),
    /// One of the frontiers.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The receiver is too long, or no UTF-8.
    #[error("the receiver is no text of at most {MAX_RECEIVER_BYTES} bytes")]
    Receiver,
    /// Too many, or not in ascending order.
    #[error("the wanted files are more than {MAX_WANTED}, or not in ascending order")]
    Wanted,
}

impl From<Truncated> for HeaderError {
    fn from(_: Truncated) -> Self {
        Self::Length
    }
}

impl ChangeFileHeader {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.sender.encode().to_vec();
        bytes.extend_from_slice(&length_u32(self.receiver.len()));
        bytes.extend_from_slice(self.receiver.as_bytes());
        bytes.extend_from_slice(&self.created_at.to_be_bytes());
        self.frontier.write(&mut bytes);
        self.base.write(&mut bytes);
        bytes.extend_from_slice(&length_u32(self.wanted.len()));
        for digest in &self.wanted {
            bytes.extend_from_slice(digest.as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let mut cursor = Cursor::new(bytes);
        let sender = OriginKey::decode(cursor.take(OriginKey::BYTES)?)?;
        let length = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
        if length > MAX_RECEIVER_BYTES {
            return Err(HeaderError::Receiver);
        }
        let receiver = String::from_utf8(cursor.take(length)?.to_vec()).map_err(|_| HeaderError::Receiver)?;
        let created_at = i64::from_be_bytes(cursor.array()?);
        let (frontier, base) = (Frontier::read(&mut cursor)?, Frontier::read(&mut cursor)?);
        let count = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
        if count > MAX_WANTED {
            return Err(HeaderError::Wanted);
        }
        let wanted = (0..count).map(|_| Ok(Sha256Digest::from_bytes(cursor.array()?)));
        let wanted = wanted.collect::<Result<Vec<_>, Truncated>>()?;
        if !wanted.is_sorted_by(|one, next| one < next) {
            return Err(HeaderError::Wanted);
        }
        if cursor.left() > 0 {
            return Err(HeaderError::Length);
        }
        Ok(Self { sender, receiver, created_at, frontier, base, wanted })
    }
}

/// Returns the bytes that the sender signs.
fn signed_bytes(digest: &[u8]) -> Vec<u8> {
    [DOMAIN, digest].concat()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
