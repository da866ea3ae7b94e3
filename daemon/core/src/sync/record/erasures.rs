//! Appends erasures to the store's own series, and what they left.

use std::collections::BTreeSet;

use satchel_merge::evidence::StoredEvidence;
use satchel_pam::record::Claim;
use satchel_store::{Cursor, Ledger, Store};
use satchel_sync::payload::unsalted;
use uuid::Uuid;

use super::{BATCH, PAGE};
use crate::{
    each_row,
    provenance::{ContributionKind, EvidenceItem, EvidenceKey, PurgeRecord, PurgedData, contributed_keys},
    series::{
        LocalSeries, NewPlace, entries,
        large::{self, Content},
        payload::{ErasurePayload, Payload, is_erased},
    },
    sync::{Sync, SyncError, UNREADABLE, outgoing},
};

impl Sync {
    /// Appends the erasures that are in no series, each after what all erasures have left of the evidence in series.
    pub(super) fn record_erasures(&self) -> Result<u64, SyncError> {
        let store = self.0.store();
        let mut pending = Vec::new();
        for record in PurgeRecord::list(store)? {
            // What a peer has taken back was erased by nobody.
            if record.revoked.is_none() && !entries::is_erasure_recorded(store, &record.id)? {
                pending.push(record);
            }
        }
        if pending.is_empty() {
            return Ok(0);
        }
        let left = remainders(store)?;
        for batch in left.chunks(BATCH) {
            self.append_all(batch, |series, (key, json)| append_remainder(series, *key, json.clone()))?;
        }
        self.append_all(&pending, |series, record| {
            let PurgeRecord { id, at, actor, memories, conversations, rows, .. } = record.clone();
            let uuid = Uuid::parse_str(&id).map_err(|_| UNREADABLE)?;
            let erasure = ErasurePayload { id: uuid, at, actor, memories, conversations, rows };
            series.append(&Payload::Erasure(Box::new(erasure)), NewPlace::Inline)?;
            series.note(entries::put_erasure_recorded(&id));
            Ok(())
        })?;
        Ok(pending.len() as u64)
    }
}

/// Appends what erasures have left of a piece of evidence.
pub(super) fn append_remainder(
    series: &mut LocalSeries,
    key: EvidenceKey,
    json: Vec<u8>,
) -> Result<(), SyncError> {
    let counter = series.append(&Payload::Remainder(key, json), NewPlace::Inline)?;
    series.note(entries::put_remainder(key, series.origin(), counter));
    Ok(())
}

/// Returns what erasures have left of the evidence whose payloads are gone, where no series has that yet.
fn remainders(store: &Store) -> Result<Vec<(EvidenceKey, Vec<u8>)>, SyncError> {
    let purged = PurgedData::load(store)?;
    let mut keys = BTreeSet::new();
    let page = |after: Option<&Cursor>| Ok::<_, SyncError>(store.ledger_list(Ledger::Import, after, PAGE)?);
    each_row(page, |entry| {
        if let Ok(import) = Uuid::parse_str(&entry.id) {
            keys.extend(contributed_keys(store, ContributionKind::Evidence, import)?);
        }
        Ok(())
    })?;
    let mut left = Vec::new();
    for key in keys {
        let Some(at) = entries::item(store, key)? else { continue };
        if is_available(store, &purged, at)? {
            continue;
        }
        if let Some(at) = entries::remainder(store, key)?
            && is_available(store, &purged, at)?
        {
            continue;
        }
        left.extend(remainder(store, &purged, key)?.map(|json| (key, json)));
    }
    Ok(left)
}

/// Returns whether the payload of a change is here, and nothing of it is erased.
fn is_available(
    store: &Store,
    purged: &PurgedData,
    (origin, counter): (satchel_sync::OriginId, satchel_sync::Counter),
) -> Result<bool, SyncError> {
    let change = outgoing::change_at(store, origin, counter)?;
    if change.payload().and_then(unsalted).is_none() {
        return Ok(false);
    }
    Ok(match large::content(store, &change)? {
        Content::Present(kind, content) => !is_erased(purged, kind, &content),
        Content::Absent | Content::Invalid(_) => false,
    })
}

/// Returns what is left of a piece of evidence; `None` if that says nothing.
pub(super) fn remainder(
    store: &Store,
    purged: &PurgedData,
    key: EvidenceKey,
) -> Result<Option<Vec<u8>>, SyncError> {
    let Some(stored) = store.evidence(key)? else { return Ok(None) };
    let Some(EvidenceItem::Stored(evidence)) = EvidenceItem::decode(&stored.json)? else { return Ok(None) };
    let mut evidence = StoredEvidence::clone(&evidence);
    purged.redact_stored(&mut evidence);
    // The positions of a list's items define the order of others, even if they are empty.
    let says = !matches!(&evidence.claim, Claim::Statement(item) if item.content.is_empty());
    says.then(|| evidence.encode().map(|(_, json)| json)).transpose().map_err(|_| UNREADABLE)
}
