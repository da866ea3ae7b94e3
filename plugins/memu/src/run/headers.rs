//! Rows of `memories`, to which rows of `memory_contents` refer.

use std::collections::BTreeMap;

use crate::memory::MemoryHeader;

/// Rows that are stored; there is one for each agent of each user.
const MAX_HEADERS: usize = 50_000;
/// Bytes of the other fields of all rows that are stored.
const MAX_RECORD_BYTES: usize = 8 * 1024 * 1024;

pub(super) const EMPTY: &str = "the memory holds neither a profile nor events nor a mind";

/// An owned [`MemoryHeader`].
#[derive(Debug)]
struct Header {
    memory: String,
    agent: Option<String>,
    user: Option<String>,
    at: Option<i64>,
    record: Option<String>,
}

impl Header {
    fn borrow(&self) -> MemoryHeader<'_> {
        MemoryHeader {
            memory: Some(&self.memory),
            agent: self.agent.as_deref(),
            user: self.user.as_deref(),
            at: self.at,
            record: self.record.as_deref(),
        }
    }
}

/// The rows by `memory_id`.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// The export may hold rows of contents, so other fields are stored.
    pub(super) wanted: bool,
    rows: BTreeMap<String, Header>,
    /// Locators of the rows for which no entry was read yet.
    empty: BTreeMap<String, String>,
    /// Bytes of all records.
    bytes: usize,
}

impl Headers {
    /// Stores a row; `has_entries` if it holds lists itself. False if it is not stored.
    pub(super) fn add(&mut self, header: &MemoryHeader<'_>, locator: &str, has_entries: bool) -> bool {
        let Some(memory) = header.memory.filter(|_| self.rows.len() < MAX_HEADERS) else { return false };
        if has_entries {
            self.empty.remove(memory);
        } else if !self.rows.contains_key(memory) {
            self.empty.insert(memory.to_owned(), locator.to_owned());
        }
        let room = MAX_RECORD_BYTES.saturating_sub(self.bytes);
        let record = header.record.filter(|record| self.wanted && record.len() <= room);
        self.bytes += record.map_or(0, str::len);
        let header = Header {
            memory: memory.to_owned(),
            agent: header.agent.map(ToOwned::to_owned),
            user: header.user.map(ToOwned::to_owned),
            at: header.at,
            record: record.map(ToOwned::to_owned),
        };
        self.rows.insert(memory.to_owned(), header);
        true
    }

    /// The header for a row of contents of this memory.
    pub(super) fn of_contents<'h>(&'h mut self, memory: &'h str) -> MemoryHeader<'h> {
        self.empty.remove(memory);
        let unknown = MemoryHeader { memory: Some(memory), ..MemoryHeader::default() };
        self.rows.get(memory).map_or(unknown, Header::borrow)
    }

    /// Locators of the rows for which the export holds no entry.
    pub(super) fn take_empty(&mut self) -> Vec<String> {
        std::mem::take(&mut self.empty).into_values().collect()
    }
}
