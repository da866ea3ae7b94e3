//! Brings committed changes into the engine; the same code serves commits, replays and rebuilds.

mod lists;
mod records;
mod tally;

pub(crate) use lists::lists;
pub(crate) use tally::Tally;

use std::{collections::HashSet, sync::Arc};

use records::Written;

use crate::{
    change::Origin,
    codec::Put,
    engine::{Changes, Engine, EngineError},
    entry::Entry,
    error::StoreError,
    journal::{Place, Position},
    keys,
    record::{ChangeKind, ChangeOp},
    value::{self, Meta},
};

/// A piece of the change log is closed at this many bytes.
const LOG_PART: usize = 48 << 10;

/// One commit as it lies in the journal.
pub(crate) struct Commit {
    /// `None`: a note, which has no revision.
    pub(crate) revision: Option<u64>,
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) origin: Origin,
    pub(crate) entries: Vec<Entry>,
    /// Where the next frame begins.
    pub(crate) end: Position,
}

/// The engine's writer.
pub(crate) struct Applier {
    engine: Arc<dyn Engine>,
    meta: Meta,
    pending: Changes,
    /// Keys of records in `pending`: what the engine answers for them is old.
    waiting: HashSet<Vec<u8>>,
    log: Vec<Vec<u8>>,
    /// Whether somebody may be reading meanwhile.
    readers: bool,
    /// A check that is under way.
    tally: Option<Tally>,
}

impl Applier {
    pub(crate) fn new(engine: Arc<dyn Engine>, meta: Meta) -> Self {
        Self {
            engine,
            meta,
            pending: Changes::default(),
            waiting: HashSet::new(),
            log: Vec::new(),
            readers: true,
            tally: None,
        }
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.engine)
    }

    /// The check that is under way, to begin, go on with or end one.
    pub(crate) fn tally(&mut self) -> &mut Option<Tally> {
        &mut self.tally
    }

    /// Sets whether somebody may be reading meanwhile: then the engine gets smaller batches.
    pub(crate) fn set_readers(&mut self, readers: bool) {
        self.readers = readers;
    }

    /// A record's share in the digest changes.
    fn share(&mut self, key: &[u8], old: Option<&[u8; 32]>, new: &[u8; 32]) {
        if let Some(old) = old {
            self.meta.digest.remove(old);
        }
        self.meta.digest.add(new);
        if let Some(tally) = &mut self.tally {
            tally.changed(key, old, new);
        }
    }

    /// Applies a commit; visible after [`Applier::flush`]. `gap`: the journal is damaged before it, so the position stays where it is.
    pub(crate) fn commit(&mut self, commit: Commit, gap: bool) -> Result<(), StoreError> {
        let Commit { revision, segment, offset, origin, entries, end } = commit;
        // After damage the same commits are read at every start, and from a cut journal some that were applied long ago. A note among
        // them would put back what later ones replaced, so a place that was passed counts, not only the revision.
        let Position { segment: at, offset: passed, .. } = self.meta.position;
        let known = (end.segment, end.offset) <= (at, passed)
            || revision.is_some_and(|revision| revision <= self.meta.revision);
        if !known {
            for (change, entry) in (0_u32..).zip(entries) {
                let place = Place { segment, offset, change };
                self.entry(entry, revision, place, &origin)?;
            }
        }
        if let Some(revision) = revision.filter(|_| !known) {
            for (part, bytes) in (0_u16..).zip(std::mem::take(&mut self.log)) {
                self.pending.put(keys::changes(revision, part), bytes);
            }
            self.meta.revision = revision;
        }
        if !gap {
            self.passed(end);
        }
        Ok(())
    }

    /// Notes that the journal is applied up to `end`. What a damaged journal shows again from before does not move it back.
    pub(crate) fn passed(&mut self, end: Position) {
        let at = self.meta.position;
        if (end.segment, end.offset) < (at.segment, at.offset) {
            return;
        }
        self.meta.position = end;
        self.meta.position_revision = self.meta.revision;
    }

    /// Hands everything to the engine.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        let mut changes = std::mem::take(&mut self.pending);
        self.waiting.clear();
        changes.put(keys::META.to_vec(), self.meta.encode());
        Ok(self.engine.apply(changes)?)
    }

    fn entry(
        &mut self,
        entry: Entry,
        revision: Option<u64>,
        place: Place,
        origin: &Origin,
    ) -> Result<(), StoreError> {
        let by = Written { revision: revision.unwrap_or(self.meta.revision), place, origin };
        let changes = match entry {
            Entry::Memory(memory) => self.memory(memory, by)?,
            Entry::Conversation(conversation) => self.conversation(conversation, by)?,
            Entry::Relation(relation) => self.relation(relation, false, by)?,
            Entry::Withdraw(relation) => self.relation(relation, true, by)?,
            Entry::Embedding(embedding) => self.embedding(embedding, by)?,
            Entry::Evidence(evidence) => self.evidence(evidence, by)?,
            Entry::Ledger(write) => self.ledger(write, place)?,
        };
        self.pending.append(changes);
        if self.pending.full(self.readers) {
            self.flush()?;
        }
        Ok(())
    }

    /// Returns the record under a key as it stands after everything applied so far.
    fn old(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if self.waiting.contains(key) {
            self.flush()?;
        }
        self.waiting.insert(key.to_vec());
        Ok(self.engine.get(key)?)
    }

    fn log(&mut self, kind: ChangeKind, op: ChangeOp, id: &str, previous: u64) {
        if self.log.last().is_none_or(|part| part.len() >= LOG_PART) {
            self.log.push(value::plain());
        }
        let Some(part) = self.log.last_mut() else { return };
        part.put_u8(keys::kind_code(kind));
        part.put_u8(op_code(op));
        part.put_id(id);
        part.put_varint(previous);
    }
}

pub(crate) fn op_code(op: ChangeOp) -> u8 {
    match op {
        ChangeOp::Created => 1,
        ChangeOp::Updated => 2,
        ChangeOp::Withdrawn => 3,
    }
}

pub(crate) fn op_from_code(code: u8) -> Option<ChangeOp> {
    [ChangeOp::Created, ChangeOp::Updated, ChangeOp::Withdrawn].into_iter().find(|op| op_code(*op) == code)
}

impl From<EngineError> for StoreError {
    fn from(error: EngineError) -> Self {
        Self::Engine { problem: error.0 }
    }
}
