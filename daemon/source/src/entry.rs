//! Readers of single files, compressed or plain, that count the actual bytes and check what the container claims.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crc32fast::Hasher;
use flate2::read::DeflateDecoder;

use super::{Heartbeat, Limits, RATIO_AFTER, archive::PackedEntry};
use crate::CancelToken;

/// Bytes of a ZIP's local file header before the name.
const LOCAL_HEADER: usize = 30;
const SKIP_CHUNK: usize = 64 << 10;

/// The number of bytes that one run has unpacked so far.
#[derive(Clone, Default)]
pub(super) struct UnpackedBytes(Arc<AtomicU64>);

/// A reader that fails once the run was cancelled: a file may be large, and its disk slow.
pub(super) struct CancellableReader<R> {
    pub(super) bytes: R,
    pub(super) cancel: CancelToken,
    pub(super) heartbeat: Heartbeat,
}

impl<R: Read> Read for CancellableReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.cancelled() {
            return Err(io::Error::other("reading was stopped"));
        }
        let _call = self.heartbeat.begin_call();
        self.bytes.read(buffer)
    }
}

impl<R: Seek> Seek for CancellableReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

/// Opens a file of a folder for reading from `offset` on.
pub(super) fn open_plain(mut file: File, offset: u64) -> io::Result<Box<dyn Read + Send>> {
    file.seek(SeekFrom::Start(offset))?;
    Ok(Box::new(file))
}

/// Opens the first `length` bytes of a file of a folder for reading from `offset` on.
pub(super) fn open_start(file: File, offset: u64, length: u64) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(open_plain(file, offset)?.take(length.saturating_sub(offset))))
}

/// The kind of problem with a packed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryProblem {
    /// Its bytes are not the ones that were packed.
    Damaged,
    /// It unpacks to more than a single file may.
    Bomb,
    /// Together with the files read before it, it unpacks to more than all files together may.
    Budget,
}

/// Why a packed file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the packed file {text}")]
pub(super) struct EntryError {
    pub(super) problem: EntryProblem,
    pub(super) text: String,
}

impl EntryError {
    fn io_error(problem: EntryProblem, text: impl Into<String>) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, Self { problem, text: text.into() })
    }
}

/// Opens a packed entry.
pub(super) fn open_packed(
    entry: &PackedEntry,
    limits: &Limits,
    sum: &UnpackedBytes,
) -> io::Result<Box<dyn Read + Send>> {
    let mut header = [0; LOCAL_HEADER];
    let mut local = entry.file.at(entry.header_offset);
    local.read_exact(&mut header).map_err(unpack_error)?;
    let name = u64::from(u16::from_le_bytes([header[26], header[27]]));
    let extra = u64::from(u16::from_le_bytes([header[28], header[29]]));
    let data =
        entry.file.at(entry.header_offset + LOCAL_HEADER as u64 + name + extra).take(entry.packed_bytes);
    let bytes: Box<dyn Read + Send> =
        if entry.deflated { Box::new(DeflateDecoder::new(data)) } else { Box::new(data) };
    Ok(Box::new(CheckedReader {
        bytes,
        read: 0,
        hasher: Hasher::new(),
        packed: entry.packed_bytes.max(1),
        unpacked: entry.unpacked_bytes,
        crc32: entry.crc32,
        limits: limits.clone(),
        sum: sum.clone(),
    }))
}

/// Reads and discards the bytes before an offset. Compressed data has no other way to seek. It works in chunks because
/// there may be gigabytes before the offset.
pub(super) fn skip(reader: &mut dyn Read, mut bytes: u64) -> io::Result<()> {
    let mut chunk = vec![0; SKIP_CHUNK];
    while bytes > 0 {
        let want = usize::try_from(bytes).unwrap_or(SKIP_CHUNK).min(SKIP_CHUNK);
        let read = reader.read(&mut chunk[..want])?;
        if read == 0 {
            return Ok(());
        }
        bytes -= read as u64;
    }
    Ok(())
}

struct CheckedReader {
    bytes: Box<dyn Read + Send>,
    read: u64,
    hasher: Hasher,
    packed: u64,
    unpacked: u64,
    crc32: u32,
    limits: Limits,
    sum: UnpackedBytes,
}

impl Read for CheckedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.bytes.read(buffer).map_err(unpack_error)?;
        if read == 0 {
            self.check_end()?;
            return Ok(0);
        }
        self.hasher.update(&buffer[..read]);
        self.read += read as u64;
        let sum = self.sum.0.fetch_add(read as u64, Ordering::Relaxed) + read as u64;
        self.check_limits(sum)?;
        Ok(read)
    }
}

impl CheckedReader {
    fn check_limits(&self, sum: u64) -> io::Result<()> {
        // A reader may have relied on the size that the archive states.
        if self.read > self.unpacked {
            let text = format!("holds more than the {} bytes that the archive says", self.unpacked);
            return Err(EntryError::io_error(EntryProblem::Damaged, text));
        }
        if self.read > self.limits.entry_bytes {
            let text = format!("unpacks to more than {} bytes", self.limits.entry_bytes);
            return Err(EntryError::io_error(EntryProblem::Bomb, text));
        }
        if sum > self.limits.total_bytes {
            let text = format!("makes the archive unpack to more than {} bytes", self.limits.total_bytes);
            return Err(EntryError::io_error(EntryProblem::Budget, text));
        }
        if self.read > RATIO_AFTER && self.read / self.packed > self.limits.ratio {
            let text =
                format!("unpacks to more than {} times its size, as a ZIP bomb does", self.limits.ratio);
            return Err(EntryError::io_error(EntryProblem::Bomb, text));
        }
        Ok(())
    }

    fn check_end(&self) -> io::Result<()> {
        if self.read != self.unpacked {
            let text = format!("holds {} bytes where the archive says {}", self.read, self.unpacked);
            return Err(EntryError::io_error(EntryProblem::Damaged, text));
        }
        if self.hasher.clone().finalize() != self.crc32 {
            return Err(EntryError::io_error(EntryProblem::Damaged, "does not match its checksum"));
        }
        Ok(())
    }
}

/// Distinguishes bytes that cannot be unpacked from a disk that cannot be read.
fn unpack_error(error: io::Error) -> io::Error {
    match error.kind() {
        // The error kinds of the decompressor for bytes that no compressor wrote, and for too few bytes.
        io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            EntryError::io_error(EntryProblem::Damaged, "does not unpack")
        }
        io::ErrorKind::InvalidData => {
            EntryError::io_error(EntryProblem::Damaged, format!("does not unpack: {error}"))
        }
        _ => error,
    }
}
