//! Decompresses with contexts that are reused: to create one takes as long as to decompress a message.

use std::{
    fmt, io,
    sync::{Mutex, PoisonError},
};

use zstd::bulk::Decompressor;

/// Number of decompressors that are kept for later readers; each takes about 100 KiB.
const MAX_POOLED: usize = 2;

/// The decompressors that no reader uses at present.
#[derive(Default)]
pub(crate) struct Decompressors(Mutex<Vec<Decompressor<'static>>>);

impl Decompressors {
    /// Decompresses `packed` to at most `capacity` bytes, which are allocated.
    ///
    /// # Errors
    /// If `packed` is not valid or longer than that.
    pub(crate) fn decompress(&self, packed: &[u8], capacity: usize) -> io::Result<Vec<u8>> {
        let pooled = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decompressor = pooled.map_or_else(Decompressor::new, Ok)?;
        let bytes = decompressor.decompress(packed, capacity)?;
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < MAX_POOLED {
            pool.push(decompressor);
        }
        Ok(bytes)
    }
}

impl fmt::Debug for Decompressors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressors").finish_non_exhaustive()
    }
}
