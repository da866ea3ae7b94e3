//! The author of a series: numbers, chains and signs the changes of this store's own origin.

use ed25519_dalek::SigningKey;

use crate::{
    change::{Change, ChangeError, Kind, SignedChange},
    frontier::{Frontier, FrontierError},
    head::{ChangeHash, Counter, Head},
    limits::MAX_INLINE_BYTES,
    origin::{OriginId, OriginKey},
    payload::PayloadId,
    series::{Accepted, Held, Series, SeriesError},
};

/// The key of an origin and its series. There must be only one for each origin, in one store.
///
/// A change must be durable before anybody else sees it. A store that sends a change, loses it in a crash and writes another one with
/// the same counter has forked its origin.
pub struct Author {
    key: SigningKey,
    series: Series,
}

/// Why a change is not written. The series is unchanged then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorError {
    /// The key is not that of the series.
    #[error("the signing key is not the key of origin {origin}")]
    WrongKey {
        /// The origin of the series.
        origin: OriginId,
    },
    /// The store does not hold what earlier changes of this origin say that it had seen, or holds changes of this origin that were not
    /// written here. A part of it was rolled back: continue under a new origin.
    #[error(
        "origin {origin} cannot be continued: this store was at change {expected} of {of}, and is not now"
    )]
    RolledBack {
        /// The own origin.
        origin: OriginId,
        /// The origin whose changes differ, possibly the own one.
        of: OriginId,
        /// The counter that the series says.
        expected: Counter,
    },
    /// The series has the greatest counter.
    #[error("origin {origin} has no counter left")]
    CounterOverflow {
        /// The own origin.
        origin: OriginId,
    },
    /// The change does not have the right form, for example because its payload is too long.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The store has seen too many origins.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The new change does not fit the series.
    #[error(transparent)]
    Series(#[from] SeriesError),
}

impl Author {
    /// Begins a new origin, with its genesis. The salt must be random; `seen` is the frontier of the store.
    ///
    /// # Errors
    /// [`AuthorError::Change`] and [`AuthorError::Series`] if the key is a weak one or the origin exists already in `seen`.
    pub fn begin(
        key: SigningKey,
        salt: [u8; OriginKey::SALT_BYTES],
        seen: &Frontier,
    ) -> Result<(Self, SignedChange), AuthorError> {
        let public = OriginKey::new(&key, salt);
        let payload = public.encode();
        let genesis = Change {
            origin: public.id(),
            counter: Counter::FIRST,
            previous: ChangeHash::ZERO,
            context: seen.clone(),
            kind: Kind::GENESIS,
            payload: PayloadId::of(&payload),
        };
        let genesis = genesis.sign(&key)?.with_payload(payload.to_vec())?;
        let series = Series::begin(&genesis)?;
        Ok((Self { key, series }, genesis))
    }

    /// Continues an origin.
    ///
    /// # Errors
    /// [`AuthorError::WrongKey`] if the series has another key.
    pub fn resume(key: SigningKey, series: Series) -> Result<Self, AuthorError> {
        if series.key().signed_by(&key) {
            Ok(Self { key, series })
        } else {
            Err(AuthorError::WrongKey { origin: series.origin() })
        }
    }

    /// The series up to the last change that was written.
    #[must_use]
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Writes the next change, with its payload if that is not longer than [`MAX_INLINE_BYTES`]. `seen` is the frontier of the store,
    /// with or without the own origin.
    ///
    /// # Errors
    /// Any [`AuthorError`] except [`AuthorError::WrongKey`].
    pub fn append(
        &mut self,
        kind: Kind,
        payload: Vec<u8>,
        seen: &Frontier,
    ) -> Result<SignedChange, AuthorError> {
        let change = self.append_id(kind, PayloadId::of(&payload), seen)?;
        if payload.len() > MAX_INLINE_BYTES { Ok(change) } else { Ok(change.with_payload(payload)?) }
    }

    /// Writes the next change without its payload, of which only the digest is known.
    ///
    /// # Errors
    /// As for [`Author::append`].
    pub fn append_id(
        &mut self,
        kind: Kind,
        payload: PayloadId,
        seen: &Frontier,
    ) -> Result<SignedChange, AuthorError> {
        let Head { counter, hash: previous } = self.series.head();
        let origin = self.series.origin();
        let context = self.news(seen)?;
        let counter = counter.next().ok_or(AuthorError::CounterOverflow { origin })?;
        let change = Change { origin, counter, previous, context, kind, payload }.sign(&self.key)?;
        // Checks the signature too: one that a faulty memory has spoilt would stop this origin in all other stores.
        self.series.accept(&change, Held::Nothing)?;
        Ok(change)
    }

    /// Checks a change of the own origin that comes from another store: it has to be one that was written here. `held` is what
    /// this store has at its counter.
    ///
    /// # Errors
    /// [`AuthorError::RolledBack`] if it is the next change, validly signed: this store wrote it once, and lost it.
    /// [`AuthorError::Series`] for all that a series refuses, such as a fork.
    pub fn recognise(&self, change: &SignedChange, held: Held<'_>) -> Result<(), AuthorError> {
        Self::recognise_in(&self.series, change, held)
    }

    /// Works as [`Author::recognise`] for the series of an own origin, whose key is not at hand.
    ///
    /// # Errors
    /// As for [`Author::recognise`].
    pub fn recognise_in(series: &Series, change: &SignedChange, held: Held<'_>) -> Result<(), AuthorError> {
        let (origin, expected) = (series.origin(), change.change().counter);
        match series.clone().accept(change, held)? {
            Accepted::Repeated => Ok(()),
            Accepted::Next => Err(AuthorError::RolledBack { origin, of: origin, expected }),
        }
    }

    /// The heads in `seen` that earlier contexts do not have.
    fn news(&self, seen: &Frontier) -> Result<Frontier, AuthorError> {
        let (origin, head) = (self.series.origin(), self.series.head());
        let rolled_back = |of, expected| AuthorError::RolledBack { origin, of, expected };
        if seen.head(origin).is_some_and(|own| own != head) {
            return Err(rolled_back(origin, head.counter));
        }
        for (of, before) in self.series.context().heads() {
            let kept = |now: Head| now.counter >= before.counter && before.fork(of, now).is_none();
            if !seen.head(of).is_some_and(kept) {
                return Err(rolled_back(of, before.counter));
            }
        }
        let mut news = Frontier::new();
        for (of, now) in seen.heads().filter(|(of, _)| *of != origin) {
            if self.series.context().head(of) != Some(now) {
                news.advance(of, now)?;
            }
        }
        Ok(news)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
