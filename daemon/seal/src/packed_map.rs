//! Data that an import has to hold until its end. It is compressed, because an export contains tens of thousands of
//! similar pieces, and goes to a temporary file once the memory budget is used up.

use std::{cell::RefCell, collections::BTreeMap};

use super::scratch::ScratchFile;

/// The key of a piece.
pub type PackedKey = [u8; 16];

/// Why pieces cannot be stored or read back.
#[derive(Debug, thiserror::Error)]
pub enum PackedMapError {
    /// A bug in Satchel.
    #[error("what was put aside cannot be packed or read back; please report this")]
    Unreadable,
    /// The temporary file cannot be used.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[from] std::io::Error),
}

/// Bytes that are compressed as one block. Reading a piece out of order decompresses its whole block.
const BLOCK_BYTES: usize = 16 << 10;
/// zstd compression level. It is low because compression runs while an export is read.
const COMPRESSION_LEVEL: i32 = 1;
/// Compressed bytes that stay in memory.
const MAX_BYTES_IN_MEMORY: usize = 32 << 20;

/// Byte strings by key, compressed.
#[derive(Default)]
pub struct PackedMap {
    positions: BTreeMap<PackedKey, PiecePosition>,
    blocks: Vec<PackedBlock>,
    open: Vec<u8>,
    /// Compressed bytes that are in memory.
    bytes_in_memory: usize,
    scratch: Option<ScratchFile>,
    /// The block that was decompressed last.
    last: RefCell<Option<(u32, Vec<u8>)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PiecePosition {
    block: u32,
    offset: u32,
    length: u32,
}

struct PackedBlock {
    packed: BlockBytes,
    /// The uncompressed length in bytes.
    length: u32,
}

enum BlockBytes {
    Memory(Box<[u8]>),
    Scratch { start: u64, length: u32 },
}

impl PackedMap {
    /// Stores a piece. If the key is already in use, the new piece replaces the old one.
    ///
    /// # Errors
    /// If the temporary file cannot be written, or the piece is longer than 4 GiB.
    pub fn insert(&mut self, key: PackedKey, json: &[u8]) -> Result<(), PackedMapError> {
        let place = PiecePosition {
            block: to_u32(self.blocks.len())?,
            offset: to_u32(self.open.len())?,
            length: to_u32(json.len())?,
        };
        self.positions.insert(key, place);
        self.open.extend_from_slice(json);
        if self.open.len() >= BLOCK_BYTES {
            self.close_block()?;
        }
        Ok(())
    }

    /// Removes the piece under `key`.
    pub fn remove(&mut self, key: &PackedKey) {
        self.positions.remove(key);
    }

    fn close_block(&mut self) -> Result<(), PackedMapError> {
        let packed = zstd::bulk::compress(&self.open, COMPRESSION_LEVEL).map_err(|_| unreadable())?;
        let length = to_u32(self.open.len())?;
        self.open.clear();
        let packed = if self.bytes_in_memory + packed.len() <= MAX_BYTES_IN_MEMORY {
            self.bytes_in_memory += packed.len();
            BlockBytes::Memory(packed.into_boxed_slice())
        } else {
            let scratch = match &mut self.scratch {
                Some(scratch) => scratch,
                none => none.insert(ScratchFile::new()?),
            };
            BlockBytes::Scratch { start: scratch.append(&packed)?, length: to_u32(packed.len())? }
        };
        self.blocks.push(PackedBlock { packed, length });
        Ok(())
    }

    /// Returns the piece under `key`, if there is one.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn get(&self, key: &PackedKey) -> Result<Option<Vec<u8>>, PackedMapError> {
        self.positions.get(key).map(|place| self.read(*place, <[u8]>::to_vec)).transpose()
    }

    /// Returns whether there is a piece under `key`.
    pub fn contains_key(&self, key: &PackedKey) -> bool {
        self.positions.contains_key(key)
    }

