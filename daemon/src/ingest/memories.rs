//! Brings the store's memories in line with what follows from all evidence in it.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_pam::{
    embedding::Embedding,
    ids,
    memory::Memory,
    record::{EmbeddingRecord, RelationRecord, Warning},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::{Change, Store};

use super::{
    IngestError,
    receipt::ImportRecord,
    run::Tail,
    write::{Writer, evidence_change},
};
use crate::plan::evidence::{Derived, Witness, derive, outranks};

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
    if writer.evidence == 0 && tail.relations.is_empty() && tail.embeddings.is_empty() {
        return Ok(());
    }
    writer.hold();
    let evidence = Evidence::of(store, std::mem::take(&mut writer.witnesses))?;
    let mut derived = evidence.derive();
    let touched = std::mem::take(&mut writer.touched);
    let Tail { relations, embeddings, keys } = tail;
    let mut batches = Batches::default();
    for witness in &evidence.fresh {
        batches.put(evidence_change(witness)?, writer, record)?;
    }
    for change in withdrawals(store, &derived)? {
        batches.put(change, writer, record)?;
    }
    // Moved one by one: an export may bring tens of thousands of memories, and two copies of them would be much.
    let without = Without { evidence: &evidence, derived: OnceCell::new() };
    for (id, memory) in std::mem::take(&mut derived.memories) {
        if let Some(change) = memory_change(store, &id, memory, &touched, &without, record)? {
            batches.put(change, writer, record)?;
        }
    }
    add_named(&mut derived.relations, relations, &keys, record);
    for change in relation_changes(store, derived.relations)? {
        batches.put(change, writer, record)?;
    }
    for change in embedding_changes(store, embeddings, &keys, record)? {
        batches.put(change, writer, record)?;
    }
    batches.commit(writer, record)?;
    writer.flush(record)
}

/// All evidence: as the store has it, and as it will.
struct Evidence {
    /// Stored, and not reported anew or not better.
    kept: Vec<Witness>,
    /// Stored, and now reported otherwise.
    replaced: Vec<Witness>,
    /// Of this import, and not stored so.
    fresh: Vec<Witness>,
}

impl Evidence {
    fn of(store: &Store, fresh: Vec<Witness>) -> Result<Self, IngestError> {
        // Which of two reports counts must not depend on which export came first.
        let mut known: BTreeMap<String, Witness> = BTreeMap::new();
        for witness in fresh {
            if known.get(&witness.id).is_none_or(|earlier| outranks(&witness, earlier)) {
                known.insert(witness.id.clone(), witness);
            }
        }
        let (mut kept, mut replaced) = (Vec::new(), Vec::new());
        for stored in stored_witnesses(store)? {
            match known.get(&stored.id) {
                Some(fresh) if outranks(fresh, &stored) => replaced.push(stored),
                _ => {
                    known.remove(&stored.id);
                    kept.push(stored);
                }
            }
        }
        Ok(Self { kept, replaced, fresh: known.into_values().collect() })
    }

    fn derive(&self) -> Derived {
        derive(self.kept.iter().chain(&self.fresh))
    }

    fn derive_without_import(&self) -> Derived {
        derive(self.kept.iter().chain(&self.replaced))
    }
}

fn stored_witnesses(store: &Store) -> Result<Vec<Witness>, IngestError> {
    let mut witnesses = Vec::new();
    for record in store.evidence_all() {
        let witness = serde_json::from_slice(&record?.json);
        witnesses.push(witness.map_err(|_| IngestError::Unencodable { what: "a stored piece of evidence" })?);
    }
    Ok(witnesses)
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

/// Edges that followed from the evidence before and no longer do: the older memory still names its successor. An edge of
/// the same kind that an export named itself stays.
fn withdrawals(store: &Store, derived: &Derived) -> Result<Vec<Change>, IngestError> {
    let mut changes = Vec::new();
    for older in derived.memories.keys() {
        let Some(stored) = store.memory(older, None)? else { continue };
        let Some(newer) = stored.memory.temporal.superseded_by else { continue };
        let id = ids::relation_id(&newer, older, RelationType::Supersedes).to_string();
        let stands = store.relation(&id, None)?.is_some_and(|stored| !stored.withdrawn);
        if stands && !derived.relations.contains_key(&id) {
            changes.push(Change::WithdrawRelation(id));
        }
    }
    Ok(changes)
}

/// What stores `relations` where the store has them otherwise.
fn relation_changes(
    store: &Store,
    relations: BTreeMap<String, Relation>,
) -> Result<Vec<Change>, IngestError> {
    let mut changes = Vec::new();
    for (id, relation) in relations {
        let stored = store.relation(&id, None)?;
        if stored.is_none_or(|stored| stored.withdrawn || stored.relation != relation) {
            changes.push(Change::Relation(relation));
        }
    }
    Ok(changes)
}

/// Relations that a run gave by the keys of its items; what follows from the evidence is known already.
fn add_named(
    relations: &mut BTreeMap<String, Relation>,
    named: Vec<RelationRecord>,
    keys: &BTreeMap<String, String>,
    record: &mut ImportRecord,
) {
    for edge in named {
        let (Some(from), Some(to)) = (keys.get(&edge.source), keys.get(&edge.target)) else {
            record.warn(unknown_key("relation", &edge.source, &edge.target));
            continue;
        };
        let id = ids::relation_id(from, to, edge.relation_type).to_string();
        relations.entry(id.clone()).or_insert_with(|| Relation {
            id,
            from: from.clone(),
            to: to.clone(),
            relation_type: edge.relation_type,
            confidence: edge.confidence,
            created_at: Timestamp::saturating(edge.created_at.unwrap_or(0)),
        });
    }
}

/// Embeddings that a run gave by the keys of its items; of what it repeats, the last.
fn embedding_changes(
    store: &Store,
    vectors: Vec<EmbeddingRecord>,
    keys: &BTreeMap<String, String>,
    record: &mut ImportRecord,
) -> Result<Vec<Change>, IngestError> {
    let mut last = BTreeMap::new();
    for vector in vectors {
        match keys.get(&vector.memory) {
            Some(memory) => {
                let embedding = embedding_of(vector, memory.clone());
                last.insert(embedding.id.clone(), embedding);
            }
            None => record.warn(unknown_key("embedding", &vector.memory, &vector.model)),
        }
    }
    let mut changes = Vec::new();
    for embedding in last.into_values() {
        let stored = store.embedding(&embedding.memory_id, &embedding.model)?;
        if stored.is_none_or(|stored| stored.embedding != embedding) {
            changes.push(Change::Embedding(embedding));
        }
    }
    Ok(changes)
}

fn unknown_key(kind: &str, one: &str, other: &str) -> Warning {
    Warning {
        locator: format!("{kind} {one:?} {other:?}"),
        message: "it names an item that the export does not hold".into(),
    }
}

fn embedding_of(vector: EmbeddingRecord, memory: String) -> Embedding {
    let EmbeddingRecord { memory: _, model, dimensions, created_at, vector, storage } = vector;
    Embedding {
        id: ids::embedding_id(&memory, &model).to_string(),
        memory_id: memory,
        model,
        dimensions,
        created_at: Timestamp::saturating(created_at.unwrap_or(0)),
        vector,
        storage,
    }
}
