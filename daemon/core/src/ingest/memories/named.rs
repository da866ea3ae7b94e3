//! Relations and embeddings: those that a run named by the keys of its items, and those of PAM documents.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{Derived, Edge, Field, marks, may_say};
use satchel_pam::{
    embedding::Embedding,
    ids,
    record::{EmbeddingRecord, RelationRecord, Warning},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::{Change, MemoryRecord, Store};

use super::settling::brought_by;
use crate::{
    ingest::{
        IngestError, UNDONE, pam::of_content, receipt::ImportRecord, run::ToldVector, write::of_the_record,
    },
    lineage::Undone,
};

/// Takes back the edge to the successor that the memory `older` no longer has, if it followed from the evidence before: what is
/// `stored` still names it. An edge of the same kind that an export named itself stays; that of a memory of a PAM document is
/// not asked about, as the document stands for it.
pub(super) fn withdrawal(
    store: &Store,
    derived: &Derived,
    older: &str,
    stored: Option<&MemoryRecord>,
) -> Result<Option<Change>, IngestError> {
    let newer = stored.and_then(|stored| stored.memory.temporal.superseded_by.as_ref());
    let Some(newer) = newer else { return Ok(None) };
    let id = ids::relation_id(newer, older, RelationType::Supersedes).to_string();
    let stands = store.relation(&id, None)?.is_some_and(|stored| !stored.withdrawn);
    Ok((stands && !derived.relations.contains_key(&id)).then_some(Change::WithdrawRelation(id)))
}

/// Relations that were withdrawn where a document comes from. What follows from evidence here stands, and what was drawn after
/// that was said.
pub(super) fn taken_back(
    store: &Store,
    derived: &Derived,
    withdrawn: Vec<(String, i64)>,
) -> Result<Vec<String>, IngestError> {
    let mut taken_back = Vec::new();
    for (id, at) in withdrawn {
        let stored = store.relation(&id, None)?;
        let stands =
            stored.is_some_and(|stored| !stored.withdrawn && stored.relation.created_at.micros() <= at);
        if stands && !derived.relations.contains_key(&id) {
            taken_back.push(id);
        }
    }
    Ok(taken_back)
}

/// Relations by which a stranger said what took the place of their own memories, which are others' by now.
pub(super) fn outlived(store: &Store, derived: &Derived, known: &[Edge]) -> Result<Vec<String>, IngestError> {
    let mut outlived = Vec::new();
    for Edge { relation, stranger } in known {
        if may_say(derived, relation, stranger.as_deref()) || !derived.memories.contains_key(&relation.to) {
            continue;
        }
        let stored = store.relation(&relation.id, None)?;
        if stored.is_some_and(|stored| !stored.withdrawn && stored.relation == *relation) {
            outlived.push(relation.id.clone());
        }
    }
    Ok(outlived)
}

/// What stores `relations` where the store has them otherwise. One that was only ever named, not `replayed`, and that an import
/// took back stays so, until that import is undone. What the person took back is not among them.
pub(in crate::ingest) fn relation_changes(
    store: &Store,
    relations: BTreeMap<String, Relation>,
    replayed: &BTreeSet<String>,
    undone: &Undone,
) -> Result<Vec<Change>, IngestError> {
    let mut changes = Vec::new();
    for (id, relation) in relations {
        let Some(stored) = store.relation(&id, None)? else {
            changes.push(Change::Relation(relation));
            continue;
        };
        let same = stored.relation == relation;
        let by_import = stored.origin.import.is_some_and(|import| !undone.contains(&import));
        let taken_back = same && !replayed.contains(&id) && by_import && stored.origin.reason != UNDONE;
        if !same || stored.withdrawn && !taken_back {
            changes.push(Change::Relation(relation));
        }
    }
    Ok(changes)
}

/// Relations that a run gave by the keys of its items.
pub(super) fn named_edges(
    named: Vec<RelationRecord>,
    keys: &BTreeMap<String, String>,
    record: &mut ImportRecord,
) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(named.len());
    for edge in named {
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
        edges.push(Edge { relation, stranger: None });
    }
    edges
}

