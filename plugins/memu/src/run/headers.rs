//! Rows of `memories` whose lists may stand in rows of `memory_contents`.

use std::collections::BTreeMap;

use crate::memory::Owner;

/// Rows that are remembered; one for each agent of each user.
const MAX_HEADERS: usize = 50_000;
/// Bytes of the other fields of all rows that are handed on to the rows of contents.
const MAX_RECORD_BYTES: usize = 8 * 1024 * 1024;

pub(super) const EMPTY: &str = "the memory holds neither a profile nor events nor a mind";

/// What rows of contents need of their memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    memory: String,
    agent: Option<String>,
    user: Option<String>,
    at: Option<i64>,
    record: Option<String>,
}

impl Header {
    /// The same, borrowed.
    pub(super) fn owner(&self) -> Owner<'_> {
        Owner {
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
    /// The export may hold rows of contents.
    pub(super) wanted: bool,
    rows: BTreeMap<String, Header>,
    /// Where those stood of which no entry was read yet.
    silent: BTreeMap<String, String>,
    /// Bytes of all records.
    bytes: usize,
}

impl Headers {
    /// Remembers a row; `spoke` if it held lists itself. False if it is not remembered.
    pub(super) fn add(&mut self, owner: &Owner<'_>, locator: &str, spoke: bool) -> bool {
        let Some(memory) = owner.memory.filter(|_| self.rows.len() < MAX_HEADERS) else { return false };
        if spoke {
            self.silent.remove(memory);
        } else if !self.rows.contains_key(memory) {
            self.silent.insert(memory.to_owned(), locator.to_owned());
        }
        let room = MAX_RECORD_BYTES.saturating_sub(self.bytes);
        let record = owner.record.filter(|record| self.wanted && record.len() <= room);
        self.bytes += record.map_or(0, str::len);
        let header = Header {
            memory: memory.to_owned(),
            agent: owner.agent.map(ToOwned::to_owned),
            user: owner.user.map(ToOwned::to_owned),
            at: owner.at,
            record: record.map(ToOwned::to_owned),
        };
        self.rows.insert(memory.to_owned(), header);
        true
    }

    /// The row that a row of contents belongs to.
    pub(super) fn take(&mut self, memory: &str) -> Option<Header> {
        self.silent.remove(memory);
        self.rows.get(memory).cloned()
    }

    /// Where the rows stood of which the export holds no entry.
    pub(super) fn unused(&mut self) -> Vec<String> {
        std::mem::take(&mut self.silent).into_values().collect()
    }
}
