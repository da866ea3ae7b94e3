//! The store's own series: what happens here is appended to it, in the commit that makes it happen.

use std::sync::{Arc, OnceLock};

use satchel_merge::{
    causality::{self, Causality, Dot, VersionVector},
    evidence::EditStep,
};
use satchel_store::{Change, Store};
use satchel_sync::{Author, Counter, Frontier, OriginId, SigningKey};

use super::{
    SeriesStoreError,
    entries::{self, AppliedSeries, ContributionPlace, Place, StoredUndo},
    payload::{Payload, SALT_BYTES, UndoPayload},
};
use crate::provenance::EvidenceKey;

/// The key with which a store signs its series, once it is known. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct SeriesKey(Arc<OnceLock<SigningKey>>);

impl SeriesKey {
    /// Sets the key. A key that was set before stays.
    pub(crate) fn set(&self, key: SigningKey) {
        self.0.get_or_init(|| key);
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
    written: Vec<Change>,
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
        let key = key.0.get().ok_or(SeriesStoreError::NoKey(own))?;
        let series = entries::series(store, own)?.ok_or(SeriesStoreError::Unreadable)?;
        let author = Author::resume(key.clone(), series)?;
        Ok(Some(Self { author, seen: seen_by(store, own)?, written: Vec::new() }))
    }

    /// Continues a series that was just begun.
    pub(crate) fn begun(author: Author, seen: Frontier) -> Self {
        Self { author, seen, written: Vec::new() }
    }

    /// The origin of the series.
    pub(crate) fn origin(&self) -> OriginId {
        self.author.series().origin()
    }

    /// Appends a change.
    pub(crate) fn append(&mut self, payload: &Payload, place: NewPlace) -> Result<Counter, SeriesStoreError> {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).map_err(|_| SeriesStoreError::Randomness)?;
        let bytes = payload.encode(salt).map_err(|_| SeriesStoreError::Unreadable)?;
        let change = self.author.append(payload.kind(), bytes, &self.seen)?;
        let item = match place {
            NewPlace::Inline => None,
            NewPlace::InlineItem(key) | NewPlace::Evidence(key) | NewPlace::Contribution(key, _) => Some(key),
        };
        let place = match place {
            NewPlace::Inline | NewPlace::InlineItem(_) => Place::Inline,
            NewPlace::Evidence(key) => Place::Evidence(salt, key),
            NewPlace::Contribution(key, place) => Place::Contribution(salt, key, place),
        };
        let counter = change.change().counter;
        self.written.push(entries::put_change(&change, &place));
        self.written.extend(item.map(|key| entries::put_item(key, change.change().origin, counter)));
        Ok(counter)
    }

    /// Appends a step of an edit; returns it with its causality.
    pub(crate) fn append_edit(&mut self, mut step: EditStep) -> Result<EditStep, SeriesStoreError> {
        step.causality = Causality::Recorded { dot: self.next_dot()?, seen: vector_of(&self.seen) };
        self.append(&Payload::Edit(step.clone()), NewPlace::Inline)?;
        Ok(step)
    }

    /// Appends an undo or redo of an import, which replaces all earlier ones of the same import.
    pub(crate) fn append_undo(&mut self, undo: UndoPayload) -> Result<(), SeriesStoreError> {
        let (dot, seen) = (self.next_dot()?, vector_of(&self.seen));
        let UndoPayload { import, undone, at } = undo;
        self.append(&Payload::Undo(undo), NewPlace::Inline)?;
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

    /// Returns the changes of the ledger that continue the series, and the one which says that all of it has taken effect.
    pub(crate) fn into_changes(self) -> (Vec<Change>, Change) {
        let Self { author, mut written, .. } = self;
        written.push(entries::put_series(author.series()));
        let series = author.series();
        let applied = AppliedSeries { head: series.head(), context: series.context().clone() };
        (written, entries::put_applied(series.origin(), &applied))
    }

    fn next_dot(&self) -> Result<Dot, SeriesStoreError> {
        let (origin, head) = (self.author.series().origin(), self.author.series().head());
        let next = Dot::new(edit_origin(origin), head.counter.get() + 1);
        next.ok_or(SeriesStoreError::Unreadable)
    }
}

/// Returns the changes of all origins but `own` that have taken effect in a store.
fn seen_by(store: &Store, own: OriginId) -> Result<Frontier, SeriesStoreError> {
    let mut seen = Frontier::new();
    for origin in entries::origins(store)?.into_iter().filter(|origin| *origin != own) {
        if let Some(applied) = entries::applied(store, origin)? {
            seen.advance(origin, applied.head)?;
        }
    }
    Ok(seen)
}

/// Returns a frontier as a version vector.
pub(crate) fn vector_of(frontier: &Frontier) -> VersionVector {
    let dot =
        |(origin, head): (OriginId, satchel_sync::Head)| Dot::new(edit_origin(origin), head.counter.get());
    frontier.heads().filter_map(dot).collect()
}

/// Returns the origin as edits name it.
pub(crate) fn edit_origin(origin: OriginId) -> causality::OriginId {
    causality::OriginId::new(*origin.as_uuid())
}
