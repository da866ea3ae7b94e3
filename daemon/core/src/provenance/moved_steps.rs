//! The causality of edits whose series forked and that were written again in another one, and of edits whose authors had seen those. The stored steps keep the form and the key that
//! they had.

use std::collections::BTreeMap;

use satchel_merge::causality::{Causality, Dot, VersionVector};
use satchel_store::{Change, Ledger, LedgerWrite, Store};
use serde::{Deserialize, Serialize};

use super::{EvidenceKey, ProvenanceError};

const WHAT: &str = "the places of edits that were moved";
/// Steps per page.
const ROWS_PER_PAGE: usize = 500;

/// What replaces the stored causality of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    /// The key of the step, as 32 hex digits.
    key: String,
    dot: Dot,
    seen: VersionVector,
}

/// What replaces the stored causality of steps, by their keys.
#[derive(Debug, Default)]
pub struct MovedSteps(BTreeMap<EvidenceKey, (Dot, VersionVector)>);

impl MovedSteps {
    /// Loads all of them. A store whose series never forked has none.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn load(store: &Store) -> Result<Self, ProvenanceError> {
        let mut moved = Self::default();
        for page in 0.. {
            let Some(entry) = store.ledger_get(Ledger::Sync, &entry_id(page))? else { break };
            let rows: Vec<Row> = serde_json::from_slice(&entry.value)
                .map_err(|_| ProvenanceError::Unreadable { what: WHAT })?;
            for Row { key, dot, seen } in rows {
                let key = u128::from_str_radix(&key, 16);
                let key = key.map_err(|_| ProvenanceError::Unreadable { what: WHAT })?;
                moved.0.insert(key.to_be_bytes(), (dot, seen));
            }
        }
        Ok(moved)
    }

    /// Returns the causality of the step that is stored under `key`, if it is not the stored one.
    #[must_use]
    pub fn of(&self, key: EvidenceKey) -> Option<Causality> {
        let (dot, seen) = self.0.get(&key)?.clone();
        Some(Causality::Recorded { dot, seen })
    }

    /// Replaces the causality of a step.
    pub(crate) fn insert(&mut self, key: EvidenceKey, dot: Dot, seen: VersionVector) {
        self.0.insert(key, (dot, seen));
    }

    /// Returns the changes that store all of them.
    pub(crate) fn to_changes(&self) -> Result<Vec<Change>, ProvenanceError> {
        let rows: Vec<Row> = self.0.iter().map(row).collect();
        let pages = (0_u32..).zip(rows.chunks(ROWS_PER_PAGE));
        pages.map(|(page, rows)| put(page, rows)).collect()
    }
}

fn row((key, (dot, seen)): (&EvidenceKey, &(Dot, VersionVector))) -> Row {
    Row { key: format!("{:032x}", u128::from_be_bytes(*key)), dot: *dot, seen: seen.clone() }
}

fn put(page: u32, rows: &[Row]) -> Result<Change, ProvenanceError> {
    let value = serde_json::to_vec(rows).map_err(|_| ProvenanceError::Unreadable { what: WHAT })?;
    Ok(Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Sync, id: entry_id(page), at_micros: 0, value }))
}

fn entry_id(page: u32) -> String {
    format!("moved {page}")
}
