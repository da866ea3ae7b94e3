//! The commit path: check, journal, fsync, engine, and only then the reply to the caller.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

use super::{
    Store, StoreInner, StoreWriter,
    validate::{RecordKey, check, check_collision, check_size},
};
use crate::{
    apply::Commit,
    change::{Batch, Change, ConversationWrite, MessageWrite},
    codec::{batch, heads::HeadWriter},
    engine::passes,
    entry::{self, ConversationEntry, JournalEntry},
    error::StoreError,
    journal::frame::FrameKind,
    keys,
    ledger::Durability,
    lookup,
    open::state::ShutdownState,
    record::BodyPlace,
    report::Health,
    revision::Revision,
};

/// The records that a group has changed. Before the fsync the engine does not know of these changes.
type ChangedRecords = HashSet<RecordKey>;

impl StoreInner {
    pub(super) fn commit_group(
        &self,
        batches: Vec<Batch>,
        durability: Durability,
    ) -> Result<Vec<Revision>, StoreError> {
        self.check_writable()?;
        let mut guard = self.writer();
        self.rebuild_on_disk(&mut guard).map_err(|error| self.as_disk_full(error))?;
        let writer = &mut *guard;
        writer.applier.set_readers(self.readers.load(Ordering::Relaxed));
        let mut group = CommitGroup {
            inner: self,
            writer,
            commits: Vec::new(),
            touched: ChangedRecords::new(),
            begun: false,
        };
        let mut revisions = Vec::with_capacity(batches.len());
        let evidence = evidence_of(&batches);
        let added = batches.into_iter().try_for_each(|batch| {
            revisions.push(group.add(batch)?);
            Ok(())
        });
        let done = added.and_then(|()| group.finish(durability));
        // Also after an error, as a part of the batches may have been committed.
        self.recent_evidence().add(evidence);
        if let Err(error) = done {
            group.undo();
            return Err(self.handle_failure(error, &mut guard));
        }
        Ok(revisions)
    }

    /// Returns the error for a commit that failed and of which nothing is in the journal. If the disk is full, an engine in
    /// memory takes over.
    fn handle_failure(&self, error: StoreError, writer: &mut StoreWriter) -> StoreError {
        let lacking = matches!(&error, StoreError::Engine { problem } if passes(problem));
        let ready = writer.journal.stopped().is_none() && !writer.in_memory;
        if lacking && ready && self.use_memory_engine(writer).is_ok() {
            return self.as_disk_full(error);
        }
        self.record_failure(&error, writer);
        error
    }

    /// Converts an error of a database that finds no room into "disk full" for callers, who need not know about the database.
    fn as_disk_full(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Engine { problem } if passes(&problem) => {
                tracing::warn!(problem, "there is no room for the database yet");
                StoreError::Full { path: self.dir.clone() }
            }
            error => error,
        }
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        self.record_read_damage();
        match &*self.health() {
            Health::Good => Ok(()),
            Health::Damaged(places) => match places.first() {
                Some(first) => Err(StoreError::DamagedJournal { first: first.clone() }),
                None => Ok(()),
            },
            Health::Stopped(reason) => Err(StoreError::Stopped { reason: reason.clone() }),
            Health::ReadOnly(reason) => {
                Err(StoreError::ReadOnly { dir: self.dir.clone(), reason: reason.clone() })
            }
        }
    }

    /// Stops all further writes after a failed fsync or a failure of the engine, because the content of the disk or of the engine
    /// is then unknown.
    pub(super) fn record_failure(&self, error: &StoreError, writer: &mut StoreWriter) {
        if error.unconfirmed() {
            writer.journal.stop(format!("the disk failed: {error}"));
        }
        let stopped = writer.journal.stopped();
        let engine_failed = matches!(error, StoreError::Engine { .. } | StoreError::BadValue { .. });
        // Notes that waited for a later fsync are in the database, but no longer in the journal.
        let ahead = error.unconfirmed() && !writer.journal.durable(writer.applier.meta().position);
        if (engine_failed || ahead)
            && let Err(error) = self.state_file.write(ShutdownState::Suspect)
        {
            tracing::error!(%error, "cannot note that the database failed");
        }
        let reason = if engine_failed { Some(error.to_string()) } else { stopped.map(str::to_owned) };
        if let Some(reason) = reason {
            *self.health() = Health::Stopped(reason);
        }
    }
}

