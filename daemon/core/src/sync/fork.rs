//! Series that forked: the store was set back to an earlier state, or copied, and both copies went on.
//!
//! The store whose series it is gives its own branch up: it writes the changes of this branch again, in a new series, and takes the other
//! branch from its peers like the series of another store. So every change of both sides is in one series or the other. A change of the
//! new series names the branch that it repeats ([`satchel_sync::Continuation`]); stores that hold this branch drop it then, with
//! [`Sync::drop_repeated`], and begin a new series too, because theirs refers to the branch.
//!
//! Nothing that a store shows changes with that. Edits keep their evidence; their dots are replaced
//! ([`crate::provenance::MovedSteps`]).

mod drop_branch;

use std::path::Path;

use satchel_store::{Change, Store};
use satchel_sync::{
    Author, ChangeHash, Continuation, Counter, ForkProof, Frontier, FrontierError, Head, OriginId,
    limits::{MAX_ORIGINS, MAX_REPEATED},
};

use self::drop_branch::drop_branch;
use super::{
    Sync, SyncError, UNREADABLE, apply::is_held, receive::last_of_each_entry, series_key::SeriesIdentity,
};
use crate::{
    edits::complete_interrupted,
    ingest::Inner,
    series::{
        LocalSeries, NewPlace, SeriesStoreError,
        continuations::{Continuations, ContinuedBranch},
        entries::{self, AppliedSeries, PayloadPlace, StoredChange},
        payload::{CONTINUATION, EARLIER_EDIT, Payload},
    },
};

/// The most bytes of payloads of a branch that is written again: it happens in one commit.
const MAX_BRANCH_BYTES: usize = 128 << 20;

/// The end of the store's own series, which differs from what another store has of it.
struct OwnBranch {
    origin: OriginId,
    /// The last change that both branches have.
    base: Head,
    /// The changes that follow it.
    hashes: Vec<ChangeHash>,
}

impl Sync {
    /// If `proof` shows that the store's own series forked, writes the end of it again in a new series, and drops it from the old one, so
    /// that the store can take the other branch. Returns the new origin; `None` if this is another series, or the branch cannot be written
    /// again: it is too large, changes before the fork differ as well, it has edits from before the series or a continuation, or not all of it has
    /// taken effect yet. Durable when this returns.
    ///
    /// # Errors
    /// [`SyncError::NotBegun`], when the new key cannot be written, or an error of the store.
    pub fn mend_fork(&self, data_dir: &Path, proof: &ForkProof) -> Result<Option<OriginId>, SyncError> {
        let _alone = self.0.lock_exchange();
        let store = self.0.store();
        let _undos = self.0.lock_undos();
        let _guard = self.0.lock_writes();
        complete_interrupted(store)?;
        let own = entries::own(store)?.ok_or(SyncError::NotBegun)?;
        let Some(branch) = OwnBranch::find(store, own, proof)? else { return Ok(None) };
        let key = self.0.series_key().get().ok_or(SeriesStoreError::NoKey(own))?;
        let (identity, mut continuations) = (new_identity(store)?, Continuations::load(store)?);

        let mut seen = branch.seen_before(store, &continuations)?;
        let (author, genesis) = Author::begin(identity.key.clone(), identity.salt, &seen)?;
        let by = author.series().origin();
        let mut series = LocalSeries::begun(author, seen.clone());
        let continuation = Continuation::sign(&key, own, branch.base, branch.hashes.clone(), by);
        let at = series.append(&Payload::Continuation(Box::new(continuation.clone())), NewPlace::Inline)?;
        for stored in branch_of(store, own, branch.base)? {
            let stored = stored?;
            seen = seen.join(&current(store, &continuations, &stored.change.change().context)?)?;
            series.repeat(&stored, &seen)?;
        }
        let repeated = ContinuedBranch { by, at, continuation };
        let mut changes = begun(store, &genesis)?;
        changes.extend(drop_branch(store, &repeated)?);
        changes.extend(continuations.add(repeated));
        let (written, applied) = series.into_changes(store)?;
        changes.extend(written.into_iter().chain(applied));
        commit(&self.0, data_dir, changes, &identity)?;
        tracing::warn!(earlier = %own, origin = %by, changes = branch.hashes.len(), "the series of this store had forked; its end was written again in a new series");
        Ok(Some(by))
    }

