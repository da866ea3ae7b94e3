//! The bytes of a row: in a leaf, and on a chain of overflow pages if they are many.

use std::ops::Range;

use super::{
    btree::Cell,
    pages::{Page, Pages},
};
use crate::ImportError;

/// The bytes of a row, of which those on overflow pages are read when they are asked for.
pub(super) struct Payload<'d> {
    pages: &'d Pages,
    page: Page,
    cell: Cell,
}

impl<'d> Payload<'d> {
    pub(super) fn new(pages: &'d Pages, page: Page, cell: Cell) -> Self {
        Self { pages, page, cell }
    }

    pub(super) fn pages(&self) -> &'d Pages {
        self.pages
    }

    pub(super) fn rowid(&self) -> i64 {
        self.cell.rowid
    }

    pub(super) fn size(&self) -> u64 {
        self.cell.size
    }

    /// The bytes in the leaf.
    pub(super) fn local(&self) -> &[u8] {
        self.page.get(self.cell.start..self.cell.start + self.cell.local).unwrap_or_default()
    }

    /// The bytes in `range`, which must end inside of the row.
    pub(super) fn bytes(&self, range: Range<u64>) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        append(&mut bytes, self.local(), 0, &range);
        let mut at = self.cell.local as u64;
        let mut next = self.page.u32(self.cell.start + self.cell.local).unwrap_or_default();
        while at < range.end {
            let overflow = self.pages.page(next)?;
            let content = overflow.get(4..).unwrap_or_default();
            append(&mut bytes, content, at, &range);
            at += content.len() as u64;
            next = overflow.u32(0).unwrap_or_default();
        }
        Ok(bytes)
    }
}

/// Appends what `range` has of `content`, which begins at `offset` of the row.
fn append(bytes: &mut Vec<u8>, content: &[u8], offset: u64, range: &Range<u64>) {
    let within =
        |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX).min(content.len());
    bytes.extend_from_slice(content.get(within(range.start)..within(range.end)).unwrap_or_default());
}
