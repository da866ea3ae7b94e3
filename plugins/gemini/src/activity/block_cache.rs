//! Reads parts of the activity files, with a cache of the blocks that were used last.

use std::{collections::BTreeMap, io::Read as _};

use satchel_importer::{Bundle, ImportError, Reader};

/// Bytes of one block: what the host returns in one read.
const BLOCK: u64 = 256 * 1024;
/// The number of cached blocks, 16 MiB in all.
const MAX_BLOCKS: usize = 64;

pub(super) struct BlockCache<'b> {
    bundle: &'b Bundle,
    paths: &'b [String],
    readers: Vec<Option<Reader>>,
    blocks: BTreeMap<(usize, u64), Block>,
    /// Counts the uses of blocks.
    clock: u64,
}

struct Block {
    bytes: Vec<u8>,
    last_used: u64,
}

impl<'b> BlockCache<'b> {
    pub(super) fn new(bundle: &'b Bundle, paths: &'b [String]) -> Self {
        let readers = paths.iter().map(|_| None).collect();
        Self { bundle, paths, readers, blocks: BTreeMap::new(), clock: 0 }
    }

    /// Reads `length` bytes of the file number `file` from `offset` on, or fewer at the end of the file.
    pub(super) fn read(&mut self, file: usize, offset: u64, length: usize) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = offset + bytes.len() as u64;
            let number = at / BLOCK;
            let start = usize::try_from(at % BLOCK).unwrap_or(usize::MAX);
            let block = self.block(file, number)?;
            let part = block.get(start..).unwrap_or_default();
            let part = part.get(..length - bytes.len()).unwrap_or(part);
            if part.is_empty() {
                break;
            }
            bytes.extend_from_slice(part);
        }
        Ok(bytes)
    }

    fn block(&mut self, file: usize, number: u64) -> Result<&[u8], ImportError> {
        self.clock += 1;
        let key = (file, number);
        if !self.blocks.contains_key(&key) {
            let buffer = self.evict();
            let bytes = self.load(file, number, buffer)?;
            self.blocks.insert(key, Block { bytes, last_used: 0 });
        }
        let block = self.blocks.get_mut(&key).ok_or_else(|| ImportError::internal("a block is gone"))?;
        block.last_used = self.clock;
        Ok(&block.bytes)
    }

    /// Removes the least recently used block if the cache is full. Returns its buffer, else an empty one.
    fn evict(&mut self) -> Vec<u8> {
        let oldest = self.blocks.iter().min_by_key(|(_, block)| block.last_used).map(|(key, _)| *key);
        let evicted =
            oldest.filter(|_| self.blocks.len() >= MAX_BLOCKS).and_then(|key| self.blocks.remove(&key));
        evicted.map(|block| block.bytes).unwrap_or_default()
    }

    fn load(&mut self, file: usize, number: u64, mut buffer: Vec<u8>) -> Result<Vec<u8>, ImportError> {
        let (Some(path), Some(slot)) = (self.paths.get(file), self.readers.get_mut(file)) else {
            return Err(ImportError::internal("a row of no file"));
        };
        let reader = match slot {
            Some(reader) => reader,
            None => slot.insert(self.bundle.open(path)?),
        };
        let start = number * BLOCK;
        if reader.position() != start {
            reader.seek(start)?;
        }
        buffer.clear();
        reader.take(BLOCK).read_to_end(&mut buffer)?;
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_of_any_file_is_read() {
        let bytes: Vec<u8> = (0_u32..800_000).flat_map(|number| [(number % 251) as u8]).collect();
        let bundle = Bundle::from_files([("a", bytes.clone()), ("b", b"short".to_vec())]);
        let paths = ["a".to_owned(), "b".to_owned()];
        let mut cache = BlockCache::new(&bundle, &paths);
        for (offset, length) in
            [(700_000_u64, 50_000), (262_140, 10), (0, 600_000), (799_990, 100), (900_000, 5)]
        {
            let start = usize::try_from(offset).expect("it is small");
            let expected = bytes.get(start..bytes.len().min(start + length)).unwrap_or_default();
            assert_eq!(cache.read(0, offset, length).expect("it is read"), expected, "{offset}");
        }
        assert_eq!(cache.read(1, 1, 3).expect("it is read"), b"hor");
    }
}
