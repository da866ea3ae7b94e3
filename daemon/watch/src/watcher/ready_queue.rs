//! The settled names that wait for an import slot, in order of arrival and searchable by name.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use crate::settle::Stamp;

/// A first-in, first-out queue. Removing a name does not cost time for the others.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    /// The waiting names by sequence number.
    waiting: BTreeMap<u64, (OsString, Stamp)>,
    numbers: BTreeMap<OsString, u64>,
    next: u64,
}

/// The first sequence number; lower numbers are for names that are put back before all others.
const FIRST: u64 = 1 << 63;

impl ReadyQueue {
    /// Adds a name at the end, unless it is already waiting.
    pub(super) fn push(&mut self, name: &OsStr, stamp: Stamp) {
        if !self.contains(name) {
            let number = self.next.max(FIRST);
            self.next = number + 1;
            self.put(number, name.to_owned(), stamp);
        }
    }

    /// Removes and returns the first name.
    pub(super) fn pop(&mut self) -> Option<(OsString, Stamp)> {
        let (_, first) = self.waiting.pop_first()?;
        self.numbers.remove(&first.0);
        Some(first)
    }

    /// Puts a name back before all others.
    pub(super) fn put_back(&mut self, name: OsString, stamp: Stamp) {
        let first = self.waiting.first_key_value().map_or(FIRST, |(number, _)| *number);
        self.put(first - 1, name, stamp);
    }

    fn put(&mut self, number: u64, name: OsString, stamp: Stamp) {
        self.numbers.insert(name.clone(), number);
        self.waiting.insert(number, (name, stamp));
    }

    pub(super) fn remove(&mut self, name: &OsStr) {
        if let Some(number) = self.numbers.remove(name) {
            self.waiting.remove(&number);
        }
    }

    /// Keeps only the names for which `exists` returns true.
    pub(super) fn retain(&mut self, exists: impl Fn(&OsStr) -> bool) {
        self.numbers.retain(|name, _| exists(name));
        self.waiting.retain(|_, (name, _)| exists(name));
    }

    pub(super) fn contains(&self, name: &OsStr) -> bool {
        self.numbers.contains_key(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_leave_in_order_of_arrival_and_none_is_queued_twice() {
        let stamp = Stamp { bytes: 1, modified: 0, inode: 1, below: 0 };
        let mut ready = ReadyQueue::default();
        ["c", "a", "b", "a", "d"].into_iter().for_each(|name| ready.push(OsStr::new(name), stamp));
        let Some((first, _)) = ready.pop() else { return assert!(!ready.is_empty(), "nothing waits") };
        assert_eq!((first.as_os_str(), ready.len()), (OsStr::new("c"), 3));
        ready.put_back(first, stamp);
        ready.remove(OsStr::new("a"));
        ready.retain(|name| name != "d");
        assert!(
            ready.contains(OsStr::new("b"))
                && !ready.contains(OsStr::new("a"))
                && !ready.contains(OsStr::new("d"))
        );
        ready.push(OsStr::new("a"), stamp);
        let order: Vec<OsString> = std::iter::from_fn(|| ready.pop()).map(|(name, _)| name).collect();
        assert_eq!(order, ["c", "b", "a"]);
        assert!(ready.is_empty() && ready.numbers.is_empty());
    }
}
