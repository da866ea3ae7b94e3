//! Merges whole documents into a store that is held in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{Reason, Verdict, index_entry, memory, merged_index_entry, relation};
use crate::{
    checksum::{self, ChecksumError},
    hash::Sha256Digest,
    memory::Memory,
    relation::Relation,
    store::{IndexEntry, MemoryStore},
};

/// The records of a store, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Current versions of memories.
    pub memories: BTreeMap<String, Memory>,
    /// Relations, also those of memories that are not held.
    pub relations: BTreeMap<String, Relation>,
    /// Entries of the index of conversations.
    pub index: BTreeMap<String, IndexEntry>,
}

/// The verdicts for all records of a document, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By memory id.
    pub memories: Vec<(String, Verdict)>,
    /// By relation id.
    pub relations: Vec<(String, Verdict)>,
    /// By conversation id.
    pub index: Vec<(String, Verdict)>,
}

/// Decides about every record of a document. Of records with equal ids the first counts.
#[must_use]
pub fn plan(state: &State, document: &MemoryStore) -> Plan {
    Plan {
        memories: each(&document.memories, |one| &one.id, |id, one| memory(state.memories.get(id), one)),
        relations: each(&document.relations, |one| &one.id, |id, one| relation(state.relations.get(id), one)),
        index: each(
            &document.conversations_index,
            |one| &one.id,
            |id, one| index_entry(state.index.get(id), one),
        ),
    }
}

fn each<T>(
    records: &[T],
    id: impl Fn(&T) -> &String,
    decide: impl Fn(&str, &T) -> Verdict,
) -> Vec<(String, Verdict)> {
    let mut seen = BTreeSet::new();
    let verdict = |record| {
        let id = id(record);
        let fresh = seen.insert(id.as_str());
        (id.clone(), if fresh { decide(id, record) } else { Verdict::of(Reason::Repeated) })
    };
    records.iter().map(verdict).collect()
}

impl Plan {
    /// All verdicts.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        [&self.memories, &self.relations, &self.index].into_iter().flatten().map(|(_, verdict)| verdict)
    }

    /// Whether merging changes the store.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.verdicts().any(|verdict| verdict.writes())
    }
}

impl State {
    /// Merges a document and returns the verdicts.
    pub fn merge(&mut self, document: &MemoryStore) -> Plan {
        let plan = plan(self, document);
        for one in written(&document.memories, &plan.memories) {
            self.memories.insert(one.id.clone(), one.clone());
        }
        for one in written(&document.relations, &plan.relations) {
            self.relations.insert(one.id.clone(), one.clone());
        }
        for one in written(&document.conversations_index, &plan.index) {
            let entry =
                self.index.get(&one.id).map_or_else(|| one.clone(), |held| merged_index_entry(held, one));
            self.index.insert(one.id.clone(), entry);
        }
        plan
    }

    /// The checksum over the memories (§16.3 rule 4).
    ///
    /// # Errors
    /// If a memory has no canonical form.
    pub fn checksum(&self) -> Result<Sha256Digest, ChecksumError> {
        let mut builder = checksum::Builder::new();
        self.memories.values().try_for_each(|memory| builder.push(memory))?;
        Ok(builder.finish())
    }
}

/// The records that are written.
fn written<'a, T>(records: &'a [T], verdicts: &'a [(String, Verdict)]) -> impl Iterator<Item = &'a T> {
    records.iter().zip(verdicts).filter(|(_, (_, verdict))| verdict.writes()).map(|(record, _)| record)
}
