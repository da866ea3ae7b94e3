//! The stored form of a leaf: the envelope of a plain value around the entries, which are compressed in long leaves.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use zstd::bulk::Decompressor;

use crate::{
    codec::{ByteReader, Malformed, Put},
    journal::packer::PayloadCompressor,
    value::PLAIN,
};

/// zstd level. The fast (negative) levels skip the entropy coding of single bytes, whose tables take longer to read than a short
/// leaf.
const LEVEL: i32 = -1;
/// Leaves shorter than this many bytes are not worth compressing: keys and times hardly become shorter.
const MIN_COMPRESS_BYTES: usize = 640;
/// Maximum size in bytes of a leaf that is compressed. A reader trusts a stored length only up to this limit when it allocates
/// memory.
const MAX_COMPRESSED_LEAF: usize = 256 << 10;
/// Number of decompressors that are kept for later readers; each takes about 100 KiB.
const MAX_POOLED: usize = 2;

/// Wraps and unwraps leaves. Records of one kind are similar, so compressed together they take less than half the space, in
/// sled's cache too.
pub(super) struct LeafCodec {
    packer: Mutex<PayloadCompressor>,
    unpackers: Mutex<Vec<Decompressor<'static>>>,
}

impl LeafCodec {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { packer: Mutex::new(PayloadCompressor::of_level(LEVEL)?), unpackers: Mutex::default() })
    }

    pub(super) fn wrap(&self, leaf: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(PLAIN.len() + 1 + leaf.len());
        out.extend_from_slice(&PLAIN);
        let flag = out.len();
        out.put_u8(0);
        if leaf.len() < MIN_COMPRESS_BYTES || leaf.len() > MAX_COMPRESSED_LEAF {
            out.extend_from_slice(leaf);
            return Ok(out);
        }
        let packed = self.packer.lock().unwrap_or_else(PoisonError::into_inner).pack(leaf, &mut out)?;
        out[flag] = u8::from(packed);
        Ok(out)
    }

    pub(super) fn unwrap(&self, mut wrapped: Vec<u8>) -> Result<Vec<u8>, Malformed> {
        let mut take =
            ByteReader(wrapped.strip_prefix(PLAIN.as_slice()).ok_or(Malformed("has no envelope"))?);
        match take.u8()? {
            0 => {
                wrapped.drain(..=PLAIN.len());
                Ok(wrapped)
            }
            1 => {
                let length = usize::try_from(take.u32()?).unwrap_or(usize::MAX);
                if length > MAX_COMPRESSED_LEAF {
                    return Err(Malformed("is longer than leaves are"));
                }
                self.unpack(take.0, length)
            }
            _ => Err(Malformed("is packed in an unknown way")),
        }
    }

    fn unpack(&self, packed: &[u8], length: usize) -> Result<Vec<u8>, Malformed> {
        let problem = |_| Malformed("does not unpack");
        let kept = self.unpackers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut unpacker = kept.map_or_else(Decompressor::new, Ok).map_err(problem)?;
        let leaf = unpacker.decompress(packed, length).map_err(problem)?;
        let mut unpackers = self.unpackers.lock().unwrap_or_else(PoisonError::into_inner);
        if unpackers.len() < MAX_POOLED {
            unpackers.push(unpacker);
        }
        Ok(leaf)
    }
}
