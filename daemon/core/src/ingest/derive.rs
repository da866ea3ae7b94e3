//! Updates the store's memories to match what follows from all evidence in it.

mod batches;
mod derivation;
mod evidence;
mod references;
mod unchanged;

use std::collections::BTreeSet;

use satchel_merge::evidence::{DocumentEvidence, RelationEvidence, name_successors, would_change};
use satchel_pam::{
    embedding::Embedding,
    memory::Memory,
    record::{RecordKind, Skip},
    relation::Relation,
};
use satchel_store::{Change, Store, record_key};

use self::{
    batches::Batches,
    derivation::{ConnectedMemories, Derivation},
    evidence::{DerivationEvidence, VectorChanges},
};
use super::{
    erased,
    error::IngestError,
    evidence::{PendingEvidence, encode_edge, encode_evidence},
    receipt::ImportRecord,
    records::{DeferredRecords, DocumentVector},
    session::Session,
    skips::SkipPages,
};
use crate::{
    derived,
    provenance::{self, EvidenceCollector, EvidenceItem, EvidenceKey, PackedMap, vectors::DocumentVectors},
};

/// From this number of pieces on, evidence is stored in the order of its keys: unpacking each piece separately costs
/// less than writing the same leaves of the database again and again.
const MANY: usize = 16_000;

/// Derives memories from all evidence and commits the differences. Counts the memories that the import mentions and
/// those it changed.
pub(super) fn derive(
    session: &mut Session<'_>,
    (pending, skips): (&mut PendingEvidence, &mut SkipPages),
    deferred: DeferredRecords,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    let store = session.store;
    if pending.count == 0 && deferred.is_empty() && (session.dry_run || !derived::is_pending(store)?) {
        return Ok(());
    }
    session.lock()?;
    let session = &*session;
    if pending.readers.iter().any(|reader| session.undone.contains(reader)) {
        return Err(IngestError::UndoneMeanwhile);
    }
    if unchanged::finish(session, pending, &deferred, record)? {
        return Ok(());
    }
    let reports = reports(session, (pending, skips), &deferred, record)?;
    satchel_failpoints::reached("derivation started");
    let marked = derived::is_pending(store)?;
    let all = marked || !derived::is_current(store)? || !provenance::unfinished_undos(store)?.is_empty();
    let references = CrossReferences::of(deferred, record);
    let grouped = references.collect(session, &reports)?.group(all, &|| session.cancel.cancelled())?;
    let (linked, grouped) = grouped.ok_or(IngestError::Cancelled)?;
    let edited = linked.known.user_edits.relations().cloned().collect();
    let evidence = DerivationEvidence::of(linked);
    let (joined, VectorChanges { changes: vectors, reports: mut own, found }) =
        references.derive(session, &evidence, record)?;
    for edge in &joined.edges {
        let (key, json) = encode_edge(edge)?;
        own.insert(key, json);
    }
    let touched = std::mem::take(&mut pending.memories);
    let mut derivation = Derivation::new(session, Batches::of(&record.id, marked), touched, edited);
    // The lineage is stored first, so that there is never evidence without an import.
    let cached = std::mem::take(&mut pending.cached).into_iter();
    let keys = reports.keys().chain(own.keys()).copied().chain(cached);
    derivation.record_keys(&mut pending.key_pages, keys, record)?;
    own.into_iter().try_for_each(|(key, json)| derivation.store(key, &json, record))?;
    let mut store_one = |key, json: &[u8]| derivation.store(key, json, record);
    if reports.len() < MANY {
        reports.for_each(&mut store_one)?;
    } else {
        reports.for_each_by_key(&mut store_one)?;
    }
    let reports = derivation.release(reports, record)?;
    derivation.put(found.into_iter().map(Change::Evidence), record)?;
    let grouped = derivation.slices(grouped, &reports, record)?;
    derivation.joined(&evidence, joined, record)?;
    derivation.put(vectors, record)?;
    if !all {
        derivation.count_rest(&grouped, record)?;
    }
    derivation.end(all, record)
}

/// Records of an import that involve more than one memory, and vectors.
struct CrossReferences {
    /// Relations that a run named by item keys.
    edges: Vec<RelationEvidence>,
    /// Relations of documents.
    drawn: Vec<Relation>,
    /// Relations that were withdrawn at the origin of the document, with the time in microseconds.
    withdrawn: Vec<(String, i64)>,
    /// Vectors that a run named by item keys.
    named: Vec<Embedding>,
    /// Vectors of documents.
    document_vectors: Vec<DocumentVector>,
    /// Other statements of documents on vectors.
    vector_statements: DocumentVectors,
    /// The stranger whose documents they are: a key, or the marker for unsigned documents.
    untrusted: Option<String>,
}

impl CrossReferences {
    fn of(deferred: DeferredRecords, record: &mut ImportRecord) -> Self {
        let DeferredRecords {
            relations,
            embeddings,
            keys,
            drawn,
            vectors: document_vectors,
            vector_statements,
            withdrawn,
            attached: _,
            applied: _,
            untrusted,
        } = deferred;
        let edges = references::named_edges(relations, &keys, record);
        let named = references::named_vectors(embeddings, &keys, record);
        Self { edges, drawn, withdrawn, named, document_vectors, vector_statements, untrusted }
    }

