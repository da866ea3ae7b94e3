//! Takes changes of other stores: checks them against their series, and stores them.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use satchel_store::{Change, Store};
use satchel_sync::{
    Accepted, Author, AuthorError, Counter, ForkProof, FrontierError, Held, OriginId, Series, SeriesError,
    SignedChange,
};

use super::{Sync, SyncError, UNREADABLE};
use crate::{
    ingest::Inner,
    provenance::{PurgeRecord, PurgedData, RevokedData},
    series::{
        continuations::Continuations,
        counters::{CounterSet, Marked},
        entries::{self, PayloadPlace},
        large::{self, Content, PART},
        payload::is_erased,
    },
};

/// Changes and bytes per commit.
const BATCH: usize = 400;
const BATCH_BYTES: usize = 8 << 20;

/// Origins that are kept free for the store's own series, so that it can go on after a restore.
const OWN_ORIGINS: usize = 64;

/// What became of the changes that were received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The changes that are new to this store; they are stored.
    pub new: u64,
    /// The changes that it had already.
    pub repeated: u64,
    /// The payloads that it lacked, of changes that it had already.
    pub completed: u64,
    /// The new changes that came without their payloads.
    pub withheld: u64,
    /// The first change of each origin that was refused. Nothing that follows it was stored.
    pub refused: Vec<Refused>,
    /// If a change was refused because the store's own series forked: the proof of that, for [`Sync::mend_fork`].
    pub own_fork: Option<Box<ForkProof>>,
}

/// A change that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its origin.
    pub origin: OriginId,
    /// Its position in the series.
    pub counter: Counter,
    /// What is wrong with it.
    pub error: SeriesError,
}

impl Sync {
    /// Stores changes that another store has sent. Those of one origin must be in the order of their series. What is stored is durable
    /// when this returns, also if it returns an error.
    ///
    /// # Errors
    /// [`satchel_sync::AuthorError::RolledBack`] if the other store has changes of this store's own origin that this store does not have:
    /// this store was restored from a backup, and needs a new origin. [`SyncError::NotBegun`], or an error of the store.
    pub fn receive(&self, changes: impl IntoIterator<Item = SignedChange>) -> Result<Received, SyncError> {
        let _alone = self.0.lock_exchange();
        let store = self.0.store();
        let own = entries::own(store)?.ok_or(SyncError::NotBegun)?;
        let mut receiver = Receiver {
            inner: &self.0,
            store,
            own,
            origins: entries::origins(store)?,
            series: BTreeMap::new(),
            advanced: BTreeSet::new(),
            pending: Vec::new(),
            bytes: 0,
            sets: BTreeMap::new(),
            received: Received::default(),
            purged: PurgedData::load(store)?,
            revoked: PurgeRecord::pending(store)?.into_iter().filter_map(|record| record.revoked).collect(),
            continuations: Continuations::load(store)?,
        };
        let outcome = changes.into_iter().try_for_each(|change| receiver.add(change));
        receiver.commit()?;
        outcome.map(|()| receiver.received)
    }
}

struct Receiver<'a> {
    inner: &'a Inner,
    store: &'a Store,
    own: OriginId,
    origins: Vec<OriginId>,
    /// The series that were used so far, as of the last change that was accepted.
    series: BTreeMap<OriginId, Series>,
    /// The origins with changes that are not committed.
    advanced: BTreeSet<OriginId>,
    pending: Vec<Change>,
    bytes: usize,
    /// The sets of counters that were used so far.
    sets: BTreeMap<(Marked, OriginId), CounterSet>,
    received: Received,
    purged: PurgedData,
    /// What a peer has taken back and is still on the disk. If it comes again meanwhile, it is not stored, and counts as withheld.
    revoked: Vec<RevokedData>,
    /// The branches that other series repeat.
    continuations: Continuations,
}

