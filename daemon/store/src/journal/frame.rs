//! A frame: header, checksum, hash, payload.

use std::io;

use zstd::bulk::Compressor;

use crate::{codec::Malformed, decompress::Decompressors, sha256::Sha256};

/// Bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 36;
/// The payload is zstd.
pub(crate) const ZSTD: u8 = 1;
/// Everything before this frame was fsynced before the frame was written.
pub(crate) const SYNCED: u8 = 2;
/// Maximum length of an unpacked payload, in bytes, because a frame is unpacked as a whole. Writes keep bodies and batches below
/// it.
pub(crate) const MAX_PAYLOAD: usize = 256 << 20;
/// zstd level. Measured on message bodies: 446 MB/s at a ratio of 0.48. Level -1 gives 483 MB/s at 0.65, level 3 gives 278 MB/s
/// at 0.44.
const LEVEL: i32 = 1;
/// Payloads shorter than this many bytes are not worth compressing.
const MIN_COMPRESS_BYTES: usize = 128;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Body,
    Batch,
    Note,
    Seal,
}

impl FrameKind {
    fn code(self) -> u8 {
        match self {
            Self::Body => 1,
            Self::Batch => 2,
            Self::Note => 3,
            Self::Seal => 4,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::Body, Self::Batch, Self::Note, Self::Seal].into_iter().find(|kind| kind.code() == code)
    }
}

/// The fields of a header that a reader needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    pub(crate) crc: u32,
    pub(crate) kind: FrameKind,
    pub(crate) flags: u8,
    pub(crate) key: u16,
    pub(crate) revision: u64,
    pub(crate) previous: [u8; 16],
}

impl FrameHeader {
    /// Reads a header. Returns `None` if the bytes cannot be the beginning of a frame.
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        let kind = FrameKind::from_code(bytes[8])?;
        let flags = bytes[9];
        if flags & !(ZSTD | SYNCED) != 0 {
            return None;
        }
        Some(Self {
            length: word(0)?,
            crc: word(4)?,
            kind,
            flags,
            key: u16::from_be_bytes([bytes[10], bytes[11]]),
            revision: u64::from_be_bytes(bytes[12..20].try_into().ok()?),
            previous: bytes[20..36].try_into().ok()?,
        })
    }

    /// Returns the length of the frame in bytes, including its header.
    pub(crate) fn frame_length(&self) -> u64 {
        u64::from(self.length) + HEADER_BYTES as u64
    }
}

/// The position and the store id that a frame is bound to, besides its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameBinding {
    pub(crate) store_id: [u8; 16],
    pub(crate) segment: u32,
    pub(crate) offset: u64,
}

/// The fields of a header other than length, checksum and hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameFields {
    pub(crate) kind: FrameKind,
    pub(crate) flags: u8,
    pub(crate) key: u16,
    pub(crate) revision: u64,
}

/// Returns the associated data of a sealed payload. The store's id is not part of it, because a restored backup keeps its
/// payloads under a new id.
pub(crate) fn associated_data(kind: FrameKind, segment: u32, offset: u64, revision: u64) -> [u8; 21] {
    let mut place = [0; 21];
    place[0] = kind.code();
    place[1..5].copy_from_slice(&segment.to_be_bytes());
    place[5..13].copy_from_slice(&offset.to_be_bytes());
    place[13..].copy_from_slice(&revision.to_be_bytes());
    place
}

/// Writes the header of a frame. `buffer` is the frame: space for the header, then the payload. Returns the frame's hash.
pub(crate) fn finish(
    buffer: &mut [u8],
    binding: FrameBinding,
    fields: FrameFields,
    previous: [u8; 16],
) -> Result<[u8; 16], Malformed> {
    let FrameFields { kind, flags, key, revision } = fields;
    let length = u32::try_from(buffer.len() - HEADER_BYTES).map_err(|_| Malformed("is over 4 GiB"))?;
    buffer[0..4].copy_from_slice(&length.to_be_bytes());
    buffer[8] = kind.code();
    buffer[9] = flags;
    buffer[10..12].copy_from_slice(&key.to_be_bytes());
    buffer[12..20].copy_from_slice(&revision.to_be_bytes());
    buffer[20..36].copy_from_slice(&previous);
    let crc = checksum(binding, &buffer[8..]);
    buffer[4..8].copy_from_slice(&crc.to_be_bytes());
    Ok(hash(&[buffer]))
}

/// Returns the CRC-32C over the binding, the header without length and CRC, and the payload.
pub(crate) fn checksum(binding: FrameBinding, rest: &[u8]) -> u32 {
    let mut seed = [0_u8; 28];
    seed[..16].copy_from_slice(&binding.store_id);
    seed[16..20].copy_from_slice(&binding.segment.to_be_bytes());
    seed[20..].copy_from_slice(&binding.offset.to_be_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&seed), rest)
}

/// Returns the link of the hash chain: 16 bytes of SHA-256 over header and payload.
pub(crate) fn hash(pieces: &[&[u8]]) -> [u8; 16] {
    let mut hasher = Sha256::new();
    for piece in pieces {
        hasher.update(piece);
    }
    let mut link = [0; 16];
    link.copy_from_slice(&hasher.finish()[..16]);
    link
}

/// Unpacks a payload.
pub(crate) fn unpack(
    header: &FrameHeader,
    payload: Vec<u8>,
    decompressors: &Decompressors,
) -> Result<Vec<u8>, Malformed> {
    if header.flags & ZSTD == 0 {
        return Ok(payload);
    }
    let (length, packed) = payload.split_first_chunk::<4>().ok_or(Malformed("ends too early"))?;
    let length = u32::from_be_bytes(*length) as usize;
    if length > MAX_PAYLOAD {
        return Err(Malformed("claims to unpack to more than 256 MiB"));
    }
    let raw = decompressors.decompress(packed, length).map_err(|_| Malformed("does not unpack"))?;
    if raw.len() == length { Ok(raw) } else { Err(Malformed("unpacks to another length than it says")) }
}

/// Compresses the payloads of frames: a compressor and its buffer.
pub(crate) struct PayloadCompressor {
    packed: Vec<u8>,
    compressor: Compressor<'static>,
}

impl PayloadCompressor {
    pub(crate) fn new() -> io::Result<Self> {
        Self::of_level(LEVEL)
    }

    pub(crate) fn of_level(level: i32) -> io::Result<Self> {
        Ok(Self { packed: Vec::new(), compressor: Compressor::new(level)? })
    }

    /// Appends a payload to `out` in the form that frames store. Returns true if it is compressed, false if that would not make
    /// it smaller.
    pub(crate) fn pack(&mut self, payload: &[u8], out: &mut Vec<u8>) -> io::Result<bool> {
        let packed = payload.len() >= MIN_COMPRESS_BYTES && self.compress(payload)?;
        if packed {
            let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&self.packed);
        } else {
            out.extend_from_slice(payload);
        }
        Ok(packed)
    }

    fn compress(&mut self, payload: &[u8]) -> io::Result<bool> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(payload.len()));
        self.compressor.compress_to_buffer(payload, &mut self.packed)?;
        Ok(self.packed.len() + 4 < payload.len())
    }
}
