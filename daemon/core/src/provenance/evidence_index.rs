//! Derives what a few edits change from the evidence on which that depends, without reading all evidence.
//!
//! What is shown of a memory follows from the evidence about it, about the lists that contain it, and about the memories that it is
//! related to. The index says which pieces are about what. It is built when it is first needed, and follows what the store writes.
//! Where it is of no help, because too much is connected with the edits or because pieces refer to each other in an unusual way, the
//! caller reads all evidence.

mod search;
mod subjects;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use satchel_merge::evidence::{DerivedMemories, EditStep, UserEdits};
use satchel_store::{Store, record_key};

use self::{search::Search, subjects::Subjects};
use super::{ActiveEvidence, EvidenceItem, EvidenceKey, ProvenanceError, UndoneImports};

/// Maximum number of entries. Each takes about 40 bytes.
const MAX_ENTRIES: usize = 200_000;

/// Which evidence is about what. Clones share it.
#[derive(Clone, Default)]
pub struct EvidenceIndex(Arc<Mutex<Option<Entries>>>);

/// What follows from the evidence before some edits and after them.
pub struct DerivedChange {
    /// Without the edits. It contains the memories that they may change and those that these are connected with.
    pub before: DerivedMemories,
    /// With the edits.
    pub after: DerivedMemories,
    /// The ids of these memories, among other ids.
    connected: BTreeSet<String>,
}

/// The first bytes of the key of a subject, and the key of a piece about it. If two subjects have the same first bytes, a search for
/// one also reads the pieces about the other, which only costs time.
type Entry = (u64, EvidenceKey);

#[derive(Default)]
struct Entries {
    entries: BTreeSet<Entry>,
    /// The number of writes of the store that are included; `None` if nothing is.
    writes: Option<u64>,
    /// There was too much evidence. The index stays empty until the next start.
    too_many: bool,
}

impl EvidenceIndex {
    /// Derives what `steps`, some of which may be stored already, change. Returns `None` if only all evidence can tell.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn derive_change(
        &self,
        store: &Store,
        undone: &UndoneImports,
        steps: &[EditStep],
    ) -> Result<Option<DerivedChange>, ProvenanceError> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // If it cannot be updated, the next call builds it anew.
        let mut entries = held.take().unwrap_or_default();
        entries.update(store, MAX_ENTRIES)?;
        let entries = held.insert(entries);
        if entries.too_many {
            return Ok(None);
        }
        Search::new(store, entries, undone, steps)?.derive(steps)
    }
}

impl DerivedChange {
    /// Returns whether it says what is shown of the memory.
    #[must_use]
    pub fn contains(&self, memory: &str) -> bool {
        self.connected.contains(memory)
    }

    /// Compares it with what follows from all evidence.
    ///
    /// # Panics
    /// If that says something else, which is a bug.
    pub fn assert_same(&self, (mut all_before, mut all_after): (DerivedMemories, DerivedMemories)) {
        let Self { before, after, .. } = self;
        let memories = differences(&all_before.memories, &all_after.memories);
        assert_eq!(differences(&before.memories, &after.memories), memories);
        let relations = differences(&all_before.relations, &all_after.relations);
        assert_eq!(differences(&before.relations, &after.relations), relations);
        all_before.retain(|memory| self.contains(memory));
        all_after.retain(|memory| self.contains(memory));
        assert_eq!((&before.memories, &before.untrusted), (&all_before.memories, &all_before.untrusted));
        assert_eq!((&after.memories, &after.untrusted), (&all_after.memories, &all_after.untrusted));
    }
}

fn differences<T: Clone + PartialEq>(
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
) -> BTreeMap<String, [Option<T>; 2]> {
    let ids: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let both = ids.into_iter().map(|id| (id.clone(), [before.get(id).cloned(), after.get(id).cloned()]));
    both.filter(|(_, [before, after])| before != after).collect()
}

/// Derives the state that follows from `evidence` without `steps` and with them, and adds them to it.
pub fn derive_both(evidence: &mut ActiveEvidence, steps: &[EditStep]) -> (DerivedMemories, DerivedMemories) {
    let before = evidence.derive();
    evidence.edit_steps.extend(steps.iter().cloned());
    evidence.user_edits = UserEdits::of(&evidence.edit_steps);
    (before, evidence.derive())
}

impl Entries {
    /// Adds what the store has written since the last call, as long as there are at most `maximum` entries. Pieces that were removed
    /// keep their entries.
    fn update(&mut self, store: &Store, maximum: usize) -> Result<(), ProvenanceError> {
        if self.too_many {
            return Ok(());
        }
        // Before anything is read: what is written meanwhile is read again.
        let writes = store.evidence_writes();
        let new = self.writes.and_then(|included| store.evidence_written_after(included));
        if let Some(ids) = new {
            for id in ids {
                store.evidence(id)?.map_or(Ok(()), |record| self.add(id, &record.json, maximum))?;
            }
        } else {
            self.entries.clear();
            let mut all = store.evidence_all();
            while let Some(record) = all.next().filter(|_| !self.too_many) {
                let record = record?;
                self.add(record.id, &record.json, maximum)?;
            }
        }
        self.writes = Some(writes);
        Ok(())
    }

    fn add(&mut self, key: EvidenceKey, json: &[u8], maximum: usize) -> Result<(), ProvenanceError> {
        if let Some(item) = EvidenceItem::decode(json)?.filter(|_| !self.too_many) {
            let subjects = Subjects::of(&item).into_all();
            self.entries.extend(subjects.map(|subject| (prefix_of(&subject), key)));
        }
        if self.entries.len() > maximum {
            self.too_many = true;
            self.entries.clear();
        }
        Ok(())
    }

    fn pieces_about(&self, subject: &str) -> Vec<EvidenceKey> {
        let prefix = prefix_of(subject);
        self.entries.range((prefix, [0; 16])..=(prefix, [0xff; 16])).map(|(_, key)| *key).collect()
    }
}

fn prefix_of(subject: &str) -> u64 {
    let mut prefix = [0; 8];
    prefix.copy_from_slice(&record_key(subject)[..8]);
    u64::from_be_bytes(prefix)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
