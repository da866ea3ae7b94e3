//! Frontiers: which changes a store holds, as the head of each series.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::{
    cursor::{Cursor, Truncated, length_u32},
    head::{ChangeHash, Counter, Fork, Head},
    limits::{FRONTIER_ENTRY_BYTES, MAX_COUNTER, MAX_ORIGINS},
    origin::OriginId,
};

mod difference;

pub use difference::{CounterRange, Difference};

/// The head of each series that a store holds; at most [`MAX_ORIGINS`].
///
/// Without forks, frontiers are a join semilattice: [`Frontier::join`] is commutative, associative and idempotent. A frontier that
/// another store sends is a claim. What it claims to hold is believed when the changes themselves have arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    heads: BTreeMap<OriginId, Head>,
}

/// How two frontiers relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontierOrder {
    /// Both hold the same changes.
    Equal,
    /// The first lacks changes that the second holds, and not the other way round.
    Behind,
    /// The second lacks changes that the first holds, and not the other way round.
    Ahead,
    /// Each lacks changes that the other holds.
    Concurrent,
    /// An origin has the same counter in both, with different hashes.
    Forked(Fork),
}

/// Why a frontier cannot be decoded, advanced or joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierError {
    /// More origins than a frontier may have.
    #[error("a frontier has {found} origins; at most {MAX_ORIGINS} are allowed")]
    TooManyOrigins {
        /// The number of origins.
        found: usize,
    },
    /// The bytes end too early.
    #[error("a frontier ends early")]
    Truncated,
    /// Bytes follow after the end.
    #[error("{bytes} bytes follow after a frontier")]
    Trailing {
        /// The number of bytes.
        bytes: usize,
    },
    /// Origins are not in ascending order, or one occurs twice.
    #[error("the origins of a frontier are not in ascending order")]
    Order,
    /// A counter that no change has: 0.
    #[error("a frontier has counter 0 for origin {origin}")]
    ZeroCounter {
        /// The origin.
        origin: OriginId,
    },
    /// A counter that no change has: more than [`MAX_COUNTER`].
    #[error("a frontier has counter {counter} for origin {origin}; the greatest is {MAX_COUNTER}")]
    CounterOverflow {
        /// The origin.
        origin: OriginId,
        /// The counter.
        counter: u64,
    },
    /// A head would go back to an earlier change.
    #[error("origin {origin} would go back from change {held} to change {found}")]
    Backwards {
        /// The origin.
        origin: OriginId,
        /// The counter that is held.
        held: Counter,
        /// The lower counter.
        found: Counter,
    },
    /// The same counter with another hash.
    #[error(transparent)]
    Forked(Fork),
}

impl Frontier {
    /// The frontier of a store without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The head of an origin's series; none if nothing of it is held.
    #[must_use]
    pub fn head(&self, origin: OriginId) -> Option<Head> {
        self.heads.get(&origin).copied()
    }

    /// All heads, in ascending order of their origins.
    pub fn heads(&self) -> impl ExactSizeIterator<Item = (OriginId, Head)> + '_ {
        self.heads.iter().map(|(origin, head)| (*origin, *head))
    }

    /// Whether a change is below or at the head of its origin. The hash is not compared.
    #[must_use]
    pub fn contains(&self, origin: OriginId, counter: Counter) -> bool {
        self.heads.get(&origin).is_some_and(|head| counter <= head.counter)
    }

    /// Sets the head of an origin to the same or a later change.
    ///
    /// # Errors
    /// [`FrontierError::Backwards`], [`FrontierError::Forked`] and [`FrontierError::TooManyOrigins`]; the frontier is unchanged then.
    pub fn advance(&mut self, origin: OriginId, head: Head) -> Result<(), FrontierError> {
        let found = self.heads.len() + 1;
        match self.heads.entry(origin) {
            Entry::Vacant(_) if found > MAX_ORIGINS => return Err(FrontierError::TooManyOrigins { found }),
            Entry::Vacant(entry) => {
                entry.insert(head);
            }
            Entry::Occupied(mut entry) => {
                let held = *entry.get();
                if head.counter < held.counter {
                    let (held, found) = (held.counter, head.counter);
                    return Err(FrontierError::Backwards { origin, held, found });
                }
                if let Some(fork) = held.fork(origin, head) {
                    return Err(FrontierError::Forked(fork));
                }
                entry.insert(head);
            }
        }
        Ok(())
    }

    /// The frontier of a store that holds all changes of both.
    ///
    /// # Errors
    /// [`FrontierError::Forked`] if an origin has the same counter with different hashes: no store can hold both.
    /// [`FrontierError::TooManyOrigins`] if both together have more than [`MAX_ORIGINS`].
    pub fn join(&self, other: &Self) -> Result<Self, FrontierError> {
        let mut joined = self.clone();
        for (origin, head) in other.heads() {
            if joined.heads.get(&origin).is_none_or(|held| held.counter <= head.counter) {
                joined.advance(origin, head)?;
            }
        }
        Ok(joined)
    }

    /// How this frontier relates to another one. The first fork in the order of origins prevails.
    #[must_use]
    pub fn order(&self, other: &Self) -> FrontierOrder {
        let ahead = self.lacked_by(other);
        if let Some(fork) = ahead.forks.first() {
            return FrontierOrder::Forked(*fork);
        }
        match (ahead.ranges.is_empty(), other.lacked_by(self).ranges.is_empty()) {
            (true, true) => FrontierOrder::Equal,
            (true, false) => FrontierOrder::Behind,
            (false, true) => FrontierOrder::Ahead,
            (false, false) => FrontierOrder::Concurrent,
        }
    }

    /// Encodes the frontier (`FORMAT.md`, section 3): equal frontiers have equal bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + self.heads.len() * FRONTIER_ENTRY_BYTES);
        self.write(&mut bytes);
        bytes
    }

    /// Decodes a frontier.
    ///
    /// # Errors
    /// If the bytes are anything other than what [`Frontier::encode`] writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrontierError> {
        let mut cursor = Cursor::new(bytes);
        let frontier = Self::read(&mut cursor)?;
        match cursor.left() {
            0 => Ok(frontier),
            bytes => Err(FrontierError::Trailing { bytes }),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&length_u32(self.heads.len()));
        for (origin, head) in &self.heads {
            out.extend_from_slice(origin.as_bytes());
            out.extend_from_slice(&head.counter.get().to_be_bytes());
            out.extend_from_slice(head.hash.as_bytes());
        }
    }

    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, FrontierError> {
        let found = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
        if found > MAX_ORIGINS {
            return Err(FrontierError::TooManyOrigins { found });
        }
        let mut heads = BTreeMap::new();
        for _ in 0..found {
            let origin = OriginId::from_bytes(cursor.array()?);
            if heads.last_key_value().is_some_and(|(last, _)| *last >= origin) {
                return Err(FrontierError::Order);
            }
            heads.insert(origin, read_head(cursor, origin)?);
        }
        Ok(Self { heads })
    }
}

fn read_head(cursor: &mut Cursor<'_>, origin: OriginId) -> Result<Head, FrontierError> {
    let counter = match cursor.u64()? {
        0 => return Err(FrontierError::ZeroCounter { origin }),
        counter => Counter::new(counter).ok_or(FrontierError::CounterOverflow { origin, counter })?,
    };
    Ok(Head { counter, hash: ChangeHash::from_bytes(cursor.array()?) })
}

impl From<Truncated> for FrontierError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
