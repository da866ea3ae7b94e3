//! Attachments of an encrypted store, sealed in separate chunks so that any part can be read without the rest.

use std::{
    io::{self, Read},
    sync::Arc,
};

use satchel_seal::{KEY_ID, NONCE, OVERHEAD, Seal};

use crate::{
    codec::{Malformed, Put, Take},
    disk::DiskFile,
};

const MAGIC: &[u8; 8] = b"SATCHELB";
const FORMAT: u16 = 1;
/// Plain bytes of a chunk; the last one may be shorter.
const CHUNK: usize = 64 << 10;
/// Magic, version and key id.
const HEAD: usize = 12;
/// SHA-256 of the plain bytes, their number, and the id that binds the chunks to this file.
const ABOUT: usize = 32 + 8 + 16;
/// Offset of the first chunk.
const BODY: usize = HEAD + ABOUT + OVERHEAD;

/// The sealed content of the header.
#[derive(Clone, Copy)]
struct About {
    sha256: [u8; 32],
    length: u64,
    file: [u8; 16],
}

impl About {
    fn take(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = Take(bytes);
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
        Ok(Self { seal, file, number: 0, end: BODY as u64, buffer: vec![0; NONCE] })
    }

    pub(super) fn write(&mut self, out: &dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = NONCE + CHUNK - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == NONCE + CHUNK {
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
        let mut about = Vec::with_capacity(ABOUT);
        about.extend_from_slice(sha256);
        about.put_u64(length);
        about.extend_from_slice(&self.file);
        let place = header_place(&self.seal.blob_name(sha256));
        let mut header = head();
        header.extend(self.seal.blobs().seal(&place, &about)?);
        out.write_at(0, &header)
    }

    fn chunk(&mut self, out: &dyn DiskFile) -> io::Result<()> {
        let place = chunk_place(&self.file, self.number);
        self.seal.blobs().seal_tail(&place, &mut self.buffer, 0)?;
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
    about: About,
    /// Offset of the next byte to read.
    at: u64,
    /// The number and the opened bytes of the chunk that was read last.
    chunk: Option<(u64, Vec<u8>)>,
}

impl SealedReader {
    /// Opens the file named `name`.
    pub(super) fn open(disk_file: Arc<dyn DiskFile>, seal: Seal, name: &[u8; 32]) -> io::Result<Self> {
        let mut header = vec![0; BODY];
        let filled = disk_file.read_at(0, &mut header)?;
        header.truncate(filled);
        let sealed = header.strip_prefix(head().as_slice()).ok_or_else(foreign)?;
        let about = seal.blobs().open(&header_place(name), sealed.to_vec()).ok_or_else(foreign)?;
        let about = About::take(&about).map_err(|_| foreign())?;
        Ok(Self { disk_file, seal, about, at: 0, chunk: None })
    }

    /// Returns the hash of the content, as recorded by the writer.
    pub(super) fn sha256(&self) -> [u8; 32] {
        self.about.sha256
    }

    pub(super) fn length(&self) -> u64 {
        self.about.length
    }

    /// Reads and opens the chunk with this number.
    fn load(&self, number: u64) -> io::Result<Vec<u8>> {
        let left = self.about.length.saturating_sub(number * CHUNK as u64);
        let plain = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let mut sealed = vec![0; plain + OVERHEAD];
        let offset = BODY as u64 + number * (CHUNK + OVERHEAD) as u64;
        let filled = self.disk_file.read_at(offset, &mut sealed)?;
        sealed.truncate(filled);
        self.seal.blobs().open(&chunk_place(&self.about.file, number), sealed).ok_or_else(foreign)
    }
}

impl Read for SealedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.about.length || buffer.is_empty() {
            return Ok(0);
        }
        let number = self.at / CHUNK as u64;
        let within = usize::try_from(self.at % CHUNK as u64).unwrap_or(CHUNK);
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

fn head() -> Vec<u8> {
    let mut head = Vec::with_capacity(BODY);
    head.extend_from_slice(MAGIC);
    head.put_u16(FORMAT);
    head.put_u16(KEY_ID);
    head
}

/// Returns the associated data of the header, which binds it to the name of the file.
fn header_place(name: &[u8; 32]) -> Vec<u8> {
    [b"header".as_slice(), name].concat()
}

/// Returns the associated data of a chunk, which binds it to its file and its number.
fn chunk_place(file: &[u8; 16], number: u64) -> Vec<u8> {
    [b"chunk".as_slice(), file, &number.to_be_bytes()].concat()
}

fn foreign() -> io::Error {
    let problem = "it does not open with the data key; it was changed, cut, or put in another's place";
    io::Error::new(io::ErrorKind::InvalidData, problem)
}
