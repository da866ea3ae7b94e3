//! Removes what a peer has taken back.

use std::collections::BTreeSet;

use satchel_store::{
    Change, Cursor, EvidenceWrite, Ledger, LedgerWrite, Store, StoreError, erased, erased_conversation,
};
use satchel_sync::{Counter, OriginId};
use uuid::Uuid;

use crate::{
    each_row,
    provenance::{
        ContributionKind, ConversationProvenance, EvidenceKey, ProvenanceError, PurgeRecord, RevokedData,
        without_keys,
    },
    series::{
        SeriesStoreError,
        counters::{CounterSet, Marked},
        entries,
    },
};

/// Imports per page of the ledger.
const PAGE: usize = 500;
/// The ledgers of memories that agents wrote.
const AGENT_MEMORIES: [Ledger; 2] = [Ledger::Quarantine, Ledger::Review];

/// Returns the changes after which the inputs are not in the store, imports lack them, and their payloads count as withheld.
pub(super) fn removals(store: &Store, record: &PurgeRecord) -> Result<Vec<Change>, ProvenanceError> {
    let Some(revoked) = &record.revoked else { return Ok(Vec::new()) };
    let unreadable = |_: SeriesStoreError| ProvenanceError::Unreadable { what: "a series of changes" };
    let mut changes = Vec::new();
    let page =
        |after: Option<&Cursor>| Ok::<_, ProvenanceError>(store.ledger_list(Ledger::Import, after, PAGE)?);
    each_row(page, |entry| {
        let Ok(import) = Uuid::parse_str(&entry.id) else { return Ok(()) };
        changes.extend(without_keys(store, ContributionKind::Evidence, import, &revoked.evidence)?);
        changes.extend(without_keys(store, ContributionKind::Contributions, import, &revoked.contributions)?);
        Ok(())
    })?;
    for id in &revoked.evidence {
        changes.push(Change::Evidence(EvidenceWrite { id: *id, json: Vec::new() }));
    }
    for family in &record.families {
        let reports = ConversationProvenance::load(store, family, None)?;
        let reports: BTreeSet<String> = reports.stored_entry_ids().collect();
        changes.extend(reports.into_iter().map(|id| remove(Ledger::Provenance, id)));
        changes.push(remove(Ledger::Provenance, family.clone()));
    }
    for id in &revoked.agent_memories {
        changes.extend(AGENT_MEMORIES.map(|ledger| remove(ledger, id.clone())));
    }
    for key in revoked.evidence.iter().chain(&revoked.contributions) {
        changes.extend(without_item(store, revoked, *key).map_err(unreadable)?);
    }
    changes.push(lacking(store, revoked).map_err(unreadable)?);
    changes.extend(withheld(store, revoked).map_err(unreadable)?);
    Ok(changes)
}

/// Returns the record of what a peer has taken back, as it is stored when all of it is hidden.
pub(super) fn hidden(record: &PurgeRecord) -> Option<PurgeRecord> {
    let revoked = RevokedData { hidden: true, ..record.revoked.clone()? };
    Some(PurgeRecord { revoked: Some(revoked), ..record.clone() })
}

/// Returns whether this is the record of what a peer has taken back, and nothing of it is shown.
pub(super) fn is_hidden(record: &PurgeRecord) -> bool {
    record.revoked.as_ref().is_some_and(|revoked| revoked.hidden)
}

/// Takes out of a record what was made here, or came again, since it was hidden. Its earlier text stays on the disk.
pub(super) fn keep_what_came_again(store: &Store, record: &mut PurgeRecord) -> Result<(), StoreError> {
    let Some(revoked) = &mut record.revoked else { return Ok(()) };
    let mut gone: BTreeSet<String> = record.memories.keys().cloned().collect();
    retain(&mut gone, |id| {
        let stored = store.memory(id, None)?;
        Ok(stored.is_none_or(|stored| stored.withdrawn && erased(&stored.memory)))
    })?;
    record.memories.retain(|id, _| gone.contains(id));
    retain(&mut record.conversations, |id| {
        let stored = store.conversation(id, None)?;
        Ok(stored.is_none_or(|stored| stored.withdrawn && erased_conversation(&stored.header)))
    })?;
    retain(&mut record.families, |id| Ok(store.ledger_get(Ledger::Provenance, id)?.is_none()))?;
    retain(&mut revoked.agent_memories, |id| {
        let stored = AGENT_MEMORIES.map(|ledger| store.ledger_get(ledger, id));
        Ok(stored.into_iter().collect::<Result<Vec<_>, _>>()?.iter().all(Option::is_none))
    })?;
    retain(&mut revoked.evidence, |key| Ok(!store.has_evidence(*key)?))
}

fn retain<T: Ord>(
    all: &mut BTreeSet<T>,
    keep: impl Fn(&T) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    for one in std::mem::take(all) {
        if keep(&one)? {
            all.insert(one);
        }
    }
    Ok(())
}

fn remove(ledger: Ledger, id: String) -> Change {
    Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value: Vec::new() })
}

/// Returns the changes after which no change counts as that with which a piece came, if it came with one that leaves. If it is imported here,
/// it is in the own series.
fn without_item(
    store: &Store,
    revoked: &RevokedData,
    key: EvidenceKey,
) -> Result<Vec<Change>, SeriesStoreError> {
    let mut changes = Vec::new();
    if entries::item(store, key)?.is_some_and(|(origin, at)| revoked.contains_change(origin, at)) {
        changes.push(entries::remove_item(key));
    }
    if entries::remainder(store, key)?.is_some_and(|(origin, at)| revoked.contains_change(origin, at)) {
        changes.push(entries::remove_remainder(key));
    }
    Ok(changes)
}

fn lacking(store: &Store, revoked: &RevokedData) -> Result<Change, SeriesStoreError> {
    let mut lacking = entries::lacking(store)?;
    for (import, origin, counter) in &revoked.imports {
        if let Some(counter) = Counter::new(*counter)
            && !lacking.iter().any(|(known, ..)| known == import)
        {
            lacking.push((*import, OriginId::from_uuid(*origin), counter));
        }
    }
    entries::put_lacking(&lacking)
}

fn withheld(store: &Store, revoked: &RevokedData) -> Result<Vec<Change>, SeriesStoreError> {
    let mut changes = Vec::new();
    for ranges in revoked.changes.chunk_by(|one, next| one.0 == next.0) {
        let Some((origin, ..)) = ranges.first() else { continue };
        let mut withheld = CounterSet::load(store, Marked::Withheld, OriginId::from_uuid(*origin))?;
        for counter in ranges.iter().flat_map(|(_, first, last)| *first..=*last).filter_map(Counter::new) {
            withheld.insert(store, counter)?;
        }
        changes.extend(withheld.take_changes());
    }
    Ok(changes)
}
