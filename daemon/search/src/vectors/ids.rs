//! The ids of vectors, and the rows where these are.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

/// Tables are made smaller when they have room for so many times the ids.
const MAX_ROOM: usize = 8;
/// Tables for fewer ids are not worth it.
const MIN_ROOM: usize = 64;

/// Ids by row, and rows by id.
#[derive(Debug, Default)]
pub(super) struct Ids {
    by_row: Vec<Arc<str>>,
    rows: HashMap<Arc<str>, usize>,
}

/// Memory of an id besides its text: two counters, the pointers of both tables, a row number, a byte of the hash table and what
/// an allocator rounds up.
const OVERHEAD: usize = 16 + 2 * size_of::<Arc<str>>() + size_of::<usize>() + 1 + 16;

impl Ids {
    /// Number of ids.
    pub(super) fn len(&self) -> usize {
        self.by_row.len()
    }

    /// Returns the id of a row.
    pub(super) fn id(&self, row: usize) -> &str {
        &self.by_row[row]
    }

    /// Returns the row of an id.
    pub(super) fn row(&self, id: &str) -> Option<usize> {
        self.rows.get(id).copied()
    }

    /// Returns the row of an id; `Err` with the next row if the id is new and got it.
    pub(super) fn row_or_insert(&mut self, id: &str) -> Result<usize, usize> {
        let (next, id) = (self.len(), Arc::<str>::from(id));
        match self.rows.entry(id) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(vacant) => {
                self.by_row.push(Arc::clone(vacant.key()));
                vacant.insert(next);
                Err(next)
            }
        }
    }

    /// Removes an id, and returns its row, which the id of the last row gets.
    pub(super) fn swap_remove(&mut self, id: &str) -> Option<usize> {
        let row = self.rows.remove(id)?;
        self.by_row.swap_remove(row);
        if let Some(moved) = self.by_row.get(row) {
            self.rows.insert(Arc::clone(moved), row);
        }
        if self.rows.capacity() > MAX_ROOM * self.len().max(MIN_ROOM) {
            self.by_row.shrink_to(2 * self.len());
            self.rows.shrink_to(2 * self.len());
        }
        Some(row)
    }

    /// Memory that the ids take, in bytes; about, as the tables have some room.
    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.by_row.iter().map(|id| id.len()).sum();
        let room = (self.by_row.capacity() - self.len()) * size_of::<Arc<str>>()
            + (self.rows.capacity() - self.len()) * (size_of::<Arc<str>>() + size_of::<usize>() + 1);
        texts + self.len() * OVERHEAD + room
    }
}
