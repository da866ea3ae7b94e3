//! Permanently erases what the owner names from the store: a memory, or a conversation with the memories derived from
//! it. What a peer has taken back leaves in the same way, but may come again.
//!
//! First, commits record what is erased and withdraw it. Then, with the store closed, [`erase_recorded`] removes it from the
//! disk. If the program stops after the first commit, the next start continues.

mod eraser;
mod plan;
mod revoked;

use std::{collections::BTreeSet, path::Path};

use satchel_seal::Seal;
use satchel_store::{
    Batch, Change, CheckProgress, ConversationWrite, Health, Origin, Store, StoreError, empty_conversation,
    empty_memory, erased,
};

use self::eraser::ErasedContent;
pub use self::plan::{Line, Plan, Target, planned};
pub(crate) use self::plan::{planned_elsewhere, planned_revocation};
use crate::{
    data_dir,
    derived::{self, relation_changes},
    provenance::{self, ActiveEvidence, ProvenanceError, PurgeRecord, PurgedData},
};
use satchel_source::chain;

/// The reason recorded in the history of erased records.
pub const PURGED: &str = "purged";
/// The reason recorded in the history of records that a peer has taken back.
pub const REVOKED: &str = "not shared by a peer any more";
/// Changes of one commit.
const BATCH_CHANGES: usize = 400;

/// Checks, before the erasure is recorded as begun, that the erasure of `records` from the data directory `dir` can be
/// completed.
///
/// # Errors
/// The obstacle, and what to do about it.
pub fn check_ready(dir: &Path, seal: Option<&Seal>, records: &[PurgeRecord]) -> Result<(), StoreError> {
    let attachments = records.iter().flat_map(|record| &record.attachments);
    satchel_store::check_purge(dir, seal, &attachments.filter_map(|hex| plan::sha256(hex)).collect())
}

/// Durably records the erasure of `record` and withdraws its contents. The text stays on the disk until [`erase_recorded`].
///
/// # Errors
/// The error of the store.
pub fn record_purge(store: &Store, record: &PurgeRecord) -> Result<(), ProvenanceError> {
    // Several may be on their way to the disk at once: what one of them erases must not follow from what another one leaves.
    let mut records = PurgeRecord::list(store)?;
    records.retain(|known| known.id != record.id);
    records.push(record.clone());
    let purged = PurgedData::from_records(&records);
    // The record is written first: a start that finds it continues from here.
    let mut changes = vec![record.to_change()?];
    changes.extend(withdrawals(store, record)?);
    changes.extend(followed(store, &purged, record)?);
    if record.revoked.is_some() {
        changes.extend(revoked::removals(store, record)?);
    }
    let reason = if record.revoked.is_some() { REVOKED } else { PURGED };
    let (import, reason) = (None, reason.to_owned());
    let origin = Origin { import, actor: record.actor.clone(), reason, at_micros: record.at };
    let mut rest = changes.into_iter().peekable();
    while rest.peek().is_some() {
        let changes = rest.by_ref().take(BATCH_CHANGES).collect();
        store.commit(Batch { origin: origin.clone(), changes })?;
        satchel_failpoints::reached("purge recorded");
    }
    if let Some(hidden) = revoked::hidden(record) {
        store.commit(Batch { origin, changes: vec![hidden.to_change()?] })?;
    }
    Ok(())
}

