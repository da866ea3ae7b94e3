//! Relations and embeddings: those that a run named by the keys of its items, and those of PAM documents.

use std::collections::BTreeMap;

use satchel_merge::evidence::{DerivedMemories, MemoryField, RelationEvidence, edited_fields, may_assert};
use satchel_pam::{
    embedding::Embedding,
    ids,
    record::{EmbeddingRecord, RelationRecord, Warning},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::{Change, MemoryRecord, Store};

use crate::{
    derived::UNDO_REASON,
    ingest::{
        error::IngestError,
        receipt::ImportRecord,
        records::{DocumentVector, content_fingerprint},
        session::Session,
    },
};

/// Returns the withdrawal of the relation to a former successor of the memory `older`: `stored` still names that
/// successor, but the evidence no longer does. A relation of the same kind that an export named explicitly stays.
/// Callers skip memories that came from a PAM document, as the document decides on those.
pub(super) fn withdrawal(
    store: &Store,
    derived: &DerivedMemories,
    older: &str,
    stored: Option<&MemoryRecord>,
) -> Result<Option<Change>, IngestError> {
    let newer = stored.and_then(|stored| stored.memory.temporal.superseded_by.as_ref());
    let Some(newer) = newer else { return Ok(None) };
    let id = ids::relation_id(newer, older, RelationType::Supersedes).to_string();
    let stands = store.relation(&id, None)?.is_some_and(|stored| !stored.withdrawn);
    Ok((stands && !derived.relations.contains_key(&id)).then_some(Change::WithdrawRelation(id)))
}

/// Selects the relations to withdraw because they were withdrawn at the origin of a document. Relations that follow
/// from evidence here stay, as do relations created after that withdrawal.
pub(super) fn withdrawn_at_origin(
    store: &Store,
    derived: &DerivedMemories,
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

/// Returns the relations by which a stranger stated the successors of their own memories, where those memories now
/// belong to others.
pub(super) fn overridden_relations(
    store: &Store,
    derived: &DerivedMemories,
    known: &[RelationEvidence],
) -> Result<Vec<String>, IngestError> {
    let mut outlived = Vec::new();
    for RelationEvidence { relation, untrusted_signer: untrusted } in known {
        if may_assert(derived, relation, untrusted.as_deref()) || !derived.memories.contains_key(&relation.to)
        {
            continue;
        }
        let stored = store.relation(&relation.id, None)?;
        if stored.is_some_and(|stored| !stored.withdrawn && stored.relation == *relation) {
            outlived.push(relation.id.clone());
        }
    }
    Ok(outlived)
}

/// Resolves the relations that a run named by item keys.
pub(super) fn named_edges(
    named: Vec<RelationRecord>,
    keys: &BTreeMap<String, String>,
    record: &mut ImportRecord,
) -> Vec<RelationEvidence> {
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
        edges.push(RelationEvidence { relation, untrusted_signer: None });
    }
    edges
}

/// Resolves the vectors that a run named by item keys; of repeated ones, the last is used.
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

/// Relations of PAM documents.
pub(super) struct DocumentRelations {
    pub(super) relations: Vec<Relation>,
    /// Relations that were withdrawn at the origin of the document, with the time in microseconds.
    pub(super) withdrawn: Vec<(String, i64)>,
    /// The stranger whose documents they are: a key, or the marker for unsigned documents.
    pub(super) untrusted: Option<String>,
}

/// Checks the relations of PAM documents, which keep their ids. A relation that was withdrawn here stays withdrawn,
/// unless it was created again later. A stranger's document changes no existing relation.
pub(super) fn drawn_edges(
    session: &Session<'_>,
    derived: &DerivedMemories,
    (drawn, untrusted, known): (Vec<Relation>, Option<String>, &[RelationEvidence]),
    record: &mut ImportRecord,
) -> Result<Vec<RelationEvidence>, IngestError> {
    let store = session.store;
    let mut edges = Vec::with_capacity(drawn.len());
    for edge in drawn {
        if let Some(untrusted) = untrusted.as_deref() {
            match held_back(store, derived, (&edge, untrusted), known)? {
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
            refuse = refusal(session, &Change::Relation(edge.clone()))?;
        }
        let stored = store.relation(&edge.id, None)?;
        // A relation that an undo withdrew may return by an import.
        let anew = |known: &Relation| known.created_at.micros() < edge.created_at.micros();
        let gone = stored.as_ref().is_some_and(|stored| {
            stored.withdrawn && stored.origin.reason != UNDO_REASON && !anew(&stored.relation)
        });
        if gone {
            refuse = Some("it was withdrawn here".to_owned());
        }
        match refuse {
            Some(reason) => {
                let message = format!("the relation is left out: {reason}");
                record.warn(Warning { locator, message });
            }
            None => edges.push(RelationEvidence { relation: edge, untrusted_signer: untrusted.clone() }),
        }
    }
    Ok(edges)
}

/// Returns `Some` if a stranger's relation is left out because of other sources; the value says whether it differs from
/// them.
fn held_back(
    store: &Store,
    derived: &DerivedMemories,
    (edge, untrusted): (&Relation, &str),
    known: &[RelationEvidence],
) -> Result<Option<bool>, IngestError> {
    if !may_assert(derived, edge, Some(untrusted)) {
        return Ok(Some(true));
    }
    let Some(stored) = store.relation(&edge.id, None)? else { return Ok(None) };
    let own = named_by(known, &edge.id, untrusted);
    if stored.withdrawn {
        return Ok((!own && stored.origin.reason != UNDO_REASON).then_some(true));
    }
    Ok((!own).then_some(stored.relation != *edge))
}

/// Checks the vectors of PAM documents, which keep their ids. Vectors of memories that are not stored yet are kept, as
/// the memories may arrive later. A vector of a text other than the memory's current one does not apply to it (PAM rule
/// If the user wrote the current text by hand, the vector is kept nevertheless: it may be of the text that an
/// undo restores.
pub(super) fn document_vectors(
    session: &Session<'_>,
    derived: &DerivedMemories,
    vectors: Vec<DocumentVector>,
    record: &mut ImportRecord,
) -> Result<Vec<Embedding>, IngestError> {
    let mut accepted = Vec::with_capacity(vectors.len());
    for DocumentVector { embedding: vector, of } in vectors {
        let mut refuse = None;
        let shown = derived.memories.get(&vector.memory_id);
        let other_text = shown.zip(of).is_some_and(|(memory, of)| {
            content_fingerprint(&memory.content_hash) != of
                && !edited_fields(memory).contains_key(&MemoryField::Content)
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
            refuse = refusal(session, &Change::Embedding(vector.clone()))?;
        }
        if let Some(reason) = refuse {
            let locator = format!("embedding {:?}", vector.id);
            record.embeddings.leave_out();
            record.warn(Warning { locator, message: format!("the embedding is left out: {reason}") });
            continue;
        }
        accepted.push(vector);
    }
    Ok(accepted)
}

/// Returns whether only this stranger names the relation.
pub(super) fn named_by(edges: &[RelationEvidence], id: &str, untrusted: &str) -> bool {
    let mut of_it = edges.iter().filter(|edge| edge.relation.id == id).peekable();
    of_it.peek().is_some() && of_it.all(|edge| edge.untrusted_signer.as_deref() == Some(untrusted))
}

/// Returns the reason why the store would not accept a record of a document.
fn refusal(session: &Session<'_>, change: &Change) -> Result<Option<String>, IngestError> {
    Ok(session.refusal(change)?.map(|refusal| refusal.to_string()))
}
