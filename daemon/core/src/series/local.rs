//! The store's own series: what happens here is appended to it, in the commit that makes it happen.

use std::sync::{Arc, Mutex, PoisonError};

use satchel_merge::{
    causality::{self, Causality, Dot, VersionVector},
    evidence::EditStep,
};
use satchel_store::{Change, Store};
use satchel_sync::{
    Author, AuthorError, Counter, Frontier, Kind, OriginId, SigningKey, limits::MAX_INLINE_BYTES,
    payload::salted,
};

use super::{
    LATEST_MICROS, SeriesStoreError,
    counters::{CounterSet, Marked},
    entries::{self, AppliedSeries, ContributionPlace, PayloadPlace, StoredChange, StoredUndo},
    large::{JOINED, Joined, PART, PART_BYTES},
    payload::{EditPayload, Payload, SALT_BYTES, UndoPayload},
};
use crate::provenance::EvidenceKey;

/// The key with which a store signs its series, once it is known. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct SeriesKey(Arc<Mutex<Option<SigningKey>>>);

impl SeriesKey {
    /// Sets the key.
    pub(crate) fn set(&self, key: SigningKey) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }

    /// Returns the key, if it is known.
    pub(crate) fn get(&self) -> Option<SigningKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Where the payload of a new change is found again.
pub(crate) enum NewPlace {
    /// With the change.
    Inline,
    /// With the change, which is the one that brings the item with this key.
    InlineItem(EvidenceKey),
    /// It is a piece of evidence in the store.
    Evidence(EvidenceKey),
    /// It is a contribution in the store.
    Contribution(EvidenceKey, Box<ContributionPlace>),
}

/// The store's own series, and the changes of the ledger that continue it. They belong into the commit of what they describe. The
/// caller holds the write lock from loading the series to this commit.
pub(crate) struct LocalSeries {
    author: Author,
    /// The changes of all origins that have taken effect here.
    seen: Frontier,
    /// A crash has left changes whose effect is not stored. They take effect with the next exchange.
    behind: bool,
    written: Vec<Change>,
    /// The changes that join parts, since the series was loaded.
    joined: Vec<Counter>,
}

impl LocalSeries {
    /// Returns whether the store has a series.
    pub(crate) fn exists(store: &Store) -> Result<bool, SeriesStoreError> {
        Ok(entries::own(store)?.is_some())
    }

    /// Loads the series; `None` if the store has none.
    ///
    /// # Errors
    /// [`SeriesStoreError::NoKey`] if the key of the series is not known.
    pub(crate) fn load(store: &Store, key: &SeriesKey) -> Result<Option<Self>, SeriesStoreError> {
        let Some(own) = entries::own(store)? else { return Ok(None) };
        let key = key.get().ok_or(SeriesStoreError::NoKey(own))?;
        let series = entries::series(store, own)?.ok_or(SeriesStoreError::Unreadable)?;
        let author = Author::resume(key, series)?;
        let applied = entries::applied(store, own)?;
        let behind = applied.is_none_or(|applied| applied.head != author.series().head());
        let seen = seen_by(store, own)?;
        Ok(Some(Self { author, seen, behind, written: Vec::new(), joined: Vec::new() }))
    }

    /// Continues a series that was just begun.
    pub(crate) fn begun(author: Author, seen: Frontier) -> Self {
        Self { author, seen, behind: false, written: Vec::new(), joined: Vec::new() }
    }

    /// The origin of the series.
    pub(crate) fn origin(&self) -> OriginId {
        self.author.series().origin()
    }

    /// Appends a change, in parts if its payload is too large for one; returns the counter of the last one.
    pub(crate) fn append(&mut self, payload: &Payload, place: NewPlace) -> Result<Counter, SeriesStoreError> {
        let (kind, salt) = (payload.kind(), new_salt()?);
        let bytes = payload.encode(salt).map_err(|_| SeriesStoreError::Unreadable)?;
        let large = bytes.len() > MAX_INLINE_BYTES;
        let (place, item) = match place {
            NewPlace::Inline => (PayloadPlace::Inline, None),
            NewPlace::InlineItem(key) => (PayloadPlace::Inline, Some(key)),
            NewPlace::Evidence(key) => (PayloadPlace::Evidence(salt, key), Some(key)),
            NewPlace::Contribution(key, place) => (PayloadPlace::Contribution(salt, key, place), Some(key)),
        };
        let counter = if large {
            self.append_parts(kind, bytes.get(SALT_BYTES..).unwrap_or_default())?
        } else {
            self.append_one(kind, bytes, &place)?
        };
        let origin = self.origin();
        self.written.extend(item.map(|key| entries::put_item(key, origin, counter)));
        Ok(counter)
    }

    fn append_parts(&mut self, kind: Kind, content: &[u8]) -> Result<Counter, SeriesStoreError> {
        let joined = Joined::of(kind, content).ok_or(SeriesStoreError::TooLarge(content.len()))?;
        for part in content.chunks(PART_BYTES) {
            self.append_one(PART, salted(new_salt()?, part), &PayloadPlace::Inline)?;
        }
        let counter =
            self.append_one(JOINED, salted(new_salt()?, &joined.encode()), &PayloadPlace::Inline)?;
        self.joined.push(counter);
        Ok(counter)
    }