impl Receiver<'_> {
    fn add(&mut self, change: SignedChange) -> Result<(), SyncError> {
        let (origin, counter) = (change.change().origin, change.change().counter);
        if self.received.refused.iter().any(|refused| refused.origin == origin) {
            return Ok(());
        }
        let held = self.held(origin, counter)?;
        if origin == self.own {
            return self.recognise(&change, held.as_ref().map(|stored| &stored.change));
        }
        if held.is_none() && self.continuations.find(origin, change.head()).is_some() {
            // Another series repeats it. The store that has sent it drops it when it hears of that.
            return Ok(());
        }
        let accepted = self.accept(&change, held.as_ref().map(|stored| &stored.change))?;
        match (accepted, held) {
            (Err(error), _) => self.received.refused.push(Refused { origin, counter, error }),
            (Ok(Accepted::Next), _) => {
                self.received.new += 1;
                self.advanced.insert(origin);
                self.store(&change)?;
            }
            (Ok(Accepted::Repeated), held) => {
                self.received.repeated += 1;
                let lacking = held.is_some_and(|stored| stored.place == PayloadPlace::Absent);
                if lacking
                    && change.payload().is_some()
                    && self.store(&change)?
                    && !self.erase_joined(&change)?
                {
                    self.received.completed += 1;
                    self.note_late(origin, counter)?;
                }
            }
        }
        if self.pending.len() >= BATCH || self.bytes >= BATCH_BYTES { self.commit() } else { Ok(()) }
    }

    /// Checks a change of the store's own origin that came back.
    fn recognise(&mut self, change: &SignedChange, held: Option<&SignedChange>) -> Result<(), SyncError> {
        let series = entries::series(self.store, self.own)?.ok_or(UNREADABLE)?;
        match Author::recognise_in(&series, change, held.map_or(Held::Nothing, Held::Change)) {
            Ok(()) => self.received.repeated += 1,
            // Anybody can invent a change of this origin that is not signed, or leaves a gap.
            Err(AuthorError::Series(error)) => {
                if let SeriesError::Fork { proof: Some(proof), .. } = &error {
                    self.received.own_fork = Some(proof.clone());
                }
                let (origin, counter) = (self.own, change.change().counter);
                self.received.refused.push(Refused { origin, counter, error });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Returns the change that the store has at this place.
    fn held(
        &mut self,
        origin: OriginId,
        counter: Counter,
    ) -> Result<Option<entries::StoredChange>, SyncError> {
        let found = entries::change(self.store, origin, counter)?;
        if found.is_some() || !self.advanced.contains(&origin) {
            return Ok(found);
        }
        let head = self.series.get(&origin).map(|series| series.head().counter);
        if head.is_none_or(|head| counter > head) {
            return Ok(None);
        }
        // It came earlier in the same batch.
        self.commit()?;
        Ok(entries::change(self.store, origin, counter)?)
    }

    /// Checks a change against its series.
    fn accept(
        &mut self,
        change: &SignedChange,
        held: Option<&SignedChange>,
    ) -> Result<Result<Accepted, SeriesError>, SyncError> {
        let origin = change.change().origin;
        if !self.series.contains_key(&origin) {
            let Some(series) = entries::series(self.store, origin)? else {
                let begun = Series::begin(change).and_then(|series| self.begin(series));
                return Ok(begun.map(|()| Accepted::Next));
            };
            self.series.insert(origin, series);
        }
        let series = self.series.get_mut(&origin).ok_or(UNREADABLE)?;
        Ok(series.accept(change, held.map_or(Held::Nothing, Held::Change)))
    }

    /// Adds an origin that is new to this store.
    fn begin(&mut self, series: Series) -> Result<(), SeriesError> {
        let (origin, found) = (series.origin(), self.origins.len() + 1);
        if found > satchel_sync::limits::MAX_ORIGINS - OWN_ORIGINS {
            let source = FrontierError::TooManyOrigins { found };
            return Err(SeriesError::Context { origin, source });
        }
        self.origins.push(origin);
        self.series.insert(origin, series);
        self.pending.push(entries::put_origins(&self.origins));
        Ok(())
    }

    /// Stores a change; returns whether with its payload. What the owner erased here does not come back.
    fn store(&mut self, change: &SignedChange) -> Result<bool, SyncError> {
        self.bytes += change.payload().map_or(0, <[u8]>::len);
        let parts = large::parts_of(change);
        if !self.purged.is_empty() && !parts.is_empty() {
            // The parts came before it, perhaps in this batch.
            self.commit()?;
        }
        let keeps = change.payload().is_some() && !self.is_erased(change)?;
        let place = if keeps { PayloadPlace::Inline } else { PayloadPlace::Absent };
        self.pending.push(entries::put_change(change, &place));
        let (origin, counter) = (change.change().origin, change.change().counter);
        self.note_withheld(change, keeps)?;
        if keeps && !parts.is_empty() {
            self.mark(Marked::Joined, origin, counter)?;
        } else {
            for part in parts {
                if let Some(part) = entries::change(self.store, origin, part)? {
                    self.pending.push(entries::put_change(&part.change, &PayloadPlace::Absent));
                }
            }
        }
        Ok(keeps)
    }

    /// If a part has completed a large payload that was erased here, removes all of its parts again. Returns whether that was so.
    fn erase_joined(&mut self, part: &SignedChange) -> Result<bool, SyncError> {
        if self.purged.is_empty() || part.change().kind != PART {
            return Ok(false);
        }
        self.commit()?;
        let origin = part.change().origin;
        let Some(at) = large::joining(self.store, origin, part.change().counter)? else { return Ok(false) };
        let joined = entries::change(self.store, origin, at)?.ok_or(UNREADABLE)?.change;
        if !self.is_erased(&joined)? {
            return Ok(false);
        }
        for counter in large::parts_of(&joined).into_iter().chain([at]) {
            if let Some(stored) = entries::change(self.store, origin, counter)? {
                self.pending.push(entries::put_change(&stored.change, &PayloadPlace::Absent));
            }
        }
        self.commit()?;
        Ok(true)
    }

    /// Returns whether a change has something that was erased here.
    fn is_erased(&self, change: &SignedChange) -> Result<bool, SyncError> {
        let at = change.change();
        if self.revoked.iter().any(|revoked| revoked.contains_change(at.origin, at.counter)) {
            return Ok(true);
        }
        if self.purged.is_empty() {
            return Ok(false);
        }
        let Content::Present(kind, content) = large::content(self.store, change)? else { return Ok(false) };
        Ok(is_erased(&self.purged, kind, &content))
    }

    /// Marks a change whose payload has come after it was passed over.
    fn note_late(&mut self, origin: OriginId, counter: Counter) -> Result<(), SyncError> {
        let applied = entries::applied(self.store, origin)?;
        if applied.is_some_and(|applied| counter <= applied.head.counter) {
            self.mark(Marked::Late, origin, counter)?;
        }
        Ok(())
    }

    /// Marks a change that came without its payload, or whose payload has come now.
    fn note_withheld(&mut self, change: &SignedChange, keeps: bool) -> Result<(), SyncError> {
        let (store, origin, counter) = (self.store, change.change().origin, change.change().counter);
        let comes_again = !self.revoked.is_empty() && !keeps;
        let withheld = self.set(Marked::Withheld, origin)?;
        if change.payload().is_none() || comes_again {
            withheld.insert(store, counter)?;
            self.received.withheld += 1;
        } else {
            withheld.remove(store, counter)?;
        }
        Ok(())
    }

    fn mark(&mut self, marked: Marked, origin: OriginId, counter: Counter) -> Result<(), SyncError> {
        let store = self.store;
        Ok(self.set(marked, origin)?.insert(store, counter)?)
    }

    fn set(&mut self, marked: Marked, origin: OriginId) -> Result<&mut CounterSet, SyncError> {
        Ok(match self.sets.entry((marked, origin)) {
            Entry::Occupied(set) => set.into_mut(),
            Entry::Vacant(place) => place.insert(CounterSet::load(self.store, marked, origin)?),
        })
    }

    /// Commits what was accepted. Durable when this returns.
    fn commit(&mut self) -> Result<(), SyncError> {
        for origin in std::mem::take(&mut self.advanced) {
            self.pending.extend(self.series.get(&origin).map(entries::put_series));
        }
        self.pending.extend(self.sets.values_mut().flat_map(CounterSet::take_changes));
        self.bytes = 0;
        let pending = last_of_each_entry(std::mem::take(&mut self.pending));
        if pending.is_empty() { Ok(()) } else { Ok(self.inner.commit_entries(pending)?) }
    }
}

/// Keeps only the last write to each entry of the ledger.
pub(super) fn last_of_each_entry(changes: Vec<Change>) -> Vec<Change> {
    let mut seen = BTreeSet::new();
    let mut kept: Vec<Change> = changes
        .into_iter()
        .rev()
        .filter(|change| match change {
            Change::Ledger(satchel_store::LedgerWrite::Entry { id, .. }) => seen.insert(id.clone()),
            _ => true,
        })
        .collect();
    kept.reverse();
    kept
}