/// Returns the changes that withdraw memories with their vectors, conversations and relations.
fn withdrawals(store: &Store, record: &PurgeRecord) -> Result<Vec<Change>, ProvenanceError> {
    let mut changes = Vec::new();
    for id in record.memories.keys() {
        let Some(stored) = store.memory(id, None)? else { continue };
        if !(stored.withdrawn && erased(&stored.memory)) {
            changes.push(Change::WithdrawMemory(Box::new(empty_memory(&stored.memory))));
        }
        for vector in store.embeddings_of(id)? {
            let model = vector.embedding.model;
            changes.push(Change::WithdrawEmbedding { memory: id.clone(), model });
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
    let relations = relations_of(store, record.memories.keys())?;
    changes.extend(relations.into_iter().map(Change::WithdrawRelation));
    Ok(changes)
}

/// Returns the relations of memories.
fn relations_of<'a>(
    store: &Store,
    memories: impl Iterator<Item = &'a String>,
) -> Result<BTreeSet<String>, StoreError> {
    let mut relations = BTreeSet::new();
    for id in memories {
        relations.extend(store.relations_of(id, None)?.into_iter().map(|edge| edge.relation.id));
    }
    Ok(relations)
}

/// Returns the changes to remaining records that were replaced by erased ones, or depended on them.
fn followed(
    store: &Store,
    purged: &PurgedData,
    record: &PurgeRecord,
) -> Result<Vec<Change>, ProvenanceError> {
    let undone = provenance::undone_imports(store)?;
    let counted = ActiveEvidence::load(store, &undone)?;
    let was = counted.derive();
    let counted = match &record.revoked {
        Some(revoked) => ActiveEvidence::load_without(store, &undone, revoked.evidence.clone())?,
        None => counted,
    };
    let counted = counted.without_purged(purged);
    let (now, replayed) = (counted.derive(), counted.implicit_relations());
    let mut changes = Vec::new();
    if record.revoked.is_some() {
        // Edits alone show nothing, like those of a memory whose list was taken back.
        changes = derived::withdrawals(store, &was, &now)?;
        let relations = relations_of(store, record.memories.keys())?;
        changes.retain(|change| match change {
            Change::WithdrawMemory(memory) => !record.memories.contains_key(&memory.id),
            Change::WithdrawRelation(id) => !relations.contains(id),
            _ => true,
        });
    }
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

/// Removes every recorded erasure from the disk. Closes `store`, which must be the last handle to the data directory
/// `dir`. Returns the number of attachments that were deleted.
///
/// # Errors
/// The error of the store or the file system; the next start continues.
pub fn erase_recorded(
    dir: &Path,
    store: Store,
    seal: Option<&Seal>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<u64, ProvenanceError> {
    let mut pending = PurgeRecord::pending(&store)?;
    for record in &mut pending {
        revoked::keep_what_came_again(&store, record)?;
    }
    let mut content = ErasedContent::of(&store, pending)?;
    // Its segments have words of the erased texts until they are merged. It is built anew.
    let index = dir.join(data_dir::SEARCH);
    satchel_store::erase(&index).map_err(|source| StoreError::Io { action: "erase", path: index, source })?;
    store.close()?;
    let erased = satchel_store::purge(dir, seal, &mut content, progress)?;
    Ok(erased.len() as u64)
}

/// Continues erasures that were interrupted by a stop of the program. A failure does not prevent the start: it is
/// logged, and the next start tries again.
///
/// # Errors
/// When the ledger cannot be read, or when the store cannot be opened again with `reopen`.
pub fn complete(
    dir: &Path,
    store: Store,
    seal: Option<&Seal>,
    reopen: &mut dyn FnMut() -> Result<Store, StoreError>,
) -> Result<Store, ProvenanceError> {
    let pending = PurgeRecord::pending(&store)?;
    if pending.is_empty() || store.health() != Health::Good {
        return Ok(store);
    }
    tracing::info!("an erasure is completed that a stop of the program interrupted");
    // What a peer has taken back is hidden before anything is made here, also if it cannot leave the disk yet.
    let mut unhidden =
        pending.iter().filter(|record| record.revoked.is_some() && !revoked::is_hidden(record));
    if let Err(error) = unhidden.try_for_each(|record| record_purge(&store, record)) {
        tracing::error!(error = chain(&error), "what a peer has taken back cannot be hidden");
        return Ok(store);
    }
    if let Err(error) = check_ready(dir, seal, &pending) {
        tracing::error!(error = chain(&error), "an erasure that was interrupted cannot be completed yet");
        return Ok(store);
    }
    let mut erased = pending.iter().filter(|record| record.revoked.is_none());
    let noted = erased.try_for_each(|record| record_purge(&store, record));
    let done = noted.and_then(|()| erase_recorded(dir, store, seal, &mut |_| {}));
    if let Err(error) = done {
        tracing::error!(error = chain(&error), "an erasure that was interrupted cannot be completed");
    }
    Ok(reopen()?)
}
