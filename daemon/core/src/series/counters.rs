//! Sets of counters of a series, as bits in the ledger.

use std::collections::{BTreeMap, BTreeSet};

use satchel_store::{Change, Store};
use satchel_sync::{Counter, OriginId};

use super::{SeriesStoreError, entries};

/// Bytes of a page, one bit for each counter.
const PAGE_BYTES: usize = 512;
/// Counters per page.
const PER_PAGE: u64 = PAGE_BYTES as u64 * 8;

/// What a set of counters says about the changes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Marked {
    /// The payload came after the change had been passed over. It has yet to take effect.
    Late,
    /// This program did not know the kind when the change was passed over.
    UnknownKind,
    /// The change joins the parts of a large payload.
    Joined,
    /// The change came without its payload, which has not come since.
    Withheld,
}

/// A set of counters of one origin. Pages are read when they are needed.
pub(crate) struct CounterSet {
    id: String,
    /// The pages with a bit that is set; `None` if the page was not read.
    pages: BTreeMap<u64, Option<Box<[u8; PAGE_BYTES]>>>,
    changed: BTreeSet<u64>,
}

impl CounterSet {
    /// Loads a set; one that was never stored is empty.
    pub(crate) fn load(store: &Store, marked: Marked, origin: OriginId) -> Result<Self, SeriesStoreError> {
        let name = match marked {
            Marked::Late => "late",
            Marked::UnknownKind => "unknown",
            Marked::Joined => "joined",
            Marked::Withheld => "withheld",
        };
        let id = format!("{name} {origin}");
        let index = entries::get(store, &id)?.unwrap_or_default();
        let (numbers, rest) = index.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(SeriesStoreError::Unreadable);
        }
        let pages = numbers.iter().map(|number| (u64::from_be_bytes(*number), None)).collect();
        Ok(Self { id, pages, changed: BTreeSet::new() })
    }

    /// Returns whether it was stored without counters. What was removed since counts as well.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Adds a counter.
    pub(crate) fn insert(&mut self, store: &Store, counter: Counter) -> Result<(), SeriesStoreError> {
        self.set(store, counter, true)
    }

    /// Removes a counter.
    pub(crate) fn remove(&mut self, store: &Store, counter: Counter) -> Result<(), SeriesStoreError> {
        self.set(store, counter, false)
    }

    /// Returns whether a counter is in the set.
    pub(crate) fn contains(&mut self, store: &Store, counter: Counter) -> Result<bool, SeriesStoreError> {
        let (number, bit) = (counter.get() / PER_PAGE, counter.get() % PER_PAGE);
        Ok(self.pages.contains_key(&number) && self.page(store, number)?[byte_of(bit)] & mask_of(bit) != 0)
    }

    /// Returns the counters, in ascending order.
    pub(crate) fn counters(&mut self, store: &Store) -> Result<Vec<Counter>, SeriesStoreError> {
        let mut counters = Vec::new();
        for number in self.pages.keys().copied().collect::<Vec<_>>() {
            let page = self.page(store, number)?;
            let bits = (0..PER_PAGE).filter(|bit| page[byte_of(*bit)] & mask_of(*bit) != 0);
            counters.extend(bits.filter_map(|bit| Counter::new(number * PER_PAGE + bit)));
        }
        Ok(counters)
    }

    /// Returns the changes of the ledger that store the set. It counts as stored from then on.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for number in std::mem::take(&mut self.changed) {
            let page = self.pages.get(&number).and_then(Option::as_deref);
            let value = page.filter(|page| !is_empty(page)).map(|page| page.to_vec()).unwrap_or_default();
            if value.is_empty() {
                self.pages.remove(&number);
            }
            changes.push(entries::put(self.page_id(number), value));
        }
        if !changes.is_empty() {
            let numbers: Vec<[u8; 8]> = self.pages.keys().map(|number| number.to_be_bytes()).collect();
            changes.push(entries::put(self.id.clone(), numbers.concat()));
        }
        changes
    }

    fn set(&mut self, store: &Store, counter: Counter, value: bool) -> Result<(), SeriesStoreError> {
        let (number, bit) = (counter.get() / PER_PAGE, counter.get() % PER_PAGE);
        if !value && !self.pages.contains_key(&number) {
            return Ok(());
        }
        let page = self.page(store, number)?;
        let (before, mask) = (page[byte_of(bit)], mask_of(bit));
        let after = if value { before | mask } else { before & !mask };
        page[byte_of(bit)] = after;
        if after != before {
            self.changed.insert(number);
        }
        Ok(())
    }

    fn page(&mut self, store: &Store, number: u64) -> Result<&mut [u8; PAGE_BYTES], SeriesStoreError> {
        let id = self.page_id(number);
        let stored = self.pages.contains_key(&number);
        let place = self.pages.entry(number).or_default();
        if place.is_none() {
            let value = if stored { entries::get(store, &id)? } else { None };
            let page = value.map_or(Ok([0; PAGE_BYTES]), |value| {
                value.try_into().map_err(|_| SeriesStoreError::Unreadable)
            })?;
            *place = Some(Box::new(page));
        }
        place.as_deref_mut().ok_or(SeriesStoreError::Unreadable)
    }

    fn page_id(&self, number: u64) -> String {
        format!("{} {number}", self.id)
    }
}

fn is_empty(page: &[u8; PAGE_BYTES]) -> bool {
    page.iter().all(|byte| *byte == 0)
}

fn byte_of(bit: u64) -> usize {
    // Less than the bytes of a page.
    usize::try_from(bit / 8).unwrap_or(0)
}

fn mask_of(bit: u64) -> u8 {
    1 << (bit % 8)
}
