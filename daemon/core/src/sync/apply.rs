//! Lets received changes take effect: each series in its order, and each change after everything that its author had seen.

mod check;
mod continuations;
mod erasures;
mod imports;
mod late;
mod moment;
mod undos;

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use satchel_merge::{causality::Causality, evidence::EditStep};
use satchel_source::CancelToken;
use satchel_store::{Change, Store};
use satchel_sync::{Counter, Head, Kind, OriginId, SignedChange};

pub(super) use self::continuations::is_held;
use self::moment::{Moment, Readiness, extend};
use super::{Sync, SyncError, UNREADABLE, receive::last_of_each_entry};
use crate::{
    edits::EditContext,
    export_ledger,
    ingest::{Inner, exchange::ACTOR},
    provenance::{DotPages, EvidenceKey, PurgeRecord, unfinished_undos},
    series::{
        continuations::Continuations,
        counters::{CounterSet, Marked},
        entries::{self, AppliedSeries, PayloadPlace, StoredChange},
        large::{self, Content, PART},
        payload::{ContributionPayload, EXPORT, EditPayload, Payload},
    },
};

/// Steps of edits that are merged in one transaction, and their bytes.
const STEPS: usize = 20_000;
const STEP_BYTES: u64 = 32 << 20;
/// Entries of items that wait for the next commit.
const ENTRIES: usize = 400;

/// What has taken effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Steps of edits.
    pub edits: u64,
    /// Imports.
    pub imports: u64,
    /// Recordings of conversations.
    pub recordings: u64,
    /// Undos and redos of imports.
    pub undos: u64,
    /// Erasures whose content is on the disk yet. Nothing else takes effect until the store was closed and [`crate::purge::complete`]
    /// has removed it.
    pub erasures: u64,
    /// Changes of a kind that this program does not know. They are kept and passed on, and take effect with a program that knows it.
    pub unknown: u64,
    /// Changes whose payload this store does not have, or not all of it: it was withheld or erased.
    pub missing: u64,
    /// Branches that this store holds and that were written again in another series. What repeats them takes effect when
    /// [`Sync::drop_repeated`] has dropped them.
    pub repeated: u64,
    /// Changes that cannot take effect, one of each origin. Those that follow it in its series wait as well.
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
    /// Lets all changes take effect that can, or those up to the first erasure. Changes wait while this store does not have everything
    /// that their author had seen. What has taken effect is durable when this returns, also if it returns an error.
    ///
    /// # Errors
    /// [`SyncError::Cancelled`] if `cancel` is raised, or an error of the store.
    pub fn apply(&self, cancel: &CancelToken) -> Result<Applied, SyncError> {
        let _alone = self.0.lock_exchange();
        self.complete_merge()?;
        let erasures = PurgeRecord::pending(self.0.store())?.len() as u64;
        if erasures > 0 {
            return Ok(Applied { erasures, ..Applied::default() });
        }
        let mut applier = Applier::new(&self.0, cancel)?;
        // An earlier call may have been interrupted after it had recorded an undo.
        for note in unfinished_undos(self.0.store())? {
            applier.follow(note.import, false)?;
        }
        let outcome = applier.late_changes().and_then(|()| applier.run());
        if matches!(outcome, Ok(()) | Err(SyncError::Cancelled)) {
            applier.flush()?;
        }
        outcome.map(|()| applier.applied)
    }
}

/// What a change says, as far as this store and this program can tell.
enum Reading {
    /// The piece of evidence or the contribution with this key, for the import that brought it.
    Item(EvidenceKey),
    /// Anything else.
    Payload(Box<Payload>),
    /// It says nothing by itself, or is a change of the own series, which has taken effect.
    Nothing,
    Missing,
    UnknownKind,
    Invalid(String),
}

/// Whether everything that waited was committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flushed {
    Done,
    /// The store refused something. The positions are again those of the last commit.
    Refused,
}

struct Applier<'a> {
    inner: &'a Inner,
    store: &'a Store,
    cancel: &'a CancelToken,
    /// The last change that is held of each series.
    heads: BTreeMap<OriginId, Head>,
    /// Up to where each series has taken effect, with what waits for the next commit.
    positions: BTreeMap<OriginId, AppliedSeries>,
    /// Steps that wait for the next commit, their bytes, and who made them.
    steps: Vec<EditStep>,
    step_bytes: u64,
    actor: String,
    dots: DotPages,
    /// Branches of series that are repeated in others.
    continuations: Continuations,
    /// The origins that repeat a branch which this store holds. They wait until it was dropped.
    repeating: BTreeSet<OriginId>,
    /// Entries of the ledger that wait for the next commit.
    entries: Vec<Change>,
    /// The origins whose positions have changed since the last commit, and the last change of each.
    advanced: BTreeMap<OriginId, Counter>,
    /// Changes of unknown kinds, by origin; loaded when there is one.
    unknown: BTreeMap<OriginId, CounterSet>,
    /// Pieces have come that an earlier import may lack.
    pieces_came: bool,
    /// The store has refused something. Each change is committed by itself, so that it can be named.
    one_by_one: bool,
    applied: Applied,
}

