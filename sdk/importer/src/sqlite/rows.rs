//! The rows of a table, one after the other or by their rowid.

use std::collections::HashSet;

use super::{
    Row, Table,
    btree::Node,
    pages::{Page, Pages},
    payload::Payload,
};
use crate::{ErrorKind, ImportError};

/// Inner pages between the root of a table and its rows. SQLite has never more than 20.
const MAX_DEPTH: usize = 32;
/// How many times the bytes of the database its rows may have. Each byte of a row is stored once, but a few damaged rows may seem longer.
const MAX_REPEATED: u64 = 4;

/// The rows of a table, ordered by rowid; made by [`Database::rows`](super::Database::rows).
pub struct Rows<'d> {
    pages: &'d Pages,
    table: &'d Table,
    /// The inner pages on the way, with the next child of each.
    inner: Vec<(Page, usize)>,
    /// The leaf, with its next row.
    leaf: Option<(Page, usize)>,
    /// The page to read next.
    next: Option<u32>,
    seen: Seen,
    /// Bytes that further rows may have. Rows with the same overflow pages would be read without end.
    bytes_left: u64,
}

impl<'d> Rows<'d> {
    pub(super) fn new(pages: &'d Pages, table: &'d Table) -> Self {
        let next = Some(table.root());
        let bytes_left = pages.max_bytes().saturating_mul(MAX_REPEATED);
        Self {
            pages,
            table,
            inner: Vec::new(),
            leaf: None,
            next,
            seen: Seen::new(pages.in_file()),
            bytes_left,
        }
    }

    /// Moves to the next page with rows; false at the end.
    fn advance(&mut self) -> Result<bool, ImportError> {
        loop {
            let Some(number) = self.next.take().or_else(|| self.next_child()) else { return Ok(false) };
            let node = Node::read(self.pages, number)?;
            if !self.seen.insert(number) {
                return Err(self.pages.damaged(number, "the page is in the table twice"));
            }
            match node {
                Node::Leaf(page) => {
                    self.leaf = Some((page, 0));
                    return Ok(true);
                }
                Node::Inner(_) if self.inner.len() >= MAX_DEPTH => {
                    return Err(self.pages.damaged(number, "the table has too many levels"));
                }
                Node::Inner(page) => self.inner.push((page, 0)),
            }
        }
    }

    fn next_child(&mut self) -> Option<u32> {
        loop {
            let (page, index) = self.inner.last_mut()?;
            if *index <= page.cell_count() {
                *index += 1;
                // A cell outside of the page is a page that does not exist.
                return Some(page.child(*index - 1).unwrap_or_default());
            }
            self.inner.pop();
        }
    }

    fn next_row(&mut self) -> Option<Result<Row<'d>, ImportError>> {
        let (page, index) = self.leaf.as_mut()?;
        if *index == page.cell_count() {
            self.leaf = None;
            return None;
        }
        *index += 1;
        let (number, row) = (page.number, row(self.pages, self.table, page, *index - 1));
        let bytes = row.as_ref().map_or(0, Row::bytes);
        let Some(left) = self.bytes_left.checked_sub(bytes) else {
            self.end();
            return Some(Err(self.pages.damaged(number, "the rows have more bytes than the database")));
        };
        self.bytes_left = left;
        Some(row)
    }

    /// Leaves out the other rows.
    fn end(&mut self) {
        self.inner.clear();
        (self.leaf, self.next) = (None, None);
    }
}

impl<'d> Iterator for Rows<'d> {
    type Item = Result<Row<'d>, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.next_row() {
                return Some(row);
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    if error.kind != ErrorKind::Malformed {
                        self.end();
                    }
                    return Some(Err(error));
                }
            }
        }
    }
}

/// The row with this rowid.
pub(super) fn find<'d>(
    pages: &'d Pages,
    table: &'d Table,
    rowid: i64,
) -> Result<Option<Row<'d>>, ImportError> {
    let mut number = table.root();
    for _ in 0..=MAX_DEPTH {
        match Node::read(pages, number)? {
            Node::Inner(page) => {
                let index = first(page.cell_count(), |index| page.key(index).is_none_or(|key| key >= rowid));
                number = page.child(index).unwrap_or_default();
            }
            Node::Leaf(page) => {
                let reaches = |index| page.row(index, pages.usable()).is_none_or(|cell| cell.rowid >= rowid);
                let index = first(page.cell_count(), reaches);
                if index == page.cell_count() {
                    return Ok(None);
                }
                let row = row(pages, table, &page, index)?;
                return Ok((row.rowid() == rowid).then_some(row));
            }
        }
    }
    Err(pages.damaged(number, "the table has too many levels"))
}

/// The first index below `count` for which this is true; `count` if there is none.
fn first(count: usize, reaches: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = usize::midpoint(low, high);
        if reaches(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

fn row<'d>(pages: &'d Pages, table: &'d Table, page: &Page, index: usize) -> Result<Row<'d>, ImportError> {
    let cell = page.row(index, pages.usable());
    let cell =
        cell.ok_or_else(|| pages.damaged(page.number, format!("row {index} of the page is damaged")))?;
    Row::read(Payload::new(pages, page.clone(), cell), table)
}

/// The pages that were seen: one bit for each page of the file, and those that only the log has.
struct Seen {
    in_file: Vec<u64>,
    further: HashSet<u32>,
}

impl Seen {
    fn new(in_file: u32) -> Self {
        Self { in_file: vec![0; in_file as usize / 64 + 1], further: HashSet::new() }
    }

    /// Whether the page is new.
    fn insert(&mut self, page: u32) -> bool {
        let Some(word) = self.in_file.get_mut(page as usize / 64) else { return self.further.insert(page) };
        let bit = 1 << (page % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}
