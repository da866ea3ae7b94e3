//! The branches of forked series that go on under other origins, as the ledger keeps them.

use std::collections::BTreeMap;

use satchel_merge::causality::{Dot, VersionVector};
use satchel_store::{Change, Store};
use satchel_sync::{Continuation, Counter, Frontier, Head, OriginId};

use super::{SeriesStoreError, edit_origin, entries};

/// A branch of a series that was written again in the series of another origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContinuedBranch {
    /// The other origin.
    pub(crate) by: OriginId,
    /// The change of the other origin that says so. Those after it repeat the branch.
    pub(crate) at: Counter,
    pub(crate) continuation: Continuation,
}

/// All branches that are known to go on elsewhere, by the origin that forked.
#[derive(Default)]
pub(crate) struct Continuations(BTreeMap<OriginId, Vec<ContinuedBranch>>);

impl ContinuedBranch {
    /// Returns the counter of the other origin under which the change is repeated that is `position` changes after the base.
    pub(crate) fn counter(&self, position: u64) -> Option<Counter> {
        Counter::new(self.at.get().checked_add(position)?)
    }

    /// Returns where a change of the branch is repeated; `None` for one of another series, and for the changes that both branches have.
    pub(crate) fn moved(&self, (origin, counter): (OriginId, Counter)) -> Option<(OriginId, Counter)> {
        let position = counter.get().checked_sub(self.continuation.base().counter.get())?;
        let on_branch = origin == self.continuation.origin() && position > 0;
        on_branch.then(|| Some((self.by, self.counter(position)?)))?
    }

    /// Returns the dot that replaces that of a change of the branch.
    pub(crate) fn moved_dot(&self, dot: Dot) -> Option<Dot> {
        let origin = OriginId::from_uuid(dot.origin.as_uuid());
        let (by, counter) = self.moved((origin, Counter::new(dot.counter.get())?))?;
        Dot::new(edit_origin(by), counter.get())
    }

    /// Returns what somebody had seen who had seen changes of the branch; `None` if that was not so.
    pub(crate) fn moved_vector(&self, seen: &VersionVector) -> Option<VersionVector> {
        let moved = |dot: Dot| self.moved_dot(dot);
        seen.dots().any(|dot| moved(dot).is_some()).then(|| {
            let mut vector = self.base();
            vector.extend(seen.dots().map(|dot| moved(dot).unwrap_or(dot)));
            vector
        })
    }

    /// Returns the vector of what both branches have.
    pub(crate) fn base(&self) -> VersionVector {
        let (origin, base) = (self.continuation.origin(), self.continuation.base());
        Dot::new(edit_origin(origin), base.counter.get()).into_iter().collect()
    }

    fn encode(&self) -> Vec<u8> {
        let continuation = self.continuation.encode();
        let length = u64::try_from(continuation.len()).unwrap_or(u64::MAX);
        let at = self.at.get().to_be_bytes();
        [self.by.as_bytes().as_slice(), &at, &length.to_be_bytes(), &continuation].concat()
    }

    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (by, rest) = bytes.split_first_chunk::<16>()?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
        let (continuation, rest) = rest.split_at_checked(length)?;
        let branch = Self {
            by: OriginId::from_bytes(*by),
            at: Counter::new(u64::from_be_bytes(*at))?,
            continuation: Continuation::decode(continuation).ok()?,
        };
        Some((branch, rest))
    }
}

impl Continuations {
    /// Loads those of all origins of which the store holds changes.
    pub(crate) fn load(store: &Store) -> Result<Self, SeriesStoreError> {
        let mut all = Self::default();
        for origin in entries::origins(store)? {
            let value = entries::get(store, &id_of(origin))?.unwrap_or_default();
            let mut rest = value.as_slice();
            while !rest.is_empty() {
                let (branch, after) = ContinuedBranch::decode(rest).ok_or(SeriesStoreError::Unreadable)?;
                all.0.entry(origin).or_default().push(branch);
                rest = after;
            }
        }
        Ok(all)
    }

    /// Adds a branch; returns the change of the ledger that stores it, or `None` if it is known.
    pub(crate) fn add(&mut self, branch: ContinuedBranch) -> Option<Change> {
        let origin = branch.continuation.origin();
        let known = self.0.entry(origin).or_default();
        if known.contains(&branch) {
            return None;
        }
        known.push(branch);
        let value: Vec<u8> = known.iter().flat_map(ContinuedBranch::encode).collect();
        Some(entries::put(id_of(origin), value))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ContinuedBranch> {
        self.0.values().flatten()
    }

    /// Returns the branch that this change of a series is on, and where the change is repeated.
    pub(crate) fn find(&self, origin: OriginId, head: Head) -> Option<(&ContinuedBranch, Counter)> {
        self.0.get(&origin)?.iter().find_map(|branch| {
            let position = branch.continuation.position(head)?;
            Some((branch, branch.counter(position)?))
        })
    }

    /// Returns which changes of branches a change repeats.
    pub(crate) fn earlier(
        &self,
        (by, counter): (OriginId, Counter),
    ) -> impl Iterator<Item = (OriginId, Counter)> {
        self.iter().filter(move |branch| branch.by == by).filter_map(move |branch| {
            let continuation = &branch.continuation;
            let position = counter.get().checked_sub(branch.at.get()).filter(|position| *position > 0)?;
            let repeats =
                usize::try_from(position).is_ok_and(|position| position <= continuation.hashes().len());
            let counter = Counter::new(continuation.base().counter.get() + position)?;
            repeats.then(|| (continuation.origin(), counter))
        })
    }

    /// Returns a frontier as a version vector. A head on a branch that goes on elsewhere stands for what is repeated there.
    pub(crate) fn vector_of(&self, frontier: &Frontier) -> VersionVector {
        let mut vector = VersionVector::default();
        for (origin, head) in frontier.heads() {
            let (origin, counter) = match self.find(origin, head) {
                Some((branch, counter)) => {
                    vector.join(&branch.base());
                    (branch.by, counter)
                }
                None => (origin, head.counter),
            };
            vector.extend(Dot::new(edit_origin(origin), counter.get()));
        }
        vector
    }
}

fn id_of(origin: OriginId) -> String {
    format!("continued {origin}")
}
