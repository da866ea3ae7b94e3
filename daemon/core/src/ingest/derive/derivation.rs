//! Stores the evidence of one import and the records that follow from it.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{DerivedMemories, DocumentEvidence, RelationEvidence, add_relations};
use satchel_pam::{memory::Memory, record::Warning, relation::Relation};
use satchel_store::{Change, EvidenceWrite, MemoryRecord, Store, record_key};

use super::{Batches, DerivationEvidence, references, unchanged};
use crate::{
    derived,
    ingest::{
        error::IngestError,
        receipt::{Difference, DifferenceKind, ImportRecord},
        request::PAM_PLATFORM,
        session::Session,
    },
    provenance::{
        EvidenceKey, GroupedEvidence, KeyPages, PackedMap, record_untrusted_signer, untrusted_signer,
        with_conversation,
    },
};

/// The records derived from connected memories.
pub(super) struct ConnectedMemories {
    pub(super) derived: DerivedMemories,
    /// Relations that the import names or draws.
    pub(super) edges: Vec<RelationEvidence>,
    /// The ids of relations that follow from evidence without being named.
    replayed: BTreeSet<String>,
    /// The ids of relations that were withdrawn at the origin of a document.
    taken_back: Vec<String>,
}

impl ConnectedMemories {
    /// Derives records from `evidence`, the relations that the import names, those of documents, and withdrawals by
    /// documents.
    pub(super) fn of(
        session: &Session<'_>,
        evidence: &DerivationEvidence,
        (mut edges, drawn): (Vec<RelationEvidence>, references::DocumentRelations),
        record: &mut ImportRecord,
    ) -> Result<Self, IngestError> {
        let store = session.store;
        let mut derived = evidence.derive(&session.cancel)?;
        let references::DocumentRelations { relations, mut withdrawn, untrusted } = drawn;
        if let Some(untrusted) = untrusted.as_deref() {
            withdrawn.retain(|(id, _)| references::named_by(evidence.edges(), id, untrusted));
        }
        let drawn = (relations, untrusted, evidence.edges());
        edges.extend(references::drawn_edges(session, &derived, drawn, record)?);
        let mut taken_back = references::withdrawn_at_origin(store, &derived, withdrawn)?;
        taken_back.extend(references::overridden_relations(store, &derived, evidence.edges())?);
        let replayed = derived.relations.keys().cloned().collect();
        add_relations(&mut derived, evidence.edges().iter().chain(&edges));
        for id in &taken_back {
            derived.relations.remove(id);
        }
        Ok(Self { derived, edges, replayed, taken_back })
    }
}

/// The storing of an import's evidence, and of the records that follow from it.
pub(super) struct Derivation<'s> {
    session: &'s Session<'s>,
    batches: Batches,
    /// Keys of the memories that the import mentions and that are not counted yet.
    touched: BTreeSet<EvidenceKey>,
    /// Ids of the relations that the user changed by hand.
    edited: BTreeSet<String>,
    /// Relations derived in slices; they are stored after all memories.
    followed: BTreeMap<String, Relation>,
    /// Documents that are already stored with another export date.
    kept: PackedMap,
}

impl<'s> Derivation<'s> {
    /// Creates the state for an import that mentions the memories `touched`; the user changed the relations `edited` by
    /// hand.
    pub(super) fn new(
        session: &'s Session<'s>,
        batches: Batches,
        touched: BTreeSet<EvidenceKey>,
        edited: BTreeSet<String>,
    ) -> Self {
        Self { session, batches, touched, edited, followed: BTreeMap::new(), kept: PackedMap::default() }
    }

    /// Records that the import brought the evidence stored under `keys`.
    pub(super) fn record_keys(
        &mut self,
        pages: &mut KeyPages,
        keys: impl Iterator<Item = EvidenceKey>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        for key in keys {
            self.put(pages.add(key), record)?;
        }
        self.put(pages.flush(), record)
    }

