//! Compresses the payloads of frames.

use std::io;

use zstd::bulk::Compressor;

/// zstd level. Measured on message bodies: 446 MB/s at a ratio of 0.48. Level -1 gives 483 MB/s at 0.65, level 3 gives 278 MB/s
/// at 0.44.
const LEVEL: i32 = 1;
/// Payloads shorter than this many bytes are not worth compressing.
const MIN_COMPRESS_BYTES: usize = 128;

/// A compressor and its buffer.
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
