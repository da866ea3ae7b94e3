//! What one store holds and another one lacks.

use super::Frontier;
use crate::{
    head::{ChangeHash, Counter, Fork},
    origin::OriginId,
};

/// The changes that one frontier contains and another one does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// What to send, in ascending order of origins. Each range begins right after what the other store holds.
    pub ranges: Vec<CounterRange>,
    /// The origins whose heads show a fork. Nothing of them is in `ranges`.
    pub forks: Vec<Fork>,
}

/// A run of changes of one origin, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRange {
    /// The origin.
    pub origin: OriginId,
    /// The first counter that the other store lacks.
    pub first: Counter,
    /// The last counter that this store holds.
    pub last: Counter,
    /// The hash that the other store holds before `first`; [`ChangeHash::ZERO`] if it holds nothing of the origin.
    pub base: ChangeHash,
}

impl CounterRange {
    /// Checks that the other store holds the same series up to this range. A fork below the two heads is found in this way, before
    /// anything is sent. `ours` is the hash of the change before `first` in this store; it is not used if `first` is 1.
    ///
    /// # Errors
    /// The fork, if the other store has another change there.
    pub fn check_base(&self, ours: ChangeHash) -> Result<(), Fork> {
        match self.first.before() {
            Some(counter) if ours != self.base => {
                Err(Fork { origin: self.origin, counter, ours, theirs: self.base })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Frontier {
    /// The changes of this frontier that `other` lacks.
    #[must_use]
    pub fn lacked_by(&self, other: &Self) -> Difference {
        let mut difference = Difference::default();
        for (origin, ours) in self.heads() {
            let (first, base) = match other.head(origin) {
                None => (Some(Counter::FIRST), ChangeHash::ZERO),
                Some(theirs) => {
                    difference.forks.extend(ours.fork(origin, theirs));
                    (theirs.counter.next(), theirs.hash)
                }
            };
            if let Some(first) = first.filter(|first| *first <= ours.counter) {
                difference.ranges.push(CounterRange { origin, first, last: ours.counter, base });
            }
        }
        difference
    }
}
