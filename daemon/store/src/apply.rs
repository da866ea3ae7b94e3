//! Applies committed changes to the engine. Commits, replays and rebuilds use the same code.

mod lists;
mod records;

pub(crate) use lists::lists;

use std::{collections::HashSet, sync::Arc};

use crate::{
    change::Origin,
    codec::Put,
    engine::{Changes, Engine, EngineError},
    entry::JournalEntry,
    error::StoreError,
    journal::{ChangeLocation, Position},
    keys,
    record::{ChangeKind, ChangeOp},
    report::StateDigest,
    value::{self, EngineMeta},
};

/// A part of the change log is closed once it has reached this many bytes.
const LOG_PART_BYTES: usize = 48 << 10;

/// One commit as it is stored in the journal.
pub(crate) struct Commit {
    /// `None` for a note, which has no revision.
    pub(crate) revision: Option<u64>,
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) origin: Origin,
    pub(crate) entries: Vec<JournalEntry>,
    /// The position of the next frame.
    pub(crate) end: Position,
}

/// The commit that writes a record.
#[derive(Clone, Copy)]
struct CommitContext<'a> {
    /// The revision of the commit; for a note, the revision of the store.
    revision: u64,
    /// The place of the record in the journal.
    place: ChangeLocation,
    origin: &'a Origin,
}

/// The writer of the engine.
pub(crate) struct Applier {
    engine: Arc<dyn Engine>,
    meta: EngineMeta,
    pending: Changes,
    /// Keys of records that `pending` changes. For these keys the engine still returns the old value.
    pending_keys: HashSet<Vec<u8>>,
    log: Vec<Vec<u8>>,
    /// Whether other threads may be reading at the same time.
    readers: bool,
    /// The sum of a check that is in progress.
    digest_walk: Option<DigestWalk>,
}

impl Applier {
    pub(crate) fn new(engine: Arc<dyn Engine>, meta: EngineMeta) -> Self {
        Self {
            engine,
            meta,
            pending: Changes::default(),
            pending_keys: HashSet::new(),
            log: Vec::new(),
            readers: true,
            digest_walk: None,
        }
    }

    pub(crate) fn meta(&self) -> &EngineMeta {
        &self.meta
    }

    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.engine)
    }

    /// Returns the sum of the check in progress, so that the caller can start, continue or end that check.
    pub(crate) fn digest_walk(&mut self) -> &mut Option<DigestWalk> {
        &mut self.digest_walk
    }

    /// Sets whether other threads may be reading at the same time. If they may, the engine gets smaller batches.
    pub(crate) fn set_readers(&mut self, readers: bool) {
        self.readers = readers;
    }

    /// Replaces a record's share in the digest.
    fn update_digest(&mut self, key: &[u8], old: Option<&[u8; 32]>, new: &[u8; 32]) {
        if let Some(old) = old {
            self.meta.digest.remove(old);
        }
        self.meta.digest.add(new);
        if let Some(walk) = &mut self.digest_walk {
            walk.changed(key, old, new);
        }
    }

    /// Applies a commit; it is visible after [`Applier::flush`]. `gap` says that the journal is damaged before this commit; the
    /// applied position then stays where it is.
    pub(crate) fn commit(&mut self, commit: Commit, gap: bool) -> Result<(), StoreError> {
        let Commit { revision, segment, offset, origin, entries, end } = commit;
        // After damage, every start reads the same commits again, and with a truncated journal also some that were applied long
        // ago. A note among them would restore entries that later notes replaced. So a commit is skipped if its position was
        // passed already, not only if its revision was applied.
        let Position { segment: at, offset: passed, .. } = self.meta.position;
        let known = (end.segment, end.offset) <= (at, passed)
            || revision.is_some_and(|revision| revision <= self.meta.revision);
        if !known {
            for (change, entry) in (0_u32..).zip(entries) {
                let place = ChangeLocation { segment, offset, change };
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
            self.advance_to(end);
        }
        Ok(())
    }

    /// Records that the journal is applied up to `end`. Earlier positions, which a damaged journal can show again, do not move it
    /// back.
    pub(crate) fn advance_to(&mut self, end: Position) {
        let at = self.meta.position;
        if (end.segment, end.offset) < (at.segment, at.offset) {
            return;
        }
        self.meta.position = end;
        self.meta.position_revision = self.meta.revision;
    }

    /// Writes all pending changes to the engine.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        let mut changes = std::mem::take(&mut self.pending);
        self.pending_keys.clear();
        changes.put(keys::META.to_vec(), self.meta.encode());
        Ok(self.engine.apply(changes)?)
    }

    fn entry(
        &mut self,
        entry: JournalEntry,
        revision: Option<u64>,
        place: ChangeLocation,
        origin: &Origin,
    ) -> Result<(), StoreError> {
        let by = CommitContext { revision: revision.unwrap_or(self.meta.revision), place, origin };
        let changes = match entry {
            JournalEntry::Memory(memory) => self.memory(memory, by)?,
            JournalEntry::Conversation(conversation) => self.conversation(conversation, by)?,
            JournalEntry::Relation(relation) => self.relation(relation, false, by)?,
            JournalEntry::Withdraw(relation) => self.relation(relation, true, by)?,
            JournalEntry::Embedding(embedding) => self.embedding(embedding, by)?,
            JournalEntry::Evidence(evidence) => self.evidence(evidence, by)?,
            JournalEntry::Ledger(write) => self.ledger(write, place)?,
        };
        self.pending.append(changes);
        if self.pending.full(self.readers) {
            self.flush()?;
        }
        Ok(())
    }

    /// Returns the record under a key, including all changes that were applied so far.
    fn current(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if self.pending_keys.contains(key) {
            self.flush()?;
        }
        self.pending_keys.insert(key.to_vec());
        Ok(self.engine.get(key)?)
    }

    fn log(&mut self, kind: ChangeKind, op: ChangeOp, id: &str, previous: u64) {
        if self.log.last().is_none_or(|part| part.len() >= LOG_PART_BYTES) {
            self.log.push(value::plain());
        }
        let Some(part) = self.log.last_mut() else { return };
        part.put_u8(keys::kind_code(kind));
        part.put_u8(op_code(op));
        part.put_id(id);
        part.put_varint(previous);
    }
}

/// The sum over all records, computed page by page in key order while commits continue. A change to a record that was already
/// counted corrects the sum.
#[derive(Debug, Default)]
pub(crate) struct DigestWalk {
    sum: StateDigest,
    /// The last key that was counted. `None` before the walk begins.
    passed: Option<Vec<u8>>,
}

impl DigestWalk {
    /// Counts the record under the next key of the walk.
    pub(crate) fn count(&mut self, key: &[u8], share: &[u8; 32]) {
        self.sum.add(share);
        self.passed = Some(key.to_vec());
    }

    /// Corrects the sum if the walk has already counted this record. Otherwise the walk will count the changed record later.
    fn changed(&mut self, key: &[u8], old: Option<&[u8; 32]>, new: &[u8; 32]) {
        if self.passed.as_deref().is_none_or(|passed| key > passed) {
            return;
        }
        if let Some(old) = old {
            self.sum.remove(old);
        }
        self.sum.add(new);
    }

    pub(crate) fn sum(&self) -> StateDigest {
        self.sum
    }

    pub(crate) fn passed(&self) -> Option<&[u8]> {
        self.passed.as_deref()
    }
}

fn op_code(op: ChangeOp) -> u8 {
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