    /// Returns all keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &PackedKey> {
        self.positions.keys()
    }

    /// Returns the number of pieces.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns whether there are no pieces.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Calls `each` for all pieces in key order. This decompresses a block for each piece.
    ///
    /// # Errors
    /// Those of [`PackedMap::get`] and of `each`.
    pub fn for_each_by_key<E: From<PackedMapError>>(
        &self,
        mut each: impl FnMut(PackedKey, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.positions.iter().try_for_each(|(key, place)| self.read(*place, |json| each(*key, json))?)
    }

    /// Calls `each` for all pieces in the order in which they are stored.
    ///
    /// # Errors
    /// Those of [`PackedMap::get`] and of `each`.
    pub fn for_each<E: From<PackedMapError>>(
        &self,
        mut each: impl FnMut(PackedKey, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut places: Vec<(PiecePosition, PackedKey)> =
            self.positions.iter().map(|(key, place)| (*place, *key)).collect();
        places.sort_unstable();
        places.into_iter().try_for_each(|(place, key)| self.read(place, |json| each(key, json))?)
    }

    fn read<T>(
        &self,
        PiecePosition { block, offset: at, length }: PiecePosition,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, PackedMapError> {
        let range = at as usize..at as usize + length as usize;
        let Some(packed) = self.blocks.get(block as usize) else { return Ok(take(&self.open[range])) };
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(last, _)| *last != block) {
            *last = Some((block, self.decompress(packed)?));
        }
        let bytes = last.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        bytes.get(range).map(take).ok_or_else(unreadable)
    }

    fn decompress(&self, block: &PackedBlock) -> Result<Vec<u8>, PackedMapError> {
        let read;
        let packed: &[u8] = match &block.packed {
            BlockBytes::Memory(packed) => packed,
            BlockBytes::Scratch { start, length } => {
                let scratch = self.scratch.as_ref().ok_or_else(unreadable)?;
                read = scratch.read(*start, *length as usize)?;
                &read
            }
        };
        zstd::bulk::decompress(packed, block.length as usize).map_err(|_| unreadable())
    }
}

fn to_u32(length: usize) -> Result<u32, PackedMapError> {
    u32::try_from(length).map_err(|_| unreadable())
}

fn unreadable() -> PackedMapError {
    PackedMapError::Unreadable
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_read_back_and_a_later_piece_replaces_an_earlier_one() {
        let json =
            |n: u32| format!("{{\"n\":{n},\"text\":\"{}\"}}", "ab ".repeat(n as usize % 300)).into_bytes();
        let key = |n: u32| u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c).to_be_bytes();
        let mut pieces = PackedMap::default();
        for n in 0..600 {
            pieces.insert(key(n), &json(n)).unwrap();
        }
        pieces.insert(key(7), b"later").unwrap();
        assert!(pieces.blocks.len() > 3 && !pieces.open.is_empty());
        assert_eq!(pieces.keys().count(), 600);
        for n in (0..600).rev().filter(|n| *n != 7) {
            assert_eq!(pieces.get(&key(n)).unwrap(), Some(json(n)));
        }
        assert_eq!(pieces.get(&key(7)).unwrap().as_deref(), Some(&b"later"[..]));
        assert_eq!(pieces.get(&key(600)).unwrap(), None);
        let mut seen = BTreeMap::new();
        let mut note = |key, json: &[u8]| {
            seen.insert(key, json.to_vec());
            Ok::<_, PackedMapError>(())
        };
        pieces.for_each(&mut note).unwrap();
        let mut keys = Vec::new();
        let by_key = pieces.for_each_by_key(|key, json| {
            assert_eq!(seen.get(&key).map(Vec::as_slice), Some(json));
            keys.push(key);
            Ok::<_, PackedMapError>(())
        });
        by_key.unwrap();
        assert!(keys.iter().eq(pieces.keys()) && pieces.len() == 600);
        assert!(seen.iter().all(|(key, json)| pieces.get(key).unwrap().as_ref() == Some(json)));
        assert!(seen.keys().eq(pieces.keys()));
    }

    #[test]
    fn pieces_beyond_the_memory_budget_are_read_back_from_a_file() {
        let mut pieces = PackedMap::default();
        let mut state = 1_u64;
        let mut random = |_| {
            // Incompressible bytes.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let piece: Vec<u8> = (0..1 << 20).map(&mut random).collect();
        let key = |n: u8| [n; 16];
        for n in 0..40 {
            pieces.insert(key(n), &[&[n], piece.as_slice()].concat()).unwrap();
        }
        assert!(pieces.bytes_in_memory <= MAX_BYTES_IN_MEMORY && pieces.scratch.is_some());
        pieces.remove(&key(3));
        for n in [39, 0, 17, 38] {
            assert_eq!(pieces.get(&key(n)).unwrap().unwrap()[0], n);
        }
        assert_eq!(pieces.get(&key(3)).unwrap(), None);
        let mut seen = Vec::new();
        let mut note = |key: PackedKey, bytes: &[u8]| {
            seen.push(key[0]);
            assert!(bytes[0] == key[0] && bytes[1..] == piece);
            Ok::<_, PackedMapError>(())
        };
        pieces.for_each(&mut note).unwrap();
        assert_eq!(seen, (0..40).filter(|n| *n != 3).collect::<Vec<u8>>());
    }
}
