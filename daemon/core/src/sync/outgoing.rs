//! Reads the changes that another store lacks, with their payloads.

use std::collections::BTreeSet;

use satchel_store::Store;
use satchel_sync::{Counter, CounterRange, Frontier, OriginId, SignedChange, payload::unsalted};

use super::{
    Sync, SyncError, UNREADABLE,
    filter::{PayloadFilter, RecordFilter},
    record::contribution_payload,
};
use crate::{
    provenance::{self, EvidenceKey, PurgedData},
    series::{
        entries::{self, ContributionPlace, PayloadPlace, StoredChange},
        large,
        payload::{Payload, SALT_BYTES, is_erased},
    },
};

impl Sync {
    /// Passes to `visit` the changes that a store with the frontier `theirs` lacks, origin by origin, until it returns false. A change
    /// whose payload was erased, or is not included by `filter`, has none. With a filter, only changes are passed on that have taken effect.
    ///
    /// # Errors
    /// When the store cannot be read. Changes of an origin of which the other store has another history are left out.
    pub fn changes_after(
        &self,
        theirs: &Frontier,
        filter: Option<&dyn RecordFilter>,
        mut visit: impl FnMut(SignedChange) -> bool,
    ) -> Result<(), SyncError> {
        let store = self.0.store();
        let erased = ErasedPayloads::load(store)?;
        let ours = if filter.is_some() { self.applied_frontier()? } else { self.frontier()? };
        let mut filter = filter.map(|filter| PayloadFilter::new(store, filter));
        for range in ours.lacked_by(theirs).ranges {
            if self.has_other_base(range)? {
                continue;
            }
            let mut next = Some(range.first);
            while let Some(counter) = next.filter(|counter| *counter <= range.last) {
                let stored = entries::change(store, range.origin, counter)?.ok_or(UNREADABLE)?;
                let sends = match &mut filter {
                    Some(filter) => filter.sends(&stored)?,
                    None => true,
                };
                let mut change = if sends { change(store, stored)? } else { stored.change };
                if !sends || erased.contains(&change) {
                    change = change.without_payload();
                }
                if !visit(change) {
                    return Ok(());
                }
                next = counter.next();
            }
        }
        Ok(())
    }

    /// Returns whether the other store has another history of the origin of `range`.
    fn has_other_base(&self, range: CounterRange) -> Result<bool, SyncError> {
        let Some(before) = range.first.before() else { return Ok(false) };
        let ours = entries::change(self.0.store(), range.origin, before)?.ok_or(UNREADABLE)?;
        Ok(range.check_base(ours.change.hash()).is_err())
    }
}

/// The payloads whose content was erased here, but that may still be on the disk.
pub(super) struct ErasedPayloads {
    purged: PurgedData,
    parts: BTreeSet<String>,
}

impl ErasedPayloads {
    pub(super) fn load(store: &Store) -> Result<Self, SyncError> {
        let purged = PurgedData::load(store)?;
        let parts = if purged.is_empty() {
            BTreeSet::new()
        } else {
            large::erased_parts(store, |kind, content| is_erased(&purged, kind, content))?
        };
        Ok(Self { purged, parts })
    }

    pub(super) fn contains(&self, change: &SignedChange) -> bool {
        if self.purged.is_empty() {
            return false;
        }
        let (origin, counter) = (change.change().origin, change.change().counter);
        let content = change.payload().and_then(unsalted);
        content.is_some_and(|content| is_erased(&self.purged, change.change().kind, content))
            || self.parts.contains(&entries::change_id(origin, counter))
    }
}

/// Returns the change with this counter, with its payload if the store has that.
pub(super) fn change_at(
    store: &Store,
    origin: OriginId,
    counter: Counter,
) -> Result<SignedChange, SyncError> {
    change(store, entries::change(store, origin, counter)?.ok_or(UNREADABLE)?)
}

/// Returns a change with its payload, if the store has that.
pub(super) fn change(store: &Store, stored: StoredChange) -> Result<SignedChange, SyncError> {
    let StoredChange { change, place } = stored;
    let payload = match place {
        PayloadPlace::Absent | PayloadPlace::Inline => None,
        PayloadPlace::Evidence(salt, key) => evidence_payload(store, salt, key)?,
        PayloadPlace::Contribution(salt, key, place) => contribution(store, salt, key, *place)?,
    };
    // Bytes that differ from those that were signed are not sent: the evidence was replaced or erased since.
    Ok(payload.and_then(|bytes| change.clone().with_payload(bytes).ok()).unwrap_or(change))
}

fn evidence_payload(
    store: &Store,
    salt: [u8; SALT_BYTES],
    key: EvidenceKey,
) -> Result<Option<Vec<u8>>, SyncError> {
    let stored = store.evidence(key)?;
    let payload = stored.map(|stored| Payload::Evidence(key, stored.json).encode(salt));
    payload.transpose().map_err(|_| UNREADABLE)
}

fn contribution(
    store: &Store,
    salt: [u8; SALT_BYTES],
    key: EvidenceKey,
    place: ContributionPlace,
) -> Result<Option<Vec<u8>>, SyncError> {
    let (entry, provenance) = provenance::resolve(store, place.entry.clone())?;
    let Some(part) = provenance.contributions.iter().find(|part| part.key() == Some(key)) else {
        return Ok(None);
    };
    let payload = Payload::Contribution(Box::new(contribution_payload(store, &entry, part, place)?));
    payload.encode(salt).map(Some).map_err(|_| UNREADABLE)
}
