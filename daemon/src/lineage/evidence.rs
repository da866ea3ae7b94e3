//! The evidence that counts.

use std::collections::{BTreeMap, BTreeSet};

use satchel_store::Store;

use super::{Brought, Key, LineageError, Undone, decode, left_out};
use crate::plan::evidence::{
    Derived, Document, Edge, Spoken, Witness, Word, add_edges, derive_with, outranks,
};

/// The evidence that counts, all of it in memory.
#[derive(Default)]
pub struct Counted {
    /// By id: of several reports the one that counts before the others.
    pub witnesses: BTreeMap<String, Witness>,
    /// Memories of PAM documents.
    pub documents: Vec<Document>,
    /// Relations that were named.
    pub edges: Vec<Edge>,
    /// All that the person said by hand.
    pub words: Vec<Word>,
    /// What of it counts.
    pub spoken: Spoken,
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
        let left_out = left_out(store, Brought::Evidence, undone)?;
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
            } else if Word::is(&record.json) {
                counted.words.push(decode(&record.json, WHAT)?);
            } else {
                let witness: Witness = decode(&record.json, WHAT)?;
                if counted.witnesses.get(&witness.id).is_none_or(|known| outranks(&witness, known)) {
                    counted.witnesses.insert(witness.id.clone(), witness);
                }
            }
        }
        counted.spoken = Spoken::of(&counted.words);
        Ok(counted)
    }

    /// The relations that follow from it without being named.
    #[must_use]
    pub fn replayed(&self) -> BTreeSet<String> {
        derive_with(self.witnesses.values(), &self.documents, &self.spoken).relations.into_keys().collect()
    }

    /// What follows from it.
    #[must_use]
    pub fn derive(&self) -> Derived {
        let mut derived = derive_with(self.witnesses.values(), &self.documents, &self.spoken);
        add_edges(&mut derived, &self.edges);
        derived
    }
}
