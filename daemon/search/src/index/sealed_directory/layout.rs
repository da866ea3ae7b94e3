//! Where the parts of a sealed file are: the header, then the sealed blocks one after the other.
//!
//! All blocks but the last hold [`BLOCK`] bytes. The last one holds the rest; it is empty only if the file is.

use std::{
    io,
    path::{Path, PathBuf},
};

use satchel_seal::{OVERHEAD, SALT};

/// Bytes of the contents that are sealed as one block.
pub(super) const BLOCK: usize = 64 << 10;
/// Bytes of a full block in the file.
pub(super) const SEALED_BLOCK: usize = BLOCK + OVERHEAD;
/// The first bytes of each file; the last of them is the version of the layout.
const MAGIC: [u8; 8] = *b"SATIDX\0\x01";
/// Bytes before the first block.
pub(super) const HEADER: usize = MAGIC.len() + SALT;

/// Why a file cannot be decrypted.
#[derive(Debug, thiserror::Error)]
pub(super) enum DamagedFile {
    /// It is no sealed file, or one of another version.
    #[error("{file:?} of the search index does not begin with a header of this version")]
    Header { file: PathBuf },
    /// Bytes are missing or were added.
    #[error("{file:?} of the search index has a length that no file has")]
    Length { file: PathBuf },
    /// Its bytes are not those that were sealed for this place, or the key is another one.
    #[error("block {block} of {file:?} of the search index was changed or has another key")]
    Block { file: PathBuf, block: usize },
}

impl From<DamagedFile> for io::Error {
    fn from(damaged: DamagedFile) -> Self {
        Self::new(io::ErrorKind::InvalidData, damaged)
    }
}

/// Returns the header of a file with this salt.
pub(super) fn header(salt: &[u8; SALT]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[MAGIC.len()..].copy_from_slice(salt);
    header
}

/// Returns the salt of a file; `None` if the header is not of this version.
pub(super) fn salt(header: &[u8; HEADER]) -> Option<[u8; SALT]> {
    header.strip_prefix(&MAGIC)?.try_into().ok()
}

/// Returns the bytes to which a block is bound. Those after the name have a fixed length, so that no two places are alike.
pub(super) fn place(file: &Path, block: usize, last: bool) -> Vec<u8> {
    let name = file.as_os_str().as_encoded_bytes();
    [name, &(block as u64).to_le_bytes(), &[u8::from(last)]].concat()
}

/// The blocks of a file, which follow from its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockLayout {
    /// Bytes of the contents.
    pub(super) length: usize,
    /// Number of blocks, at least one.
    pub(super) blocks: usize,
}

impl BlockLayout {
    /// Returns the layout of a file with so many bytes; `None` if no file has that length.
    pub(super) fn of_file(bytes: u64) -> Option<Self> {
        let sealed = usize::try_from(bytes).ok()?.checked_sub(HEADER)?;
        let blocks = sealed.div_ceil(SEALED_BLOCK);
        let full = blocks.checked_sub(1)?;
        let last = (sealed - full * SEALED_BLOCK).checked_sub(OVERHEAD)?;
        (last > 0 || full == 0).then_some(Self { length: full * BLOCK + last, blocks })
    }

    /// Returns whether this block is the last one.
    pub(super) fn last(&self, block: usize) -> bool {
        block + 1 == self.blocks
    }

    /// Returns where a block begins in the file.
    pub(super) fn offset(block: usize) -> u64 {
        (HEADER + block * SEALED_BLOCK) as u64
    }

    /// Returns how many bytes of the file a block has.
    pub(super) fn sealed_length(&self, block: usize) -> usize {
        (self.length - block * BLOCK).min(BLOCK) + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_follows_from_the_length_of_the_file() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 7] {
            let blocks = length.div_ceil(BLOCK).max(1);
            let bytes = HEADER + length + blocks * OVERHEAD;
            let layout = BlockLayout::of_file(bytes as u64).expect("a file can have this length");
            assert_eq!(layout, BlockLayout { length, blocks });
            let sealed: usize = (0..blocks).map(|block| layout.sealed_length(block)).sum();
            assert_eq!(HEADER + sealed, bytes);
            assert!(layout.last(blocks - 1) && (0..blocks - 1).all(|block| !layout.last(block)));
        }
        for bytes in [0, 1, HEADER, HEADER + OVERHEAD - 1, HEADER + SEALED_BLOCK + 1] {
            assert_eq!(BlockLayout::of_file(bytes as u64), None, "{bytes}");
        }
        // A second block without contents is never written.
        assert_eq!(BlockLayout::of_file((HEADER + SEALED_BLOCK + OVERHEAD) as u64), None);
    }
}
