//! Lets received changes take effect: each series in its order, and each change after everything that its author had seen.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::{
    causality::{Causality, Dot},
    evidence::EditStep,
};
use satchel_source::CancelToken;
use satchel_store::{Change, Store};
use satchel_sync::{Counter, Head, OriginId, SignedChange};
use uuid::Uuid;

use super::{Sync, SyncError, UNREADABLE, receive::last_of_each_entry};
use crate::{
    edits::EditContext,
    ingest::{
        Inner,
        exchange::{ACTOR, ImportMerge},
        receipt::ImportRecord,
    },
    provenance::{DotPages, EvidenceItem, EvidenceKey, UndoRecord, unfinished_undos},
    series::{
        edit_origin,
        entries::{self, AppliedSeries, StoredChange, StoredUndo},
        payload::{ContributionPayload, ImportPayload, Payload, UndoPayload, contribution_key, decode_keys},
        vector_of,
    },
};

/// Steps of edits that are merged in one transaction.
const STEPS: usize = 20_000;
/// Entries of items that wait for the next commit.
const ENTRIES: usize = 400;

/// What has taken effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Steps of edits.
    pub edits: u64,
    /// Imports.
    pub imports: u64,
    /// Undos and redos of imports.
    pub undos: u64,
    /// Changes of a kind that this program does not know. They are kept and passed on.
    pub unknown: u64,
    /// Changes whose payload this store does not have: it was withheld or erased.
    pub missing: u64,
    /// The origins of which a change cannot take effect. The changes that follow it wait as well.
    pub blocked: Vec<Blocked>,
}

/// A change that cannot take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Its origin.
    pub origin: OriginId,
    /// Its position in the series.
    pub counter: Counter,
    /// What is wrong with it.
    pub reason: String,
}

impl Sync {
    /// Lets all changes take effect that can. Changes wait while this store does not have everything that their author had seen. What
    /// has taken effect is durable when this returns, also if it returns an error.
    ///
    /// # Errors
    /// [`SyncError::Cancelled`] if `cancel` is raised, or an error of the store.
    pub fn apply(&self, cancel: &CancelToken) -> Result<Applied, SyncError> {
        let _alone = self.0.lock_exchange();
        let store = self.0.store();
        let mut applier = Applier {
            inner: &self.0,
            store,
            cancel,
            heads: BTreeMap::new(),
            positions: BTreeMap::new(),
            steps: Vec::new(),
            dots: DotPages::open(store)?,
            entries: Vec::new(),
            advanced: BTreeSet::new(),
            applied: Applied::default(),
        };
        for origin in entries::origins(store)? {
            let series = entries::series(store, origin)?.ok_or(UNREADABLE)?;
            applier.heads.insert(origin, series.head());
            applier.positions.extend(entries::applied(store, origin)?.map(|applied| (origin, applied)));
        }
        // An earlier call may have been interrupted after it had recorded an undo.
        for note in unfinished_undos(store)? {
            applier.follow(note.import, false)?;
        }
        let outcome = applier.run();
        if matches!(outcome, Ok(()) | Err(SyncError::Cancelled)) {
            applier.flush()?;
        }
        outcome.map(|()| applier.applied)
    }
}

/// Whether the next change of a series can take effect.
enum Readiness {
    Ready,
    /// Its author had seen changes that have not taken effect here.
    Waits,
    Blocked(String),
}

struct Applier<'a> {
    inner: &'a Inner,
    store: &'a Store,
    cancel: &'a CancelToken,
    /// The last change that is held of each series.
    heads: BTreeMap<OriginId, Head>,
    /// Up to where each series has taken effect, with what waits for the next commit.
    positions: BTreeMap<OriginId, AppliedSeries>,
    /// Steps that wait for the next commit.
    steps: Vec<EditStep>,
    dots: DotPages,
    /// Entries of the ledger that wait for the next commit.
    entries: Vec<Change>,
    /// The origins whose positions have changed since the last commit.
    advanced: BTreeSet<OriginId>,
    applied: Applied,
}

