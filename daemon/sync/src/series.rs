//! The series of an origin, as far as a store holds it: accepts the next change, or says what is wrong with it.

use crate::{
    change::{Kind, SignedChange},
    frontier::{Frontier, FrontierError},
    head::{ChangeHash, Counter, Fork, Head},
    origin::{OriginError, OriginId, OriginKey},
    proof::ForkProof,
};

/// What a store has to know of an origin to check its next change: the key, the head and the sum of all contexts.
///
/// A store keeps these three values with the changes, in the same transaction. A store that is handed a *next* change of its own
/// origin, which it never wrote, was rolled back: it has to continue under a new origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    origin: OriginId,
    key: OriginKey,
    head: Head,
    context: Frontier,
}

/// What a store holds at the counter of a change that is not the next one.
#[derive(Clone, Copy, Debug)]
pub enum Held<'a> {
    /// It has not looked. Enough for changes at or after the head.
    Nothing,
    /// The hash alone.
    Hash(ChangeHash),
    /// The change itself, so that a fork can be proven.
    Change(&'a SignedChange),
}

/// The result of [`Series::accept`] for a change that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It was the next change, and is the new head.
    Next,
    /// The series has it already. Nothing changed.
    Repeated,
}

/// Why a change is not accepted. The series is unchanged then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// Changes between the head and this one are missing. The signature has not been checked.
    #[error("origin {origin} continues at change {expected}, not at {found}")]
    Gap {
        /// The origin.
        origin: OriginId,
        /// The counter of the next change.
        expected: Counter,
        /// The counter of this change.
        found: Counter,
    },
    /// Validly signed, and different from what the series has. Nothing more of this origin can be accepted from there.
    #[error("{fork}")]
    Fork {
        /// Where the series differ.
        fork: Fork,
        /// Both changes. None if the other change at this counter is not at hand: ask both sides for it, and make the proof with
        /// [`ForkProof::new`].
        proof: Option<Box<ForkProof>>,
    },
    /// Not signed with the key of the origin.
    #[error("change {counter} of origin {origin} is not signed by it")]
    BadSignature {
        /// The origin.
        origin: OriginId,
        /// The counter.
        counter: Counter,
    },
    /// Of another origin; or a genesis whose key belongs to another origin.
    #[error("a change of origin {expected} was expected, this one is of {found}")]
    WrongOrigin {
        /// The origin of the series, or the one that follows from the key in the genesis.
        expected: OriginId,
        /// The origin in the change.
        found: OriginId,
    },
    /// A series begins with a genesis.
    #[error("origin {origin} begins at change 1, not at {found}")]
    NotGenesis {
        /// The origin.
        origin: OriginId,
        /// The counter of this change.
        found: Counter,
    },
    /// The genesis has no valid key.
    #[error("the genesis of origin {origin} has no valid key")]
    Key {
        /// The origin.
        origin: OriginId,
        /// What is wrong with it.
        source: OriginError,
    },
    /// Before the head, and the caller did not say what it holds there.
    #[error(
        "change {counter} of origin {origin} is not after {head}; it has to be compared with the one that is held"
    )]
    NotCompared {
        /// The origin.
        origin: OriginId,
        /// The counter of this change.
        counter: Counter,
        /// The counter of the head.
        head: Counter,
    },
    /// The context names a change that the author had seen before, or an earlier one.
    #[error(
        "the context of change {counter} of origin {origin} goes from change {seen} of {of} back to {found}"
    )]
    ContextBackwards {
        /// The origin.
        origin: OriginId,
        /// The counter of this change.
        counter: Counter,
        /// The origin in the context.
        of: OriginId,
        /// What its author had already seen of it.
        seen: Counter,
        /// What the context says.
        found: Counter,
    },
    /// All contexts together are no frontier: they have too many origins.
    #[error("the contexts of origin {origin} are no frontier")]
    Context {
        /// The origin.
        origin: OriginId,
        /// What is wrong with them.
        source: FrontierError,
    },
}

impl Series {
    /// Begins a series with its genesis.
    ///
    /// # Errors
    /// If the change is no genesis, its key is invalid, the origin does not follow from the key, or the signature is not of the key.
    pub fn begin(genesis: &SignedChange) -> Result<Self, SeriesError> {
        let change = genesis.change();
        let origin = change.origin;
        if change.kind != Kind::GENESIS {
            return Err(SeriesError::NotGenesis { origin, found: change.counter });
        }
        let payload = genesis.payload().unwrap_or_default();
        let key = OriginKey::decode(payload).map_err(|source| SeriesError::Key { origin, source })?;
        if key.id() != origin {
            return Err(SeriesError::WrongOrigin { expected: key.id(), found: origin });
        }
        if !genesis.verify(&key) {
            return Err(SeriesError::BadSignature { origin, counter: change.counter });
        }
        Ok(Self { origin, key, head: genesis.head(), context: change.context.clone() })
    }

