//! What a peer had given to this store, and has taken back.

use std::collections::BTreeSet;

use satchel_sync::{Counter, OriginId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::EvidenceKey;

/// The inputs that leave the store, so that it is as if they had never come. They stay in the receipts of imports as counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedData {
    /// Keys of evidence.
    pub(crate) evidence: BTreeSet<EvidenceKey>,
    /// Keys of contributions to conversations.
    pub(crate) contributions: BTreeSet<EvidenceKey>,
    /// Memories that agents wrote.
    pub(crate) agent_memories: BTreeSet<String>,
    /// The changes whose payloads leave, in ascending order: origin, first and last counter.
    pub(crate) changes: Vec<(Uuid, u64, u64)>,
    /// The imports of other stores that have brought them: their ids, and the changes that describe them.
    pub(crate) imports: Vec<(Uuid, Uuid, u64)>,
    /// Whether everything is hidden. What is shown again since was made here.
    pub(crate) hidden: bool,
}

impl RevokedData {
    /// Adds a change. They are added by origin, in ascending order of their counters.
    pub(crate) fn add_change(&mut self, origin: OriginId, counter: Counter) {
        let (origin, counter) = (*origin.as_uuid(), counter.get());
        match self.changes.last_mut().filter(|(of, _, last)| *of == origin && counter <= *last + 1) {
            Some((_, _, last)) => *last = counter.max(*last),
            None => self.changes.push((origin, counter, counter)),
        }
    }

    /// Returns whether the payload of a change leaves.
    pub(crate) fn contains_change(&self, origin: OriginId, counter: Counter) -> bool {
        let (origin, counter) = (*origin.as_uuid(), counter.get());
        let after = self.changes.partition_point(|(of, first, _)| (*of, *first) <= (origin, counter));
        let range = after.checked_sub(1).and_then(|at| self.changes.get(at));
        range.is_some_and(|(of, _, last)| *of == origin && counter <= *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_kept_as_ranges() {
        let (one, two) = (OriginId::from_bytes([1; 16]), OriginId::from_bytes([2; 16]));
        let at = |counter| Counter::new(counter).unwrap_or(Counter::FIRST);
        let mut revoked = RevokedData::default();
        for (origin, counter) in [(one, 2), (one, 3), (one, 3), (one, 7), (two, 8)] {
            revoked.add_change(origin, at(counter));
        }
        assert_eq!(revoked.changes.len(), 3);
        let contained: Vec<u64> = (1..10).filter(|n| revoked.contains_change(one, at(*n))).collect();
        assert_eq!(contained, [2, 3, 7]);
        let contained: Vec<u64> = (1..10).filter(|n| revoked.contains_change(two, at(*n))).collect();
        assert_eq!(contained, [8]);
        assert!(!revoked.contains_change(OriginId::from_bytes([3; 16]), at(2)));
    }
}
