//! Stores the evidence of one import and the records that follow from it.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{Derived, Document, Edge, add_edges};
use satchel_pam::{memory::Memory, record::Warning, relation::Relation};
use satchel_source::CancelToken;
use satchel_store::{Change, EvidenceWrite, MemoryRecord, Store, key_of};

use super::{Batches, Evidence, known, named};
use crate::{
    ingest::{
        IngestError,
        receipt::{Difference, DifferenceKind, ImportRecord},
        write::Writer,
    },
    lineage::{Key, Packed, Sifted, moved, note_stranger, stranger_of},
};

/// The records derived from connected memories.
pub(super) struct Joined {
    pub(super) derived: Derived,
    /// Relations that the import names or draws.
    pub(super) edges: Vec<Edge>,
    /// The ids of relations that follow from evidence without being named.
    replayed: BTreeSet<String>,
    /// The ids of relations that were withdrawn at the origin of a document.
    taken_back: Vec<String>,
}

impl Joined {
    /// Derives records from `evidence`, the relations that the import names, those of documents, and withdrawals by
    /// documents.
    pub(super) fn of(
        store: &Store,
        evidence: &Evidence,
        (mut edges, drawn): (Vec<Edge>, named::Drawn),
        cancel: &CancelToken,
        record: &mut ImportRecord,
    ) -> Result<Self, IngestError> {
        let mut derived = evidence.derive(cancel)?;
        let named::Drawn { relations, mut withdrawn, stranger } = drawn;
        if let Some(stranger) = stranger.as_deref() {
            withdrawn.retain(|(id, _)| brought_by(evidence.edges(), id, stranger));
        }
        let drawn = (relations, stranger, evidence.edges());
        edges.extend(named::drawn_edges(store, &derived, drawn, record)?);
        let mut taken_back = named::taken_back(store, &derived, withdrawn)?;
        taken_back.extend(named::outlived(store, &derived, evidence.edges())?);
        let replayed = derived.relations.keys().cloned().collect();
        add_edges(&mut derived, evidence.edges().iter().chain(&edges));
        for id in &taken_back {
            derived.relations.remove(id);
        }
        Ok(Self { derived, edges, replayed, taken_back })
    }
}

/// Returns whether only this stranger brought the relation.
pub(super) fn brought_by(edges: &[Edge], id: &str, stranger: &str) -> bool {
    let mut of_it = edges.iter().filter(|edge| edge.relation.id == id).peekable();
    of_it.peek().is_some() && of_it.all(|edge| edge.stranger.as_deref() == Some(stranger))
}

pub(super) struct Settling<'a> {
    store: &'a Store,
    batches: Batches,
    /// Keys of the memories that the import mentions and that are not counted yet.
    touched: BTreeSet<Key>,
    /// Ids of the relations that the user changed by hand.
    ruled: BTreeSet<String>,
    /// Relations derived in slices; they are stored after all memories.
    followed: BTreeMap<String, Relation>,
    /// Documents that are already stored with another export date.
    kept: Packed,
}

impl<'a> Settling<'a> {
    /// Creates the state for an import that mentions the memories `touched`; the user changed the relations `ruled` by
    /// hand.
    pub(super) fn new(
        store: &'a Store,
        batches: Batches,
        touched: BTreeSet<Key>,
        ruled: BTreeSet<String>,
    ) -> Self {
        Self { store, batches, touched, ruled, followed: BTreeMap::new(), kept: Packed::default() }
    }

    /// Records that the import brought the evidence stored under `keys`.
    pub(super) fn say(
        &mut self,
        keys: impl Iterator<Item = Key>,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        for key in keys {
            let page = writer.brought.add(key);
            self.put(page, writer, record)?;
        }
        let page = writer.brought.rest();
        self.put(page, writer, record)
    }

    /// Stores a piece of evidence unless it is stored already. A document that is stored with another export date is
    /// kept for later.
    pub(super) fn store(
        &mut self,
        id: Key,
        json: &[u8],
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        if !self.store.has_evidence(id)? {
            let json = json.to_vec();
            return self.put([Change::Evidence(EvidenceWrite { id, json })], writer, record);
        }
        if Document::is(json) && self.store.evidence(id)?.is_some_and(|stored| stored.json != json) {
            self.kept.insert(id, json)?;
        }
        Ok(())
    }

