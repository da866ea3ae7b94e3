//! The decrypted blocks that were used last.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use lru::LruCache;
use tantivy::directory::OwnedBytes;

/// Which block: the number that the cache gave the file, and the number of the block.
type BlockId = (u64, usize);

/// Decrypted blocks of all open files of a directory, up to a number of bytes. Dropped blocks stay in memory while somebody reads
/// them.
pub(super) struct BlockCache {
    max_bytes: usize,
    files: AtomicU64,
    blocks: Mutex<CachedBlocks>,
}

struct CachedBlocks {
    recent: LruCache<BlockId, OwnedBytes>,
    bytes: usize,
}

impl BlockCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        let blocks = CachedBlocks { recent: LruCache::unbounded(), bytes: 0 };
        Self { max_bytes, files: AtomicU64::new(0), blocks: Mutex::new(blocks) }
    }

    /// Returns a number that no other file has.
    pub(super) fn add_file(&self) -> u64 {
        self.files.fetch_add(1, Ordering::Relaxed)
    }

    /// Forgets the blocks of a file.
    pub(super) fn remove_file(&self, file: u64) {
        let mut blocks = self.lock();
        let ids: Vec<BlockId> =
            blocks.recent.iter().map(|(id, _)| *id).filter(|(of, _)| *of == file).collect();
        for id in ids {
            let removed = blocks.recent.pop(&id);
            blocks.bytes -= removed.map_or(0, |block| block.len());
        }
    }

    /// Returns a block, if it is in memory.
    pub(super) fn get(&self, file: u64, block: usize) -> Option<OwnedBytes> {
        self.lock().recent.get(&(file, block)).cloned()
    }

    /// Adds a block, and drops those that were not used for the longest time.
    pub(super) fn insert(&self, file: u64, block: usize, contents: OwnedBytes) {
        let mut blocks = self.lock();
        blocks.bytes += contents.len();
        let replaced = blocks.recent.put((file, block), contents);
        blocks.bytes -= replaced.map_or(0, |block| block.len());
        while blocks.bytes > self.max_bytes {
            let Some((_, dropped)) = blocks.recent.pop_lru() else { break };
            blocks.bytes -= dropped.len();
        }
    }

    /// Returns how many bytes of contents it may hold.
    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Returns how many bytes of contents it holds.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let blocks = self.lock();
        assert_eq!(blocks.bytes, blocks.recent.iter().map(|(_, block)| block.len()).sum::<usize>());
        blocks.bytes
    }

    fn lock(&self) -> MutexGuard<'_, CachedBlocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_that_were_used_last_stay() {
        let cache = BlockCache::new(40);
        let block = |byte: u8| OwnedBytes::new(vec![byte; 10]);
        for number in 0..4 {
            cache.insert(1, usize::from(number), block(number));
        }
        assert!(cache.get(1, 0).is_some());
        cache.insert(1, 4, block(4));
        cache.insert(1, 4, block(4));
        assert_eq!(cache.bytes(), 40);
        let present: Vec<bool> = (0..5).map(|number| cache.get(1, number).is_some()).collect();
        assert_eq!(present, [true, false, true, true, true]);
        cache.insert(2, 0, OwnedBytes::new(vec![0; 41]));
        assert_eq!(cache.bytes(), 0, "a block beyond the bound is not kept");
    }

    #[test]
    fn a_file_that_was_closed_has_no_blocks() {
        let cache = BlockCache::new(100);
        let (first, second) = (cache.add_file(), cache.add_file());
        for file in [first, second] {
            cache.insert(file, 0, OwnedBytes::new(vec![1; 10]));
        }
        cache.remove_file(first);
        assert!(cache.get(first, 0).is_none() && cache.get(second, 0).is_some());
        assert_eq!(cache.bytes(), 10);
    }
}
