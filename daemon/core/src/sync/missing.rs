//! Payloads that were withheld from this store, and those that another store lacks.

use satchel_sync::{Counter, OriginId, SignedChange};

use super::{
    Sync, SyncError,
    filter::{PayloadFilter, RecordFilter},
    outgoing::{ErasedPayloads, change},
};
use crate::series::{
    counters::{CounterSet, Marked},
    entries,
};

/// A run of changes of one origin, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadRange {
    /// The origin.
    pub origin: OriginId,
    /// The first change.
    pub first: Counter,
    /// The last change.
    pub last: Counter,
}

impl PayloadRange {
    /// Returns whether all of its changes come before those of `other`, by origin and counter.
    #[must_use]
    pub fn is_before(&self, other: &Self) -> bool {
        (self.origin, self.last) < (other.origin, other.first)
    }
}

impl Sync {
    /// Returns whether there are changes that came without their payloads, which have not come since.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn lacks_payloads(&self) -> Result<bool, SyncError> {
        let store = self.0.store();
        for origin in entries::origins(store)? {
            if !CounterSet::load(store, Marked::Withheld, origin)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the changes that came without their payloads, which have not come since: by origin, in ascending order of their counters.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn missing_payloads(&self) -> Result<Vec<PayloadRange>, SyncError> {
        let (store, mut ranges) = (self.0.store(), Vec::<PayloadRange>::new());
        let mut origins = entries::origins(store)?;
        origins.sort_unstable();
        for origin in origins {
            for counter in CounterSet::load(store, Marked::Withheld, origin)?.counters(store)? {
                match ranges.last_mut().filter(|range| range.origin == origin) {
                    Some(range) if range.last.next() == Some(counter) => range.last = counter,
                    _ => ranges.push(PayloadRange { origin, first: counter, last: counter }),
                }
            }
        }
        Ok(ranges)
    }

    /// Passes to `visit` those of the changes in `ranges` whose payloads this store has and `filter` includes, until it returns false, or
    /// `wanted`, which is called before each change. With a filter, only what has taken effect is passed on.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn payloads(
        &self,
        ranges: &[PayloadRange],
        filter: Option<&dyn RecordFilter>,
        wanted: &dyn Fn() -> bool,
        mut visit: impl FnMut(SignedChange) -> bool,
    ) -> Result<(), SyncError> {
        let store = self.0.store();
        let erased = ErasedPayloads::load(store)?;
        let mut filter = filter.map(|filter| PayloadFilter::new(store, filter));
        for range in ranges {
            let mut next = Some(range.first);
            while let Some(counter) = next.filter(|counter| *counter <= range.last) {
                if !wanted() {
                    return Ok(());
                }
                let Some(stored) = entries::change(store, range.origin, counter)? else { break };
                next = counter.next();
                if let Some(filter) = &mut filter
                    && !filter.sends(&stored)?
                {
                    continue;
                }
                let change = change(store, stored)?;
                if change.payload().is_some() && !erased.contains(&change) && !visit(change) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
