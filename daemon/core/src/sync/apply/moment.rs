//! When a change was made: what its author had seen, and whether all of that has taken effect here.

use satchel_merge::causality::{Dot, VersionVector};
use satchel_sync::{Counter, Frontier, Head, OriginId, SignedChange};

use super::{Applier, SyncError, UNREADABLE};
use crate::series::{continuations::Continuations, edit_origin, entries};

/// Whether the next change of a series can take effect.
pub(super) enum Readiness {
    Ready,
    /// Its author had seen changes that have not taken effect here.
    Waits,
    Blocked(String),
}

/// When a change was made.
pub(super) struct Moment {
    pub(super) origin: OriginId,
    pub(super) counter: Counter,
    pub(super) dot: Dot,
    /// What its author had seen.
    pub(super) seen: VersionVector,
}

impl Moment {
    /// Returns the moment of a change whose author had seen `context` of other origins.
    pub(super) fn of(
        origin: OriginId,
        counter: Counter,
        context: &Frontier,
        continuations: &Continuations,
    ) -> Result<Self, SyncError> {
        let dot = Dot::new(edit_origin(origin), counter.get()).ok_or(UNREADABLE)?;
        Ok(Self { origin, counter, dot, seen: continuations.vector_of(context) })
    }
}

impl Applier<'_> {
    /// Compares what the author had seen with what has taken effect here.
    pub(super) fn readiness(&self, change: &SignedChange) -> Result<Readiness, SyncError> {
        for (of, seen) in change.change().context.heads() {
            match self.readiness_for(of, seen)? {
                Readiness::Ready => {}
                other => return Ok(other),
            }
        }
        Ok(Readiness::Ready)
    }

    fn readiness_for(&self, of: OriginId, seen: Head) -> Result<Readiness, SyncError> {
        if let Some((branch, counter)) = self.continuations.find(of, seen) {
            return Ok(if self.has_applied(branch.by, counter) {
                Readiness::Ready
            } else {
                Readiness::Waits
            });
        }
        let Some(here) = self.positions.get(&of).filter(|_| self.has_applied(of, seen.counter)) else {
            return Ok(Readiness::Waits);
        };
        let hash = if here.head.counter == seen.counter {
            here.head.hash
        } else {
            entries::change(self.store, of, seen.counter)?.ok_or(UNREADABLE)?.change.hash()
        };
        if hash == seen.hash {
            return Ok(Readiness::Ready);
        }
        let counter = seen.counter.get();
        Ok(Readiness::Blocked(format!(
            "its author had seen another change {counter} of origin {of} than this store"
        )))
    }

    fn has_applied(&self, origin: OriginId, counter: Counter) -> bool {
        self.positions.get(&origin).is_some_and(|here| here.head.counter >= counter)
    }
}

/// Adds the context of a change to what its author had seen before.
pub(super) fn extend(seen: &mut Frontier, context: &Frontier) -> Result<(), SyncError> {
    Ok(context.heads().try_for_each(|(of, head)| seen.advance(of, head))?)
}
