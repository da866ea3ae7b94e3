//! Branches of forked series that are repeated in the series of another origin.

use satchel_sync::{Continuation, Counter, OriginId};

use super::{Applier, Moment, SyncError, UNREADABLE};
use crate::series::{continuations::ContinuedBranch, entries};

impl Applier<'_> {
    /// Returns why the continuation of a change cannot take effect; `None` if it can.
    pub(super) fn refused_continuation(
        &self,
        by: OriginId,
        continuation: &Continuation,
    ) -> Result<Option<String>, SyncError> {
        let origin = continuation.origin();
        let Some(series) = entries::series(self.store, origin)? else {
            return Ok(Some(format!(
                "it repeats changes of the series {origin}, which its author had not seen"
            )));
        };
        Ok((!continuation.verify(series.key(), by))
            .then(|| format!("it repeats changes of the series {origin} without the signature of its key")))
    }

    /// Remembers a branch that the changes after this one repeat.
    pub(super) fn continuation(
        &mut self,
        continuation: Continuation,
        moment: &Moment,
    ) -> Result<(), SyncError> {
        let branch = ContinuedBranch { by: moment.origin, at: moment.counter, continuation };
        self.note_held(&branch)?;
        self.entries.extend(self.continuations.add(branch));
        Ok(())
    }

    /// Finds which origins repeat a branch that this store holds.
    pub(super) fn find_repeating(&mut self) -> Result<(), SyncError> {
        for branch in self.continuations.iter().cloned().collect::<Vec<_>>() {
            self.note_held(&branch)?;
        }
        Ok(())
    }

    fn note_held(&mut self, branch: &ContinuedBranch) -> Result<(), SyncError> {
        if is_held(self.store, branch)? {
            self.applied.repeated += 1;
            self.repeating.insert(branch.by);
        }
        Ok(())
    }

    /// Names the origins that wait for a branch to be dropped, so that the person is told if that is never possible.
    pub(super) fn note_waiting(&mut self) {
        for origin in self.repeating.clone() {
            let next = self.positions.get(&origin).and_then(|applied| applied.head.counter.next());
            let held = self.heads.get(&origin).map(|head| head.counter);
            if let Some(next) = next.filter(|next| held.is_some_and(|held| *next <= held))
                && self.waits_for_drop(origin, next)
            {
                let reason = "it repeats changes of a series that forked, and not all of those that this store has of it are repeated here";
                self.block(origin, next, reason.to_owned());
            }
        }
    }

    /// Returns whether the next change of an origin repeats one that this store holds under its earlier number.
    pub(super) fn waits_for_drop(&self, origin: OriginId, counter: Counter) -> bool {
        let repeats = |branch: &ContinuedBranch| branch.by == origin && counter > branch.at;
        self.repeating.contains(&origin) && self.continuations.iter().any(repeats)
    }
}

/// Returns whether the store holds the branch, or the first change of it.
pub(in crate::sync) fn is_held(
    store: &satchel_store::Store,
    branch: &ContinuedBranch,
) -> Result<bool, SyncError> {
    let continuation = &branch.continuation;
    let first = continuation.base().counter.next().ok_or(UNREADABLE)?;
    let held = entries::change(store, continuation.origin(), first)?;
    Ok(held.is_some_and(|held| continuation.hashes().first() == Some(&held.change.hash())))
}