impl Applier<'_> {
    /// Goes round the origins until none of them can go on.
    fn run(&mut self) -> Result<(), SyncError> {
        let origins: Vec<OriginId> = self.heads.keys().copied().collect();
        let mut going = true;
        while std::mem::take(&mut going) {
            for origin in &origins {
                while self.step(*origin)? {
                    going = true;
                }
            }
        }
        Ok(())
    }

    /// Applies the next change of an origin; returns false if there is none that can take effect.
    fn step(&mut self, origin: OriginId) -> Result<bool, SyncError> {
        if self.cancel.cancelled() {
            return Err(SyncError::Cancelled);
        }
        let held = self.heads.get(&origin).map_or(0, |head| head.counter.get());
        let done = self.positions.get(&origin).map_or(0, |applied| applied.head.counter.get());
        let Some(counter) = Counter::new(done + 1).filter(|next| next.get() <= held) else {
            return Ok(false);
        };
        if self.applied.blocked.iter().any(|blocked| blocked.origin == origin) {
            return Ok(false);
        }
        let stored = entries::change(self.store, origin, counter)?.ok_or(UNREADABLE)?;
        match self.readiness(&stored.change)? {
            Readiness::Ready => {}
            Readiness::Waits => return Ok(false),
            Readiness::Blocked(reason) => {
                self.applied.blocked.push(Blocked { origin, counter, reason });
                return Ok(false);
            }
        }
        match self.payload(&stored) {
            Ok(payload) => self.take(&stored.change, payload)?,
            Err(reason) => {
                self.applied.blocked.push(Blocked { origin, counter, reason });
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares what the author had seen with what has taken effect here.
    fn readiness(&self, change: &SignedChange) -> Result<Readiness, SyncError> {
        for (of, seen) in change.change().context.heads() {
            let Some(here) = self.positions.get(&of).filter(|here| here.head.counter >= seen.counter) else {
                return Ok(Readiness::Waits);
            };
            let hash = if here.head.counter == seen.counter {
                here.head.hash
            } else {
                entries::change(self.store, of, seen.counter)?.ok_or(UNREADABLE)?.change.hash()
            };
            if hash != seen.hash {
                let counter = seen.counter.get();
                return Ok(Readiness::Blocked(format!(
                    "its author had seen another change {counter} of origin {of} than this store"
                )));
            }
        }
        Ok(Readiness::Ready)
    }

    /// Decodes the payload of a change; `None` if it is not here or of an unknown kind. The error says what is wrong with it.
    fn payload(&mut self, stored: &StoredChange) -> Result<Option<Payload>, String> {
        let change = &stored.change;
        if change.change().kind == satchel_sync::Kind::GENESIS {
            return Ok(None);
        }
        // Payloads that lie elsewhere are those of this store's own series, and have taken effect.
        let Some(bytes) = change.payload() else {
            self.applied.missing += u64::from(stored.place == entries::Place::Absent);
            return Ok(None);
        };
        let payload = Payload::decode(change.change().kind, bytes).map_err(|error| error.to_string())?;
        self.applied.unknown += u64::from(payload.is_none());
        match &payload {
            Some(Payload::Evidence(key, json)) => evidence_item(*key, json).map(drop)?,
            Some(Payload::Contribution(contribution)) => {
                contribution_key(contribution).map(drop).map_err(|error| error.to_string())?;
            }
            Some(Payload::Import(import)) => MergedImport::read(import).map(drop)?,
            Some(Payload::Edit(_) | Payload::EarlierEdit(_) | Payload::Undo(_)) | None => {}
        }
        Ok(payload)
    }

    /// Lets a change take effect, or prepares that for the next commit.
    fn take(&mut self, change: &SignedChange, payload: Option<Payload>) -> Result<(), SyncError> {
        let (origin, head) = (change.change().origin, change.head());
        let mut context =
            self.positions.get(&origin).map(|applied| applied.context.clone()).unwrap_or_default();
        for (of, seen) in change.change().context.heads() {
            context.advance(of, seen)?;
        }
        let dot = Dot::new(edit_origin(origin), head.counter.get()).ok_or(UNREADABLE)?;
        let seen = vector_of(&context);
        let position = AppliedSeries { head, context };
        match payload {
            None => {}
            Some(Payload::Edit(step)) => {
                self.steps.push(EditStep { causality: Causality::Recorded { dot, seen }, ..step });
                self.applied.edits += 1;
            }
            Some(Payload::EarlierEdit(step)) => {
                let (key, _) = step.encode().map_err(|_| UNREADABLE)?;
                self.entries.extend(self.dots.add(key, dot));
                self.steps.push(EditStep { causality: Causality::assigned([dot]), ..step });
                self.applied.edits += 1;
            }
            Some(Payload::Evidence(key, _)) => self.note_item(key, origin, head.counter)?,
            Some(Payload::Contribution(contribution)) => {
                let key = contribution_key(&contribution).map_err(|_| UNREADABLE)?;
                self.note_item(key, origin, head.counter)?;
            }
            Some(Payload::Import(import)) => {
                self.flush()?;
                self.import(*import, origin, position.clone())?;
            }
            Some(Payload::Undo(undo)) => {
                self.flush()?;
                self.undo(undo, (dot, seen), origin, position.clone())?;
            }
        }
        self.positions.insert(origin, position);
        self.advanced.insert(origin);
        if self.steps.len() >= STEPS || self.entries.len() >= ENTRIES { self.flush() } else { Ok(()) }
    }

    /// Remembers with which change an item came, for the import that brought it.
    fn note_item(&mut self, key: EvidenceKey, origin: OriginId, counter: Counter) -> Result<(), SyncError> {
        if entries::item(self.store, key)?.is_none() {
            self.entries.push(entries::put_item(key, origin, counter));
        }
        Ok(())
    }

    /// Commits what waits. Durable when this returns.
    fn flush(&mut self) -> Result<(), SyncError> {
        let mut entries = last_of_each_entry(std::mem::take(&mut self.entries));
        for origin in std::mem::take(&mut self.advanced) {
            entries.extend(self.positions.get(&origin).map(|applied| entries::put_applied(origin, applied)));
        }
        let steps = std::mem::take(&mut self.steps);
        if steps.is_empty() {
            return if entries.is_empty() { Ok(()) } else { Ok(self.inner.commit_entries(entries)?) };
        }
        entries.extend(std::mem::replace(&mut self.dots, DotPages::open(self.store)?).finish());
        let call = EditContext {
            actor: ACTOR.to_owned(),
            reason: "edited in another store".to_owned(),
            request: None,
        };
        self.inner.edits().merge(&call, steps, entries)?;
        self.dots = DotPages::open(self.store)?;
        Ok(())
    }

    /// Merges an import with everything it brought, and stores the position after it.
    fn import(
        &mut self,
        import: ImportPayload,
        origin: OriginId,
        position: AppliedSeries,
    ) -> Result<(), SyncError> {
        let MergedImport { record, contributions, evidence } =
            MergedImport::read(&import).map_err(|_| UNREADABLE)?;
        let done = [entries::put_recorded(&record.id), entries::put_applied(origin, &position)];
        if entries::is_recorded(self.store, &record.id)? {
            // A copy of this store has it in a series of its own.
            return Ok(self.inner.commit_entries(done.to_vec())?);
        }
        let mut merge = ImportMerge::begin(self.inner, &record, self.cancel)?;
        for key in contributions {
            if let Some(contribution) = self.contribution(key)? {
                merge.add_contribution(contribution)?;
            }
        }
        for key in evidence {
            if let Some((json, item)) = self.evidence(key)? {
                merge.add_evidence(key, &json, &item)?;
            }
        }
        let id = Uuid::parse_str(&record.id).map_err(|_| UNREADABLE)?;
        merge.finish(record, import.sources, done.to_vec())?;
        self.applied.imports += 1;
        // It may have been undone before it came.
        self.follow(id, true)
    }

    /// Returns the contribution with this key, which a change of some series has.
    fn contribution(&mut self, key: EvidenceKey) -> Result<Option<ContributionPayload>, SyncError> {
        Ok(match self.item(key)? {
            Some(Payload::Contribution(contribution)) => Some(*contribution),
            _ => None,
        })
    }

    /// Returns the piece of evidence with this key.
    fn evidence(&mut self, key: EvidenceKey) -> Result<Option<(Vec<u8>, EvidenceItem)>, SyncError> {
        let Some(Payload::Evidence(found, json)) = self.item(key)? else { return Ok(None) };
        let item = evidence_item(found, &json).map_err(|_| UNREADABLE)?;
        Ok(item.map(|item| (json, item)))
    }

    fn item(&mut self, key: EvidenceKey) -> Result<Option<Payload>, SyncError> {
        let Some((origin, counter)) = entries::item(self.store, key)? else {
            self.applied.missing += 1;
            return Ok(None);
        };
        let change = super::outgoing::change(self.store, origin, counter)?;
        let Some(bytes) = change.payload() else {
            self.applied.missing += 1;
            return Ok(None);
        };
        Payload::decode(change.change().kind, bytes).map_err(|_| UNREADABLE)
    }

    /// Unites an undo or redo with those that are known, and lets the result take effect.
    fn undo(
        &mut self,
        undo: UndoPayload,
        (dot, seen): (Dot, satchel_merge::causality::VersionVector),
        origin: OriginId,
        position: AppliedSeries,
    ) -> Result<(), SyncError> {
        let UndoPayload { import, undone, at } = undo;
        {
            // The person may undo or redo the import at this moment.
            let _undos = self.inner.lock_undos();
            let _guard = self.inner.lock_writes();
            let undos = unite(entries::undos(self.store, import)?, StoredUndo { dot, seen, undone, at });
            let mut changes =
                vec![entries::put_undos(import, &undos)?, entries::put_applied(origin, &position)];
            changes.extend(self.pending_note(import, &undos)?.map(|note| note.to_change()).transpose()?);
            self.inner.commit_entries(changes)?;
        }
        self.applied.undos += 1;
        self.follow(import, false)
    }

    /// Returns the record of the undo that these demand, if the store has another one.
    fn pending_note(&self, import: Uuid, undos: &[StoredUndo]) -> Result<Option<UndoRecord>, SyncError> {
        // If only some of several stores have undone an import, it is undone until somebody redoes it who knows of that.
        let undone = undos.iter().any(|undo| undo.undone);
        let known = UndoRecord::load(self.store, import)?;
        if known.map_or(!undone, |known| known.undone == undone) {
            return Ok(None);
        }
        let at = undos.iter().filter(|undo| undo.undone == undone).map(|undo| undo.at).max().unwrap_or(0);
        Ok(Some(UndoRecord { import, undone, done: false, at, completed_at: None, revisions: None }))
    }

    /// Lets the undo or redo take effect that is recorded for this import, if there is one.
    fn follow(&self, import: Uuid, again: bool) -> Result<(), SyncError> {
        if self.inner.follow_undo(import, again, self.cancel)? { Ok(()) } else { Err(SyncError::Cancelled) }
    }
}

/// A payload that describes an import, decoded.
struct MergedImport {
    record: ImportRecord,
    contributions: Vec<EvidenceKey>,
    evidence: Vec<EvidenceKey>,
}

impl MergedImport {
    /// Decodes the payload. The error says what is wrong with it.
    fn read(import: &ImportPayload) -> Result<Self, String> {
        let record: ImportRecord = serde_json::from_str(import.record.get())
            .map_err(|error| format!("the receipt is invalid: {error}"))?;
        Uuid::parse_str(&record.id).map_err(|_| "the id of the import is no UUID".to_owned())?;
        let keys = |digits: &str| decode_keys(digits).map_err(|error| error.to_string());
        Ok(Self { record, contributions: keys(&import.contributions)?, evidence: keys(&import.evidence)? })
    }
}

/// Adds an undo to those that none of the others had seen.
fn unite(mut undos: Vec<StoredUndo>, new: StoredUndo) -> Vec<StoredUndo> {
    let covers = |one: &StoredUndo, other: &StoredUndo| {
        one.seen.contains(other.dot)
            || one.dot.origin == other.dot.origin && one.dot.counter >= other.dot.counter
    };
    if undos.iter().any(|known| covers(known, &new)) {
        return undos;
    }
    undos.retain(|known| !covers(&new, known));
    undos.push(new);
    undos.sort_by_key(|undo| undo.dot);
    undos
}

/// Decodes a piece of evidence; `None` if it was erased. It must be what an import brings, and belong to its key.
fn evidence_item(key: EvidenceKey, json: &[u8]) -> Result<Option<EvidenceItem>, String> {
    let item = EvidenceItem::decode(json).map_err(|error| error.to_string())?;
    let Some(item) = item else { return Ok(None) };
    match item.key().map_err(|error| error.to_string())? {
        Some(own) if own == key => Ok(Some(item)),
        Some(_) => Err("a piece of evidence has the key of another one".to_owned()),
        None => Err("an edit is passed off as evidence of an import".to_owned()),
    }
}
