//! One act on its way: its words, what they change, and the commit of both.

use std::collections::BTreeSet;

use satchel_pam::{
    ids,
    memory::{Memory, Provenance, Status},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::{Batch, Change, EvidenceWrite, MemoryRecord, Origin, Revision, Store};
use uuid::Uuid;

use super::{Call, Done, HandError, check, etag, request};
use crate::{
    ingest::memories::known,
    lineage::{self, Counted, Purged},
    plan::evidence::{Deed, Field, Setting, Spoken, Word, impress, marks},
};

/// Changes of one commit, and bytes of it; the same bounds as an import's.
const BATCH_CHANGES: usize = 400;
const BATCH_BYTES: usize = 8 << 20;
/// Memories that an answer names.
const NAMED: usize = 100;
/// Most steps from a memory to the last of its successors that are followed.
const STEPS: usize = 10_000;

pub(super) struct Act<'a> {
    pub(super) store: &'a Store,
    call: &'a Call,
    pub(super) id: String,
    pub(super) now: i64,
    words: Vec<Word>,
    changes: Vec<Change>,
    pub(super) done: Done,
}

impl<'a> Act<'a> {
    pub(super) fn new(store: &'a Store, call: &'a Call, now: i64) -> Self {
        let (id, done) = (Uuid::new_v4().to_string(), Done::default());
        Self { store, call, id, now, words: Vec::new(), changes: Vec::new(), done }
    }

    /// The memory as it is shown.
    ///
    /// # Errors
    /// When none is, or it is not the version that the caller saw.
    pub(super) fn shown(&self, id: &str, seen: &str) -> Result<MemoryRecord, HandError> {
        let record = self.store.memory(id, None)?.filter(|record| !record.withdrawn);
        let record = record.ok_or_else(|| HandError::NoMemory(id.to_owned()))?;
        let etag = etag(&record);
        if seen.is_empty() || seen == etag {
            Ok(record)
        } else {
            Err(HandError::Changed { id: id.to_owned(), etag })
        }
    }

    /// Names a memory in the answer.
    pub(super) fn name(&mut self, id: &str) {
        self.done.matched += 1;
        if self.done.memories.len() < NAMED {
            self.done.memories.push(id.to_owned());
        }
    }

    pub(super) fn say(&mut self, at: i64, deed: Deed) {
        self.words.push(Word { act: self.id.clone(), at, deed });
    }

    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Sets `fields` of a memory that is shown to those of `to`.
    pub(super) fn set(
        &mut self,
        shown: &Memory,
        mut fields: BTreeSet<Field>,
        to: &Memory,
    ) -> Result<(), HandError> {
        if fields.contains(&Field::Content) {
            // What the person wrote stands as it stood then, whatever a provider does to what it was written over.
            fields.insert(Field::Status);
        }
        let lifts = shown.status == Status::Retracted && to.status != Status::Retracted;
        let at = self.after(shown, lifts);
        let mut next = shown.clone();
        impress(&fields, to, at, &mut next);
        check(Some(shown), &next)?;
        let drawn = if fields.contains(&Field::Status) { self.edges(&next, at)? } else { None };
        let to = if fields.contains(&Field::Content) { next.clone() } else { slim(&next, &fields) };
        self.name(&next.id);
        self.say(at, Deed::Set(Box::new(Setting { fields, to, lifts })));
        self.change(Change::Memory(Box::new(next)));
        match drawn {
            Some(relation) => self.draw(relation),
            None => Ok(()),
        }
    }

    /// Now, or just after the last word on the memory, where the clock went back.
    fn after(&self, shown: &Memory, lifts: bool) -> i64 {
        let last = marks(shown).into_values().max().map(|last| last.saturating_add(1));
        let lifted = lifts.then(|| satchel_pam::lifecycle::changed_at(shown).saturating_add(1));
        [last, lifted].into_iter().flatten().fold(self.now, i64::max)
    }

    /// Makes the relations to a memory say what its `superseded_by` says; answers the one to draw.
    fn edges(&mut self, memory: &Memory, at: i64) -> Result<Option<Relation>, HandError> {
        let successor = memory.temporal.superseded_by.as_ref();
        for record in self.store.relations_of(&memory.id, None)? {
            let relation = record.relation;
            let says = relation.relation_type == RelationType::Supersedes && relation.to == memory.id;
            if says && successor != Some(&relation.from) {
                self.change(Change::WithdrawRelation(relation.id));
            }
        }
        let Some(by) = successor else { return Ok(None) };
        let id = ids::relation_id(by, &memory.id, RelationType::Supersedes).to_string();
        if self.store.relation(&id, None)?.is_some_and(|record| !record.withdrawn) {
            return Ok(None);
        }
        Ok(Some(Relation {
            id,
            from: by.clone(),
            to: memory.id.clone(),
            relation_type: RelationType::Supersedes,
            confidence: None,
            created_at: Timestamp::saturating(at),
        }))
    }

