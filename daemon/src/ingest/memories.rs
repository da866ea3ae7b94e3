//! Brings the store's memories in line with what follows from all evidence in it.

mod named;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_pam::{
    memory::Memory,
    record::{RecordKind, Skip, Warning},
};
use satchel_store::{Change, Store};

use super::{
    IngestError,
    receipt::{Difference, DifferenceKind, ImportRecord},
    run::{Normalised, Tail},
    write::{Writer, evidence_change, of_the_record, put_evidence},
};
use crate::plan::evidence::{Derived, Document, Witness, derive_with, outranks};

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
    if writer.evidence == 0 && tail.is_empty() {
        return Ok(());
    }
    writer.hold();
    refuse_documents(store, writer, record)?;
    let fresh = (std::mem::take(&mut writer.witnesses), std::mem::take(&mut writer.documents));
    let evidence = Evidence::of(store, fresh)?;
    let mut derived = evidence.derive();
    let touched = std::mem::take(&mut writer.touched);
    let Tail { relations, embeddings, keys, drawn, vectors, withdrawn, applied: _ } = tail;
    let mut batches = Batches::default();
    for witness in &evidence.fresh {
        batches.put(evidence_change(witness)?, writer, record)?;
    }
    for document in &evidence.new_documents {
        let (id, bytes) =
            document.encode().map_err(|_| IngestError::Unencodable { what: "a memory of a document" })?;
        batches.put(put_evidence(&id, bytes)?, writer, record)?;
        tell_of_later(store, &derived, document, record)?;
    }
    for change in named::withdrawals(store, &derived, &evidence.documented())? {
        batches.put(change, writer, record)?;
    }
    for change in named::taken_back(store, &derived, withdrawn)? {
        batches.put(change, writer, record)?;
    }
    named::add_drawn(store, &mut derived, drawn, record)?;
    let known: BTreeSet<String> = vectors.iter().map(|vector| vector.memory_id.clone()).collect();
    let known = known.into_iter().filter(|id| derived.memories.contains_key(id)).collect();
    // Moved one by one: an export may bring tens of thousands of memories, and two copies of them would be much.
    let without = Without { evidence: &evidence, derived: OnceCell::new() };
    for (id, memory) in std::mem::take(&mut derived.memories) {
        if let Some(change) = memory_change(store, &id, memory, &touched, &without, record)? {
            batches.put(change, writer, record)?;
        }
    }
    named::add_named(&mut derived.relations, relations, &keys, record);
    for change in named::relation_changes(store, derived.relations)? {
        batches.put(change, writer, record)?;
    }
    for change in named::embedding_changes(store, embeddings, &keys, record)? {
        batches.put(change, writer, record)?;
    }
    for change in named::vector_changes(store, &known, vectors, record)? {
        batches.put(change, writer, record)?;
    }
    batches.commit(writer, record)?;
    writer.flush(record)
}

/// Leaves out the documents whose ids the store would not take.
fn refuse_documents(
    store: &Store,
    writer: &mut Writer<'_>,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    for Document { memory, exported } in std::mem::take(&mut writer.documents) {
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
    if derived.memories.get(id).is_none_or(|shown| shown == came) {
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

/// All evidence: as the store has it, and as it will.
struct Evidence {
    /// Stored, and not reported anew or not better.
    kept: Vec<Witness>,
    /// Stored, and now reported otherwise.
    replaced: Vec<Witness>,
    /// Of this import, and not stored so.
    fresh: Vec<Witness>,
    /// Memories of PAM documents: stored…
    documents: Vec<Document>,
    /// …and of this import, those that are not.
    new_documents: Vec<Document>,
}

impl Evidence {
    fn of(store: &Store, fresh: (Vec<Witness>, Vec<Document>)) -> Result<Self, IngestError> {
        let (fresh, mut new_documents) = fresh;
        // Which of two reports counts must not depend on which export came first.
        let mut known: BTreeMap<String, Witness> = BTreeMap::new();
        for witness in fresh {
            if known.get(&witness.id).is_none_or(|earlier| outranks(&witness, earlier)) {
                known.insert(witness.id.clone(), witness);
            }
        }
        let (witnesses, documents) = stored(store)?;
        let (mut kept, mut replaced) = (Vec::new(), Vec::new());
        for stored in witnesses {
            match known.get(&stored.id) {
                Some(fresh) if outranks(fresh, &stored) => replaced.push(stored),
                _ => {
                    known.remove(&stored.id);
                    kept.push(stored);
                }
            }
        }
        let mut versions: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
        for document in &documents {
            versions.entry(&document.memory.id).or_default().push(document);
        }
        new_documents.retain(|document| {
            let versions = versions.get(document.memory.id.as_str()).map_or(&[][..], Vec::as_slice);
            match versions.iter().find(|known| known.memory == document.memory) {
                None => true,
                // When it was exported last matters only beside another version.
                Some(known) => versions.len() > 1 && known.exported < document.exported,
            }
        });
        Ok(Self { kept, replaced, fresh: known.into_values().collect(), documents, new_documents })
    }

    fn derive(&self) -> Derived {
        derive_with(self.kept.iter().chain(&self.fresh), self.documents.iter().chain(&self.new_documents))
    }

    fn derive_without_import(&self) -> Derived {
        derive_with(self.kept.iter().chain(&self.replaced), &self.documents)
    }

    /// The memories that documents brought.
    fn documented(&self) -> BTreeSet<String> {
        let all = self.documents.iter().chain(&self.new_documents);
        all.map(|document| document.memory.id.clone()).collect()
    }
}

fn stored(store: &Store) -> Result<(Vec<Witness>, Vec<Document>), IngestError> {
    let unreadable = |_| IngestError::Unencodable { what: "a stored piece of evidence" };
    let (mut witnesses, mut documents) = (Vec::new(), Vec::new());
    for record in store.evidence_all() {
        let json = record?.json;
        if Document::is(&json) {
            documents.push(serde_json::from_slice(&json).map_err(unreadable)?);
        } else {
            witnesses.push(serde_json::from_slice(&json).map_err(unreadable)?);
        }
    }
    Ok((witnesses, documents))
}

/// What would follow if the import had said nothing. Seldom needed, and as costly as the replay itself.
struct Without<'a> {
    evidence: &'a Evidence,
    derived: OnceCell<Derived>,
}

impl Without<'_> {
    fn memory(&self, id: &str) -> Option<&Memory> {
        self.derived.get_or_init(|| self.evidence.derive_without_import()).memories.get(id)
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
    let stored = store.memory(id, None)?;
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
        if self.batch.len() == BATCH_CHANGES || self.bytes >= BATCH_BYTES {
            self.commit(writer, record)?;
        }
        Ok(())
    }

    /// Commits what waits; a dry run stores nothing.
    fn commit(&mut self, writer: &mut Writer<'_>, record: &mut ImportRecord) -> Result<(), IngestError> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() || writer.dry_run { Ok(()) } else { writer.commit(batch, record) }
    }
}

/// Bytes of what can be long.
fn weight(change: &Change) -> usize {
    match change {
        Change::Evidence(write) => write.json.len(),
        Change::Memory(memory) => serde_json::to_vec(memory).map_or(0, |json| json.len()),
        _ => 0,
    }
}