    /// Collects all evidence. Memories with relations or vectors must be known, whether or not they are in the store.
    fn collect<'a>(
        &self,
        session: &Session<'a>,
        reports: &'a PackedMap,
    ) -> Result<EvidenceCollector<'a>, IngestError> {
        let store = session.store;
        let collector = EvidenceCollector::collect_until(store, &session.undone, reports, &|| {
            session.cancel.cancelled()
        })?;
        let mut collector = collector.ok_or(IngestError::Cancelled)?;
        let mut link =
            |edge: &Relation| [&edge.from, &edge.to].into_iter().for_each(|end| collector.link(end));
        self.edges.iter().map(|edge| &edge.relation).chain(&self.drawn).for_each(&mut link);
        for (id, _) in &self.withdrawn {
            if let Some(stored) = store.relation(id, None)? {
                link(&stored.relation);
            }
        }
        self.document_vectors.iter().for_each(|vector| collector.link(&vector.embedding.memory_id));
        Ok(collector)
    }

    /// Derives the connected memories from `evidence`, and the vectors.
    fn derive(
        self,
        session: &Session<'_>,
        evidence: &DerivationEvidence,
        record: &mut ImportRecord,
    ) -> Result<(ConnectedMemories, VectorChanges), IngestError> {
        let store = session.store;
        let Self {
            edges,
            drawn,
            withdrawn,
            named: mut vectors,
            document_vectors,
            mut vector_statements,
            untrusted,
        } = self;
        let drawn =
            references::DocumentRelations { relations: drawn, withdrawn, untrusted: untrusted.clone() };
        let joined = ConnectedMemories::of(session, evidence, (edges, drawn), record)?;
        let mut document_vectors =
            references::document_vectors(session, &joined.derived, document_vectors, record)?;
        if let Some(untrusted) = &untrusted {
            evidence.hold_vectors_back(
                store,
                untrusted,
                (&mut document_vectors, &mut vector_statements),
                record,
            )?;
        }
        vectors.extend(document_vectors);
        erased::vectors(store, &mut vectors, record)?;
        let shown = evidence.vectors(
            store,
            (vectors, untrusted.as_deref()),
            &vector_statements,
            &mut record.embeddings,
        )?;
        Ok((joined, shown))
    }
}

/// Returns the encoded evidence of the import, with item keys replaced by ids. Documents whose ids the store would not
/// accept are left out.
fn reports(
    session: &Session<'_>,
    (pending, skips): (&mut PendingEvidence, &mut SkipPages),
    deferred: &DeferredRecords,
    record: &mut ImportRecord,
) -> Result<PackedMap, IngestError> {
    refuse_documents(session, (pending, skips), record)?;
    let mut reports = std::mem::take(&mut pending.encoded);
    for mut evidence in std::mem::take(&mut pending.unresolved) {
        name_successors(&mut evidence, &deferred.keys);
        let (key, json) = encode_evidence(&evidence)?;
        reports.insert(key, &json)?;
    }
    Ok(reports)
}

/// Leaves out documents whose ids the store would not accept, and a stranger's documents on memories that another
/// stranger brought.
fn refuse_documents(
    session: &Session<'_>,
    (pending, skips): (&mut PendingEvidence, &mut SkipPages),
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    if pending.documents == 0 {
        return Ok(());
    }
    let PendingEvidence { encoded, memories, .. } = pending;
    let mut refused = Vec::new();
    encoded.for_each(|key, json| {
        session.check_cancelled()?;
        let Some(EvidenceItem::Document(document)) = EvidenceItem::decode(json)? else { return Ok(()) };
        if refuses(session, *document, (memories, skips), record)? {
            refused.push(key);
        }
        Ok::<_, IngestError>(())
    })?;
    refused.iter().for_each(|key| encoded.remove(key));
    Ok(())
}

/// Returns whether a document is left out; the receipt says why.
fn refuses(
    session: &Session<'_>,
    DocumentEvidence { memory, untrusted_signer: untrusted, .. }: DocumentEvidence,
    (mentioned, skips): (&mut BTreeSet<EvidenceKey>, &mut SkipPages),
    record: &mut ImportRecord,
) -> Result<bool, IngestError> {
    if is_from_another_signer(session.store, &memory, untrusted.as_ref(), record)? {
        return Ok(true);
    }
    let (key, locator) = (record_key(&memory.id), format!("memory {:?}", memory.id));
    let Some(refusal) = session.refusal(&Change::Memory(Box::new(memory)))? else { return Ok(false) };
    mentioned.remove(&key);
    let skip = Skip { kind: RecordKind::Memory, locator, reason: refusal.to_string() };
    skips.add(skip, session, record)?;
    Ok(true)
}

/// Returns whether the visible version of a memory comes from another stranger; counts it in the receipt if this
/// document differs.
fn is_from_another_signer(
    store: &Store,
    memory: &Memory,
    untrusted: Option<&String>,
    record: &mut ImportRecord,
) -> Result<bool, IngestError> {
    let Some(untrusted) = untrusted else { return Ok(false) };
    if provenance::untrusted_signer(store, &memory.id)?.is_none_or(|other| other == *untrusted) {
        return Ok(false);
    }
    let Some(stored) = store.memory(&memory.id, None)?.filter(|stored| !stored.withdrawn) else {
        return Ok(false);
    };
    if would_change(memory, &stored.memory) {
        record.would_change.memory(&memory.id);
    }
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
