//! The stored form of a leaf: the envelope of a plain value around the entries, which are compressed in long leaves.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use crate::{
    codec::{ByteReader, Malformed, Put},
    decompress::Decompressors,
    journal::frame::PayloadCompressor,
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

/// Encodes and decodes leaves. Records of one kind are similar, so compressed together they take less than half the space, in
/// sled's cache too.
pub(super) struct LeafCodec {
    compressor: Mutex<PayloadCompressor>,
    decompressors: Decompressors,
}

impl LeafCodec {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            compressor: Mutex::new(PayloadCompressor::of_level(LEVEL)?),
            decompressors: Decompressors::default(),
        })
    }

    pub(super) fn encode(&self, leaf: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(PLAIN.len() + 1 + leaf.len());
        out.extend_from_slice(&PLAIN);
        let flag = out.len();
        out.put_u8(0);
        if leaf.len() < MIN_COMPRESS_BYTES || leaf.len() > MAX_COMPRESSED_LEAF {
            out.extend_from_slice(leaf);
            return Ok(out);
        }
        let packed = self.compressor.lock().unwrap_or_else(PoisonError::into_inner).pack(leaf, &mut out)?;
        out[flag] = u8::from(packed);
        Ok(out)
    }

    pub(super) fn decode(&self, mut stored: Vec<u8>) -> Result<Vec<u8>, Malformed> {
        let mut take = ByteReader(stored.strip_prefix(PLAIN.as_slice()).ok_or(Malformed("has no envelope"))?);
        match take.u8()? {
            0 => {
                stored.drain(..=PLAIN.len());
                Ok(stored)
            }
            1 => {
                let length = usize::try_from(take.u32()?).unwrap_or(usize::MAX);
                if length > MAX_COMPRESSED_LEAF {
                    return Err(Malformed("is longer than leaves are"));
                }
                self.decompressors.decompress(take.0, length).map_err(|_| Malformed("does not unpack"))
            }
            _ => Err(Malformed("is packed in an unknown way")),
        }
    }
}
