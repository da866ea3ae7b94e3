//! Plans and commits what a run gives, in bounded batches of whole conversations, and counts it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use satchel_pam::{
    conversation::ImportMetadata,
    record::{RecordKind, Skip},
};
use satchel_store::{Batch, Change, ConversationRecord, EvidenceWrite, Origin, Store, StoreError};
use uuid::Uuid;

use super::{
    IngestError,
    memo::{Account, Known},
    normalise::Conversation,
    receipt::ImportRecord,
    run::Normalised,
};
use crate::plan::{
    assemble::{self, Labels},
    body::Body,
    conversation::unite,
    evidence::{Document, Witness, memories_of},
};

/// Encoded bytes of one batch; each is one revision and one fsync.
const BATCH_BYTES: usize = 8 << 20;
/// Conversations of one batch.
const BATCH_CONVERSATIONS: usize = 256;
/// Pieces that are remembered at once when their evidence is stored.
const LATE_PIECES: usize = 400;

/// Looks a conversation up and commits its union, with nobody in between.
pub(super) struct Writer<'a> {
    store: &'a Store,
    /// Guards the way from a look-up to its commit: two imports may hold the same conversation.
    turn: &'a Mutex<()>,
    held: Option<MutexGuard<'a, ()>>,
    pub(super) origin: Origin,
    pub(super) import: ImportMetadata,
    pub(super) dry_run: bool,
    changes: Vec<Change>,
    bytes: usize,
    pending: BTreeSet<String>,
    /// Conversations and messages as a dry run would leave them, so that a record met twice counts once as new.
    pub(super) touched: BTreeSet<String>,
    /// Evidence that is not stored yet.
    pub(super) witnesses: Vec<Witness>,
    pub(super) documents: Vec<Document>,
    pub(super) evidence: u64,
    /// Pieces that are remembered when their evidence is stored.
    late: Vec<Change>,
    spilled: Vec<Skip>,
    pages: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        store: &'a Store,
        turn: &'a Mutex<()>,
        origin: Origin,
        import: ImportMetadata,
        dry_run: bool,
    ) -> Self {
        Self {
            store,
            turn,
            held: None,
            origin,
            import,
            dry_run,
            changes: Vec::new(),
            bytes: 0,
            pending: BTreeSet::new(),
            touched: BTreeSet::new(),
            witnesses: Vec::new(),
            documents: Vec::new(),
            evidence: 0,
            late: Vec::new(),
            spilled: Vec::new(),
            pages: 0,
        }
    }

    /// Takes one record into the batch.
    pub(super) fn take(&mut self, item: Normalised, record: &mut ImportRecord) -> Result<(), IngestError> {
        match item {
            Normalised::Conversation(conversation) => self.conversation(*conversation, record)?,
            Normalised::Evidence(witnesses) => self.evidence(witnesses),
            Normalised::Document(document) => {
                self.evidence += 1;
                self.touched.insert(document.memory.id.clone());
                self.documents.push(*document);
            }
            Normalised::Skip(skip) => {
                if let Some(skip) = record.skip(skip) {
                    self.spill(skip, record)?;
                }
            }
            Normalised::Warning(warning) => record.warn(warning),
            Normalised::Stored => record.attachments += 1,
            Normalised::Known(known) => self.remember(*known)?,
            Normalised::Again(account) => self.again(*account, record),
        }
        if self.bytes >= BATCH_BYTES || self.pending.len() >= BATCH_CONVERSATIONS {
            self.flush(record)?;
        }
        Ok(())
    }

    fn conversation(
        &mut self,
        conversation: Conversation,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let Conversation { id, platform, import, foreign, report, nodes, weight } = conversation;
        if self.pending.contains(&id) {
            self.flush(record)?;
        }
        self.hold();
        let stored = self.store.conversation(&id, None)?;
        let known = stored.as_ref().map(assemble::known);
        let fresh = known.is_none();
        let found = nodes.len() as u64;
        let mut bodies = StoredBodies { store: self.store, record: stored.as_ref(), loaded: None };
        let planned = unite(report, nodes, known, &mut |message| bodies.get(message))?;
        let (messages, changed) = (planned.messages, planned.changed);
        let mut change = None;
        if changed {
            let import = import.unwrap_or_else(|| self.import.clone());
            let labels = Labels { id: &id, platform: &platform, fallback: 0, import };
            change = Some(Change::Conversation(Box::new(assemble::to_write(planned, labels))));
        }
        if foreign && let Some(refusal) = self.refusal(change.as_ref())? {
            return self.refuse(&id, found, refusal, record);
        }
        record.conversations.found += 1;
        record.messages.found += found;
        record.messages.new += messages.new;
        record.messages.updated += messages.updated;
        record.messages.unchanged += messages.unchanged;
        match (fresh, changed) {
            (true, _) => record.conversations.new += 1,
            (false, true) => record.conversations.updated += 1,
            (false, false) => record.conversations.unchanged += 1,
        }
        if let Some(change) = change.filter(|_| !self.dry_run) {
            self.changes.push(change);
            self.bytes += weight;
            self.pending.insert(id);
        }
        Ok(())
    }

    /// Why the store would not take a change; an error is none of the change's own.
    fn refusal(&self, change: Option<&Change>) -> Result<Option<StoreError>, IngestError> {
        match change.map_or(Ok(()), |change| self.store.accepts(std::slice::from_ref(change))) {
            Ok(()) => Ok(None),
            Err(refusal) if of_the_record(&refusal) => Ok(Some(refusal)),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts a conversation that the store would not take, and its messages, as left out.
    fn refuse(
        &mut self,
        id: &str,
        messages: u64,
        refusal: StoreError,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        record.messages.found += messages;
        record.messages.skipped += messages;
        let (locator, reason) = (format!("conversation {id:?}"), refusal.to_string());
        self.take(Normalised::Skip(Skip { kind: RecordKind::Conversation, locator, reason }), record)
    }

    /// Counts what an earlier import read: all of it is stored.
    fn again(&mut self, account: Account, record: &mut ImportRecord) {
        let Account { import: _, conversations, messages, attachments, evidence, memories, newest: _ } =
            account;
        for (counts, more) in
            [(&mut record.conversations, conversations.len() as u64), (&mut record.messages, messages)]
        {
            counts.found += more;
            counts.unchanged += more;
        }
        record.attachments += attachments;
        self.evidence += evidence;
        self.touched.extend(memories);
    }

    /// Remembers a piece with the batch that stores its records; one with evidence when that is stored, at the end.
    fn remember(&mut self, mut known: Known) -> Result<(), IngestError> {
        let Some(import) = self.origin.import.filter(|_| !self.dry_run) else { return Ok(()) };
        known.account.import = import;
        let late = known.account.evidence > 0;
        let change =
            known.change().map_err(|_| IngestError::Unencodable { what: "the account of a piece" })?;
        if late {
            self.late.push(change);
        } else {
            self.bytes += known.note.len();
            self.changes.push(change);
        }
        Ok(())
    }

    /// Remembers the pieces whose evidence is stored by now.
    pub(super) fn remember_late(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        let late = std::mem::take(&mut self.late);
        for batch in late.chunks(LATE_PIECES) {
            self.commit(batch.to_vec(), record)?;
        }
        Ok(())
    }

    /// Keeps evidence for the end, so that it is stored together with the memories that follow from it, and no other import
    /// counts those as its own.
    fn evidence(&mut self, witnesses: Vec<Witness>) {
        for witness in witnesses {
            self.evidence += 1;
            self.touched.extend(memories_of(&witness.claim));
            self.witnesses.push(witness);
        }
    }

    /// Commits the batch. Durable when this returns.
    pub(super) fn flush(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        let changes = std::mem::take(&mut self.changes);
        self.bytes = 0;
        self.pending.clear();
        if !changes.is_empty() {
            self.commit(changes, record)?;
        }
        self.held = None;
        Ok(())
    }

    /// Commits `changes` as they are.
    pub(super) fn commit(
        &mut self,
        changes: Vec<Change>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let batch = Batch { origin: self.origin.clone(), changes };
        let raises = batch.raises_revision();
        let revision = self.store.commit(batch)?;
        if raises {
            let revision = revision.get();
            let first = record.revisions.map_or(revision, |[first, _]| first);
            record.revisions = Some([first, revision]);
        }
        Ok(())
    }

    pub(super) fn hold(&mut self) {
        if self.held.is_none() {
            self.held = Some(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn spill(&mut self, skip: Skip, record: &mut ImportRecord) -> Result<(), IngestError> {
        self.spilled.push(skip);
        if self.spilled.len() >= super::ledger::ISSUES_PER_PAGE {
            self.spill_page(record)?;
        }
        Ok(())
    }

    /// Writes what is left of the issues.
    pub(super) fn spill_page(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        let page = std::mem::take(&mut self.spilled);
        if !page.is_empty() && !self.dry_run {
            super::ledger::put_issues(self.store, self.origin.import, self.pages, &page)?;
            self.pages += 1;
            record.issue_pages = self.pages;
        }
        Ok(())
    }
}

/// The bodies of a stored conversation, read at once when the first of them is needed.
struct StoredBodies<'a> {
    store: &'a Store,
    record: Option<&'a ConversationRecord>,
    loaded: Option<HashMap<String, Vec<u8>>>,
}

impl StoredBodies<'_> {
    fn get(&mut self, message: &str) -> Result<Body, IngestError> {
        let loaded = match &mut self.loaded {
            Some(loaded) => loaded,
            empty => {
                let bodies = self.record.into_iter().flat_map(|record| self.store.all_bodies(record));
                empty.insert(bodies.collect::<Result<_, _>>()?)
            }
        };
        let bytes = loaded.get(message).map(Vec::as_slice).unwrap_or_default();
        Body::decode(bytes).map_err(|_| IngestError::Unencodable { what: "a stored message" })
    }
}

/// Whether a refusal is about what a record says; all others are about the store.
pub(super) fn of_the_record(error: &StoreError) -> bool {
    matches!(error, StoreError::TooLarge { .. } | StoreError::IdCollision { .. } | StoreError::Twice { .. })
}

/// What stores `witness`.
pub(super) fn evidence_change(witness: &Witness) -> Result<Change, IngestError> {
    let json = serde_json::to_vec(witness).map_err(|_| IngestError::Unencodable { what: "evidence" })?;
    put_evidence(&witness.id, json)
}

/// What stores a piece of evidence under `id`.
pub(super) fn put_evidence(id: &str, json: Vec<u8>) -> Result<Change, IngestError> {
    let id = Uuid::parse_str(id).map_err(|_| IngestError::Unencodable { what: "an evidence id" })?;
    Ok(Change::Evidence(EvidenceWrite { id: id.into_bytes(), json }))
}