    /// Draws a relation of which the words of this act speak.
    fn draw(&mut self, mut relation: Relation) -> Result<(), HandError> {
        if self.store.relation(&relation.id, None)?.is_some() {
            // It stood before, and since when it stands now follows from everything.
            let mut counted = Counted::of(self.store, &lineage::undone(self.store)?)?;
            counted.words.extend(self.words.iter().cloned());
            counted.spoken = Spoken::of(&counted.words);
            relation = counted.derive().relations.remove(&relation.id).unwrap_or(relation);
        }
        self.done.relations.push(relation.id.clone());
        self.change(Change::Relation(relation));
        Ok(())
    }

    /// Whether following the successors from `from` comes to `to`.
    pub(super) fn leads(&self, from: &str, to: &str) -> Result<bool, HandError> {
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

    /// Writes words and changes. Durable when this returns.
    pub(super) fn commit(mut self) -> Result<Done, HandError> {
        self.refuse_erased()?;
        let mut changes = Vec::with_capacity(self.words.len() + self.changes.len() + 1);
        let mut at = self.now;
        for word in &self.words {
            at = at.max(word.at);
            let (id, json) = word.encode().map_err(|_| HandError::Unencodable { what: "a change" })?;
            changes.push(Change::Evidence(EvidenceWrite { id, json }));
        }
        if !changes.is_empty() {
            self.done.act.clone_from(&self.id);
        }
        changes.append(&mut self.changes);
        let origin = Origin {
            import: None,
            actor: self.call.actor.clone(),
            reason: self.call.reason.clone(),
            at_micros: at,
        };
        let mut batches = self.batches(changes, &origin)?;
        let raised = batches.iter().filter(|batch| batch.raises_revision()).count() as u64;
        self.done.revision = self.store.revision().get() + raised;
        if let Some(entry) = request::entry(self.call, self.now, &self.done)? {
            match batches.last_mut() {
                Some(last) => last.changes.push(entry),
                None => batches.push(Batch { origin, changes: vec![entry] }),
            }
        }
        if !batches.is_empty() {
            let revisions = self.store.commit_group(batches)?;
            self.done.revision = revisions.last().copied().map_or(self.done.revision, Revision::get);
        }
        Ok(self.done)
    }

    /// What was erased for good does not come back by hand either, not by mistake.
    fn refuse_erased(&self) -> Result<(), HandError> {
        let purged = Purged::of(self.store)?;
        match self.words.iter().find(|word| !purged.is_empty() && purged.word(&mut (*word).clone())) {
            None => Ok(()),
            Some(word) => {
                let problem = "a memory that said this was erased for good (`satchel memories purge`); say it otherwise";
                Err(HandError::state(&word.memory().unwrap_or_default(), problem))
            }
        }
    }

    /// What belongs together may need several commits: then a mark says so until the last, and the next import completes it.
    fn batches(&self, changes: Vec<Change>, origin: &Origin) -> Result<Vec<Batch>, HandError> {
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
            batches.extend_last(change);
        }
        if batches.len() > 1 && !known::marked(self.store)? {
            batches[0].changes.push(known::mark(&self.id));
            batches.extend_last(known::mark(""));
        }
        Ok(batches)
    }
}

trait ExtendLast {
    fn extend_last(&mut self, change: Change);
}

impl ExtendLast for Vec<Batch> {
    fn extend_last(&mut self, change: Change) {
        if let Some(last) = self.last_mut() {
            last.changes.push(change);
        }
    }
}

fn weight(change: &Change) -> usize {
    match change {
        Change::Evidence(write) => write.json.len(),
        Change::Memory(memory) | Change::WithdrawMemory(memory) => {
            serde_json::to_vec(memory).map_or(0, |json| json.len())
        }
        _ => 0,
    }
}

/// What a word needs of a memory to set `fields`: many words may stand on one memory that is long.
fn slim(memory: &Memory, fields: &BTreeSet<Field>) -> Memory {
    let mut slim = memory.clone();
    let keeps = |field| fields.contains(&field);
    slim.content.clear();
    slim.embedding_ref = None;
    slim.provenance = Provenance { platform: memory.provenance.platform.clone(), ..Provenance::default() };
    if !keeps(Field::Summary) {
        slim.summary = None;
    }
    if !keeps(Field::Tags) {
        slim.tags.clear();
    }
    if !keeps(Field::Access) {
        slim.access = None;
    }
    if !keeps(Field::Decay) {
        slim.confidence = None;
    }
    if keeps(Field::Metadata) {
        slim.metadata.remove(PLACE);
    } else {
        slim.metadata.clear();
    }
    slim
}

/// Where a memory's metadata holds what is ours.
const PLACE: &str = "satchel";