    /// Continues a series with the values that were kept of it. They are trusted.
    #[must_use]
    pub fn resume(key: OriginKey, head: Head, context: Frontier) -> Self {
        Self { origin: key.id(), key, head, context }
    }

    /// The origin.
    #[must_use]
    pub fn origin(&self) -> OriginId {
        self.origin
    }

    /// The key of the origin.
    #[must_use]
    pub fn key(&self) -> &OriginKey {
        &self.key
    }

    /// The last change.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// What the author had seen of other origins when it wrote the head: the sum of the contexts of all changes up to there.
    ///
    /// It is the author's claim. It may name changes that this store does not hold yet, that are on the other branch of a fork, or
    /// that do not exist.
    #[must_use]
    pub fn context(&self) -> &Frontier {
        &self.context
    }

    /// Accepts the next change, or recognises one that the series already has. `held` is what the store has at the counter of the
    /// change, and is used only if the change is not after the head.
    ///
    /// # Errors
    /// Any [`SeriesError`]. After a fork, the store stops taking changes of this origin and keeps the proof; other origins go on.
    pub fn accept(&mut self, signed: &SignedChange, held: Held<'_>) -> Result<Accepted, SeriesError> {
        let change = signed.change();
        let (origin, counter) = (self.origin, change.counter);
        if change.origin != origin {
            return Err(SeriesError::WrongOrigin { expected: origin, found: change.origin });
        }
        if let Some(expected) = self.head.counter.next().filter(|next| *next < counter) {
            return Err(SeriesError::Gap { origin, expected, found: counter });
        }
        // Before all that follows: otherwise, anybody could stop an origin with an invented fork.
        if !signed.verify(&self.key) {
            return Err(SeriesError::BadSignature { origin, counter });
        }
        if counter <= self.head.counter {
            return self.compare(signed, held);
        }
        if change.previous != self.head.hash {
            let fork = self.fork(self.head.counter, self.head.hash, change.previous);
            return Err(SeriesError::Fork { fork, proof: None });
        }
        self.extend_context(signed)?;
        self.head = signed.head();
        Ok(Accepted::Next)
    }

    /// Tells a repeated change from a fork.
    fn compare(&self, signed: &SignedChange, held: Held<'_>) -> Result<Accepted, SeriesError> {
        let (origin, counter) = (self.origin, signed.change().counter);
        let (hash, change) = match held {
            Held::Change(ours) if ours.change().origin == origin && ours.change().counter == counter => {
                (ours.hash(), Some(ours))
            }
            Held::Hash(hash) => (hash, None),
            // The store is wrong about what it holds, or has not looked.
            Held::Change(_) | Held::Nothing if counter == self.head.counter => (self.head.hash, None),
            Held::Change(_) | Held::Nothing => {
                return Err(SeriesError::NotCompared { origin, counter, head: self.head.counter });
            }
        };
        if hash == signed.hash() {
            return Ok(Accepted::Repeated);
        }
        let proof = change.and_then(|ours| ForkProof::new(self.key, ours.clone(), signed.clone()).ok());
        let fork = self.fork(counter, hash, signed.hash());
        Err(SeriesError::Fork { fork, proof: proof.map(Box::new) })
    }

    fn fork(&self, counter: Counter, ours: ChangeHash, theirs: ChangeHash) -> Fork {
        Fork { origin: self.origin, counter, ours, theirs }
    }

    /// Adds the context of the next change. All or nothing.
    fn extend_context(&mut self, signed: &SignedChange) -> Result<(), SeriesError> {
        let (origin, change) = (self.origin, signed.change());
        if change.context.heads().len() == 0 {
            return Ok(());
        }
        for (of, head) in change.context.heads() {
            if let Some(seen) = self.context.head(of).filter(|seen| head.counter <= seen.counter) {
                let (counter, seen, found) = (change.counter, seen.counter, head.counter);
                return Err(SeriesError::ContextBackwards { origin, counter, of, seen, found });
            }
        }
        let joined = self.context.join(&change.context);
        self.context = joined.map_err(|source| SeriesError::Context { origin, source })?;
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
