//! One change by hand in progress: its evidence, its effects, and the commit of both.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use satchel_merge::evidence::{
    EditAction, EditStep, MemoryField, MemoryPatch, UserEdits, apply_fields, edited_fields, supersedes,
};
use satchel_pam::{
    memory::{Memory, Provenance, Status},
    relation::{Relation, RelationType},
};
use satchel_store::{Batch, Change, EvidenceWrite, MemoryRecord, Origin, Revision, Store};
use uuid::Uuid;

use super::{EditContext, EditError, EditOutcome, check, etag, interrupted};
use crate::{
    provenance::{self, ActiveEvidence, PurgedData},
    request,
    series::{LocalSeries, NewPlace, payload::Payload},
};

/// Maximum number of changes of one commit. This bound and the next are those of an import.
const BATCH_CHANGES: usize = 400;
const BATCH_BYTES: usize = 8 << 20;
/// Longest memory, in bytes, that is stored in the first commit together with the evidence when a change needs several
/// commits.
const FIRST_BYTES: usize = 64 << 10;
/// Maximum number of memories that an answer lists.
const NAMED: usize = 100;
/// Maximum number of steps followed along a chain of successors.
const STEPS: usize = 10_000;

pub(super) struct Transaction<'a> {
    pub(super) store: &'a Store,
    call: &'a EditContext,
    pub(super) id: String,
    pub(super) now: i64,
    pub(super) edit_steps: Vec<EditStep>,
    changes: Vec<Change>,
    /// Commits with an origin of their own, which are written first.
    first: Vec<Batch>,
    /// The store's own series, if it has one.
    series: Option<Rc<RefCell<LocalSeries>>>,
    /// Commits of versions that come after the evidence and before `changes`.
    earlier: Vec<Batch>,
    /// When each memory was last edited; loaded when the clock is behind.
    last_steps: Option<BTreeMap<String, i64>>,
    /// It merges edits of other stores.
    merge: bool,
    pub(super) done: EditOutcome,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(store: &'a Store, call: &'a EditContext, now: i64) -> Self {
        Self {
            store,
            call,
            id: Uuid::new_v4().to_string(),
            now,
            edit_steps: Vec::new(),
            changes: Vec::new(),
            first: Vec::new(),
            series: None,
            earlier: Vec::new(),
            last_steps: None,
            merge: false,
            done: EditOutcome::default(),
        }
    }

    /// Appends the steps to the store's own series.
    pub(super) fn with_series(self, series: Option<LocalSeries>) -> Self {
        Self { series: series.map(|series| Rc::new(RefCell::new(series))), ..self }
    }

    /// Returns a transaction with an origin of its own that is part of `change`.
    pub(super) fn part_of(change: &Transaction<'a>, call: &'a EditContext) -> Self {
        let (id, series) = (change.id.clone(), change.series.clone());
        Self { id, series, ..Self::new(change.store, call, change.now) }
    }

    /// Adds what a part writes. It is written before everything else.
    pub(super) fn include(&mut self, part: Transaction<'_>) -> Result<(), EditError> {
        let (batches, done) = part.written()?;
        if !done.act.is_empty() {
            self.done.act = done.act;
        }
        self.first.extend(batches);
        Ok(())
    }

    /// Returns the memory as it is shown.
    ///
    /// # Errors
    /// When it does not exist or is withdrawn, or when it is not the version that the caller saw.
    pub(super) fn shown(&self, id: &str, seen: &str) -> Result<MemoryRecord, EditError> {
        let record = self.store.memory(id, None)?.filter(|record| !record.withdrawn);
        let record = record.ok_or_else(|| EditError::NoMemory(id.to_owned()))?;
        let etag = etag(&record);
        if seen.is_empty() || seen == etag {
            Ok(record)
        } else {
            Err(EditError::Changed { id: id.to_owned(), etag })
        }
    }

    /// Adds a memory to the answer.
    pub(super) fn name(&mut self, id: &str) {
        self.done.matched += 1;
        if self.done.memories.len() < NAMED {
            self.done.memories.push(id.to_owned());
        }
    }

    /// Adds a step.
    pub(super) fn record(&mut self, at: i64, action: EditAction) -> Result<(), EditError> {
        let mut step = EditStep::new(self.id.clone(), at, action);
        if let Some(series) = &self.series {
            step = series.borrow_mut().append_edit(&self.call.actor, step)?;
        }
        self.edit_steps.push(step);
        Ok(())
    }

    /// Appends a change to the store's own series, if it has one.
    pub(super) fn append(&self, payload: &Payload) -> Result<(), EditError> {
        if let Some(series) = &self.series {
            series.borrow_mut().append(payload, NewPlace::Inline)?;
        }
        Ok(())
    }

    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Returns the state that this change gives a memory so far, if it changes it.
    pub(super) fn pending(&self, id: &str) -> Option<&Memory> {
        self.changes.iter().rev().find_map(|change| match change {
            Change::Memory(memory) if memory.id == id => Some(&**memory),
            _ => None,
        })
    }

    /// Sets `fields` of a visible memory to their values in `to`.
    pub(super) fn set(
        &mut self,
        shown: &Memory,
        mut fields: BTreeSet<MemoryField>,
        to: &Memory,
    ) -> Result<(), EditError> {
        if fields.contains(&MemoryField::Content) {
            // Text that the user wrote keeps the status it had at that time, even if a provider later replaces the
            // text it was written over.
            fields.insert(MemoryField::Status);
        }
        let lifts = shown.status == Status::Retracted && to.status != Status::Retracted;
        let at = self.after(shown, lifts)?;
        let mut next = shown.clone();
        apply_fields(&fields, to, at, &mut next);
        check(Some(shown), &next)?;
        let drawn = if fields.contains(&MemoryField::Status) { self.edges(&next, at)? } else { None };
        let to = if fields.contains(&MemoryField::Content) { next.clone() } else { slim(&next, &fields) };
        self.name(&next.id);
        self.record(at, EditAction::Patch(Box::new(MemoryPatch { fields, to, reverses_retraction: lifts })))?;
        self.change(Change::Memory(Box::new(next)));
        match drawn {
            Some(relation) => self.draw(relation),
            None => Ok(()),
        }
    }

    /// Returns the current time, or a time just after the last statement on the memory if the clock went back.
    fn after(&mut self, shown: &Memory, lifts: bool) -> Result<i64, EditError> {
        let changed_at = satchel_pam::lifecycle::changed_at(shown);
        let last = edited_fields(shown).into_values().max().map(|last| last.saturating_add(1));
        let lifted = lifts.then(|| changed_at.saturating_add(1));
        let at = [last, lifted].into_iter().flatten().fold(self.now, i64::max);
        if at > changed_at {
            return Ok(at);
        }
        // A step of which nothing is shown, such as a successor that does not fit any more, leaves no mark.
        let last = self.last_steps()?.get(&shown.id).map(|last| last.saturating_add(1));
        Ok(last.map_or(at, |last| at.max(last)))
    }

    /// Returns when each memory was last edited.
    fn last_steps(&mut self) -> Result<&BTreeMap<String, i64>, EditError> {
        if self.last_steps.is_none() {
            let counted = ActiveEvidence::load(self.store, &provenance::undone_imports(self.store)?)?;
            let mut last = BTreeMap::new();
            for step in &counted.edit_steps {
                if let Some(id) = step.memory() {
                    let at = last.entry(id).or_insert(step.at);
                    *at = step.at.max(*at);
                }
            }
            self.last_steps = Some(last);
        }
        Ok(self.last_steps.get_or_insert_default())
    }

    /// Makes the `supersedes` relations to a memory agree with its `superseded_by`; returns the relation to draw, if
    /// one is missing.
    fn edges(&mut self, memory: &Memory, at: i64) -> Result<Option<Relation>, EditError> {
        let successor = memory.temporal.superseded_by.as_ref();
        for record in self.store.relations_of(&memory.id, None)? {
            let relation = record.relation;
            let says = relation.relation_type == RelationType::Supersedes && relation.to == memory.id;
            if says && successor != Some(&relation.from) {
                self.change(Change::WithdrawRelation(relation.id));
            }
        }
        let Some(by) = successor else { return Ok(None) };
        let drawn = supersedes(by, &memory.id, at);
        let stands = self.store.relation(&drawn.id, None)?.is_some_and(|record| !record.withdrawn);
        Ok((!stands).then_some(drawn))
    }

    /// Draws a relation that follows from this change.
    fn draw(&mut self, mut relation: Relation) -> Result<(), EditError> {
        if self.store.relation(&relation.id, None)?.is_some() {
            // The relation existed before; its creation time has to be derived from all evidence.
            let mut counted = ActiveEvidence::load(self.store, &provenance::undone_imports(self.store)?)?;
            counted.edit_steps.extend(self.edit_steps.iter().cloned());
            counted.user_edits = UserEdits::of(&counted.edit_steps);
            relation = counted.derive().relations.remove(&relation.id).unwrap_or(relation);
        }
        self.done.relations.push(relation.id.clone());
        self.change(Change::Relation(relation));
        Ok(())
    }

    /// Returns whether following the successors from `from` leads to `to`.
    pub(super) fn leads(&self, from: &str, to: &str) -> Result<bool, EditError> {
        let mut at = from.to_owned();
        for _ in 0..STEPS {
            if at == to {
                return Ok(true);
            }
            let record = self.store.memory(&at, None)?.filter(|record| !record.withdrawn);
            match record.and_then(|record| record.memory.temporal.superseded_by) {
                Some(next) => at = next,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Writes the evidence and the changes. Durable when this returns. A crash in between leaves either all or nothing,
    /// as the next start completes a change whose evidence is stored.
    pub(super) fn commit(self) -> Result<EditOutcome, EditError> {
        let (store, series) = (self.store, self.series.clone());
        let (mut batches, mut done) = self.written()?;
        if let Some(series) = series.and_then(Rc::into_inner) {
            continue_series(store, series.into_inner(), &mut batches)?;
        }
        if !batches.is_empty() {
            let revisions = store.commit_group(batches)?;
            done.revision = revisions.last().copied().map_or(done.revision, Revision::get);
        }
        Ok(done)
    }

    /// Writes the steps of other stores too, with their causality, and `earlier` before the changes.
    pub(super) fn with_steps_of_others(self, steps: Vec<EditStep>, earlier: Vec<Batch>) -> Self {
        Self { edit_steps: steps, merge: true, earlier, ..self }
    }

    /// Writes steps of other stores, `entries`, and the changes. Durable when this returns.
    pub(super) fn merge(self, entries: Vec<Change>) -> Result<(), EditError> {
        let origin = self.origin(self.now);
        let store = self.store;
        let (mut batches, _) = self.written()?;
        match batches.first_mut() {
            Some(first) => first.changes.extend(entries),
            None => batches.push(Batch { origin, changes: entries }),
        }
        store.commit_group(batches)?;
        Ok(())
    }

    pub(super) fn origin(&self, at_micros: i64) -> Origin {
        let EditContext { actor, reason, .. } = self.call;
        Origin { import: None, actor: actor.clone(), reason: reason.clone(), at_micros }
    }

    /// Returns the batches that write everything, and the answer.
    pub(super) fn written(mut self) -> Result<(Vec<Batch>, EditOutcome), EditError> {
        self.refuse_erased()?;
        let mut evidence = Vec::with_capacity(self.edit_steps.len() + 1);
        let (mut at, mut stored) = (self.now, BTreeSet::new());
        for step in &self.edit_steps {
            let (id, json) = step.encode().map_err(|_| EditError::Unencodable { what: "a change" })?;
            // Copies of one store number the steps that they have in common separately.
            if stored.insert(id) {
                evidence.push(Change::Evidence(EvidenceWrite { id, json }));
            }
            // The clock of another store may be ahead.
            at = if self.merge { at } else { at.max(step.at) };
        }
        if !evidence.is_empty() {
            self.done.act.clone_from(&self.id);
        }
        let changes = last_of_each(std::mem::take(&mut self.changes));
        let origin = self.origin(at);
        let earlier = std::mem::take(&mut self.earlier);
        let own = self.batches(evidence, earlier, changes, &origin)?;
        let mut batches = std::mem::take(&mut self.first);
        let parts = batches.len();
        batches.extend(own);
        let raised = batches.iter().filter(|batch| batch.raises_revision()).count() as u64;
        self.done.revision = self.store.revision().get() + raised;
        let entries = request::entries(self.store, self.call.request.as_ref(), self.now, &self.done)?;
        if !entries.is_empty() {
            // In the same commit as the evidence: a request repeated after a crash gets the same answer.
            match batches.get_mut(parts) {
                Some(first) => first.changes.extend(entries),
                None => batches.push(Batch { origin, changes: entries }),
            }
        }
        Ok((batches, self.done))
    }

    /// Refuses content that was erased for good: it must not return by hand either, not even by mistake.
    fn refuse_erased(&self) -> Result<(), EditError> {
        let purged = PurgedData::load(self.store)?;
        match self
            .edit_steps
            .iter()
            .find(|step| !purged.is_empty() && purged.redact_edit(&mut (*step).clone()))
        {
            None => Ok(()),
            Some(step) => {
                let problem = "a memory that said this was erased for good (`satchel memories purge`); say it otherwise";
                Err(EditError::state(&step.memory().unwrap_or_default(), problem))
            }
        }
    }

    /// Splits changes that belong together into several commits if necessary. The first commit then holds all evidence
    /// (on at most [`super::BULK_LIMIT`] memories), one memory whose history records the reason, and a mark that the
    /// change is incomplete. The last commit removes the mark.
    fn batches(
        &self,
        evidence: Vec<Change>,
        earlier: Vec<Batch>,
        mut changes: Vec<Change>,
        origin: &Origin,
    ) -> Result<Vec<Batch>, EditError> {
        let (count, bytes) =
            (evidence.len() + changes.len(), evidence.iter().chain(&changes).map(weight).sum::<usize>());
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut batches = vec![Batch { origin: origin.clone(), changes: evidence }];
        if count <= BATCH_CHANGES && bytes <= BATCH_BYTES && earlier.is_empty() {
            batches[0].changes.extend(changes);
            return Ok(batches);
        }
        let first = if earlier.is_empty() { first_of(&mut changes) } else { None };
        let named = first.as_ref().map(|memory| memory.id.clone());
        batches[0].changes.extend(first.map(Change::Memory));
        batches.extend(earlier);
        batches.extend(split(changes, origin));
        if batches.len() > 1 {
            let [incomplete, complete] = interrupted::marks(self.store, &self.id, origin, named, self.merge)?;
            batches[0].changes.push(incomplete);
            push_to_last(&mut batches, complete);
        }
        Ok(batches)
    }

    /// Writes the outstanding changes of an incomplete change of which only the evidence is stored, and the entry
    /// `settled` that marks it as complete.
    pub(super) fn settle(mut self, origin: &Origin, settled: Change) -> Result<(), EditError> {
        let mut pending = Vec::new();
        for change in std::mem::take(&mut self.changes) {
            let stored = match &change {
                Change::Memory(to) => {
                    let shown = self.store.memory(&to.id, None)?;
                    shown.is_some_and(|shown| !shown.withdrawn && shown.memory == **to)
                }
                Change::Relation(to) => {
                    let drawn = self.store.relation(&to.id, None)?;
                    drawn.is_some_and(|drawn| !drawn.withdrawn && drawn.relation == *to)
                }
                _ => false,
            };
            pending.extend((!stored).then_some(change));
        }
        let mut batches = split(pending, origin);
        if batches.is_empty() {
            batches.push(Batch { origin: origin.clone(), changes: Vec::new() });
        }
        push_to_last(&mut batches, settled);
        self.store.commit_group(batches)?;
        Ok(())
    }
}

/// Adds the changes that continue the series to the first batch. The last one says that all of them have taken effect: if a crash comes
/// in between, they take effect later, as those of other stores do.
fn continue_series(store: &Store, series: LocalSeries, batches: &mut [Batch]) -> Result<(), EditError> {
    if series.is_unchanged() {
        return Ok(());
    }
    let (changes, applied) = series.into_changes(store)?;
    if let Some(first) = batches.first_mut() {
        first.changes.extend(changes);
    }
    if let Some(applied) = applied {
        push_to_last(batches, applied);
    }
    Ok(())
}

/// Keeps only the last change of each memory.
fn last_of_each(mut changes: Vec<Change>) -> Vec<Change> {
    let mut later = BTreeSet::new();
    changes.reverse();
    changes.retain(|change| match change {
        Change::Memory(memory) => later.insert(memory.id.clone()),
        _ => true,
    });
    changes.reverse();
    changes
}

/// Takes out the first memory that is short enough to be stored with the evidence.
fn first_of(changes: &mut Vec<Change>) -> Option<Box<Memory>> {
    let short = |change: &Change| matches!(change, Change::Memory(_)) && weight(change) <= FIRST_BYTES;
    let at = changes.iter().position(short)?;
    match changes.remove(at) {
        Change::Memory(memory) => Some(memory),
        _ => None,
    }
}

/// Splits changes into commits of bounded size.
pub(super) fn split(changes: Vec<Change>, origin: &Origin) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut bytes = BATCH_BYTES;
    for change in changes {
        let weight = weight(&change);
        let full = batches.last().is_none_or(|last| last.changes.len() >= BATCH_CHANGES);
        if full || bytes + weight > BATCH_BYTES {
            batches.push(Batch { origin: origin.clone(), changes: Vec::new() });
            bytes = 0;
        }
        bytes += weight;
        push_to_last(&mut batches, change);
    }
    batches
}

/// Adds a change to the last batch.
fn push_to_last(batches: &mut [Batch], change: Change) {
    if let Some(last) = batches.last_mut() {
        last.changes.push(change);
    }
}

pub(super) fn weight(change: &Change) -> usize {
    match change {
        Change::Evidence(write) => write.json.len(),
        Change::Memory(memory) | Change::WithdrawMemory(memory) => {
            serde_json::to_vec(memory).map_or(0, |json| json.len())
        }
        _ => 0,
    }
}

/// Returns the parts of a memory that evidence needs to set `fields`: many pieces of evidence may refer to one long
/// memory.
fn slim(memory: &Memory, fields: &BTreeSet<MemoryField>) -> Memory {
    let mut slim = memory.clone();
    let keeps = |field| fields.contains(&field);
    slim.content.clear();
    slim.embedding_ref = None;
    slim.provenance = Provenance { platform: memory.provenance.platform.clone(), ..Provenance::default() };
    if !keeps(MemoryField::Summary) {
        slim.summary = None;
    }
    if !keeps(MemoryField::Tags) {
        slim.tags.clear();
    }
    if !keeps(MemoryField::Access) {
        slim.access = None;
    }
    if !keeps(MemoryField::Decay) {
        slim.confidence = None;
    }
    if keeps(MemoryField::Metadata) {
        slim.metadata.remove(PLACE);
    } else {
        slim.metadata.clear();
    }
    slim
}

/// The metadata key under which the daemon stores its own data.
const PLACE: &str = "satchel";
