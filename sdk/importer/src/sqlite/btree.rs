//! The pages of a table's b-tree: inner pages, with numbers of other pages, and leaves, with rows.

use super::pages::{Page, Pages};
use crate::ImportError;

/// A page of a table's b-tree.
pub(super) enum Node {
    Inner(Page),
    Leaf(Page),
}

/// A row in a leaf.
pub(super) struct Cell {
    pub(super) rowid: i64,
    /// Bytes of the row, with those on overflow pages.
    pub(super) size: u64,
    /// Where in the leaf the row begins.
    pub(super) start: usize,
    /// Bytes of the row in the leaf.
    pub(super) local: usize,
}

impl Node {
    pub(super) fn read(pages: &Pages, number: u32) -> Result<Self, ImportError> {
        let page = pages.page(number)?;
        match page.get(page.start()) {
            Some(0x05) => Ok(Self::Inner(page)),
            Some(0x0d) => Ok(Self::Leaf(page)),
            _ => Err(pages.damaged(number, "the page is no part of a table")),
        }
    }
}

impl Page {
    /// The number of cells, which is at most that for which there is space.
    pub(super) fn cell_count(&self) -> usize {
        let stated = self.u16(self.start() + 3).unwrap_or_default();
        usize::from(stated).min(self.len() / 2)
    }

    /// The children of an inner page: one in each cell, and one in the header.
    pub(super) fn child(&self, index: usize) -> Option<u32> {
        if index == self.cell_count() {
            return self.u32(self.start() + 8);
        }
        self.u32(self.cell(index, 12)?)
    }

    /// The largest rowid below a child of an inner page, except for the last child.
    pub(super) fn key(&self, index: usize) -> Option<i64> {
        let (key, _) = varint(self.get(self.cell(index, 12)? + 4..)?)?;
        Some(key.cast_signed())
    }

    /// The row in a cell of a leaf.
    pub(super) fn row(&self, index: usize, usable: usize) -> Option<Cell> {
        let at = self.cell(index, 8)?;
        let (size, size_bytes) = varint(self.get(at..)?)?;
        let (rowid, rowid_bytes) = varint(self.get(at + size_bytes..)?)?;
        let (start, local) = (at + size_bytes + rowid_bytes, local_bytes(size, usable));
        let end = start + local + if (local as u64) < size { 4 } else { 0 };
        (end <= self.len()).then_some(Cell { rowid: rowid.cast_signed(), size, start, local })
    }

    /// Where a cell begins. The list of cells stands behind the header, of `header` bytes.
    fn cell(&self, index: usize, header: usize) -> Option<usize> {
        self.u16(self.start() + header + 2 * index).map(usize::from)
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&self, at: usize) -> Option<u32> {
        self.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
    }
}

/// How many of the `size` bytes of a row are in the leaf: all of them if they fit, or else so many that the overflow pages are full.
fn local_bytes(size: u64, usable: usize) -> usize {
    let (max, min) = (usable - 35, (usable - 12) * 32 / 255 - 23);
    if size <= max as u64 {
        return usize::try_from(size).unwrap_or(max);
    }
    let rest = usize::try_from((size - min as u64) % (usable as u64 - 4)).unwrap_or_default();
    if min + rest <= max { min + rest } else { min }
}

/// An integer of one to nine bytes, and how many they are.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(8).enumerate() {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
    }
    Some((value << 8 | u64::from(*bytes.get(8)?), 9))
}
