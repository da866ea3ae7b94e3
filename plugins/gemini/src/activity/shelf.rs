//! Reads rows again by their place, keeping the blocks of the files that were read last.

use std::{collections::BTreeMap, io::Read as _};

use satchel_importer::{Bundle, ImportError, Reader};

/// Bytes of one block: what the host hands over at once.
const BLOCK: u64 = 256 * 1024;
/// Blocks that are kept: 16 MiB.
const BLOCKS: usize = 64;

/// The files of the activity, open.
pub(super) struct Shelf<'b> {
    bundle: &'b Bundle,
    paths: &'b [String],
    readers: Vec<Option<Reader>>,
    blocks: BTreeMap<(usize, u64), Block>,
    clock: u64,
}

struct Block {
    bytes: Vec<u8>,
    /// When it was used last.
    used: u64,
}

impl<'b> Shelf<'b> {
    pub(super) fn new(bundle: &'b Bundle, paths: &'b [String]) -> Self {
        let readers = paths.iter().map(|_| None).collect();
        Self { bundle, paths, readers, blocks: BTreeMap::new(), clock: 0 }
    }

    /// `length` bytes of the file number `file` from `offset`; fewer where the file ends.
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
            let room = self.room();
            let bytes = self.load(file, number, room)?;
            self.blocks.insert(key, Block { bytes, used: 0 });
        }
        let block = self.blocks.get_mut(&key).ok_or_else(|| ImportError::internal("a block is gone"))?;
        block.used = self.clock;
        Ok(&block.bytes)
    }

    /// Room for one more block: that of the one whose use is longest ago, if there are enough.
    fn room(&mut self) -> Vec<u8> {
        let oldest = self.blocks.iter().min_by_key(|(_, block)| block.used).map(|(key, _)| *key);
        let given = oldest.filter(|_| self.blocks.len() >= BLOCKS).and_then(|key| self.blocks.remove(&key));
        given.map(|block| block.bytes).unwrap_or_default()
    }

    fn load(&mut self, file: usize, number: u64, mut room: Vec<u8>) -> Result<Vec<u8>, ImportError> {
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
        room.clear();
        reader.take(BLOCK).read_to_end(&mut room)?;
        Ok(room)
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
        let mut shelf = Shelf::new(&bundle, &paths);
        for (offset, length) in
            [(700_000_u64, 50_000), (262_140, 10), (0, 600_000), (799_990, 100), (900_000, 5)]
        {
            let start = usize::try_from(offset).expect("it is small");
            let expected = bytes.get(start..bytes.len().min(start + length)).unwrap_or_default();
            assert_eq!(shelf.read(0, offset, length).expect("it is read"), expected, "{offset}");
        }
        assert_eq!(shelf.read(1, 1, 3).expect("it is read"), b"hor");
    }
}