    /// Drops the branches of other series that were written again, once all of what is repeated is here, and goes on with a new series.
    /// Returns whether there was one. Durable when this returns.
    ///
    /// # Errors
    /// [`SyncError::NotBegun`], when the new key cannot be written, or an error of the store.
    pub fn drop_repeated(&self, data_dir: &Path) -> Result<bool, SyncError> {
        let mut dropped = false;
        while self.drop_next(data_dir)? {
            dropped = true;
        }
        Ok(dropped)
    }

    fn drop_next(&self, data_dir: &Path) -> Result<bool, SyncError> {
        let _alone = self.0.lock_exchange();
        let store = self.0.store();
        let _undos = self.0.lock_undos();
        let _guard = self.0.lock_writes();
        complete_interrupted(store)?;
        let continuations = Continuations::load(store)?;
        for branch in continuations.iter() {
            if !is_complete(store, branch)? {
                continue;
            }
            let identity = new_identity(store)?;
            let repeated = repeated_position(store, branch)?;
            let mut seen = Frontier::new();
            for origin in entries::origins(store)? {
                let mut head = entries::applied(store, origin)?.map(|applied| applied.head);
                if let Some(repeated) = &repeated {
                    if origin == branch.continuation.origin() {
                        head = Some(branch.continuation.base());
                    } else if origin == branch.by {
                        head = Some(repeated.head);
                    }
                }
                head.map_or(Ok(()), |head| seen.advance(origin, head))?;
            }
            let (author, genesis) = Author::begin(identity.key.clone(), identity.salt, &seen)?;
            let mut changes = begun(store, &genesis)?;
            changes.extend(drop_branch(store, branch)?);
            changes.extend(repeated.map(|repeated| entries::put_applied(branch.by, &repeated)));
            let (written, applied) = LocalSeries::begun(author, seen).into_changes(store)?;
            changes.extend(written.into_iter().chain(applied));
            commit(&self.0, data_dir, changes, &identity)?;
            tracing::info!(series = %branch.continuation.origin(), by = %branch.by, "the branch of a series that forked was dropped; another series repeats it");
            return Ok(true);
        }
        Ok(false)
    }
}

impl Sync {
    /// Returns the change of a series with this counter, if the store holds it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn head_at(&self, origin: OriginId, counter: u64) -> Result<Option<Head>, SyncError> {
        let Some(counter) = Counter::new(counter) else { return Ok(None) };
        Ok(entries::change(self.0.store(), origin, counter)?.map(|stored| stored.change.head()))
    }
}

impl OwnBranch {
    /// Returns the end of the own series that `proof` shows to differ from another branch; `None` if it cannot be written again.
    fn find(store: &Store, own: OriginId, proof: &ForkProof) -> Result<Option<Self>, SyncError> {
        let [one, other] = proof.changes();
        let (counter, previous) = (one.change().counter, one.change().previous);
        let base = counter.before().map(|counter| Head { counter, hash: previous });
        let (Some(base), true) = (base, proof.origin() == own && other.change().previous == previous) else {
            return Ok(None);
        };
        let series = entries::series(store, own)?.ok_or(UNREADABLE)?;
        let applied = entries::applied(store, own)?;
        if applied.is_none_or(|applied| applied.head != series.head()) {
            // What a crash has left takes effect first.
            return Ok(None);
        }
        let (mut hashes, mut bytes) = (Vec::new(), 0);
        for stored in branch_of(store, own, base)? {
            let change = stored?.change;
            bytes += change.payload().map_or(0, <[u8]>::len);
            let too_large = bytes > MAX_BRANCH_BYTES || hashes.len() >= MAX_REPEATED;
            if [EARLIER_EDIT, CONTINUATION].contains(&change.change().kind) || too_large {
                return Ok(None);
            }
            hashes.push(change.hash());
        }
        let shown = hashes.first().is_some_and(|first| [one.hash(), other.hash()].contains(first));
        Ok(shown.then_some(Self { origin: own, base, hashes }))
    }

    /// Returns what the store had seen when it wrote the last change before the fork, with that change.
    fn seen_before(&self, store: &Store, continuations: &Continuations) -> Result<Frontier, SyncError> {
        let context = context_at(store, self.origin, self.base.counter)?;
        let mut seen = current(store, continuations, &context)?;
        seen.advance(self.origin, self.base)?;
        Ok(seen)
    }
}

