//! Brings the store's memories in line with what follows from all evidence in it.

mod batches;
mod evidence;
pub(super) mod gone;
pub(super) mod known;
pub(super) mod named;
mod settling;

use std::collections::BTreeMap;

use satchel_pam::{
    embedding::Embedding,
    record::{RecordKind, Skip},
    relation::Relation,
};
use satchel_store::{Change, Store, points};

use super::{
    IngestError,
    purge::gate,
    receipt::ImportRecord,
    run::{Normalised, Tail},
    write::{Writer, of_the_record},
};
use crate::{
    lineage::{Reports, Sifter},
    plan::evidence::{Document, name_successors},
};
use batches::Batches;
use evidence::{Evidence, Shown, document_report, edge_report, witness_report};
use settling::{Joined, Settling};

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
    let reports = reports(store, writer, &tail, record)?;
    points::reached("settling begun");
    let Tail { relations, embeddings, keys, drawn, vectors: told, withdrawn, applied: _ } = tail;
    let edges = named::named_edges(relations, &keys, record);
    let mut vectors = named::named_vectors(embeddings, &keys, record);
    let marked = known::marked(store)?;
    let all = marked || !known::derived_here(store)?;
    let joining = edges.iter().map(|edge| &edge.relation).chain(&drawn);
    let stop = || writer.cancel.cancelled();
    let (whole, sifted) = sift(store, writer, &reports, (joining, &withdrawn, &told))?
        .sift(all, &stop)?
        .ok_or(IngestError::Cancelled)?;
    let ruled = whole.known.spoken.relations().cloned().collect();
    let evidence = Evidence::of(whole);
    let joined = Joined::of(store, &evidence, (edges, drawn, withdrawn), &writer.cancel, record)?;
    vectors.extend(named::told_vectors(store, &joined.derived, told, record)?);
    gate::vectors(store, &mut vectors, record)?;
    let Shown { changes: vectors, reports: mut own, found } = evidence.vectors(store, vectors)?;
    own.extend(joined.edges.iter().map(edge_report).collect::<Result<Reports, _>>()?);
    let (batches, followed) = (Batches::of(&record.id, marked), BTreeMap::new());
    let touched = std::mem::take(&mut writer.touched);
    let mut settling = Settling { store, batches, touched, ruled, followed };
    // First whose it is, so that none is ever nobody's.
    let again = std::mem::take(&mut writer.again).into_iter();
    settling.say(reports.keys().chain(own.keys()).copied().chain(again), writer, record)?;
    settling.store(&own, writer, record)?;
    settling.store(&reports, writer, record)?;
    settling.put(found.into_iter().map(Change::Evidence), writer, record)?;
    let loose = settling.slices(sifted, &reports, writer, record)?;
    settling.joined(&evidence, joined, writer, record)?;
    settling.put(vectors, writer, record)?;
    if !all {
        settling.count_rest(&loose, writer, record)?;
    }
    settling.end(all, writer, record)
}

/// What says that conversations which memories name may be others now: the import `by` derives memories anew, and if it dies
/// before that, the next one does.
pub(super) fn unsettled(by: &str) -> Change {
    known::mark(by)
}

/// Takes all evidence apart. What relations join, and what has a vector, must be known whether or not it is there.
fn sift<'a, 'r>(
    store: &'a Store,
    writer: &Writer<'_>,
    reports: &'a Reports,
    (edges, withdrawn, vectors): (impl Iterator<Item = &'r Relation>, &[(String, i64)], &[Embedding]),
) -> Result<Sifter<'a>, IngestError> {
    let sifter = Sifter::until(store, &writer.undone, reports, &|| writer.cancel.cancelled())?;
    let mut sifter = sifter.ok_or(IngestError::Cancelled)?;
    edges.for_each(|edge| [&edge.from, &edge.to].into_iter().for_each(|end| sifter.bind(end)));
    for (id, _) in withdrawn {
        if let Some(stored) = store.relation(id, None)? {
            sifter.bind(&stored.relation.from);
            sifter.bind(&stored.relation.to);
        }
    }
    vectors.iter().for_each(|vector| sifter.bind(&vector.memory_id));
    Ok(sifter)
}

/// The evidence of the import, encoded, with what it names by keys named by ids. Documents whose ids the store would not take
/// are left out.
fn reports(
    store: &Store,
    writer: &mut Writer<'_>,
    tail: &Tail,
    record: &mut ImportRecord,
) -> Result<Reports, IngestError> {
    refuse_documents(store, writer, record)?;
    let mut reports = std::mem::take(&mut writer.reports);
    for mut witness in std::mem::take(&mut writer.open) {
        name_successors(&mut witness, &tail.keys);
        let (key, json) = witness_report(&witness)?;
        reports.insert(key, json);
    }
    let mut exported = BTreeMap::new();
    for document in std::mem::take(&mut writer.documents) {
        let (key, json) = document_report(&document)?;
        let last = exported.entry(key).or_insert(document.exported);
        if *last <= document.exported {
            *last = document.exported;
            reports.insert(key, json);
        }
    }
    Ok(reports)
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
