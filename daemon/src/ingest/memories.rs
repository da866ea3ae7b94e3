//! Brings the store's memories in line with what follows from all evidence in it.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{embedding::Embedding, ids, record::EmbeddingRecord, relation::Relation, time::Timestamp};
use satchel_store::{Change, Store};

use super::{
    IngestError,
    receipt::ImportRecord,
    run::Tail,
    write::{Writer, evidence_changes},
};
use crate::plan::evidence::{Derived, Witness, derive};

/// Changes of one batch.
const BATCH_CHANGES: usize = 400;

/// Derives memories anew and commits what differs. Counts those that the import speaks of, and those that changed by it.
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
    // As the store will hold them: of evidence that is repeated, the last report.
    let fresh: BTreeMap<String, Witness> = std::mem::take(&mut writer.witnesses)
        .into_iter()
        .map(|witness| (witness.id.clone(), witness))
        .collect();
    let mut witnesses = stored_witnesses(store)?;
    witnesses.retain(|witness| !fresh.contains_key(&witness.id));
    let fresh: Vec<Witness> = fresh.into_values().collect();
    let evidence = evidence_changes(&fresh)?;
    witnesses.extend(fresh);
    let derived = derive(&witnesses);
    drop(witnesses);
    let mut touched = std::mem::take(&mut writer.touched);
    let mut changes = memory_changes(store, &derived, &mut touched, record)?;
    changes.splice(0..0, evidence);
    changes.extend(relation_changes(store, &derived)?);
    changes.extend(named_by_key(store, tail, record)?);
    if !writer.dry_run {
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            let batch = changes.by_ref().take(BATCH_CHANGES).collect();
            writer.commit(batch, record)?;
        }
    }
    writer.flush(record)
}

fn stored_witnesses(store: &Store) -> Result<Vec<Witness>, IngestError> {
    let mut witnesses = Vec::new();
    for record in store.evidence_all() {
        let witness = serde_json::from_slice(&record?.json);
        witnesses.push(witness.map_err(|_| IngestError::Unencodable { what: "a stored piece of evidence" })?);
    }
    Ok(witnesses)
}

fn memory_changes(
    store: &Store,
    derived: &Derived,
    touched: &mut BTreeSet<String>,
    record: &mut ImportRecord,
) -> Result<Vec<Change>, IngestError> {
    let mut changes = Vec::new();
    for (id, memory) in &derived.memories {
        let stored = store.memory(id, None)?;
        let spoken_of = touched.remove(id);
        let counts = &mut record.memories;
        match &stored {
            None => counts.new += 1,
            Some(stored) if stored.memory != *memory => counts.updated += 1,
            Some(_) if spoken_of => counts.unchanged += 1,
            Some(_) => continue,
        }
        counts.found += 1;
        if stored.is_none_or(|stored| stored.memory != *memory) {
            changes.push(Change::Memory(Box::new(memory.clone())));
        }
    }
    Ok(changes)
}

/// Edges that follow from the evidence now, and none that did before and no longer do.
fn relation_changes(store: &Store, derived: &Derived) -> Result<Vec<Change>, IngestError> {
    let mut changes = Vec::new();
    for (id, relation) in &derived.relations {
        let stored = store.relation(id, None)?;
        if stored.is_none_or(|stored| stored.withdrawn || stored.relation != *relation) {
            changes.push(Change::Relation(relation.clone()));
        }
    }
    for memory in derived.memories.keys() {
        for stored in store.relations_of(memory, None)? {
            let derivable = stored.origin.reason == super::REASON
                && stored.relation.relation_type == satchel_pam::relation::RelationType::Supersedes
                && derived.memories.contains_key(&stored.relation.from)
                && stored.relation.from == *memory;
            if derivable && !stored.withdrawn && !derived.relations.contains_key(&stored.relation.id) {
                changes.push(Change::WithdrawRelation(stored.relation.id.clone()));
            }
        }
    }
    Ok(changes)
}

/// Relations and embeddings that a run gave by the keys of its items.
fn named_by_key(store: &Store, tail: Tail, record: &mut ImportRecord) -> Result<Vec<Change>, IngestError> {
    let Tail { relations, embeddings, keys } = tail;
    let mut changes = Vec::new();
    for edge in relations {
        let (Some(from), Some(to)) = (keys.get(&edge.source), keys.get(&edge.target)) else {
            record.warn(unknown_key("relation", &edge.source, &edge.target));
            continue;
        };
        let relation = Relation {
            id: ids::relation_id(from, to, edge.relation_type).to_string(),
            from: from.clone(),
            to: to.clone(),
            relation_type: edge.relation_type,
            confidence: edge.confidence,
            created_at: Timestamp::saturating(edge.created_at.unwrap_or(0)),
        };
        if store
            .relation(&relation.id, None)?
            .is_none_or(|stored| stored.withdrawn || stored.relation != relation)
        {
            changes.push(Change::Relation(relation));
        }
    }
    for vector in embeddings {
        let Some(memory) = keys.get(&vector.memory) else {
            record.warn(unknown_key("embedding", &vector.memory, &vector.model));
            continue;
        };
        let embedding = embedding_of(vector, memory.clone());
        if store.embedding(memory, &embedding.model)?.is_none_or(|stored| stored.embedding != embedding) {
            changes.push(Change::Embedding(embedding));
        }
    }
    Ok(changes)
}

fn unknown_key(kind: &str, one: &str, other: &str) -> satchel_pam::record::Warning {
    satchel_pam::record::Warning {
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
