//! Takes out of the store for good what its owner names: a memory, or a conversation with the memories that came of it.
//!
//! First commits say what goes and show it no more; then, with the store closed, [`carry_out`] takes it off the disk. What is cut off
//! after the first commit is gone on with by the next start.

mod eraser;
pub(super) mod gate;
mod plan;

use std::{collections::BTreeSet, path::Path};

use satchel_seal::Seal;
use satchel_store::{
    Batch, Change, CheckProgress, ConversationWrite, Health, Origin, Store, StoreError, empty_conversation,
    empty_memory, erased,
};

use self::eraser::Words;
pub use self::plan::{Line, Plan, Target, planned};
use super::{IngestError, memories::named::relation_changes};
use crate::lineage::{self, Counted, PurgeRecord, Purged};
use satchel_source::chain;

/// The reason that stands in the history of what was erased.
pub const PURGED: &str = "purged";
/// Changes of one commit.
const BATCH_CHANGES: usize = 400;

/// Makes sure that the erasure of `records` from the data directory `dir` would come to its end, before anything says that it began.
///
/// # Errors
/// What is in the way, and what to do about it.
pub fn ready(dir: &Path, seal: Option<&Seal>, records: &[PurgeRecord]) -> Result<(), StoreError> {
    let attachments = records.iter().flat_map(|record| &record.attachments);
    satchel_store::purge_ready(dir, seal, &attachments.filter_map(|hex| plan::sha256(hex)).collect())
}

/// Notes durably that `record` goes, and shows it no more. The words stay on the disk until [`carry_out`].
///
/// # Errors
/// What the store refuses.
pub fn note(store: &Store, record: &PurgeRecord) -> Result<(), IngestError> {
    let purged = Purged::from_records(std::slice::from_ref(record));
    // The fact goes first: a start that finds it goes on from here.
    let mut changes = vec![record.change()?];
    changes.extend(withdrawals(store, record)?);
    changes.extend(followed(store, &purged)?);
    let (import, reason) = (None, PURGED.to_owned());
    let origin = Origin { import, actor: record.actor.clone(), reason, at_micros: record.at };
    let mut rest = changes.into_iter().peekable();
    while rest.peek().is_some() {
        let changes = rest.by_ref().take(BATCH_CHANGES).collect();
        store.commit(Batch { origin: origin.clone(), changes })?;
        satchel_failpoints::reached("purge noted");
    }
    Ok(())
}

/// Memories with their vectors, conversations and relations that are shown no more.
fn withdrawals(store: &Store, record: &PurgeRecord) -> Result<Vec<Change>, IngestError> {
    let (mut changes, mut relations) = (Vec::new(), BTreeSet::new());
    for id in record.memories.keys() {
        let Some(stored) = store.memory(id, None)? else { continue };
        if !(stored.withdrawn && erased(&stored.memory)) {
            changes.push(Change::WithdrawMemory(Box::new(empty_memory(&stored.memory))));
        }
        for vector in store.embeddings_of(id)? {
            let model = vector.embedding.model;
            changes.push(Change::WithdrawEmbedding { memory: id.clone(), model });
        }
        for edge in store.relations_of(id, None)? {
            relations.insert(edge.relation.id);
        }
    }
    for id in &record.conversations {
        let Some(stored) = store.conversation(id, None)? else { continue };
        if stored.withdrawn && stored.heads.is_empty() {
            continue;
        }
        let header = empty_conversation(&stored.header);
        let write = ConversationWrite { header, current: None, opaque: Vec::new(), messages: Vec::new() };
        changes.push(Change::WithdrawConversation(Box::new(write)));
    }
    changes.extend(relations.into_iter().map(Change::WithdrawRelation));
    Ok(changes)
}

/// What is shown otherwise of what stays, as it was replaced by what goes, or followed it.
fn followed(store: &Store, purged: &Purged) -> Result<Vec<Change>, IngestError> {
    let undone = lineage::undone(store)?;
    let counted = Counted::of(store, &undone)?;
    let was = counted.derive();
    let counted = counted.without(purged);
    let (now, replayed) = (counted.derive(), counted.replayed());
    let mut changes = Vec::new();
    for (id, memory) in now.memories {
        let stored = store.memory(&id, None)?;
        let same = stored.is_some_and(|stored| !stored.withdrawn && stored.memory == memory);
        if was.memories.get(&id) != Some(&memory) && !same {
            changes.push(Change::Memory(Box::new(memory)));
        }
    }
    let mut fresh = now.relations;
    fresh.retain(|id, relation| was.relations.get(id) != Some(relation));
    changes.extend(relation_changes(store, fresh, &replayed, &undone)?);
    Ok(changes)
}

/// Takes every erasure that was noted off the disk: closes `store`, which must be the last that has the data directory `dir`.
/// Answers how many attachments went.
///
/// # Errors
/// What store and file system refuse; the next start goes on.
pub fn carry_out(
    dir: &Path,
    store: Store,
    seal: Option<&Seal>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<u64, IngestError> {
    let pending = PurgeRecord::pending(&store)?;
    let mut words = Words::of(&store, pending)?;
    store.close()?;
    let gone = satchel_store::purge(dir, seal, &mut words, progress)?;
    Ok(gone.len() as u64)
}

/// Goes on with erasures that a stop of the program interrupted. A start is never refused for it: what cannot be completed is told in
/// the log, and the next start tries again.
///
/// # Errors
/// When the ledger does not read, or the store does not open again with `reopen`.
pub fn complete(
    dir: &Path,
    store: Store,
    seal: Option<&Seal>,
    reopen: &mut dyn FnMut() -> Result<Store, StoreError>,
) -> Result<Store, IngestError> {
    let pending = PurgeRecord::pending(&store)?;
    if pending.is_empty() || store.health() != Health::Good {
        return Ok(store);
    }
    tracing::info!("an erasure is completed that a stop of the program interrupted");
    if let Err(error) = ready(dir, seal, &pending) {
        tracing::error!(error = chain(&error), "an erasure that was interrupted cannot be completed yet");
        return Ok(store);
    }
    let noted = pending.iter().try_for_each(|record| note(&store, record));
    let done = noted.and_then(|()| carry_out(dir, store, seal, &mut |_| {}));
    if let Err(error) = done {
        tracing::error!(error = chain(&error), "an erasure that was interrupted cannot be completed");
    }
    Ok(reopen()?)
}
