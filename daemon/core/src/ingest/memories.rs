//! Updates the store's memories to match what follows from all evidence in it.

mod batches;
mod evidence;
pub(super) mod gone;
pub(super) mod known;
pub(super) mod named;
mod settling;

use batches::Batches;
use satchel_merge::evidence::{Document, Edge, name_successors, would_change};
use satchel_pam::{
    embedding::Embedding,
    memory::Memory,
    record::{RecordKind, Skip},
    relation::Relation,
};
use satchel_source::CancelToken;
use satchel_store::{Change, Store, key_of};

use super::{
    IngestError,
    purge::gate,
    receipt::ImportRecord,
    run::{Normalised, Tail, ToldVector},
    write::{Writer, of_the_record},
};
use crate::lineage::{self, Packed, Report, Sifter, vectors::Told};
pub(super) use evidence::document_report;
use evidence::{Evidence, Shown, edge_report, witness_report};
use settling::{Joined, Settling};

/// From this number of pieces on, evidence is stored in the order of its keys: unpacking each piece separately costs
/// less than writing the same leaves of the database again and again.
const MANY: usize = 16_000;

/// Derives memories from all evidence and commits the differences. Counts the memories that the import mentions and
/// those it changed.
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
    let reports = reports(store, writer, &tail, record)?;
    satchel_failpoints::reached("settling begun");
    let marked = known::marked(store)?;
    let all = marked || !known::derived_here(store)? || !lineage::unfinished(store)?.is_empty();
    let joins = Joins::of(tail, record);
    let sifted = joins.sift(store, writer, &reports)?.sift(all, &|| writer.cancel.cancelled())?;
    let (whole, sifted) = sifted.ok_or(IngestError::Cancelled)?;
    let ruled = whole.known.spoken.relations().cloned().collect();
    let evidence = Evidence::of(whole);
    let (joined, Shown { changes: vectors, reports: mut own, found }) =
        joins.follow(store, &evidence, &writer.cancel, record)?;
    for edge in &joined.edges {
        let (key, json) = edge_report(edge)?;
        own.insert(key, json);
    }
    let touched = std::mem::take(&mut writer.touched);
    let mut settling = Settling::new(store, Batches::of(&record.id, marked), touched, ruled);
    // The lineage is stored first, so that there is never evidence without an import.
    let again = std::mem::take(&mut writer.again).into_iter();
    settling.say(reports.keys().chain(own.keys()).copied().chain(again), writer, record)?;
    own.into_iter().try_for_each(|(key, json)| settling.store(key, &json, writer, record))?;
    let mut store_one = |key, json: &[u8]| settling.store(key, json, writer, record);
    if reports.len() < MANY {
        reports.each(&mut store_one)?;
    } else {
        reports.each_by_key(&mut store_one)?;
    }
    let reports = settling.let_go(reports, writer, record)?;
    settling.put(found.into_iter().map(Change::Evidence), writer, record)?;
    let loose = settling.slices(sifted, &reports, writer, record)?;
    settling.joined(&evidence, joined, writer, record)?;
    settling.put(vectors, writer, record)?;
    if !all {
        settling.count_rest(&loose, writer, record)?;
    }
    settling.end(all, writer, record)
}

/// Returns the change that sets the mark: conversations which memories refer to may have changed. The import `by`
/// derives memories again; if it dies before that, the next import does.
pub(super) fn unsettled(by: &str) -> Change {
    known::mark(by)
}

/// Records of an import that involve more than one memory, and vectors.
struct Joins {
    /// Relations that a run named by item keys.
    edges: Vec<Edge>,
    /// Relations of documents.
    drawn: Vec<Relation>,
    /// Relations that were withdrawn at the origin of the document, with the time in microseconds.
    withdrawn: Vec<(String, i64)>,
    /// Vectors that a run named by item keys.
    named: Vec<Embedding>,
    /// Vectors of documents.
    told: Vec<ToldVector>,
    /// Other statements of documents on vectors.
    said: Told,
    /// The stranger whose documents they are: a key, or the marker for unsigned documents.
    stranger: Option<String>,
}

impl Joins {
    fn of(tail: Tail, record: &mut ImportRecord) -> Self {
        let Tail {
            relations,
            embeddings,
            keys,
            drawn,
            vectors: told,
            told_vectors: said,
            withdrawn,
            attached: _,
            applied: _,
            stranger,
        } = tail;
        let edges = named::named_edges(relations, &keys, record);
        let named = named::named_vectors(embeddings, &keys, record);
        Self { edges, drawn, withdrawn, named, told, said, stranger }
    }

