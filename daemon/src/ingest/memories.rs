//! Brings the store's memories in line with what follows from all evidence in it.

pub(super) mod gone;
pub(super) mod known;
pub(super) mod named;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_host::CancelToken;
use satchel_pam::{
    embedding::Embedding,
    memory::Memory,
    record::{RecordKind, Skip, Warning},
};
use satchel_store::{Change, EvidenceWrite, Store, key_of, points};
use uuid::Uuid;

use super::{
    IngestError,
    purge::gate,
    receipt::{Difference, DifferenceKind, ImportRecord},
    run::{Normalised, Tail},
    write::{Writer, of_the_record},
};
use crate::{
    lineage::{
        Brought, Counted, Key, Pages, Places, moved, replay_until,
        vectors::{self, Place},
    },
    plan::evidence::{Derived, Document, Edge, Named, Vector, Witness, add_edges, name_successors, outranks},
};

/// Changes of one batch.
const BATCH_CHANGES: usize = 400;
/// Encoded bytes of one batch; a memory grows with its evidence, and the journal takes no endless frame.
const BATCH_BYTES: usize = 8 << 20;

/// Derives memories anew and commits what differs. Counts those that the import speaks of, and those that it changed.
pub(super) fn settle(
    store: &Store,
    writer: &mut Writer<'_>,
    tail: Tail,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    if writer.evidence == 0 && tail.is_empty() && (writer.dry_run || !known::marked(store)?) {
        return Ok(());
    }
    writer.hold()?;
    if writer.readers.iter().any(|reader| writer.undone.contains(reader)) {
        return Err(IngestError::UndoneMeanwhile);
    }
    if known::settle(store, writer, &tail, record)? {
        return Ok(());
    }
    refuse_documents(store, writer, record)?;
    let mut fresh = (std::mem::take(&mut writer.witnesses), std::mem::take(&mut writer.documents));
    let Tail { relations, embeddings, keys, drawn, vectors, told_vectors, withdrawn, applied: _ } = tail;
    fresh.0.iter_mut().for_each(|witness| name_successors(witness, &keys));
    points::reached("settling begun");
    let mut evidence = Evidence::of(store, writer, fresh)?;
    let mut derived = evidence.derive(&writer.cancel)?;
    evidence.edges = named::named_edges(relations, &keys, record);
    evidence.edges.extend(named::drawn_edges(store, &derived, drawn, record)?);
    let taken_back = named::taken_back(store, &derived, withdrawn)?;
    let replayed: BTreeSet<String> = derived.relations.keys().cloned().collect();
    add_edges(&mut derived, evidence.known.edges.iter().chain(&evidence.edges));
    for id in &taken_back {
        derived.relations.remove(id);
    }
    let mut came = named::named_vectors(embeddings, &keys, record);
    came.extend(named::told_vectors(store, &derived, vectors, record)?);
    gate::vectors(store, &mut came, record)?;
    let vectors = evidence.vectors(store, came, &told_vectors)?;
    let touched = std::mem::take(&mut writer.touched);
    let mut batches =
        Batches { by: Some(record.id.clone()), marked: known::marked(store)?, ..Batches::default() };
    let again = std::mem::take(&mut writer.again);
    for change in evidence.changes(writer.origin.import.unwrap_or_default(), again)? {
        batches.put(change, writer, record)?;
    }
    for document in &evidence.documents {
        tell_of_later(store, &derived, document, record)?;
    }
    for id in taken_back {
        batches.put(Change::WithdrawRelation(id), writer, record)?;
    }
    writer.wanted()?;
    for change in named::withdrawals(store, &derived, &evidence.documented())? {
        batches.put(change, writer, record)?;
    }
    // Moved one by one: an export may bring tens of thousands of memories, and two copies of them would be much.
    let without = Without { evidence: &evidence, derived: OnceCell::new() };
    for (id, memory) in std::mem::take(&mut derived.memories) {
        writer.wanted()?;
        if let Some(change) = memory_change(store, &id, memory, &touched, &without, record)? {
            batches.put(change, writer, record)?;
        }
    }
    for change in named::relation_changes(store, derived.relations, &replayed, &writer.undone)? {
        batches.put(change, writer, record)?;
    }
    writer.wanted()?;
    for change in vectors {
        batches.put(change, writer, record)?;
    }
    if batches.marked {
        batches.batch.push(known::mark(""));
    }
    batches.commit(writer, record)?;
    writer.flush(record)
}

/// What says that conversations which memories name may be others now: the import `by` derives memories anew, and if it dies
/// before that, the next one does.
pub(super) fn unsettled(by: &str) -> Change {
    known::mark(by)
}

