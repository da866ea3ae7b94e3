//! A file that is open for reading, as the index sees it.

use std::{fmt, io, ops::Range, sync::Arc};

use tantivy::{
    HasLen,
    directory::{FileHandle, OwnedBytes},
};

use super::{block_reader::BlockReader, cache::BlockCache, layout::BLOCK};

/// A longer read than this part of the cache does not put its blocks there: when a merge reads whole files once, the blocks that
/// queries use must stay.
const CACHED_PART: usize = 4;

/// A complete file that was opened, whose blocks are decrypted when they are read.
pub(super) struct SealedFile {
    blocks: BlockReader,
    /// Its number in the cache.
    number: u64,
    cache: Arc<BlockCache>,
}

impl SealedFile {
    /// Reads the last block, which shows that no bytes are missing at the end. Files of the index end with a footer that is read
    /// next anyway.
    pub(super) fn open(blocks: BlockReader, cache: Arc<BlockCache>) -> io::Result<Self> {
        let number = cache.add_file();
        let file = Self { blocks, number, cache };
        file.block(file.blocks.layout().blocks - 1, true)?;
        Ok(file)
    }

    fn block(&self, block: usize, keep: bool) -> io::Result<OwnedBytes> {
        if let Some(contents) = self.cache.get(self.number, block) {
            return Ok(contents);
        }
        let contents = self.blocks.read(block)?;
        if keep {
            self.cache.insert(self.number, block, contents.clone());
        }
        Ok(contents)
    }
}

impl FileHandle for SealedFile {
    /// Bytes of one block are not copied.
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.start > range.end || range.end > self.len() {
            let message = format!("{range:?} is not in {:?} of the search index", self.blocks.name());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if range.is_empty() {
            return Ok(OwnedBytes::empty());
        }
        let within = |block: usize| {
            let start = block * BLOCK;
            range.start.max(start) - start..range.end.min(start + BLOCK) - start
        };
        let (first, last) = (range.start / BLOCK, (range.end - 1) / BLOCK);
        if first == last {
            return Ok(self.block(first, true)?.slice(within(first)));
        }
        let keep = range.len() <= self.cache.max_bytes() / CACHED_PART;
        let mut bytes = Vec::with_capacity(range.len());
        for block in first..=last {
            bytes.extend_from_slice(&self.block(block, keep)?[within(block)]);
        }
        Ok(OwnedBytes::new(bytes))
    }
}

impl HasLen for SealedFile {
    fn len(&self) -> usize {
        self.blocks.layout().length
    }
}

impl fmt::Debug for SealedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedFile({:?})", self.blocks.name())
    }
}

impl Drop for SealedFile {
    fn drop(&mut self) {
        self.cache.remove_file(self.number);
    }
}