    /// Stores a piece of evidence unless it is stored already. A document that is stored with another export date is
    /// kept for later.
    pub(super) fn store(
        &mut self,
        id: EvidenceKey,
        json: &[u8],
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        if !self.session.store.has_evidence(id)? {
            let json = json.to_vec();
            return self.put([Change::Evidence(EvidenceWrite { id, json })], record);
        }
        if DocumentEvidence::is(json)
            && self.session.store.evidence(id)?.is_some_and(|stored| stored.json != json)
        {
            self.kept.insert(id, json)?;
        }
        Ok(())
    }

    /// Commits the pending evidence and drops `reports`, as they are read from the store from now on; only documents that
    /// are stored with another export date are returned. If no batch was committed yet, `reports` are returned instead:
    /// they are few, and are committed together with the derived records.
    pub(super) fn release(
        &mut self,
        reports: PackedMap,
        record: &mut ImportRecord,
    ) -> Result<PackedMap, IngestError> {
        if self.session.dry_run || !self.batches.begun {
            return Ok(reports);
        }
        self.batches.commit(self.session, record)?;
        Ok(std::mem::take(&mut self.kept))
    }

    pub(super) fn put(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        changes.into_iter().try_for_each(|change| self.batches.put(change, self.session, record))
    }

    /// Derives and stores independent memories, slice by slice.
    pub(super) fn slices(
        &mut self,
        mut grouped: GroupedEvidence,
        reports: &PackedMap,
        record: &mut ImportRecord,
    ) -> Result<GroupedEvidence, IngestError> {
        while let Some(slice) = grouped.next(self.session.store, reports)? {
            self.session.check_cancelled()?;
            let evidence = DerivationEvidence::of(slice);
            let mut derived = evidence.derive(&self.session.cancel)?;
            derived.relations.retain(|id, _| !self.edited.contains(id));
            self.memories(&evidence, &mut derived, record)?;
            self.followed.append(&mut derived.relations);
        }
        Ok(grouped)
    }

    /// Stores the records derived from connected memories.
    pub(super) fn joined(
        &mut self,
        evidence: &DerivationEvidence,
        joined: ConnectedMemories,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let ConnectedMemories { mut derived, edges: _, mut replayed, taken_back } = joined;
        self.put(taken_back.into_iter().map(Change::WithdrawRelation), record)?;
        self.memories(evidence, &mut derived, record)?;
        replayed.extend(self.followed.keys().cloned());
        derived.relations.append(&mut self.followed);
        let relations = derived::relation_changes(
            self.session.store,
            derived.relations,
            &replayed,
            &self.session.undone,
        )?;
        self.put(relations, record)
    }

    /// Stores the memories that differ from the store, and withdraws the relations of those that no longer replace
    /// others.
    fn memories(
        &mut self,
        evidence: &DerivationEvidence,
        derived: &mut DerivedMemories,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        self.put(evidence.exported_again(self.session.store)?, record)?;
        self.keep_unproven(evidence, derived, record)?;
        let trusted = evidence.trusted(&self.session.cancel)?;
        for document in &evidence.documents {
            let id = &document.memory.id;
            let Some(trusted) =
                trusted.as_ref().filter(|_| derived.untrusted.get(id) != document.untrusted_signer.as_ref())
            else {
                warn_of_newer(self.session.store, derived, document, record)?;
                continue;
            };
            if trusted.memories.get(id) != derived.memories.get(id) {
                record.would_change.memory(id);
            }
        }
        for id in evidence.untrusted_memories() {
            let note = record_untrusted_signer(self.session.store, id, derived.untrusted.get(id))?;
            self.put(note, record)?;
        }
        let documented = evidence.documented(derived);
        for (id, memory) in std::mem::take(&mut derived.memories) {
            self.session.check_cancelled()?;
            let stored = self.session.store.memory(&id, None)?;
            if !documented.contains(&id) {
                let withdrawal = references::withdrawal(self.session.store, derived, &id, stored.as_ref())?;
                self.put(withdrawal, record)?;
            }
            let stored = stored.filter(|stored| !stored.withdrawn);
            let change = self.memory(&id, memory, stored, evidence, record);
            self.put(change, record)?;
        }
        Ok(())
    }