    /// Partitions all evidence. Memories with relations or vectors must be known, whether or not they are in the store.
    fn sift<'a>(
        &self,
        store: &'a Store,
        writer: &Writer<'_>,
        reports: &'a Packed,
    ) -> Result<Sifter<'a>, IngestError> {
        let sifter = Sifter::until(store, &writer.undone, reports, &|| writer.cancel.cancelled())?;
        let mut sifter = sifter.ok_or(IngestError::Cancelled)?;
        let mut bind = |edge: &Relation| [&edge.from, &edge.to].into_iter().for_each(|end| sifter.bind(end));
        self.edges.iter().map(|edge| &edge.relation).chain(&self.drawn).for_each(&mut bind);
        for (id, _) in &self.withdrawn {
            if let Some(stored) = store.relation(id, None)? {
                bind(&stored.relation);
            }
        }
        self.told.iter().for_each(|vector| sifter.bind(&vector.embedding.memory_id));
        Ok(sifter)
    }

    /// Derives the connected memories from `evidence`, and the vectors.
    fn follow(
        self,
        store: &Store,
        evidence: &Evidence,
        cancel: &CancelToken,
        record: &mut ImportRecord,
    ) -> Result<(Joined, Shown), IngestError> {
        let Self { edges, drawn, withdrawn, named: mut vectors, told, mut said, stranger } = self;
        let drawn = named::Drawn { relations: drawn, withdrawn, stranger: stranger.clone() };
        let joined = Joined::of(store, evidence, (edges, drawn), cancel, record)?;
        let mut told = named::told_vectors(store, &joined.derived, told, record)?;
        if let Some(stranger) = &stranger {
            evidence.hold_vectors_back(store, stranger, (&mut told, &mut said), record)?;
        }
        vectors.extend(told);
        gate::vectors(store, &mut vectors, record)?;
        let shown = evidence.vectors(store, (vectors, stranger.as_deref()), &said, &mut record.embeddings)?;
        Ok((joined, shown))
    }
}

/// Returns the encoded evidence of the import, with item keys replaced by ids. Documents whose ids the store would not
/// accept are left out.
fn reports(
    store: &Store,
    writer: &mut Writer<'_>,
    tail: &Tail,
    record: &mut ImportRecord,
) -> Result<Packed, IngestError> {
    refuse_documents(store, writer, record)?;
    let mut reports = std::mem::take(&mut writer.reports);
    for mut witness in std::mem::take(&mut writer.open) {
        name_successors(&mut witness, &tail.keys);
        let (key, json) = witness_report(&witness)?;
        reports.insert(key, &json)?;
    }
    Ok(reports)
}

/// Leaves out documents whose ids the store would not accept, and a stranger's documents on memories that another
/// stranger brought.
fn refuse_documents(
    store: &Store,
    writer: &mut Writer<'_>,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    if writer.documents == 0 {
        return Ok(());
    }
    let mut reports = std::mem::take(&mut writer.reports);
    let mut refused = Vec::new();
    reports.each(|key, json| {
        writer.wanted()?;
        let Some(Report::Document(document)) = Report::decode(json)? else { return Ok(()) };
        if refuses(store, *document, writer, record)? {
            refused.push(key);
        }
        Ok::<_, IngestError>(())
    })?;
    refused.iter().for_each(|key| reports.remove(key));
    writer.reports = reports;
    Ok(())
}

/// Returns whether a document is left out; the receipt says why.
fn refuses(
    store: &Store,
    Document { memory, stranger, .. }: Document,
    writer: &mut Writer<'_>,
    record: &mut ImportRecord,
) -> Result<bool, IngestError> {
    if anothers(store, &memory, stranger.as_ref(), record)? {
        return Ok(true);
    }
    let (key, locator) = (key_of(&memory.id), format!("memory {:?}", memory.id));
    match store.accepts(&[Change::Memory(Box::new(memory))]) {
        Ok(()) => Ok(false),
        Err(error) if of_the_record(&error) => {
            writer.touched.remove(&key);
            let skip = Skip { kind: RecordKind::Memory, locator, reason: error.to_string() };
            writer.take(Normalised::Skip(skip), record)?;
            Ok(true)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the visible version of a memory comes from another stranger; counts it in the receipt if this
/// document differs.
fn anothers(
    store: &Store,
    memory: &Memory,
    stranger: Option<&String>,
    record: &mut ImportRecord,
) -> Result<bool, IngestError> {
    let Some(stranger) = stranger else { return Ok(false) };
    if lineage::stranger_of(store, &memory.id)?.is_none_or(|other| other == *stranger) {
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