    /// Commits the pending evidence and drops `reports`, as they are read from the store from now on; only documents that
    /// are stored with another export date are returned. If no batch was committed yet, `reports` are returned instead:
    /// they are few, and are committed together with the derived records.
    pub(super) fn let_go(
        &mut self,
        reports: Packed,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<Packed, IngestError> {
        if writer.dry_run || !self.batches.begun {
            return Ok(reports);
        }
        self.batches.commit(writer, record)?;
        Ok(std::mem::take(&mut self.kept))
    }

    pub(super) fn put(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        changes.into_iter().try_for_each(|change| self.batches.put(change, writer, record))
    }

    /// Derives and stores independent memories, slice by slice.
    pub(super) fn slices(
        &mut self,
        mut sifted: Sifted,
        reports: &Packed,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<Sifted, IngestError> {
        while let Some(slice) = sifted.next(self.store, reports)? {
            writer.wanted()?;
            let evidence = Evidence::of(slice);
            let mut derived = evidence.derive(&writer.cancel)?;
            derived.relations.retain(|id, _| !self.ruled.contains(id));
            self.memories(&evidence, &mut derived, writer, record)?;
            self.followed.append(&mut derived.relations);
        }
        Ok(sifted)
    }

    /// Stores the records derived from connected memories.
    pub(super) fn joined(
        &mut self,
        evidence: &Evidence,
        joined: Joined,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let Joined { mut derived, edges: _, mut replayed, taken_back } = joined;
        self.put(taken_back.into_iter().map(Change::WithdrawRelation), writer, record)?;
        self.memories(evidence, &mut derived, writer, record)?;
        replayed.extend(self.followed.keys().cloned());
        derived.relations.append(&mut self.followed);
        let relations = named::relation_changes(self.store, derived.relations, &replayed, &writer.undone)?;
        self.put(relations, writer, record)
    }

    /// Stores the memories that differ from the store, and withdraws the relations of those that no longer replace
    /// others.
    fn memories(
        &mut self,
        evidence: &Evidence,
        derived: &mut Derived,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        self.put(evidence.exported_again(self.store)?, writer, record)?;
        self.keep_unproven(evidence, derived, record)?;
        let trusted = evidence.trusted(&writer.cancel)?;
        for document in &evidence.documents {
            let id = &document.memory.id;
            let Some(trusted) =
                trusted.as_ref().filter(|_| derived.foreign.get(id) != document.stranger.as_ref())
            else {
                tell_of_later(self.store, derived, document, record)?;
                continue;
            };
            if trusted.memories.get(id) != derived.memories.get(id) {
                record.would_change.memory(id);
            }
        }
        for id in evidence.of_strangers() {
            let note = note_stranger(self.store, id, derived.foreign.get(id))?;
            self.put(note, writer, record)?;
        }
        let documented = evidence.documented(derived);
        for (id, memory) in std::mem::take(&mut derived.memories) {
            writer.wanted()?;
            let stored = self.store.memory(&id, None)?;
            if !documented.contains(&id) {
                let withdrawal = named::withdrawal(self.store, derived, &id, stored.as_ref())?;
                self.put(withdrawal, writer, record)?;
            }
            let stored = stored.filter(|stored| !stored.withdrawn);
            let change = self.memory(&id, memory, stored, evidence, record);
            self.put(change, writer, record)?;
        }
        Ok(())
    }

    /// Keeps visible memories without any evidence, which old versions of the program left: they belong to nobody,
    /// hence to no stranger.
    fn keep_unproven(
        &self,
        evidence: &Evidence,
        derived: &mut Derived,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        for id in evidence.of_strangers() {
            if !derived.foreign.contains_key(id) || stranger_of(self.store, id)?.is_some() {
                continue;
            }
            let Some(stored) = self.store.memory(id, None)?.filter(|stored| !stored.withdrawn) else {
                continue;
            };
            let came = derived.memories.remove(id);
            derived.foreign.remove(id);
            if came.is_some_and(|came| came != stored.memory) {
                record.would_change.memory(id);
            }
        }
        Ok(())
    }

    /// Returns the change that stores `memory`, if it differs from the store. A memory that the import does not mention
    /// is counted only if the import's evidence changed it, by replacing or removing it. If it differs for another
    /// reason, such as an import that died before deriving it, it is stored without being counted.
    fn memory(
        &mut self,
        id: &str,
        memory: Memory,
        stored: Option<MemoryRecord>,
        evidence: &Evidence,
        record: &mut ImportRecord,
    ) -> Option<Change> {
        let same = stored.as_ref().is_some_and(|stored| stored.memory == memory);
        if record.dry_run && !same && record.provider.as_deref() == Some(crate::ingest::pam::PLATFORM) {
            let kind = if stored.is_some() { DifferenceKind::Changed } else { DifferenceKind::New };
            record.differ(difference(kind, stored.as_ref().map(|stored| &stored.memory), &memory));
        }
        if self.touched.remove(&key_of(id)) || !same && evidence.without(id) != Some(&memory) {
            let counts = &mut record.memories;
            counts.found += 1;
            match (&stored, same) {
                (None, _) => counts.new += 1,
                (Some(_), false) => counts.updated += 1,
                (Some(_), true) => counts.unchanged += 1,
            }
        }
        (!same).then(|| Change::Memory(Box::new(memory)))
    }

    /// Counts the memories on which the import has only evidence that was known, and which were not derived again.
    pub(super) fn count_rest(
        &mut self,
        sifted: &Sifted,
        writer: &Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        for id in std::mem::take(&mut self.touched).iter().filter(|id| !sifted.binds(id)) {
            writer.wanted()?;
            known::count(self.store, *id, record)?;
        }
        Ok(())
    }

    /// Commits the pending changes, and records that everything is derived: `all` memories, or only those that the
    /// import mentions.
    pub(super) fn end(
        mut self,
        all: bool,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        if self.batches.marked {
            self.batches.batch.push(known::mark(""));
        }
        if all {
            self.batches.batch.push(known::derived());
        }
        self.batches.commit(writer, record)?;
        writer.flush(record)
    }
}

/// Warns if a document is older than the version that is shown: it is stored, and the later version stays visible.
fn tell_of_later(
    store: &Store,
    derived: &Derived,
    document: &Document,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    let came = &document.memory;
    let id = &came.id;
    let Some(shown) = derived.memories.get(id) else { return Ok(()) };
    if shown == came || *shown == moved(came, shown.provenance.conversation_ref.clone()) {
        return Ok(());
    }
    let message = "another version of it is later or final and stays shown; this one is kept".to_owned();
    record.warn(Warning { locator: format!("memory {id:?}"), message });
    if record.dry_run {
        let held = store.memory(id, None)?.map(|stored| stored.memory);
        record.differ(difference(DifferenceKind::Kept, held.as_ref(), came));
    }
    Ok(())
}

fn difference(kind: DifferenceKind, held: Option<&Memory>, came: &Memory) -> Difference {
    let told = |memory: &Memory| (memory.status, memory.content.clone());
    Difference { id: came.id.clone(), kind, held: held.map(told), came: told(came) }
}
