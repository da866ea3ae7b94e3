//! The dots of edits that were made before their store began a series of changes. They are not part of the stored steps, which keep
//! the form and the key that they had.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::causality::{Causality, Dot, OriginId};
use satchel_store::{Change, Ledger, LedgerWrite, Store, StoreError};
use uuid::Uuid;

use super::{EvidenceKey, MovedSteps, ProvenanceError};

/// Bytes of one dot: the key of the step, the origin, the counter.
const ROW_BYTES: usize = 40;
/// Dots per page.
const ROWS_PER_PAGE: usize = 1_000;

/// The dots that are not stored with their steps, by the keys of the steps: those that stores have assigned to their earlier steps, and
/// those of moved ones.
#[derive(Debug, Default)]
pub struct AssignedDots {
    assigned: BTreeMap<EvidenceKey, BTreeSet<Dot>>,
    moved: MovedSteps,
}

/// The last page of assigned dots, to which rows are added.
pub(crate) struct DotPages {
    page: u32,
    rows: Vec<[u8; ROW_BYTES]>,
}

impl AssignedDots {
    /// Loads all of them. A store that never began a series has none.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn load(store: &Store) -> Result<Self, ProvenanceError> {
        let mut dots = Self { moved: MovedSteps::load(store)?, ..Self::default() };
        for page in 0.. {
            let Some(rows) = read(store, page)? else { break };
            for (key, dot) in rows.iter().filter_map(decode) {
                dots.assigned.entry(key).or_default().insert(dot);
            }
        }
        Ok(dots)
    }

    /// Returns the causality of the step under `key`, which was stored with the causality `stored`.
    #[must_use]
    pub fn of(&self, key: EvidenceKey, stored: Causality) -> Causality {
        match stored {
            Causality::Recorded { .. } => self.moved.of(key).unwrap_or(stored),
            Causality::Unnumbered | Causality::Assigned(_) => {
                Causality::assigned(self.assigned.get(&key).into_iter().flatten().copied())
            }
        }
    }
}

impl DotPages {
    /// Continues the stored pages.
    pub(crate) fn open(store: &Store) -> Result<Self, StoreError> {
        let mut page = 0;
        while let Some(rows) = read(store, page)? {
            if rows.len() < ROWS_PER_PAGE {
                return Ok(Self { page, rows });
            }
            page += 1;
        }
        Ok(Self { page, rows: Vec::new() })
    }

    /// Adds the dot of the step that is stored under `key`. Returns the change that stores the page if it is full.
    pub(crate) fn add(&mut self, key: EvidenceKey, dot: Dot) -> Option<Change> {
        let row = encode(key, dot);
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
        if self.rows.len() < ROWS_PER_PAGE {
            return None;
        }
        let full = put(self.page, &self.rows);
        self.page += 1;
        self.rows.clear();
        Some(full)
    }

    /// Returns the change that stores the rows that are left.
    pub(crate) fn finish(self) -> Option<Change> {
        (!self.rows.is_empty()).then(|| put(self.page, &self.rows))
    }
}

fn encode(key: EvidenceKey, dot: Dot) -> [u8; ROW_BYTES] {
    let mut row = [0; ROW_BYTES];
    row[..16].copy_from_slice(&key);
    row[16..32].copy_from_slice(dot.origin.as_uuid().as_bytes());
    row[32..].copy_from_slice(&dot.counter.get().to_be_bytes());
    row
}

fn decode(row: &[u8; ROW_BYTES]) -> Option<(EvidenceKey, Dot)> {
    let (key, rest) = row.split_first_chunk::<16>()?;
    let (origin, counter) = rest.split_first_chunk::<16>()?;
    let origin = OriginId::new(Uuid::from_bytes(*origin));
    Some((*key, Dot::new(origin, u64::from_be_bytes(counter.try_into().ok()?))?))
}

fn read(store: &Store, page: u32) -> Result<Option<Vec<[u8; ROW_BYTES]>>, StoreError> {
    let entry = store.ledger_get(Ledger::Sync, &entry_id(page))?;
    Ok(entry.map(|entry| entry.value.as_chunks().0.to_vec()))
}

fn put(page: u32, rows: &[[u8; ROW_BYTES]]) -> Change {
    let (id, value) = (entry_id(page), rows.concat());
    Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Sync, id, at_micros: 0, value })
}

fn entry_id(page: u32) -> String {
    format!("assigned {page}")
}