impl<'a> Applier<'a> {
    fn new(inner: &'a Inner, cancel: &'a CancelToken) -> Result<Self, SyncError> {
        let store = inner.store();
        let mut applier = Applier {
            inner,
            store,
            cancel,
            heads: BTreeMap::new(),
            positions: BTreeMap::new(),
            steps: Vec::new(),
            step_bytes: 0,
            actor: ACTOR.to_owned(),
            dots: DotPages::open(store)?,
            continuations: Continuations::load(store)?,
            repeating: BTreeSet::new(),
            entries: Vec::new(),
            advanced: BTreeMap::new(),
            unknown: BTreeMap::new(),
            pieces_came: false,
            one_by_one: false,
            applied: Applied::default(),
        };
        for origin in entries::origins(store)? {
            let series = entries::series(store, origin)?.ok_or(UNREADABLE)?;
            applier.heads.insert(origin, series.head());
        }
        applier.find_repeating()?;
        applier.load_positions()?;
        Ok(applier)
    }

    fn load_positions(&mut self) -> Result<(), SyncError> {
        self.positions.clear();
        for origin in self.heads.keys() {
            self.positions.extend(entries::applied(self.store, *origin)?.map(|applied| (*origin, applied)));
        }
        Ok(())
    }

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
            if !going && self.flush()? == Flushed::Refused {
                going = true;
            }
        }
        self.note_waiting();
        self.complete_imports()
    }

    /// Applies the next change of an origin; returns false if there is none that can take effect.
    fn step(&mut self, origin: OriginId) -> Result<bool, SyncError> {
        self.check_cancelled()?;
        if self.applied.erasures > 0 {
            return Ok(false);
        }
        let held = self.heads.get(&origin).map_or(0, |head| head.counter.get());
        let done = self.positions.get(&origin).map_or(0, |applied| applied.head.counter.get());
        let Some(counter) = Counter::new(done + 1).filter(|next| next.get() <= held) else {
            return Ok(false);
        };
        if self.applied.blocked.iter().any(|blocked| blocked.origin == origin)
            || self.waits_for_drop(origin, counter)
        {
            return Ok(false);
        }
        let stored = entries::change(self.store, origin, counter)?.ok_or(UNREADABLE)?;
        match self.readiness(&stored.change)? {
            Readiness::Ready => {}
            Readiness::Waits => return Ok(false),
            Readiness::Blocked(reason) => return Ok(self.block(origin, counter, reason)),
        }
        match self.read(&stored)? {
            Reading::Invalid(reason) => return Ok(self.block(origin, counter, reason)),
            reading => self.advance(&stored.change, reading)?,
        }
        Ok(true)
    }

    fn check_cancelled(&self) -> Result<(), SyncError> {
        if self.cancel.cancelled() { Err(SyncError::Cancelled) } else { Ok(()) }
    }

    /// Returns false, as the origin cannot go on.
    fn block(&mut self, origin: OriginId, counter: Counter, reason: String) -> bool {
        self.applied.blocked.push(Blocked { origin, counter, reason });
        false
    }

    /// Reads what a change says, and checks it.
    fn read(&self, stored: &StoredChange) -> Result<Reading, SyncError> {
        let change = &stored.change;
        if matches!(change.change().kind, Kind::GENESIS | PART) {
            return Ok(Reading::Nothing);
        }
        if matches!(stored.place, PayloadPlace::Evidence(..) | PayloadPlace::Contribution(..)) {
            return Ok(Reading::Nothing);
        }
        let (kind, content) = match large::content(self.store, change)? {
            Content::Present(kind, content) => (kind, content),
            Content::Absent => return Ok(Reading::Missing),
            Content::Invalid(reason) => return Ok(Reading::Invalid(reason)),
        };
        let payload = match Payload::decode(kind, &content) {
            Ok(Some(payload)) => payload,
            Ok(None) => return Ok(Reading::UnknownKind),
            // A record that only informs stops nothing: a newer program may read it.
            Err(_) if kind == EXPORT => return Ok(Reading::UnknownKind),
            Err(error) => return Ok(Reading::Invalid(error.to_string())),
        };
        let refusal = match &payload {
            // Its key needs the digests of all messages: it is computed once.
            Payload::Contribution(part) => {
                return Ok(match check::contribution(part) {
                    Ok(key) => Reading::Item(key),
                    Err(reason) => Reading::Invalid(reason),
                });
            }
            Payload::Continuation(continuation) => {
                self.refused_continuation(change.change().origin, continuation)?
            }
            payload => check::refusal(self.store, payload)?,
        };
        Ok(match refusal {
            None => match payload {
                Payload::Evidence(key, _) => Reading::Item(key),
                payload => Reading::Payload(Box::new(payload)),
            },
            Some(_) if kind == EXPORT => Reading::UnknownKind,
            Some(reason) => Reading::Invalid(reason),
        })
    }

    /// Lets the next change of a series take effect, or prepares that for the next commit.
    fn advance(&mut self, change: &SignedChange, reading: Reading) -> Result<(), SyncError> {
        let (origin, head) = (change.change().origin, change.head());
        let mut context =
            self.positions.get(&origin).map(|applied| applied.context.clone()).unwrap_or_default();
        extend(&mut context, &change.change().context)?;
        let moment = Moment::of(origin, head.counter, &context, &self.continuations)?;
        let position = AppliedSeries { head, context };
        match reading {
            Reading::Nothing | Reading::Invalid(_) => {}
            Reading::Missing => self.applied.missing += 1,
            Reading::UnknownKind => self.note_unknown(origin, head.counter)?,
            Reading::Item(key) => {
                self.note_item(key, &moment)?;
                self.step_bytes += change.change().payload.length;
            }
            Reading::Payload(payload) => {
                let done = [entries::put_applied(origin, &position)];
                if self.take(*payload, &moment, done.to_vec())? == Flushed::Refused {
                    return Ok(());
                }
                self.step_bytes += change.change().payload.length;
            }
        }
        self.positions.insert(origin, position);
        self.advanced.insert(origin, head.counter);
        let full =
            self.steps.len() >= STEPS || self.step_bytes >= STEP_BYTES || self.entries.len() >= ENTRIES;
        if full || self.one_by_one {
            self.flush()?;
        }
        Ok(())
    }

    fn note_unknown(&mut self, origin: OriginId, counter: Counter) -> Result<(), SyncError> {
        self.applied.unknown += 1;
        if let Entry::Vacant(place) = self.unknown.entry(origin) {
            place.insert(CounterSet::load(self.store, Marked::UnknownKind, origin)?);
        }
        if let Some(unknown) = self.unknown.get_mut(&origin) {
            unknown.insert(self.store, counter)?;
        }
        Ok(())
    }

    /// Lets a payload take effect together with `done`, or prepares it for the next commit, which `done` is left to.
    fn take(&mut self, payload: Payload, moment: &Moment, done: Vec<Change>) -> Result<Flushed, SyncError> {
        if has_own_commit(&payload) && self.flush()? == Flushed::Refused {
            return Ok(Flushed::Refused);
        }
        match payload {
            Payload::Edit(EditPayload { actor, step }) => {
                if self.begin_steps(actor_of(&actor))? == Flushed::Refused {
                    return Ok(Flushed::Refused);
                }
                let causality = Causality::Recorded { dot: moment.dot, seen: moment.seen.clone() };
                self.steps.push(EditStep { causality, ..step });
                self.applied.edits += 1;
            }
            Payload::EarlierEdit(step) => {
                if self.begin_steps(ACTOR.to_owned())? == Flushed::Refused {
                    return Ok(Flushed::Refused);
                }
                let (key, _) = step.encode().map_err(|_| UNREADABLE)?;
                self.entries.extend(self.dots.add(key, moment.dot));
                self.steps.push(EditStep { causality: Causality::assigned([moment.dot]), ..step });
                self.applied.edits += 1;
            }
            // An item of an import.
            Payload::Evidence(..) | Payload::Contribution(_) => {}
            Payload::Import(import) => return self.import(*import, moment, done),
            Payload::Undo(undo) => self.undo(undo, moment, done)?,
            Payload::Erasure(erasure) => {
                self.complete_imports()?;
                self.erase(*erasure, done)?;
            }
            Payload::Recording(part) => return self.recording(*part, moment, done),
            Payload::Remainder(key, _) => {
                self.entries.push(entries::put_remainder(key, moment.origin, moment.counter));
                self.pieces_came = true;
            }
            Payload::Continuation(continuation) => self.continuation(*continuation, moment)?,
            Payload::Export(export) => {
                self.entries.extend(export_ledger::merged(self.store, &export)?);
            }
            Payload::AgentMemory(memory) => {
                let outcome = self.inner.edits().merge_agent_memory(ACTOR, *memory, done);
                return self.blocked_if_refused(outcome.map_err(SyncError::from), moment);
            }
        }
        Ok(Flushed::Done)
    }

    /// Prepares for a step by `actor`: what others did is in another commit.
    fn begin_steps(&mut self, actor: String) -> Result<Flushed, SyncError> {
        if self.actor != actor && !self.steps.is_empty() && self.flush()? == Flushed::Refused {
            return Ok(Flushed::Refused);
        }
        self.actor = actor;
        Ok(Flushed::Done)
    }

    /// Adds what a program has recorded of a conversation in another store.
    fn recording(
        &mut self,
        part: ContributionPayload,
        moment: &Moment,
        done: Vec<Change>,
    ) -> Result<Flushed, SyncError> {
        let _guard = self.inner.lock_writes();
        let outcome = self.inner.recordings().merge(ACTOR, part, done);
        let flushed = self.blocked_if_refused(outcome.map_err(SyncError::from), moment)?;
        self.applied.recordings += u64::from(flushed == Flushed::Done);
        Ok(flushed)
    }

    /// Blocks the origin of a change that the store has refused.
    fn blocked_if_refused(
        &mut self,
        outcome: Result<(), SyncError>,
        moment: &Moment,
    ) -> Result<Flushed, SyncError> {
        match outcome {
            Ok(()) => Ok(Flushed::Done),
            Err(error) if error.concerns_content() => {
                self.block(moment.origin, moment.counter, error.to_string());
                Ok(Flushed::Refused)
            }
            Err(error) => Err(error),
        }
    }

    /// Remembers with which change an item came, for the import that brought it.
    fn note_item(&mut self, key: EvidenceKey, moment: &Moment) -> Result<(), SyncError> {
        if entries::item(self.store, key)?.is_none() {
            self.pieces_came = true;
            self.entries.push(entries::put_item(key, moment.origin, moment.counter));
        }
        Ok(())
    }

    /// Commits what waits. Durable when this returns.
    fn flush(&mut self) -> Result<Flushed, SyncError> {
        let advanced = std::mem::take(&mut self.advanced);
        let mut entries = last_of_each_entry(std::mem::take(&mut self.entries));
        for origin in advanced.keys() {
            entries.extend(self.positions.get(origin).map(|applied| entries::put_applied(*origin, applied)));
        }
        entries.extend(self.unknown.values_mut().flat_map(CounterSet::take_changes));
        let (steps, _) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.step_bytes));
        if steps.is_empty() {
            if !entries.is_empty() {
                self.inner.commit_entries(entries)?;
            }
            return Ok(Flushed::Done);
        }
        entries.extend(std::mem::replace(&mut self.dots, DotPages::open(self.store)?).finish());
        let (actor, reason) = (self.actor.clone(), "edited in another store".to_owned());
        let call = EditContext { actor, reason, request: None };
        let merged = steps.len() as u64;
        let outcome = self.inner.edits().merge(&call, steps, entries).map_err(SyncError::from);
        self.dots = DotPages::open(self.store)?;
        match outcome {
            Ok(()) => Ok(Flushed::Done),
            Err(error) if error.concerns_content() => {
                self.applied.edits -= merged;
                self.refused(&advanced, &error)?;
                Ok(Flushed::Refused)
            }
            Err(error) => Err(error),
        }
    }

    /// Goes back to the last commit. From now on each change is committed by itself; one that was is blocked.
    fn refused(
        &mut self,
        advanced: &BTreeMap<OriginId, Counter>,
        error: &SyncError,
    ) -> Result<(), SyncError> {
        if let (true, Some((origin, counter))) = (self.one_by_one, advanced.first_key_value()) {
            self.block(*origin, *counter, error.to_string());
        }
        self.one_by_one = true;
        self.unknown.clear();
        self.continuations = Continuations::load(self.store)?;
        self.repeating.clear();
        self.find_repeating()?;
        self.load_positions()
    }
}

/// Returns the actor in the history here of what `actor` did in another store.
fn actor_of(actor: &str) -> String {
    format!("{ACTOR}:{actor}")
}

/// Returns whether a payload takes effect in commits of its own, after everything that waits.
fn has_own_commit(payload: &Payload) -> bool {
    match payload {
        Payload::Import(_)
        | Payload::Undo(_)
        | Payload::Erasure(_)
        | Payload::Recording(_)
        | Payload::AgentMemory(_) => true,
        Payload::Edit(_)
        | Payload::EarlierEdit(_)
        | Payload::Evidence(..)
        | Payload::Contribution(_)
        | Payload::Remainder(..)
        | Payload::Continuation(_)
        | Payload::Export(_) => false,
    }
}
