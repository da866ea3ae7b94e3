//! How a leaf lies in the engine below: in the envelope of a plain value, the long ones packed.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use zstd::bulk::Decompressor;

use crate::{
    codec::{Malformed, Put, Take},
    journal::packer::Packer,
    value::PLAIN,
};

/// zstd level: the fast ones leave out the coding of single bytes, whose tables take longer to read than a short leaf.
const LEVEL: i32 = -1;
/// Leaves up to this many bytes are not worth packing: keys and times do not become much shorter.
const PACK_FROM: usize = 640;
/// Longest leaf that is packed; a reader takes room for no longer one on a leaf's word.
const LONGEST: usize = 256 << 10;
/// Decompressors that are kept for the next readers; each has some 100 KiB.
const KEPT: usize = 2;

/// Records of a kind are much alike, so packed together they take less than half the room, in sled's cache too.
pub(super) struct Wrap {
    packer: Mutex<Packer>,
    unpackers: Mutex<Vec<Decompressor<'static>>>,
}

impl Wrap {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { packer: Mutex::new(Packer::of_level(LEVEL)?), unpackers: Mutex::default() })
    }

    pub(super) fn wrap(&self, leaf: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(PLAIN.len() + 1 + leaf.len());
        out.extend_from_slice(&PLAIN);
        let flag = out.len();
        out.put_u8(0);
        if leaf.len() < PACK_FROM || leaf.len() > LONGEST {
            out.extend_from_slice(leaf);
            return Ok(out);
        }
        let packed = self.packer.lock().unwrap_or_else(PoisonError::into_inner).pack(leaf, &mut out)?;
        out[flag] = u8::from(packed);
        Ok(out)
    }

    pub(super) fn unwrap(&self, mut wrapped: Vec<u8>) -> Result<Vec<u8>, Malformed> {
        let mut take = Take(wrapped.strip_prefix(PLAIN.as_slice()).ok_or(Malformed("has no envelope"))?);
        match take.u8()? {
            0 => {
                wrapped.drain(..=PLAIN.len());
                Ok(wrapped)
            }
            1 => {
                let length = usize::try_from(take.u32()?).unwrap_or(usize::MAX);
                if length > LONGEST {
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
        if unpackers.len() < KEPT {
            unpackers.push(unpacker);
        }
        Ok(leaf)
    }
}
