//! Plans, counts and commits the records of a run, in bounded batches of whole conversations.

mod batch;
pub(super) mod conversation;
pub(super) mod groups;

use satchel_host::channel::{Received, Receiver};
use satchel_merge::evidence::StoredEvidence;
use satchel_pam::conversation::ImportMetadata;

use self::batch::OpenBatch;
pub(super) use self::batch::size_estimate;
use super::{
    derive,
    error::IngestError,
    evidence::PendingEvidence,
    pieces::{PieceCache, PieceResult, PieceToCache},
    receipt::ImportRecord,
    records::{DeferredRecords, IDLE, ImportItem},
    session::Session,
    skips::SkipPages,
};
use crate::provenance::EvidenceKey;

/// Looks up each conversation and commits its union, and derives memories at the end.
pub(super) struct Writer<'a> {
    pub(super) session: Session<'a>,
    batch: OpenBatch,
    /// Conversations of rows that wait for others of the same family.
    waiting: groups::PendingGroups,
    evidence: PendingEvidence,
    pieces: PieceCache,
    skips: SkipPages,
    /// The import metadata of conversations that the import brings.
    import: ImportMetadata,
}

impl<'a> Writer<'a> {
    pub(super) fn new(session: Session<'a>, import: ImportMetadata) -> Self {
        let id = session.origin.import.unwrap_or_default();
        Self {
            session,
            batch: OpenBatch::new(id),
            waiting: groups::PendingGroups::default(),
            evidence: PendingEvidence::new(id),
            pieces: PieceCache::default(),
            skips: SkipPages::default(),
            import,
        }
    }

    /// Writes all records that `receiver` delivers; `progress` is called after each.
    pub(super) fn write_all(
        &mut self,
        receiver: &Receiver<ImportItem>,
        record: &mut ImportRecord,
        progress: &mut dyn FnMut(&ImportRecord),
    ) -> Result<(), IngestError> {
        loop {
            if self.session.cancel.cancelled() {
                // Items left in the queue are dropped: looking all of them up could take seconds. The reader may have
                // finished successfully.
                self.flush(record)?;
                return Err(IngestError::Cancelled);
            }
            match receiver.recv_timeout(IDLE) {
                Received::Item(item) => self.write(item, record)?,
                // Other imports must not wait while the disk of this one does not answer.
                Received::TimedOut => self.yield_lock(record)?,
                Received::End => return self.flush(record),
            }
            progress(record);
            satchel_failpoints::reached("record received");
        }
    }

    /// Adds one record to the batch.
    pub(super) fn write(&mut self, item: ImportItem, record: &mut ImportRecord) -> Result<(), IngestError> {
        match item {
            ImportItem::Conversation(conversation) if groups::is_grouped(&conversation) => {
                self.group(*conversation, record)?;
            }
            ImportItem::Conversation(conversation) => self.conversation(*conversation, record)?,
            ImportItem::Evidence(evidence) => self.evidence(evidence)?,
            ImportItem::Document(document) => self.evidence.add_document(&document)?,
            ImportItem::Skip(skip) => self.skips.add(skip, &self.session, record)?,
            ImportItem::Account(account) => record.add_account(account),
            ImportItem::Warning(warning) => record.warn(warning),
            ImportItem::Stored => record.attachments += 1,
            ImportItem::Piece => self.pieces.begin(),
            ImportItem::Known(piece) => self.cache(*piece)?,
            ImportItem::Again(account) => self.cached(*account, record)?,
        }
        if self.batch.is_full(self.session.batch_divisor()) { self.store_batch(record) } else { Ok(()) }
    }

    /// Counts a piece from the cache: all of its records are stored already, and are recorded as brought by this import
    /// too.
    fn cached(&mut self, account: PieceResult, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.pieces.abandon();
        self.session.lock()?;
        if self.session.undone.contains(&account.import) {
            return Err(IngestError::UndoneMeanwhile);
        }
        let PieceResult {
            import: reader,
            contributions,
            messages,
            attachments,
            evidence,
            memories,
            newest: _,
        } = account;
        for (counts, more) in
            [(&mut record.conversations, contributions.len() as u64), (&mut record.messages, messages)]
        {
            counts.found += more;
            counts.unchanged += more;
        }
        record.attachments += attachments;
        self.evidence.add_cached(reader, evidence, &memories);
        for key in contributions {
            if self.record_part(key) {
                // The write lock stays held: the whole account that was counted has to be recorded.
                self.store_changes(record)?;
            }
        }
        Ok(())
    }

    /// Records that this import brought the part; returns true if a page is full and should be stored soon.
    fn record_part(&mut self, key: EvidenceKey) -> bool {
        // The part counts from now on, even if an import that brought it earlier was undone.
        self.session.left_out.remove(&key);
        self.batch.add_part(key, self.session.dry_run)
    }

    /// Caches a piece in the batch that stores its records. A piece with evidence is cached at the end, when its
    /// evidence is stored.
    fn cache(&mut self, piece: PieceToCache) -> Result<(), IngestError> {
        let Some(import) = self.session.origin.import.filter(|_| !self.session.dry_run) else {
            return Ok(());
        };
        if let Some((change, bytes)) = self.pieces.end(piece, import)? {
            self.batch.add_other(change, bytes);
        }
        Ok(())
    }

    fn evidence(&mut self, evidence: Vec<StoredEvidence>) -> Result<(), IngestError> {
        for one in evidence {
            if let Some(key) = self.evidence.add(one)? {
                self.pieces.add_evidence(key);
            }
        }
        Ok(())
    }

    /// Adds encoded evidence on these memories.
    pub(super) fn add_encoded_evidence(
        &mut self,
        key: EvidenceKey,
        json: &[u8],
        memories: impl Iterator<Item = EvidenceKey>,
        is_document: bool,
    ) -> Result<(), IngestError> {
        self.evidence.count += 1;
        self.evidence.documents += u64::from(is_document);
        self.evidence.memories.extend(memories);
        Ok(self.evidence.encoded.insert(key, json)?)
    }

    /// Derives memories from all evidence, and commits the differences.
    pub(super) fn derive(
        &mut self,
        deferred: DeferredRecords,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        derive::derive(&mut self.session, (&mut self.evidence, &mut self.skips), deferred, record)?;
        self.flush(record)
    }

    /// Caches the pieces whose evidence is stored by now.
    pub(super) fn cache_late(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.pieces.commit_late(|changes| self.session.commit(changes, record))
    }

    /// Stores the skips that the receipt does not list.
    pub(super) fn store_skips(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.skips.flush(&self.session, record)
    }

    /// Commits everything that was added. Durable when this returns.
    pub(super) fn flush(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.write_groups(record)?;
        self.store_batch(record)
    }

    /// Commits the batch and releases the write lock.
    fn store_batch(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.store_changes(record)?;
        self.session.unlock();
        Ok(())
    }

    /// Commits the batch. The write lock stays held.
    fn store_changes(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        let changes = self.batch.take(&record.id, self.session.dry_run);
        if changes.is_empty() { Ok(()) } else { self.session.commit(changes, record) }
    }

    /// Commits the batch and releases the write lock if it is held: no record arrives at present, and maybe none will.
    /// Conversations that wait for others of their family keep waiting, and block no others.
    pub(super) fn yield_lock(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.skips.flush_partial(&self.session, record)?;
        if self.session.locked() { self.store_batch(record) } else { Ok(()) }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
