//! Plans, counts and commits the records of a run, in bounded batches of whole conversations.

pub(super) mod conversation;
pub(super) mod groups;

use std::collections::BTreeSet;

use satchel_host::Pace;
use satchel_merge::evidence::{Witness, memories_of, successors};
use satchel_pam::{conversation::ImportMetadata, record::Skip};
use satchel_source::CancelToken;
use satchel_store::{Batch, Change, MessageWrite, Origin, Store, StoreError, key_of};
use uuid::Uuid;

use super::{
    IngestError, hand,
    memo::{self, Account, Known},
    memories,
    pen::{Held, Pen},
    receipt::ImportRecord,
    run::Normalised,
};
use crate::lineage::{self, Brought, Key, Packed, Pages, Undone};

/// Maximum encoded bytes of one batch; each batch is one revision and one fsync.
const BATCH_BYTES: usize = 8 << 20;
/// Maximum conversations of one batch.
const BATCH_CONVERSATIONS: usize = 256;
/// Divisor of the batch size while clients make requests: the engine blocks reads while it applies a batch.
const WHILE_ASKED: usize = 16;
/// Pieces per commit when pieces with evidence are cached at the end.
const LATE_PIECES: usize = 400;

/// Looks up each conversation and commits its union, under the commit lock.
pub(super) struct Writer<'a> {
    pub(super) store: &'a Store,
    /// The commit lock, held from a look-up until its commit: two imports may contain the same conversation.
    pen: &'a Pen,
    held: Option<Held<'a>>,
    /// Raised when the import is cancelled.
    pub(super) cancel: CancelToken,
    /// Says whether clients make requests.
    pace: Pace,
    /// The imports that do not count, as of the time when the commit lock was taken.
    pub(super) undone: Undone,
    /// The parts of conversations that only those imports brought.
    pub(super) left_out: BTreeSet<Key>,
    /// Keys of parts of conversations that this import brought, not yet recorded in the ledger.
    said: Pages,
    /// Keys of evidence that this import brought, not yet recorded in the ledger.
    pub(super) brought: Pages,
    /// If a piece is being read: the keys of its parts of conversations, and of its evidence.
    piece: Option<[Vec<Key>; 2]>,
    /// Keys of evidence in pieces that are taken from the cache.
    pub(super) again: Vec<Key>,
    /// The imports that read those pieces.
    pub(super) readers: BTreeSet<Uuid>,
    pub(super) origin: Origin,
    pub(super) import: ImportMetadata,
    pub(super) dry_run: bool,
    changes: Vec<Change>,
    bytes: usize,
    pending: BTreeSet<String>,
    /// Conversations of rows that wait for others of the same family.
    waiting: groups::Waiting,
    /// Whether messages may have moved to a conversation other than the one that memories refer to.
    moved: bool,
    /// Keys of the memories that the import mentions.
    pub(super) touched: BTreeSet<Key>,
    /// Encoded evidence that is not stored yet.
    pub(super) reports: Packed,
    /// Evidence that refers to other items by their keys, which are resolved at the end of the run.
    pub(super) open: Vec<Witness>,
    /// The number of memories of PAM documents among the evidence.
    pub(super) documents: u64,
    pub(super) evidence: u64,
    /// Pieces that are cached once their evidence is stored.
    late: Packed,
    spilled: Vec<Skip>,
    /// The number of these that are stored already, as the beginning of a page.
    begun: usize,
    pages: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        store: &'a Store,
        (pen, cancel, pace): (&'a Pen, CancelToken, Pace),
        origin: Origin,
        import: ImportMetadata,
        dry_run: bool,
    ) -> Self {
        let said = Pages::new(origin.import.unwrap_or_default(), Brought::Parts);
        Self {
            store,
            pen,
            held: None,
            cancel,
            pace,
            undone: Undone::new(),
            left_out: BTreeSet::new(),
            said,
            brought: Pages::new(origin.import.unwrap_or_default(), Brought::Evidence),
            piece: None,
            again: Vec::new(),
            readers: BTreeSet::new(),
            origin,
            import,
            dry_run,
            changes: Vec::new(),
            bytes: 0,
            pending: BTreeSet::new(),
            waiting: groups::Waiting::default(),
            moved: false,
            touched: BTreeSet::new(),
            reports: Packed::default(),
            open: Vec::new(),
            documents: 0,
            evidence: 0,
            late: Packed::default(),
            spilled: Vec::new(),
            begun: 0,
            pages: 0,
        }
    }

    /// Returns the divisor of the batch size at present.
    pub(super) fn part(&self) -> usize {
        if self.pace.asked_lately() { WHILE_ASKED } else { 1 }
    }

    /// Adds one record to the batch.
    pub(super) fn take(&mut self, item: Normalised, record: &mut ImportRecord) -> Result<(), IngestError> {
        match item {
            Normalised::Conversation(conversation) if groups::are(&conversation) => {
                self.group(*conversation, record)?;
            }
            Normalised::Conversation(conversation) => self.conversation(*conversation, record)?,
            Normalised::Evidence(witnesses) => self.evidence(witnesses)?,
            Normalised::Document(document) => {
                self.evidence += 1;
                self.documents += 1;
                self.touched.insert(key_of(&document.memory.id));
                let (key, json) = memories::document_report(&document)?;
                self.reports.insert(key, &json)?;
            }
            Normalised::Skip(skip) => {
                if let Some(skip) = record.skip(skip) {
                    self.spill(skip, record)?;
                }
            }
            Normalised::Account(account) => record.add_account(account),
            Normalised::Warning(warning) => record.warn(warning),
            Normalised::Stored => record.attachments += 1,
            Normalised::Piece => self.piece = Some([Vec::new(), Vec::new()]),
            Normalised::Known(known) => self.remember(*known)?,
            Normalised::Again(account) => self.again(*account, record)?,
        }
        let part = self.part();
        if self.bytes >= BATCH_BYTES / part || self.pending.len() >= BATCH_CONVERSATIONS / part {
            self.store_batch(record)?;
        }
        Ok(())
    }

    /// Counts a piece from the cache: all of its records are stored already, and are recorded as brought by this import
    /// too.
    fn again(&mut self, account: Account, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.piece = None;
        self.hold()?;
        if self.undone.contains(&account.import) {
            return Err(IngestError::UndoneMeanwhile);
        }
        let Account { import: reader, said, messages, attachments, evidence, memories, newest: _ } = account;
        for (counts, more) in
            [(&mut record.conversations, said.len() as u64), (&mut record.messages, messages)]
        {
            counts.found += more;
            counts.unchanged += more;
        }
        record.attachments += attachments;
        self.readers.insert(reader);
        self.evidence += evidence.len() as u64;
        self.touched.extend(memories.iter().map(|id| key_of(id)));
        self.again.extend(evidence);
        for key in said {
            if self.says(key) {
                // The commit lock stays held: the whole account that was counted has to be recorded.
                self.store_changes(record)?;
            }
        }
        Ok(())
    }

    /// Records that this import brought the part; returns true if a page is full and should be stored soon.
    pub(super) fn says(&mut self, key: Key) -> bool {
        // The part counts from now on, even if an import that brought it earlier was undone.
        self.left_out.remove(&key);
        let page = self.said.add(key).filter(|_| !self.dry_run);
        let full = page.is_some();
        self.changes.extend(page);
        full
    }

    /// Caches a piece in the batch that stores its records. A piece with evidence is cached at the end, when its
    /// evidence is stored.
    fn remember(&mut self, mut known: Known) -> Result<(), IngestError> {
        let Some(import) = self.origin.import.filter(|_| !self.dry_run) else { return Ok(()) };
        known.account.import = import;
        let Some([said, evidence]) = self.piece.take() else { return Ok(()) };
        (known.account.said, known.account.evidence) = (said, evidence);
        let value = known.value().map_err(|_| IngestError::Unencodable { what: "the account of a piece" })?;
        if known.account.evidence.is_empty() {
            self.bytes += known.note.len();
            self.changes.push(memo::change(known.digest, value));
        } else {
            let mut key = Key::default();
            key.copy_from_slice(&known.digest[..16]);
            self.late.insert(key, &[known.digest.as_slice(), &value].concat())?;
        }
        Ok(())
    }

    /// Caches the pieces whose evidence is stored by now.
    pub(super) fn remember_late(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        let late = std::mem::take(&mut self.late);
        let mut batch = Vec::new();
        late.each(|_, piece| {
            if let Some((digest, value)) = piece.split_first_chunk::<32>() {
                batch.push(memo::change(*digest, value.to_vec()));
            }
            if batch.len() == LATE_PIECES { self.commit(std::mem::take(&mut batch), record) } else { Ok(()) }
        })?;
        if batch.is_empty() { Ok(()) } else { self.commit(batch, record) }
    }

    /// Holds evidence back until the end, so that it is stored together with the memories that follow from it, and no
    /// other import counts those as its own.
    fn evidence(&mut self, witnesses: Vec<Witness>) -> Result<(), IngestError> {
        for witness in witnesses {
            self.evidence += 1;
            self.touched.extend(memories_of(&witness.claim).iter().map(|id| key_of(id)));
            if !successors(&witness.claim).is_empty() {
                self.open.push(witness);
                continue;
            }
            let (key, json) = witness.encode().map_err(|_| IngestError::Unencodable { what: "evidence" })?;
            if let Some([_, evidence]) = &mut self.piece {
                evidence.push(key);
            }
            self.reports.insert(key, &json)?;
        }
        Ok(())
    }

    /// Adds a change to the batch.
    pub(super) fn add(&mut self, change: Change, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.bytes += weight(&change);
        self.changes.push(change);
        if self.bytes >= BATCH_BYTES {
            // The commit lock stays held, as the caller is still working with the records that it looked up.
            let changes = std::mem::take(&mut self.changes);
            self.bytes = 0;
            self.commit(changes, record)?;
        }
        Ok(())
    }

    /// Commits everything that was added. Durable when this returns.
    pub(super) fn flush(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.say_groups(record)?;
        self.store_batch(record)
    }

    /// Commits the batch and releases the commit lock.
    fn store_batch(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.store_changes(record)?;
        self.held = None;
        Ok(())
    }

    /// Commits the batch. The commit lock stays held.
    fn store_changes(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        // The entry that this import brought the records is in the same commit, as an undo would not find them
        // otherwise.
        let page = self.said.rest().filter(|_| !self.dry_run);
        self.changes.extend(page);
        if std::mem::take(&mut self.moved) {
            self.changes.push(memories::unsettled(&record.id));
        }
        let changes = std::mem::take(&mut self.changes);
        self.bytes = 0;
        self.pending.clear();
        if changes.is_empty() { Ok(()) } else { self.commit(changes, record) }
    }

    /// Commits the batch and releases the commit lock if it is held: no record arrives at present, and maybe none will.
    /// Conversations that wait for others of their family keep waiting, and block nobody.
    pub(super) fn let_others(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.begin_page(record)?;
        if self.held.is_some() { self.store_batch(record) } else { Ok(()) }
    }

    /// Commits `changes` as one batch.
    pub(super) fn commit(
        &mut self,
        changes: Vec<Change>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let batch = Batch { origin: self.origin.clone(), changes };
        let raises = batch.raises_revision();
        self.store.expect_readers(self.pace.asked_lately());
        let committed = self.store.commit(batch);
        self.store.expect_readers(true);
        let revision = committed?;
        if raises {
            let revision = revision.get();
            let first = record.revisions.map_or(revision, |[first, _]| first);
            record.revisions = Some([first, revision]);
        }
        Ok(())
    }

    /// Fails once the import is cancelled.
    pub(super) fn wanted(&self) -> Result<(), IngestError> {
        if self.cancel.cancelled() { Err(IngestError::Cancelled) } else { Ok(()) }
    }

    /// Takes the commit lock if it is not held. A change by hand that a full disk left incomplete is completed first,
    /// as this import may be about to replace the mark that records it by its own.
    pub(super) fn hold(&mut self) -> Result<(), IngestError> {
        if self.held.is_none() {
            self.held = Some(self.pen.take(&self.cancel).ok_or(IngestError::Cancelled)?);
            if !self.dry_run {
                hand::complete_owed(self.store)?;
            }
            self.undone = lineage::undone(self.store)?;
            self.left_out = lineage::left_out(self.store, Brought::Parts, &self.undone)?;
        }
        Ok(())
    }

    fn spill(&mut self, skip: Skip, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.spilled.push(skip);
        if self.spilled.len() >= super::ledger::ISSUES_PER_PAGE {
            self.spill_page(record)?;
        }
        Ok(())
    }

    /// Writes the remaining issues.
    pub(super) fn spill_page(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        let page = std::mem::take(&mut self.spilled);
        if !page.is_empty() && !self.dry_run {
            super::ledger::put_issues(self.store, self.origin.import, self.pages, &page)?;
            self.pages += 1;
            record.issue_pages = self.pages;
        }
        self.begun = 0;
        Ok(())
    }

    /// Writes an incomplete page of issues; it is written again when it is full.
    fn begin_page(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        if self.spilled.len() > self.begun && !self.dry_run {
            super::ledger::put_issues(self.store, self.origin.import, self.pages, &self.spilled)?;
            self.begun = self.spilled.len();
            record.issue_pages = self.pages + 1;
        }
        Ok(())
    }
}

/// Returns the approximate bytes that a change stores.
fn weight(change: &Change) -> usize {
    let Change::Conversation(write) = change else { return 0 };
    let bodies = write.messages.iter().map(|message| match message {
        MessageWrite::Put { body, .. } => body.len(),
        MessageWrite::Keep { .. } => 0,
    });
    bodies.sum()
}

/// Returns whether a refusal concerns the contents of a record; all other errors concern the store.
pub(super) fn of_the_record(error: &StoreError) -> bool {
    matches!(error, StoreError::TooLarge { .. } | StoreError::IdCollision { .. } | StoreError::Twice { .. })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