impl Store {
    /// Sets whether other threads may be reading during commits; a new store assumes that they may. The engine locks out readers
    /// while it applies a batch. Without readers it gets larger batches, and many small changes are stored in less time.
    pub fn expect_readers(&self, expected: bool) {
        self.inner.readers.store(expected, Ordering::Relaxed);
    }
}

/// Returns the ids of the evidence in `batches`.
fn evidence_of(batches: &[Batch]) -> Vec<[u8; 16]> {
    let changes = batches.iter().flat_map(|batch| &batch.changes);
    let id = |change: &Change| match change {
        Change::Evidence(write) => Some(write.id),
        _ => None,
    };
    changes.filter_map(id).collect()
}

struct CommitGroup<'a> {
    inner: &'a StoreInner,
    writer: &'a mut StoreWriter,
    commits: Vec<Commit>,
    touched: ChangedRecords,
    begun: bool,
}

impl CommitGroup<'_> {
    fn add(&mut self, batch: Batch) -> Result<Revision, StoreError> {
        let keys = check(&batch.changes)?;
        if keys.iter().any(|(key, _)| self.touched.contains(key)) {
            self.finish(Durability::Now)?;
        }
        for (key, id) in &keys {
            check_collision(self.writer.applier.engine().as_ref(), *key, id)?;
        }
        let before = self.commits.iter().rev().find_map(|commit| commit.revision);
        let before = before.unwrap_or(self.writer.applier.meta().revision);
        let raises = batch.raises_revision();
        let revision = if raises { before + 1 } else { before };
        if !self.begun {
            self.begin(before)?;
        }
        self.touched.extend(keys.into_iter().map(|(key, _)| key));
        self.write(batch, revision, raises)?;
        Ok(Revision::new(revision))
    }

    /// Makes sure that there is room and that the blobs are durable before a byte of the group can reach the journal: after a
    /// kill, a group that is complete in the journal is valid, even if it was never acknowledged.
    fn begin(&mut self, revision: u64) -> Result<(), StoreError> {
        let (disk, dir) = (self.inner.reader.disk().as_ref(), self.inner.dir.as_path());
        self.inner.check_space(dir)?;
        self.inner.pending_blobs.publish(disk, dir)?;
        self.writer.journal.begin(revision)?;
        self.begun = true;
        Ok(())
    }

    fn write(&mut self, batch: Batch, revision: u64, raises: bool) -> Result<(), StoreError> {
        let Batch { origin, changes } = batch;
        let mut entries = Vec::with_capacity(changes.len());
        for change in changes {
            entries.push(self.entry(change, revision)?);
        }
        let StoreWriter { journal, payload, .. } = &mut *self.writer;
        payload.clear();
        batch::encode(&origin, &entries, payload).map_err(|_| StoreError::TooLarge {
            what: "a commit".to_owned(),
            size: u64::from(u32::MAX),
            limit: u64::from(u32::MAX),
        })?;
        satchel_failpoints::reached("commit encoded");
        let kind = if raises { FrameKind::Batch } else { FrameKind::Note };
        let offset = journal.frame(kind, payload, revision)?;
        satchel_failpoints::reached("commit framed");
        let end = journal.position();
        let revision = raises.then_some(revision);
        self.commits.push(Commit { revision, segment: end.segment, offset, origin, entries, end });
        Ok(())
    }

    /// Performs the commit: first the journal, which is the commit point, then the engine.
    fn finish(&mut self, durability: Durability) -> Result<(), StoreError> {
        match durability {
            Durability::Now => self.writer.journal.sync()?,
            Durability::WithNextCommit => self.writer.journal.write_buffer()?,
        }
        // From here on the group is not undone any more.
        self.begun = false;
        self.touched.clear();
        if self.commits.is_empty() {
            return Ok(());
        }
        self.writer.dirty = true;
        match self.apply() {
            // The commit is in the journal and therefore valid. The replacement engine reads it from there.
            Err(StoreError::Engine { problem }) if passes(&problem) => self.use_memory_engine(problem)?,
            applied => applied?,
        }
        let revision = self.writer.applier.meta().revision;
        self.inner.publish(revision);
        satchel_failpoints::reached("revision published");
        Ok(())
    }

    /// Replaces the engine by one in memory. If that fails, nothing more is written, because the journal is ahead of the state of
    /// this process.
    fn use_memory_engine(&mut self, problem: String) -> Result<(), StoreError> {
        self.inner.use_memory_engine(self.writer).map_err(|error| {
            self.writer.journal.stop(format!("the database failed, and cannot be built in memory: {error}"));
            StoreError::Engine { problem }
        })
    }

    fn apply(&mut self) -> Result<(), StoreError> {
        let applier = &mut self.writer.applier;
        for commit in self.commits.drain(..) {
            applier.commit(commit, false)?;
        }
        satchel_failpoints::reached("database prepared");
        applier.flush()?;
        satchel_failpoints::reached("database written");
        Ok(())
    }

    fn undo(&mut self) {
        if self.begun {
            self.writer.journal.undo();
        }
    }

    fn entry(&mut self, change: Change, revision: u64) -> Result<JournalEntry, StoreError> {
        Ok(match change {
            Change::Memory(memory) => JournalEntry::Memory(entry::memory_entry(&memory, false)?),
            Change::WithdrawMemory(memory) => JournalEntry::Memory(entry::memory_entry(&memory, true)?),
            Change::Conversation(conversation) => self.conversation(*conversation, false, revision)?,
            Change::WithdrawConversation(conversation) => self.conversation(*conversation, true, revision)?,
            Change::Relation(relation) => JournalEntry::Relation(check_size((&relation).try_into()?)?),
            Change::WithdrawRelation(id) => {
                JournalEntry::Withdraw(lookup::relation_entry(self.writer.applier.engine().as_ref(), id)?)
            }
            Change::Embedding(embedding) => JournalEntry::Embedding((&embedding).try_into()?),
            Change::WithdrawEmbedding { memory, model } => {
                JournalEntry::Embedding(entry::embedding_withdrawn(memory, model)?)
            }
            Change::Evidence(evidence) => JournalEntry::Evidence(evidence),
            Change::Ledger(write) => JournalEntry::Ledger(write),
        })
    }

    fn conversation(
        &mut self,
        write: ConversationWrite,
        withdrawn: bool,
        revision: u64,
    ) -> Result<JournalEntry, StoreError> {
        let ConversationWrite { mut header, current, opaque, messages } = write;
        let stored_places = self.stored_places(&header.id, &messages)?;
        let journal = &mut self.writer.journal;
        let mut heads = HeadWriter::new(messages.len());
        for message in &messages {
            let place = match message {
                MessageWrite::Put { body, .. } => journal.body(body, revision)?,
                MessageWrite::Keep { head } => {
                    stored_places.get(head.id.as_str()).copied().ok_or_else(|| {
                        StoreError::UnknownMessage {
                            conversation: header.id.clone(),
                            message: head.id.clone(),
                        }
                    })?
                }
            };
            heads.push(message.head(), place);
        }
        let (parts, heads) = heads.finish();
        let digest = entry::conversation_digest(&mut header, current.as_deref(), &heads)?;
        let bytes = entry::json(&header, || format!("conversation {:?}", header.id))?;
        let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        let summary = entry::summary(&header, count);
        Ok(JournalEntry::Conversation(ConversationEntry {
            withdrawn,
            summary,
            header: bytes,
            current,
            opaque,
            parts,
            digest,
        }))
    }

    /// Returns the places of the bodies of the stored version if any of them is kept.
    fn stored_places(
        &self,
        id: &str,
        messages: &[MessageWrite],
    ) -> Result<HashMap<String, BodyPlace>, StoreError> {
        if !messages.iter().any(|message| matches!(message, MessageWrite::Keep { .. })) {
            return Ok(HashMap::new());
        }
        let stored = lookup::conversation_heads(self.writer.applier.engine().as_ref(), keys::id16(id))?;
        Ok(stored.into_iter().flatten().map(|(head, place)| (head.id, place)).collect())
    }
}