    /// Keeps visible memories without any evidence, which old versions of the program left: no import owns them,
    /// so none of them is untrusted.
    fn keep_unproven(
        &self,
        evidence: &DerivationEvidence,
        derived: &mut DerivedMemories,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        for id in evidence.untrusted_memories() {
            if !derived.untrusted.contains_key(id) || untrusted_signer(self.session.store, id)?.is_some() {
                continue;
            }
            let Some(stored) = self.session.store.memory(id, None)?.filter(|stored| !stored.withdrawn) else {
                continue;
            };
            let new = derived.memories.remove(id);
            derived.untrusted.remove(id);
            if new.is_some_and(|new| new != stored.memory) {
                record.would_change.memory(id);
            }
        }
        Ok(())
    }

    /// Returns the change that stores `memory`, if it differs from the store. A memory that the import does not mention
    /// is counted only if the import's evidence changed it, by replacing or removing it. If it differs for another
    /// reason, such as an import that was interrupted before deriving it, it is stored without being counted.
    fn memory(
        &mut self,
        id: &str,
        memory: Memory,
        stored: Option<MemoryRecord>,
        evidence: &DerivationEvidence,
        record: &mut ImportRecord,
    ) -> Option<Change> {
        let same = stored.as_ref().is_some_and(|stored| stored.memory == memory);
        if record.dry_run && !same && record.provider.as_deref() == Some(PAM_PLATFORM) {
            let kind = if stored.is_some() { DifferenceKind::Changed } else { DifferenceKind::New };
            record.differ(difference(kind, stored.as_ref().map(|stored| &stored.memory), &memory));
        }
        if self.touched.remove(&record_key(id)) || !same && evidence.without(id) != Some(&memory) {
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
        grouped: &GroupedEvidence,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        for id in std::mem::take(&mut self.touched).iter().filter(|id| !grouped.is_linked(id)) {
            self.session.check_cancelled()?;
            unchanged::count(self.session.store, *id, record)?;
        }
        Ok(())
    }

    /// Commits the pending changes, and records that everything is derived: `all` memories, or only those that the
    /// import mentions.
    pub(super) fn end(mut self, all: bool, record: &mut ImportRecord) -> Result<(), IngestError> {
        if self.batches.marked {
            self.batches.batch.push(derived::mark_pending(""));
        }
        if all {
            self.batches.batch.push(derived::mark_current());
        }
        self.batches.commit(self.session, record)
    }
}

/// Warns if a document is older than the version that is shown: it is stored, and the later version stays visible.
fn warn_of_newer(
    store: &Store,
    derived: &DerivedMemories,
    document: &DocumentEvidence,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    let new = &document.memory;
    let id = &new.id;
    let Some(shown) = derived.memories.get(id) else { return Ok(()) };
    if shown == new || *shown == with_conversation(new, shown.provenance.conversation_ref.clone()) {
        return Ok(());
    }
    let message = "another version of it is later or final and stays shown; this one is kept".to_owned();
    record.warn(Warning { locator: format!("memory {id:?}"), message });
    if record.dry_run {
        let held = store.memory(id, None)?.map(|stored| stored.memory);
        record.differ(difference(DifferenceKind::Kept, held.as_ref(), new));
    }
    Ok(())
}

fn difference(kind: DifferenceKind, held: Option<&Memory>, new: &Memory) -> Difference {
    let summary = |memory: &Memory| (memory.status, memory.content.clone());
    Difference { id: new.id.clone(), kind, held: held.map(summary), came: summary(new) }
}
