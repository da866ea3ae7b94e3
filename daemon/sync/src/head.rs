//! Counters and hashes of changes, and the last change of a series that a store holds.

use std::fmt;

use satchel_pam::hash::Sha256Digest;

use crate::{limits::MAX_COUNTER, origin::OriginId};

/// The position of a change in the series of its origin: from 1 to [`MAX_COUNTER`], without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter(u64);

/// SHA-256 over the bytes of a change that are signed. The signature is not part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeHash(Sha256Digest);

/// The last change of a series that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// Its counter, which is also the number of changes that are held of the series.
    pub counter: Counter,
    /// Its hash. As each change contains the hash of the one before it, the hash identifies the whole series up to here.
    pub hash: ChangeHash,
}

/// Two different changes with one counter in the series of one origin.
///
/// A correct store never writes that. It happens when a store is rolled back, for example to a backup, or runs twice on a cloned disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("origin {origin} has two different changes {counter}: {ours} and {theirs}")]
pub struct Fork {
    /// The origin.
    pub origin: OriginId,
    /// The counter of both changes. The series may differ from an earlier counter on.
    pub counter: Counter,
    /// The hash of the change that this store holds.
    pub ours: ChangeHash,
    /// The hash of the change that the other side holds.
    pub theirs: ChangeHash,
}

impl Counter {
    /// The counter of a genesis.
    pub const FIRST: Self = Self(1);
    /// The greatest counter.
    pub const MAX: Self = Self(MAX_COUNTER);

    /// Returns the counter; none outside 1 to [`MAX_COUNTER`].
    #[must_use]
    pub const fn new(counter: u64) -> Option<Self> {
        if counter == 0 || counter > MAX_COUNTER { None } else { Some(Self(counter)) }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The counter of the next change; none after [`Counter::MAX`].
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }

    /// The counter of the change before; none before [`Counter::FIRST`].
    #[must_use]
    pub const fn before(self) -> Option<Self> {
        Self::new(self.0 - 1)
    }
}

impl ChangeHash {
    /// 32 zero bytes: the hash before the first change. No change is known to have it.
    pub const ZERO: Self = Self(Sha256Digest::from_bytes([0; 32]));

    /// Wraps a hash that was computed earlier.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Sha256Digest::from_bytes(bytes))
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256Digest::of(bytes))
    }
}

impl Head {
    /// Whether another head of the same origin is of another series: the same counter with another hash.
    ///
    /// Heads with different counters say nothing; see [`crate::CounterRange::check_base`].
    #[must_use]
    pub fn fork(self, origin: OriginId, theirs: Self) -> Option<Fork> {
        (self.counter == theirs.counter && self.hash != theirs.hash).then_some(Fork {
            origin,
            counter: self.counter,
            ours: self.hash,
            theirs: theirs.hash,
        })
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `sha256:` and 64 lower-case hex digits.
impl fmt::Display for ChangeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ChangeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_no_zero_and_end_at_the_maximum() {
        assert_eq!(Counter::new(0), None);
        assert_eq!(Counter::new(1), Some(Counter::FIRST));
        assert_eq!(Counter::new(MAX_COUNTER), Some(Counter::MAX));
        assert_eq!(Counter::new(MAX_COUNTER + 1), None);
        assert_eq!(Counter::MAX.next(), None);
        assert_eq!(Counter::FIRST.before(), None);
        assert_eq!(Counter::FIRST.next().and_then(Counter::before), Some(Counter::FIRST));
    }
}
