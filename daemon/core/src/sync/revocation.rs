//! Takes out what a peer had given to this store and does not give it any more: when it gives this store less than before, or when a record
//! has left the part that it gives.
//!
//! The giving store names the changes whose payloads it withholds ([`Sync::withheld_payloads`]). The other one removes the records of which
//! it has nothing else ([`Sync::revoke`]): what was imported, recorded or edited here stays, and so does what the peer still says something
//! about. Afterwards the store is as if the payloads had never come. If the record comes into the part again, they are sent again.

mod plan;

use std::collections::BTreeSet;

use satchel_store::Store;
use satchel_sync::{Counter, OriginId};

use self::plan::Plan;
use super::{PayloadRange, RecordFilter, Sync, SyncError, UNREADABLE, filter::PayloadFilter};
use crate::{
    provenance::PurgeRecord,
    purge::record_purge,
    series::entries::{self, PayloadPlace, StoredChange},
};

/// What was taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revoked {
    /// Memories and conversations.
    pub records: u64,
    /// It could not be done now: an import is running, or other data is on its way from the disk.
    pub again: bool,
}

impl Revoked {
    const LATER: Self = Self { records: 0, again: true };
}

impl Sync {
    /// Remembers that the store with the key `peer` has given changes to this one.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn note_giver(&self, peer: &str) -> Result<(), SyncError> {
        let _alone = self.0.lock_exchange();
        let mut givers = self.givers()?;
        if givers.insert(peer.to_owned()) {
            self.0.commit_entries(vec![entries::put_givers(&givers)?])?;
        }
        Ok(())
    }

    /// Returns the keys of all stores that have given changes to this one, also of those that are no peers any more. An empty one stands for
    /// those that are not known.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn givers(&self) -> Result<BTreeSet<String>, SyncError> {
        let store = self.0.store();
        if let Some(known) = entries::givers(store)? {
            return Ok(known);
        }
        // They were not noted by earlier versions of this program.
        let own = own_origins(store)?;
        let any = entries::origins(store)?.iter().any(|origin| !own.contains(origin));
        Ok(any.then(String::new).into_iter().collect())
    }

    /// Returns the changes whose payloads this store has and `filter` does not include: by origin, in ascending order of their counters.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn withheld_payloads(&self, filter: &dyn RecordFilter) -> Result<Vec<PayloadRange>, SyncError> {
        let store = self.0.store();
        let (mut filter, mut ranges) = (PayloadFilter::new(store, filter), Vec::new());
        each_change(store, |stored| {
            if filter.withholds(stored)? {
                add(&mut ranges, stored.change.change().origin, stored.change.change().counter);
            }
            Ok(())
        })?;
        Ok(ranges)
    }

    /// Takes out the records of which this store has only payloads in `withheld`, which are in ascending order. They are hidden when this
    /// returns; [`crate::purge::complete`] removes them from the disk.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn revoke(&self, withheld: &[PayloadRange]) -> Result<Revoked, SyncError> {
        let store = self.0.store();
        if !holds_payload(store, withheld)? {
            return Ok(Revoked::default());
        }
        // What was imported here stays, which the series says.
        self.record_history()?;
        let _alone = self.0.lock_exchange();
        // Nothing may be made here while it is looked for what was.
        let _guard = self.0.lock_writes();
        if !PurgeRecord::pending(store)?.is_empty() || self.has_unrecorded()? {
            return Ok(Revoked::LATER);
        }
        let mut plan = Plan::new(store, withheld)?;
        each_change(store, |stored| plan.find_records(stored))?;
        let Some(record) = plan.record(self.0.now_micros())? else { return Ok(Revoked::default()) };
        record_purge(store, &record)?;
        let records = (record.memories.len() + record.conversations.len()) as u64;
        tracing::info!(records, "records are taken out that a peer does not share any more");
        Ok(Revoked { records, again: false })
    }
}

/// Returns the origins of the own series, also of earlier ones.
fn own_origins(store: &Store) -> Result<BTreeSet<OriginId>, SyncError> {
    Ok(entries::earlier_own(store)?.into_iter().chain(entries::own(store)?).collect())
}

/// Returns whether the payload of one of the changes is here.
fn holds_payload(store: &Store, withheld: &[PayloadRange]) -> Result<bool, SyncError> {
    for range in withheld {
        let mut next = Some(range.first);
        while let Some(counter) = next.filter(|counter| *counter <= range.last) {
            let Some(stored) = entries::change(store, range.origin, counter)? else { break };
            if stored.place == PayloadPlace::Inline {
                return Ok(true);
            }
            next = counter.next();
        }
    }
    Ok(false)
}

/// Passes all changes that the store has to `each`: by origin, in ascending order of their counters.
fn each_change(
    store: &Store,
    mut each: impl FnMut(&StoredChange) -> Result<(), SyncError>,
) -> Result<(), SyncError> {
    let mut origins = entries::origins(store)?;
    origins.sort_unstable();
    for origin in origins {
        let mut next = Some(Counter::FIRST);
        while let Some(counter) = next {
            let Some(stored) = entries::change(store, origin, counter)? else { break };
            each(&stored)?;
            next = counter.next();
        }
    }
    Ok(())
}

/// Adds a change to ranges that are in ascending order.
fn add(ranges: &mut Vec<PayloadRange>, origin: OriginId, counter: Counter) {
    match ranges.last_mut().filter(|range| range.origin == origin) {
        Some(range) if range.last.next() == Some(counter) => range.last = counter,
        _ => ranges.push(PayloadRange { origin, first: counter, last: counter }),
    }
}