/// Returns whether the store holds changes of the branch, and everything that repeats them.
fn is_complete(store: &Store, branch: &ContinuedBranch) -> Result<bool, SyncError> {
    if !is_held(store, branch)? {
        return Ok(false);
    }
    let (origin, base) = (branch.continuation.origin(), branch.continuation.base());
    let series = entries::series(store, origin)?.ok_or(UNREADABLE)?;
    if branch.continuation.position(series.head()).is_none() {
        return Ok(false);
    }
    for (position, stored) in (1..).zip(branch_of(store, origin, base)?) {
        let change = stored?.change;
        let counter = branch.counter(position).ok_or(UNREADABLE)?;
        let repeats = |repeated: &StoredChange| {
            let (one, other) = (change.change(), repeated.change.change());
            (one.kind, one.payload) == (other.kind, other.payload)
        };
        if !entries::change(store, branch.by, counter)?.as_ref().is_some_and(repeats) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns up to where the other series counts as applied once the branch was dropped: as far as the branch has taken effect. `None` if
/// nothing of it has.
fn repeated_position(store: &Store, branch: &ContinuedBranch) -> Result<Option<AppliedSeries>, SyncError> {
    let base = branch.continuation.base().counter;
    let applied = entries::applied(store, branch.continuation.origin())?;
    let position = applied.and_then(|applied| applied.head.counter.get().checked_sub(base.get()));
    let Some(position) = position.filter(|position| *position > 0) else { return Ok(None) };
    let counter = branch.counter(position).ok_or(UNREADABLE)?;
    if let Some(known) = entries::applied(store, branch.by)?.filter(|known| known.head.counter >= counter) {
        return Ok(Some(known));
    }
    let head = entries::change(store, branch.by, counter)?.ok_or(UNREADABLE)?.change.head();
    Ok(Some(AppliedSeries { head, context: context_at(store, branch.by, counter)? }))
}

/// Returns the changes of a series that follow `base`.
fn branch_of(
    store: &Store,
    origin: OriginId,
    base: Head,
) -> Result<impl Iterator<Item = Result<StoredChange, SyncError>>, SyncError> {
    let last = entries::series(store, origin)?.ok_or(UNREADABLE)?.head().counter;
    let counters = (base.counter.get() + 1..=last.get()).filter_map(Counter::new);
    Ok(counters.map(move |counter| entries::change(store, origin, counter)?.ok_or(UNREADABLE)))
}

/// Returns what the author of a series had seen of others when it wrote this change.
fn context_at(store: &Store, origin: OriginId, counter: Counter) -> Result<Frontier, SyncError> {
    let mut context = Frontier::new();
    for at in (1..=counter.get()).filter_map(Counter::new) {
        let stored = entries::change(store, origin, at)?.ok_or(UNREADABLE)?;
        context = context.join(&stored.change.change().context)?;
    }
    Ok(context)
}

/// Returns the same frontier without heads on branches that were dropped: with what repeats them.
fn current(store: &Store, continuations: &Continuations, frontier: &Frontier) -> Result<Frontier, SyncError> {
    let mut current = Frontier::new();
    for (origin, head) in frontier.heads() {
        let mut heads = Frontier::new();
        let found = continuations.find(origin, head);
        if let Some((branch, counter)) = found
            && !is_held(store, branch)?
        {
            let hash = entries::change(store, branch.by, counter)?.ok_or(UNREADABLE)?.change.hash();
            heads.advance(origin, branch.continuation.base())?;
            heads.advance(branch.by, Head { counter, hash })?;
        } else {
            heads.advance(origin, head)?;
        }
        current = current.join(&heads)?;
    }
    Ok(current)
}

/// Makes the key of a new series, if the store can have one more.
fn new_identity(store: &Store) -> Result<SeriesIdentity, SyncError> {
    let found = entries::origins(store)?.len() + 1;
    if found > MAX_ORIGINS {
        return Err(FrontierError::TooManyOrigins { found }.into());
    }
    Ok(SeriesIdentity::generate()?)
}

/// Returns the changes of the ledger with which the own series begins.
fn begun(store: &Store, genesis: &satchel_sync::SignedChange) -> Result<Vec<Change>, SyncError> {
    let (origin, mut origins) = (genesis.change().origin, entries::origins(store)?);
    origins.push(origin);
    let mut changes = entries::replace_own(store, origin)?;
    changes.push(entries::put_origins(&origins));
    changes.push(entries::put_change(genesis, &PayloadPlace::Inline));
    Ok(changes)
}

/// Commits what begins a new series, and then writes its key. If that fails, the next start finds that the key is of another series, and
/// begins one more.
fn commit(
    inner: &Inner,
    data_dir: &Path,
    changes: Vec<Change>,
    identity: &SeriesIdentity,
) -> Result<(), SyncError> {
    inner.commit_entries(last_of_each_entry(changes))?;
    inner.series_key().set(identity.key.clone());
    Ok(identity.save(data_dir)?)
}
