//! A temporary file for data that does not fit into memory.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use super::{Cipher, DataKey, cipher::OVERHEAD};

/// An unnamed file in the system's temporary directory. Its contents are encrypted with a key that exists only in this
/// process, so that no readable data is left on the disk, however the process ends.
pub(crate) struct ScratchFile {
    file: File,
    cipher: Cipher,
    end: u64,
}

impl ScratchFile {
    /// Creates an empty temporary file.
    pub(crate) fn new() -> io::Result<Self> {
        let key = DataKey::random()?;
        Ok(Self { file: tempfile::tempfile()?, cipher: Cipher::new(key.as_bytes()), end: 0 })
    }

    /// Appends a block and returns its start.
    pub(crate) fn append(&mut self, block: &[u8]) -> io::Result<u64> {
        let start = self.end;
        let sealed = self.cipher.seal(&start.to_le_bytes(), block)?;
        self.file.write_all_at(&sealed, start)?;
        self.end += sealed.len() as u64;
        Ok(start)
    }

    /// Reads the block of `length` bytes that was appended at `start`.
    pub(crate) fn read(&self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut sealed = vec![0; length + OVERHEAD];
        self.file.read_exact_at(&mut sealed, start)?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a temporary file was changed");
        self.cipher.open(&start.to_le_bytes(), sealed).ok_or_else(damaged)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_back_and_the_file_does_not_reveal_them() {
        let mut scratch = ScratchFile::new().unwrap();
        let blocks: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![n; 1 + usize::from(n) * 97]).collect();
        let starts: Vec<u64> = blocks.iter().map(|block| scratch.append(block).unwrap()).collect();
        for (block, start) in blocks.iter().zip(&starts).rev() {
            assert_eq!(&scratch.read(*start, block.len()).unwrap(), block);
        }
        let mut raw = vec![0; usize::try_from(scratch.end).unwrap()];
        scratch.file.read_exact_at(&mut raw, 0).unwrap();
        assert!(!raw.windows(64).any(|bytes| bytes.iter().all(|byte| *byte == bytes[0])));
    }

    #[test]
    fn a_changed_or_moved_block_does_not_open() {
        let mut scratch = ScratchFile::new().unwrap();
        let (first, second) = (scratch.append(b"first").unwrap(), scratch.append(b"other").unwrap());
        let mut sealed = vec![0; 5 + OVERHEAD];
        scratch.file.read_exact_at(&mut sealed, second).unwrap();
        scratch.file.write_all_at(&sealed, first).unwrap();
        assert_eq!(scratch.read(first, 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(scratch.read(second, 5).unwrap(), b"other");
    }
}