    fn append_one(
        &mut self,
        kind: Kind,
        bytes: Vec<u8>,
        place: &PayloadPlace,
    ) -> Result<Counter, SeriesStoreError> {
        let change = self.author.append(kind, bytes, &self.seen)?;
        self.written.push(entries::put_change(&change, place));
        Ok(change.change().counter)
    }

    /// Appends a change of a branch that is written again here, whose author had seen `seen` of other origins.
    pub(crate) fn repeat(&mut self, stored: &StoredChange, seen: &Frontier) -> Result<(), SeriesStoreError> {
        let StoredChange { change, place } = stored;
        let kind = change.change().kind;
        self.seen = self.seen.join(seen)?;
        let mut copy = self.author.append_id(kind, change.change().payload, &self.seen)?;
        if let Some(payload) = change.payload() {
            copy = copy.with_payload(payload.to_vec()).map_err(AuthorError::from)?;
            self.joined.extend((kind == JOINED).then(|| copy.change().counter));
        }
        self.written.push(entries::put_change(&copy, place));
        Ok(())
    }

    /// Appends a step of an edit by `actor`; returns it with its causality.
    pub(crate) fn append_edit(
        &mut self,
        actor: &str,
        mut step: EditStep,
    ) -> Result<EditStep, SeriesStoreError> {
        if step.at > LATEST_MICROS {
            return Err(SeriesStoreError::TooLate);
        }
        let edit = EditPayload { actor: actor.to_owned(), step: step.clone() };
        let counter = self.append(&Payload::Edit(edit), NewPlace::Inline)?;
        step.causality = Causality::Recorded { dot: self.dot(counter)?, seen: vector_of(&self.seen) };
        Ok(step)
    }

    /// Appends an undo or redo of an import, which replaces all earlier ones of the same import.
    pub(crate) fn append_undo(&mut self, undo: UndoPayload) -> Result<(), SeriesStoreError> {
        let UndoPayload { import, undone, at } = undo;
        let counter = self.append(&Payload::Undo(undo), NewPlace::Inline)?;
        let (dot, seen) = (self.dot(counter)?, vector_of(&self.seen));
        self.written.push(entries::put_undos(import, &[StoredUndo { dot, seen, undone, at }])?);
        Ok(())
    }

    /// Adds an entry of the ledger to the commit.
    pub(crate) fn note(&mut self, entry: Change) {
        self.written.push(entry);
    }

    /// Returns whether changes were appended.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.written.is_empty()
    }

    /// Returns the changes of the ledger that continue the series, and the one which says that all of it has taken effect, if that
    /// is so.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn into_changes(
        self,
        store: &Store,
    ) -> Result<(Vec<Change>, Option<Change>), SeriesStoreError> {
        let Self { author, mut written, joined, behind, .. } = self;
        let series = author.series();
        written.push(entries::put_series(series));
        if !joined.is_empty() {
            let mut all = CounterSet::load(store, Marked::Joined, series.origin())?;
            joined.iter().try_for_each(|counter| all.insert(store, *counter))?;
            written.extend(all.take_changes());
        }
        let applied = AppliedSeries { head: series.head(), context: series.context().clone() };
        Ok((written, (!behind).then(|| entries::put_applied(series.origin(), &applied))))
    }

    fn dot(&self, counter: Counter) -> Result<Dot, SeriesStoreError> {
        Dot::new(edit_origin(self.origin()), counter.get()).ok_or(SeriesStoreError::Unreadable)
    }
}

fn new_salt() -> Result<[u8; SALT_BYTES], SeriesStoreError> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|_| SeriesStoreError::Randomness)?;
    Ok(salt)
}

/// Returns the changes of all origins but `own` that have taken effect in a store.
fn seen_by(store: &Store, own: OriginId) -> Result<Frontier, SeriesStoreError> {
    frontier_of(store, |origin| origin != own)
}

/// Returns the changes of all origins that have taken effect in a store.
pub(crate) fn applied_frontier(store: &Store) -> Result<Frontier, SeriesStoreError> {
    frontier_of(store, |_| true)
}

fn frontier_of(store: &Store, counts: impl Fn(OriginId) -> bool) -> Result<Frontier, SeriesStoreError> {
    let mut seen = Frontier::new();
    for origin in entries::origins(store)?.into_iter().filter(|origin| counts(*origin)) {
        if let Some(applied) = entries::applied(store, origin)? {
            seen.advance(origin, applied.head)?;
        }
    }
    Ok(seen)
}

/// Returns a frontier as a version vector.
fn vector_of(frontier: &Frontier) -> VersionVector {
    let dot =
        |(origin, head): (OriginId, satchel_sync::Head)| Dot::new(edit_origin(origin), head.counter.get());
    frontier.heads().filter_map(dot).collect()
}

/// Returns the origin as edits name it.
pub(crate) fn edit_origin(origin: OriginId) -> causality::OriginId {
    causality::OriginId::new(*origin.as_uuid())
}
