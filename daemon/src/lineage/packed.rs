//! What an import has to hold until its end: packed, as an export brings tens of thousands of pieces that look alike.

use std::{cell::RefCell, collections::BTreeMap};

use super::{Key, LineageError};

/// Bytes that are packed together; they are unpacked for each piece of them that is read out of order.
const BLOCK: usize = 16 << 10;
/// How hard: it is done while an export is read.
const LEVEL: i32 = 1;

/// Pieces of bytes, by their keys.
#[derive(Default)]
pub struct Packed {
    places: BTreeMap<Key, Place>,
    blocks: Vec<Block>,
    open: Vec<u8>,
    /// The block that was unpacked last.
    last: RefCell<Option<(usize, Vec<u8>)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    block: usize,
    at: usize,
    length: usize,
}

struct Block {
    packed: Box<[u8]>,
    length: usize,
}

impl Packed {
    /// Takes a piece; of two under one key the later stays.
    ///
    /// # Errors
    /// When it cannot be packed, for which there is no reason but a bug.
    pub fn insert(&mut self, key: Key, json: &[u8]) -> Result<(), LineageError> {
        let place = Place { block: self.blocks.len(), at: self.open.len(), length: json.len() };
        self.places.insert(key, place);
        self.open.extend_from_slice(json);
        if self.open.len() >= BLOCK {
            let packed = zstd::bulk::compress(&self.open, LEVEL).map_err(|_| unreadable())?;
            self.blocks.push(Block { packed: packed.into_boxed_slice(), length: self.open.len() });
            self.open.clear();
        }
        Ok(())
    }

    /// The piece under `key`, if there is one.
    ///
    /// # Errors
    /// As [`Packed::insert`].
    pub fn get(&self, key: &Key) -> Result<Option<Vec<u8>>, LineageError> {
        self.places.get(key).map(|place| self.read(*place, <[u8]>::to_vec)).transpose()
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.places.keys()
    }

    /// All pieces, in the order in which they lie.
    ///
    /// # Errors
    /// As [`Packed::insert`], and those of `each`.
    pub fn each<E: From<LineageError>>(
        &self,
        mut each: impl FnMut(Key, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut places: Vec<(Place, Key)> = self.places.iter().map(|(key, place)| (*place, *key)).collect();
        places.sort_unstable();
        places.into_iter().try_for_each(|(place, key)| self.read(place, |json| each(key, json))?)
    }

    fn read<T>(
        &self,
        Place { block, at, length }: Place,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, LineageError> {
        let Some(packed) = self.blocks.get(block) else { return Ok(take(&self.open[at..at + length])) };
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(last, _)| *last != block) {
            let bytes = zstd::bulk::decompress(&packed.packed, packed.length).map_err(|_| unreadable())?;
            *last = Some((block, bytes));
        }
        let bytes = last.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        bytes.get(at..at + length).map(take).ok_or_else(unreadable)
    }
}

fn unreadable() -> LineageError {
    LineageError::Unreadable { what: "what an import holds until its end" }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_piece_comes_back_from_whatever_block_and_of_two_the_later() {
        let json =
            |n: u32| format!("{{\"n\":{n},\"text\":\"{}\"}}", "ab ".repeat(n as usize % 300)).into_bytes();
        let key = |n: u32| u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c).to_be_bytes();
        let mut pieces = Packed::default();
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
            Ok::<_, LineageError>(())
        };
        pieces.each(&mut note).unwrap();
        assert!(seen.iter().all(|(key, json)| pieces.get(key).unwrap().as_ref() == Some(json)));
        assert!(seen.keys().eq(pieces.keys()));
    }
}
