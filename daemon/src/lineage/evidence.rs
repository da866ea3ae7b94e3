//! Which evidence each import brought, in pages of bare keys: an export may bring a hundred thousand pieces.

use std::collections::{BTreeMap, BTreeSet};

use satchel_store::{Change, Ledger, Store};
use uuid::Uuid;

use super::{LineageError, PAGE, REST, Undone, decode, put};
use crate::plan::evidence::{Derived, Document, Edge, Witness, add_edges, derive_with, outranks};

/// The key of a piece of evidence.
pub type Key = [u8; 16];
/// Keys of one page: some 28 KiB, which the engine holds in one value.
const KEYS: usize = 1_800;

/// The keys that an import brings, page by page.
pub struct Pages {
    import: Uuid,
    page: u32,
    keys: Vec<Key>,
}

impl Pages {
    /// For the evidence of `import`.
    #[must_use]
    pub fn new(import: Uuid) -> Self {
        Self { import, page: 0, keys: Vec::new() }
    }

    /// Takes a key; a full page is to be stored with it.
    pub fn add(&mut self, key: Key) -> Option<Change> {
        self.keys.push(key);
        if self.keys.len() == KEYS { self.rest() } else { None }
    }

    /// What is left to be stored.
    pub fn rest(&mut self) -> Option<Change> {
        if self.keys.is_empty() {
            return None;
        }
        let change = put(name(self.import, self.page), REST, self.keys.concat());
        self.page += 1;
        self.keys.clear();
        Some(change)
    }
}

fn name(import: Uuid, page: u32) -> String {
    format!("evidence {import} {page}")
}

/// The evidence that `import` brought.
///
/// # Errors
/// When the ledger does not read.
pub fn brought(store: &Store, import: Uuid) -> Result<Vec<Key>, LineageError> {
    let mut keys = Vec::new();
    for page in 0.. {
        let Some(entry) = store.ledger_get(Ledger::Lineage, &name(import, page))? else { break };
        keys.extend_from_slice(entry.value.as_chunks::<16>().0);
    }
    Ok(keys)
}

/// The evidence that does not count: nobody brought it but imports that are `undone`.
///
/// # Errors
/// When the ledger does not read.
pub fn left_out(store: &Store, undone: &Undone) -> Result<BTreeSet<Key>, LineageError> {
    let mut left_out = BTreeSet::new();
    for import in undone {
        left_out.extend(brought(store, *import)?);
    }
    let mut after = None;
    while !left_out.is_empty() {
        let page = store.ledger_list(Ledger::Import, after.as_ref(), PAGE)?;
        for import in page.items.iter().filter_map(|entry| Uuid::parse_str(&entry.id).ok()) {
            if !undone.contains(&import) {
                for key in brought(store, import)? {
                    left_out.remove(&key);
                }
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(left_out)
}

/// The evidence that counts, all of it in memory.
#[derive(Default)]
pub struct Counted {
    /// By id: of several reports the one that counts before the others.
    pub witnesses: BTreeMap<String, Witness>,
    /// Memories of PAM documents.
    pub documents: Vec<Document>,
    /// Relations that were named.
    pub edges: Vec<Edge>,
    /// The keys of everything that is stored, whether it counts or not.
    pub keys: BTreeSet<Key>,
}

impl Counted {
    /// What counts when the imports in `undone` do not.
    ///
    /// # Errors
    /// When store or ledger do not read.
    pub fn of(store: &Store, undone: &Undone) -> Result<Self, LineageError> {
        const WHAT: &str = "a stored piece of evidence";
        let left_out = left_out(store, undone)?;
        let mut counted = Self::default();
        for record in store.evidence_all() {
            let record = record?;
            counted.keys.insert(record.id);
            if left_out.contains(&record.id) {
                continue;
            }
            if Document::is(&record.json) {
                counted.documents.push(decode(&record.json, WHAT)?);
            } else if Edge::is(&record.json) {
                counted.edges.push(decode(&record.json, WHAT)?);
            } else {
                let witness: Witness = decode(&record.json, WHAT)?;
                if counted.witnesses.get(&witness.id).is_none_or(|known| outranks(&witness, known)) {
                    counted.witnesses.insert(witness.id.clone(), witness);
                }
            }
        }
        Ok(counted)
    }

    /// What follows from it.
    #[must_use]
    pub fn derive(&self) -> Derived {
        let mut derived = derive_with(self.witnesses.values(), &self.documents);
        add_edges(&mut derived, &self.edges);
        derived
    }
}