/// Leaves out the documents whose ids the store would not take.
fn refuse_documents(
    store: &Store,
    writer: &mut Writer<'_>,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    for Document { memory, exported } in std::mem::take(&mut writer.documents) {
        writer.wanted()?;
        let change = Change::Memory(Box::new(memory));
        let refusal = store.accepts(std::slice::from_ref(&change)).err();
        let Change::Memory(memory) = change else { continue };
        match refusal {
            None => writer.documents.push(Document { memory: *memory, exported }),
            Some(error) if of_the_record(&error) => {
                writer.touched.remove(&memory.id);
                let locator = format!("memory {:?}", memory.id);
                let skip = Skip { kind: RecordKind::Memory, locator, reason: error.to_string() };
                writer.take(Normalised::Skip(skip), record)?;
            }
            Some(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A document may be older than what is known: it is kept, and the later stays shown.
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

/// All evidence that counts: as the store has it, and what the import adds.
struct Evidence {
    known: Counted,
    /// Of this import, by id; of several reports the one that counts.
    fresh: BTreeMap<String, Witness>,
    /// All reports of this import, by the keys under which they are stored.
    reports: BTreeMap<Key, Vec<u8>>,
    /// Memories of this import's PAM documents that were not known so.
    documents: Vec<Document>,
    /// Relations that this import names.
    edges: Vec<Edge>,
    /// Vectors that were stored before it was noted who brought them.
    found: Vec<EvidenceWrite>,
}

impl Evidence {
    fn of(
        store: &Store,
        writer: &Writer<'_>,
        (witnesses, mut documents): (Vec<Witness>, Vec<Document>),
    ) -> Result<Self, IngestError> {
        let known = Counted::until(store, &writer.undone, &|| writer.cancel.cancelled())?;
        let mut known = known.ok_or(IngestError::Cancelled)?;
        let mut reports = BTreeMap::new();
        // Which of two reports counts must not depend on which export came first.
        let mut fresh: BTreeMap<String, Witness> = BTreeMap::new();
        for witness in witnesses {
            let (key, bytes) = witness.encode().map_err(|_| IngestError::Unencodable { what: "evidence" })?;
            reports.insert(key, bytes);
            let earlier = fresh.get(&witness.id).or_else(|| known.witnesses.get(&witness.id));
            if earlier.is_none_or(|earlier| outranks(&witness, earlier)) {
                fresh.insert(witness.id.clone(), witness);
            }
        }
        for document in &documents {
            let (id, bytes) =
                document.encode().map_err(|_| IngestError::Unencodable { what: "a memory of a document" })?;
            reports.insert(key_of(&id), bytes);
        }
        known.places.extend(Places::of(store, fresh.values(), &documents)?);
        let mut versions: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
        for document in &known.documents {
            versions.entry(&document.memory.id).or_default().push(document);
        }
        documents.retain(|document| {
            let versions = versions.get(document.memory.id.as_str()).map_or(&[][..], Vec::as_slice);
            match versions.iter().find(|known| known.memory == document.memory) {
                None => true,
                // When it was exported last matters only beside another version.
                Some(known) => versions.len() > 1 && known.exported < document.exported,
            }
        });
        // They are stored once more: with when they were exported last.
        for document in &documents {
            let (id, _) =
                document.encode().map_err(|_| IngestError::Unencodable { what: "a memory of a document" })?;
            known.keys.remove(&key_of(&id));
        }
        Ok(Self { known, fresh, reports, documents, edges: Vec::new(), found: Vec::new() })
    }

    /// Without the edges that are named.
    fn derive(&self, cancel: &CancelToken) -> Result<Derived, IngestError> {
        let kept = self.known.witnesses.values().filter(|known| !self.fresh.contains_key(&known.id));
        let documents = self.known.documents.iter().chain(&self.documents);
        let Counted { places, spoken, .. } = &self.known;
        let stop = || cancel.cancelled();
        replay_until(kept.chain(self.fresh.values()), places, documents, spoken, &stop)
            .ok_or(IngestError::Cancelled)
    }

    /// What stores the evidence of `import`: first whose it is, so that none is ever nobody's, then what is not stored.
    /// It says what earlier imports said for it, `again`, too.
    fn changes(&mut self, import: Uuid, again: Vec<Key>) -> Result<Vec<Change>, IngestError> {
        for edge in &self.edges {
            let (id, bytes) = edge.encode().map_err(|_| IngestError::Unencodable { what: "a relation" })?;
            self.reports.insert(key_of(&id), bytes);
        }
        let mut pages = Pages::new(import, Brought::Evidence);
        let keys = self.reports.keys().copied().chain(again);
        let mut changes: Vec<Change> = keys.filter_map(|key| pages.add(key)).collect();
        changes.extend(pages.rest());
        let reports = std::mem::take(&mut self.reports).into_iter();
        let unknown = reports.filter(|(key, _)| !self.known.keys.contains(key));
        changes.extend(unknown.map(|(id, json)| Change::Evidence(EvidenceWrite { id, json })));
        changes.extend(std::mem::take(&mut self.found).into_iter().map(Change::Evidence));
        Ok(changes)
    }

    /// Notes the vectors that `came` and what was `told` of others; answers what shows those that stand, and keeps the others.
    fn vectors(
        &mut self,
        store: &Store,
        came: Vec<Embedding>,
        told: &vectors::Told,
    ) -> Result<Vec<Change>, IngestError> {
        let mut places: BTreeMap<Place, BTreeMap<String, Embedding>> = BTreeMap::new();
        for embedding in came {
            let Named { memory, model, digest, .. } = vectors::name(&embedding)?;
            places.entry((memory, model)).or_default().insert(digest, embedding);
        }
        for place in told.withdrawn.keys() {
            places.entry(place.clone()).or_default();
        }
        let known = vectors::standing(&self.known.vectors);
        let outdated = told.outdated(&self.known.vectors);
        let mut changes = Vec::new();
        for (place, came) in places {
            let mut all: Vec<Named> = known.get(&place).cloned().into_iter().collect();
            let stored = store.embedding(&place.0, &place.1)?.map(|stored| stored.embedding);
            let stored = stored.as_ref().map(vectors::name).transpose()?;
            let mut reported = came.values().map(vectors::name).collect::<Result<Vec<_>, _>>()?;
            reported.extend(told.more(&place, &reported, outdated.get(&place)));
            for named in reported {
                let (key, json) = encoded(&named, false)?;
                self.reports.insert(key, json);
                all.push(named);
            }
            if let Some(named) = stored {
                let [said, found] = [encoded(&named, false)?, encoded(&named, true)?];
                if [&said, &found].iter().all(|(key, _)| !self.known.keys.contains(key)) {
                    let (id, json) = found;
                    self.found.push(EvidenceWrite { id, json });
                    all.push(named);
                }
            }
            changes.extend(vectors::show(store, &place, all.iter().max(), came)?);
        }
        Ok(changes)
    }

    /// The memories that documents brought.
    fn documented(&self) -> BTreeSet<String> {
        let all = self.known.documents.iter().chain(&self.documents);
        all.map(|document| document.memory.id.clone()).collect()
    }
}

/// What would follow if the import had said nothing. Seldom needed, and as costly as the replay itself.
struct Without<'a> {
    evidence: &'a Evidence,
    derived: OnceCell<Derived>,
}

impl Without<'_> {
    fn memory(&self, id: &str) -> Option<&Memory> {
        self.derived.get_or_init(|| self.evidence.known.derive_unnamed()).memories.get(id)
    }
}

/// What stores `memory`, if the store has it otherwise. One that the import does not speak of counts only if its evidence
/// changed it, by taking its place or removing it; one that differs for another reason, as an import died before it was
/// derived, is stored uncounted.
fn memory_change(
    store: &Store,
    id: &str,
    memory: Memory,
    touched: &BTreeSet<String>,
    without: &Without<'_>,
    record: &mut ImportRecord,
) -> Result<Option<Change>, IngestError> {
    let stored = store.memory(id, None)?.filter(|stored| !stored.withdrawn);
    let same = stored.as_ref().is_some_and(|stored| stored.memory == memory);
    if record.dry_run && !same && record.provider.as_deref() == Some(super::pam::PLATFORM) {
        let kind = if stored.is_some() { DifferenceKind::Changed } else { DifferenceKind::New };
        record.differ(difference(kind, stored.as_ref().map(|stored| &stored.memory), &memory));
    }
    if touched.contains(id) || !same && without.memory(id) != Some(&memory) {
        let counts = &mut record.memories;
        counts.found += 1;
        match (&stored, same) {
            (None, _) => counts.new += 1,
            (Some(_), false) => counts.updated += 1,
            (Some(_), true) => counts.unchanged += 1,
        }
    }
    Ok((!same).then(|| Change::Memory(Box::new(memory))))
}

/// Changes on their way to the store.
#[derive(Default)]
struct Batches {
    batch: Vec<Change>,
    bytes: usize,
    /// Who is to be named where more than one batch stores what belongs together.
    by: Option<String>,
    /// Whether the ledger says that what is stored is not all.
    marked: bool,
}

impl Batches {
    fn put(
        &mut self,
        change: Change,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        self.bytes += weight(&change);
        self.batch.push(change);
        if self.batch.len() >= BATCH_CHANGES || self.bytes >= BATCH_BYTES {
            if let Some(by) = self.by.as_deref().filter(|_| !self.marked) {
                self.batch.push(known::mark(by));
                self.marked = true;
            }
            self.commit(writer, record)?;
        }
        Ok(())
    }

    /// Commits what waits; a dry run stores nothing.
    fn commit(&mut self, writer: &mut Writer<'_>, record: &mut ImportRecord) -> Result<(), IngestError> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() || writer.dry_run {
            return Ok(());
        }
        // What follows from the batches that are stored is completed by the next import: the ledger says that it is owed.
        writer.wanted()?;
        writer.commit(batch, record)?;
        points::reached("memories stored");
        Ok(())
    }
}

fn encoded(named: &Named, found: bool) -> Result<(Key, Vec<u8>), IngestError> {
    let vector = Vector { named: named.clone(), found };
    let (id, bytes) = vector.encode().map_err(|_| IngestError::Unencodable { what: "a vector" })?;
    Ok((key_of(&id), bytes))
}

/// Bytes of what can be long.
fn weight(change: &Change) -> usize {
    match change {
        Change::Evidence(write) => write.json.len(),
        Change::Memory(memory) => serde_json::to_vec(memory).map_or(0, |json| json.len()),
        _ => 0,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