/// Vectors that a run gave by the keys of its items; of what it repeats, the last.
pub(super) fn named_vectors(
    vectors: Vec<EmbeddingRecord>,
    keys: &BTreeMap<String, String>,
    record: &mut ImportRecord,
) -> Vec<Embedding> {
    let mut last = BTreeMap::new();
    for vector in vectors {
        if let Some(memory) = keys.get(&vector.memory) {
            let embedding = embedding_of(vector, memory.clone());
            last.insert(embedding.id.clone(), embedding);
        } else {
            record.embeddings.leave_out();
            record.warn(unknown_key("embedding", &vector.memory, &vector.model));
        }
    }
    last.into_values().collect()
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

/// What PAM documents say of relations.
pub(super) struct Drawn {
    pub(super) relations: Vec<Relation>,
    /// Those that were withdrawn where the document comes from, and when.
    pub(super) withdrawn: Vec<(String, i64)>,
    /// Whose documents they are.
    pub(super) stranger: Option<String>,
}

/// Edges of PAM documents, with their ids; one that was withdrawn stays so, unless it was drawn anew later. A stranger's changes
/// none that is there.
pub(super) fn drawn_edges(
    store: &Store,
    derived: &Derived,
    (drawn, stranger, known): (Vec<Relation>, Option<String>, &[Edge]),
    record: &mut ImportRecord,
) -> Result<Vec<Edge>, IngestError> {
    let mut edges = Vec::with_capacity(drawn.len());
    for edge in drawn {
        if let Some(stranger) = stranger.as_deref() {
            match held_back(store, derived, (&edge, stranger), known)? {
                Some(true) => {
                    record.would_change.relations += 1;
                    continue;
                }
                Some(false) => continue,
                None => {}
            }
        }
        let (locator, mut refuse) = (format!("relation {:?}", edge.id), None);
        if edge.from == edge.to {
            refuse = Some("it leads from a memory to itself".to_owned());
        }
        for end in [&edge.from, &edge.to] {
            if !derived.memories.contains_key(end) {
                refuse = Some(format!("no memory {end:?} is known"));
            }
        }
        if refuse.is_none() {
            refuse = refusal(store, Change::Relation(edge.clone()))?;
        }
        let stored = store.relation(&edge.id, None)?;
        // What an undo took away may come back by an import.
        let anew = |known: &Relation| known.created_at.micros() < edge.created_at.micros();
        let gone = stored.as_ref().is_some_and(|stored| {
            stored.withdrawn && stored.origin.reason != UNDONE && !anew(&stored.relation)
        });
        if gone {
            refuse = Some("it was withdrawn here".to_owned());
        }
        match refuse {
            Some(reason) => {
                let message = format!("the relation is left out: {reason}");
                record.warn(Warning { locator, message });
            }
            None => edges.push(Edge { relation: edge, stranger: stranger.clone() }),
        }
    }
    Ok(edges)
}

/// Whether a stranger's relation is left out because of what others say; then whether it says something else.
fn held_back(
    store: &Store,
    derived: &Derived,
    (edge, stranger): (&Relation, &str),
    known: &[Edge],
) -> Result<Option<bool>, IngestError> {
    if !may_say(derived, edge, Some(stranger)) {
        return Ok(Some(true));
    }
    let Some(stored) = store.relation(&edge.id, None)? else { return Ok(None) };
    let own = brought_by(known, &edge.id, stranger);
    if stored.withdrawn {
        return Ok((!own && stored.origin.reason != UNDONE).then_some(true));
    }
    Ok((!own).then_some(stored.relation != *edge))
}

/// Vectors of PAM documents, with their ids. Those of memories that are not here yet are kept: they may come. One of another text than
/// the memory has now says nothing of it (PAM rule ); where the person wrote that text themselves, it may be of what the memory
/// says again when they take it back.
pub(super) fn told_vectors(
    store: &Store,
    derived: &Derived,
    vectors: Vec<ToldVector>,
    record: &mut ImportRecord,
) -> Result<Vec<Embedding>, IngestError> {
    let mut told = Vec::with_capacity(vectors.len());
    for ToldVector { embedding: vector, of } in vectors {
        let mut refuse = None;
        let shown = derived.memories.get(&vector.memory_id);
        let other_text = shown.zip(of).is_some_and(|(memory, of)| {
            of_content(&memory.content_hash) != of && !marks(memory).contains_key(&Field::Content)
        });
        if vector.memory_id.is_empty() {
            refuse = Some("it names no memory".to_owned());
        } else if other_text {
            refuse = Some("the memory has another text by now".to_owned());
        } else if vector
            .vector
            .as_ref()
            .is_some_and(|numbers| numbers.len() as u64 != u64::from(vector.dimensions))
        {
            refuse = Some(format!("it has not the {} dimensions that it names", vector.dimensions));
        } else if vector.model.is_empty() || vector.dimensions == 0 {
            refuse = Some("it names no model or no dimensions".to_owned());
        }
        if refuse.is_none() {
            refuse = refusal(store, Change::Embedding(vector.clone()))?;
        }
        if let Some(reason) = refuse {
            let locator = format!("embedding {:?}", vector.id);
            record.embeddings.leave_out();
            record.warn(Warning { locator, message: format!("the embedding is left out: {reason}") });
            continue;
        }
        told.push(vector);
    }
    Ok(told)
}

/// Why the store would not take a stranger's record.
fn refusal(store: &Store, change: Change) -> Result<Option<String>, IngestError> {
    match store.accepts(&[change]) {
        Ok(()) => Ok(None),
        Err(refusal) if of_the_record(&refusal) => Ok(Some(refusal.to_string())),
        Err(error) => Err(error.into()),
    }
}
