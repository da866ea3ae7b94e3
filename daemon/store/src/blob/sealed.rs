//! Attachments of an encrypted store, sealed in separate chunks so that any part can be read without the rest.

use std::{
    io::{self, Read},
    sync::Arc,
};

use satchel_seal::{KEY_ID, NONCE, OVERHEAD, Seal};

use crate::{
    codec::{ByteReader, Malformed, Put},
    disk::DiskFile,
};

const MAGIC: &[u8; 8] = b"SATCHELB";
const FORMAT: u16 = 1;
/// Plain bytes of a chunk; the last one may be shorter.
const CHUNK_BYTES: usize = 64 << 10;
/// Magic, version and key id.
const MAGIC_BYTES: usize = 12;
/// SHA-256 of the plain bytes, their number, and the id that binds the chunks to this file.
const HEADER_CONTENT: usize = 32 + 8 + 16;
/// Offset of the first chunk.
const FIRST_CHUNK: usize = MAGIC_BYTES + HEADER_CONTENT + OVERHEAD;

/// The sealed content of the header.
#[derive(Clone, Copy)]
struct BlobHeader {
    sha256: [u8; 32],
    length: u64,
    file: [u8; 16],
}

impl BlobHeader {
    fn take(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader(bytes);
        Ok(Self { sha256: take.array()?, length: take.u64()?, file: take.array()? })
    }
}

/// Writes a sealed attachment chunk by chunk. The header is written last, because the name is known only then.
pub(super) struct SealedWriter {
    seal: Seal,
    file: [u8; 16],
    number: u64,
    end: u64,
    buffer: Vec<u8>,
}

impl SealedWriter {
    pub(super) fn new(seal: Seal) -> io::Result<Self> {
        let mut file = [0; 16];
        getrandom::fill(&mut file)?;
        Ok(Self { seal, file, number: 0, end: FIRST_CHUNK as u64, buffer: vec![0; NONCE] })
    }

    pub(super) fn write(&mut self, out: &dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = NONCE + CHUNK_BYTES - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == NONCE + CHUNK_BYTES {
                self.chunk(out)?;
            }
        }
        Ok(())
    }

    /// Writes the remaining bytes and the header.
    pub(super) fn finish(mut self, out: &dyn DiskFile, sha256: &[u8; 32], length: u64) -> io::Result<()> {
        if self.buffer.len() > NONCE {
            self.chunk(out)?;
        }
        let mut content = Vec::with_capacity(HEADER_CONTENT);
        content.extend_from_slice(sha256);
        content.put_u64(length);
        content.extend_from_slice(&self.file);
        let associated_data = header_associated_data(&self.seal.blob_name(sha256));
        let mut header = magic();
        header.extend(self.seal.blobs().seal(&associated_data, &content)?);
        out.write_at(0, &header)
    }

    fn chunk(&mut self, out: &dyn DiskFile) -> io::Result<()> {
        let associated_data = chunk_associated_data(&self.file, self.number);
        self.seal.blobs().seal_tail(&associated_data, &mut self.buffer, 0)?;
        out.write_at(self.end, &self.buffer)?;
        self.end += self.buffer.len() as u64;
        self.number += 1;
        self.buffer.truncate(NONCE);
        Ok(())
    }
}

/// Reads a sealed attachment from the first byte on.
pub(super) struct SealedReader {
    disk_file: Arc<dyn DiskFile>,
    seal: Seal,
    header: BlobHeader,
    /// Offset of the next byte to read.
    at: u64,
    /// The number and the opened bytes of the chunk that was read last.
    chunk: Option<(u64, Vec<u8>)>,
}

impl SealedReader {
    /// Opens the file named `name`.
    pub(super) fn open(disk_file: Arc<dyn DiskFile>, seal: Seal, name: &[u8; 32]) -> io::Result<Self> {
        let mut header = vec![0; FIRST_CHUNK];
        let filled = disk_file.read_at(0, &mut header)?;
        header.truncate(filled);
        let sealed = header.strip_prefix(magic().as_slice()).ok_or_else(not_authentic)?;
        let header =
            seal.blobs().open(&header_associated_data(name), sealed.to_vec()).ok_or_else(not_authentic)?;
        let header = BlobHeader::take(&header).map_err(|_| not_authentic())?;
        Ok(Self { disk_file, seal, header, at: 0, chunk: None })
    }

    /// Returns the hash of the content, as recorded by the writer.
    pub(super) fn sha256(&self) -> [u8; 32] {
        self.header.sha256
    }

    pub(super) fn seek(&mut self, to: u64) {
        self.at = to;
    }

    pub(super) fn length(&self) -> u64 {
        self.header.length
    }

    /// Reads and opens the chunk with this number.
    fn load(&self, number: u64) -> io::Result<Vec<u8>> {
        let left = self.header.length.saturating_sub(number * CHUNK_BYTES as u64);
        let plain = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let mut sealed = vec![0; plain + OVERHEAD];
        let offset = FIRST_CHUNK as u64 + number * (CHUNK_BYTES + OVERHEAD) as u64;
        let filled = self.disk_file.read_at(offset, &mut sealed)?;
        sealed.truncate(filled);
        self.seal
            .blobs()
            .open(&chunk_associated_data(&self.header.file, number), sealed)
            .ok_or_else(not_authentic)
    }
}

impl Read for SealedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.header.length || buffer.is_empty() {
            return Ok(0);
        }
        let number = self.at / CHUNK_BYTES as u64;
        let within = usize::try_from(self.at % CHUNK_BYTES as u64).unwrap_or(CHUNK_BYTES);
        let chunk = match self.chunk.take().filter(|(loaded, _)| *loaded == number) {
            Some((_, chunk)) => chunk,
            None => self.load(number)?,
        };
        let rest = chunk.get(within..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.at += read as u64;
        self.chunk = Some((number, chunk));
        Ok(read)
    }
}

/// Returns the first bytes of a sealed attachment: magic, version and key id.
fn magic() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FIRST_CHUNK);
    bytes.extend_from_slice(MAGIC);
    bytes.put_u16(FORMAT);
    bytes.put_u16(KEY_ID);
    bytes
}

/// Returns the associated data of the header, which binds it to the name of the file.
fn header_associated_data(name: &[u8; 32]) -> Vec<u8> {
    [b"header".as_slice(), name].concat()
}

/// Returns the associated data of a chunk, which binds it to its file and its number.
fn chunk_associated_data(file: &[u8; 16], number: u64) -> Vec<u8> {
    [b"chunk".as_slice(), file, &number.to_be_bytes()].concat()
}

fn not_authentic() -> io::Error {
    let problem =
        "it does not open with the data key: it was changed, truncated or exchanged with another file";
    io::Error::new(io::ErrorKind::InvalidData, problem)
}
