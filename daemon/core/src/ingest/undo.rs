//! Undoes an import, or redoes it: what is shown becomes what it would be if the import had never been made, or had not
//! been undone. The history is kept.
//!
//! First, the ledger records that the import no longer counts. Everything written after that follows from this entry,
//! in batches, and can be repeated from any point: an undo that was interrupted by a crash is completed by the next
//! start of the program; one that was cancelled is completed by the next start or by the same command.

mod rows;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_merge::evidence::VectorIdentity;
use satchel_pam::conversation::ImportMetadata;
use satchel_source::CancelToken;
use satchel_store::{Change, ConversationRecord, Origin, Store};
use uuid::Uuid;

use super::{
    Inner,
    error::IngestError,
    ledger,
    receipt::{ImportRecord, ImportStatus},
    session::Session,
    write::{
        conversation::{import_of, replayed, withdrawal_of},
        size_estimate,
    },
};
use crate::{
    conversation_record::{self, WriteLabels, write_of},
    derived::{UNDO_REASON, relation_changes, withdrawals},
    provenance::{
        self, ActiveEvidence, Contribution, ContributionKind, ConversationProvenance, EvidenceKey,
        UndoRecord, UndoneImports,
        vectors::{self, VectorKey},
    },
    series::{LocalSeries, payload::UndoPayload},
};

/// Conversations per commit, and between two checks for cancellation.
const BATCH: usize = 100;
/// Approximate bytes of conversations per commit.
const BATCH_BYTES: usize = 8 << 20;
/// Memories and relations per commit.
const BATCH_CHANGES: usize = 400;

/// The direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoDirection {
    /// The records of the import no longer count.
    Undo,
    /// They count again.
    Redo,
}

/// The effect on the records of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UndoEffect {
    /// No longer shown, as nothing else brought them.
    pub withdrawn: u64,
    /// Shown again.
    pub restored: u64,
    /// Shown differently, according to all other evidence.
    pub changed: u64,
}

impl UndoEffect {
    fn total(&self) -> u64 {
        self.withdrawn + self.restored + self.changed
    }
}

/// The result of an undo or redo, or of a dry run of one.
#[derive(Clone, Debug, PartialEq)]
pub struct UndoOutcome {
    /// The import in its state afterwards.
    pub import: ImportRecord,
    pub conversations: UndoEffect,
    pub memories: UndoEffect,
    pub relations: UndoEffect,
    /// The first and the last revision that the operation wrote.
    pub revisions: Option<[u64; 2]>,
    /// Whether it was cancelled; the same command completes it.
    pub cancelled: bool,
}

impl UndoOutcome {
    /// Returns the number of records that change.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.conversations.total() + self.memories.total() + self.relations.total()
    }
}

/// A request to undo or redo an import.
#[derive(Clone, Copy, Debug)]
pub struct UndoRequest<'a> {
    /// The id of the import.
    pub id: &'a str,
    pub direction: UndoDirection,
    /// Report what would happen, but store nothing.
    pub dry_run: bool,
    /// The number of changes that a dry run reported; `None` to accept any number.
    pub expected: Option<u64>,
}

impl Inner {
    /// Undoes an import, or redoes one that was undone. Durable when this returns.
    ///
    /// # Errors
    /// [`IngestError::Refused`], whose message says what to do, if the import is not in a state that allows it; or an
    /// error of the store.
    pub(super) fn undo_or_redo(
        &self,
        request: UndoRequest<'_>,
        cancel: &CancelToken,
    ) -> Result<Option<UndoOutcome>, IngestError> {
        let Some(record) = ledger::get(&self.store, request.id)? else { return Ok(None) };
        let import = Uuid::parse_str(&record.id)
            .map_err(|_| IngestError::Unencodable { what: "the id of an import" })?;
        allowed(&self.store, &record, import, request.direction)?;
        // Two concurrent undos would each write records that the other has just made outdated.
        let _alone = self.undoing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if request.dry_run || request.expected.is_some() {
            let preview = UndoRun::new(self, import, &record, request.direction, true, cancel)?.run()?;
            if request.dry_run {
                return Ok(Some(preview));
            }
            if request.expected != Some(preview.records()) {
                return Err(IngestError::Refused(format!(
                    "it would change {} records now, no longer {}; look at it again with a dry run",
                    preview.records(),
                    request.expected.unwrap_or(0)
                )));
            }
        }
        let (undone, at) = (request.direction == UndoDirection::Undo, self.clock.now_micros());
        let note = UndoRecord { import, undone, done: false, at, completed_at: None, revisions: None };
        self.record_undo(&note, cancel)?;
        satchel_failpoints::reached("undo recorded");
        self.follow(note, &record, cancel).map(Some)
    }

    /// Records that an import counts or does not count from now on, in the ledger and in the store's own series. Durable when this
    /// returns.
    fn record_undo(&self, note: &UndoRecord, cancel: &CancelToken) -> Result<(), IngestError> {
        if !LocalSeries::exists(&self.store)? {
            return Ok(note.put(&self.store)?);
        }
        let _guard = self.write_lock.lock(cancel).ok_or(IngestError::Cancelled)?;
        let series = LocalSeries::load(&self.store, &self.series_key)?;
        let mut series = series.ok_or(IngestError::Unencodable { what: "the series of this store" })?;
        let UndoRecord { import, undone, at, .. } = *note;
        series.append_undo(UndoPayload { import, undone, at })?;
        let (mut changes, applied) = series.into_changes(&self.store)?;
        changes.push(note.to_change()?);
        changes.extend(applied);
        Ok(self.commit_entries(changes)?)
    }

    /// Brings the records in line with `note`, from whatever point an earlier run reached.
    pub(super) fn follow(
        &self,
        note: UndoRecord,
        record: &ImportRecord,
        cancel: &CancelToken,
    ) -> Result<UndoOutcome, IngestError> {
        let direction = if note.undone { UndoDirection::Undo } else { UndoDirection::Redo };
        let mut outcome = UndoRun::new(self, note.import, record, direction, false, cancel)?.run()?;
        if !outcome.cancelled {
            satchel_failpoints::reached("undo done");
            UndoRecord { done: true, revisions: outcome.revisions, ..note }.put(&self.store)?;
            satchel_failpoints::reached("undo confirmed");
        }
        if let Some(now) = ledger::get(&self.store, &record.id)? {
            outcome.import = now;
        }
        Ok(outcome)
    }
}

/// Checks that the import is in a state that allows the operation.
fn allowed(
    store: &Store,
    record: &ImportRecord,
    import: Uuid,
    direction: UndoDirection,
) -> Result<(), IngestError> {
    let refused = |reason: String| Err(IngestError::Refused(reason));
    let id = &record.id;
    match record.status {
        ImportStatus::Running => {
            return refused(format!("import {id} still runs; `satchel imports cancel {id}` stops it"));
        }
        ImportStatus::Unchanged => {
            let same = record.same_as.as_deref().unwrap_or("an earlier one");
            return refused(format!(
                "import {id} brought nothing: its bytes had come with {same}; that is the one to undo"
            ));
        }
        ImportStatus::Unrecognized | ImportStatus::Waiting => {
            return refused(format!("import {id} brought nothing"));
        }
        ImportStatus::Completed
        | ImportStatus::CompletedWithSkips
        | ImportStatus::Failed
        | ImportStatus::Cancelled
        | ImportStatus::Undone => {}
    }
    let known = UndoRecord::load(store, import)?;
    match (direction, known) {
        (UndoDirection::Undo, Some(UndoRecord { undone: true, done: true, .. })) => refused(format!(
            "import {id} is undone already; `satchel imports redo {id}` brings back what it brought"
        )),
        (UndoDirection::Redo, None | Some(UndoRecord { undone: false, done: true, .. })) => {
            refused(format!("import {id} is not undone; there is nothing to bring back"))
        }
        _ => Ok(()),
    }
}

/// One undo or redo, from the first batch to the last.
struct UndoRun<'a> {
    inner: &'a Inner,
    import: Uuid,
    /// The imports that do not count, before and after.
    before: UndoneImports,
    after: UndoneImports,
    /// The parts of conversations that only those imports brought, as of the current batch.
    left_out: [BTreeSet<EvidenceKey>; 2],
    /// For each part that counts, the newest import that brought it; looked up on first use.
    newest: OnceCell<BTreeMap<EvidenceKey, Uuid>>,
    session: Session<'a>,
    outcome: UndoOutcome,
    /// Collects the revisions.
    scratch: ImportRecord,
}

impl<'a> UndoRun<'a> {
    fn new(
        inner: &'a Inner,
        import: Uuid,
        record: &ImportRecord,
        direction: UndoDirection,
        dry_run: bool,
        cancel: &CancelToken,
    ) -> Result<Self, IngestError> {
        let (mut before, mut after) = (provenance::undone_imports(&inner.store)?, UndoneImports::new());
        before.remove(&import);
        after.clone_from(&before);
        let without = if direction == UndoDirection::Undo { &mut after } else { &mut before };
        without.insert(import);
        let origin = Origin {
            import: Some(import),
            actor: "owner".to_owned(),
            reason: UNDO_REASON.to_owned(),
            at_micros: inner.clock.now_micros(),
        };
        let lock = (&*inner.write_lock, cancel.clone(), inner.plugins.pace().clone());
        let session = Session::new(&inner.store, lock, origin, dry_run);
        let outcome = UndoOutcome {
            import: record.clone(),
            conversations: UndoEffect::default(),
            memories: UndoEffect::default(),
            relations: UndoEffect::default(),
            revisions: None,
            cancelled: false,
        };
        let scratch = ImportRecord { revisions: None, ..record.clone() };
        let (left_out, newest) = ([BTreeSet::new(), BTreeSet::new()], OnceCell::new());
        Ok(Self { inner, import, before, after, left_out, newest, session, outcome, scratch })
    }

    /// Runs to the end, or until it is cancelled.
    fn run(mut self) -> Result<UndoOutcome, IngestError> {
        self.outcome.cancelled = match self.process_all() {
            Err(IngestError::Cancelled) => true,
            outcome => outcome.map(|()| false)?,
        };
        self.outcome.revisions = self.scratch.revisions;
        Ok(self.outcome)
    }

    fn process_all(&mut self) -> Result<(), IngestError> {
        // An import that looked up records before the undo was noted has committed by the time we get the write lock;
        // the next import sees the note.
        self.session.lock()?;
        self.session.unlock();
        let contributed =
            provenance::contributed_keys(&self.inner.store, ContributionKind::Contributions, self.import)?;
        let contributed: BTreeSet<EvidenceKey> = contributed.into_iter().collect();
        let mut after = None;
        loop {
            let page = ConversationProvenance::page(&self.inner.store, after.as_ref())?;
            let ids: Vec<&String> = page
                .items
                .iter()
                .filter(|(_, family)| family.contains_any(&contributed))
                .map(|(id, _)| id)
                .collect();
            for some in ids.chunks(BATCH) {
                self.session.check_cancelled()?;
                self.conversations(some)?;
                satchel_failpoints::reached("undo of conversations stored");
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.session.check_cancelled()?;
        self.memories()
    }

    /// Processes one batch of conversations. Nobody else writes between the look-up and the commit.
    fn conversations(&mut self, ids: &[&String]) -> Result<(), IngestError> {
        self.session.lock()?;
        let left_out =
            |undone| provenance::excluded_keys(&self.inner.store, ContributionKind::Contributions, undone);
        self.left_out = [left_out(&self.before)?, left_out(&self.after)?];
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for id in ids {
            for change in self.changes(id)? {
                bytes += size_estimate(&change);
                batch.push(change);
                if bytes >= BATCH_BYTES {
                    bytes = 0;
                    self.commit(std::mem::take(&mut batch))?;
                }
            }
        }
        self.commit(batch)?;
        self.session.unlock();
        Ok(())
    }

    /// Commits `changes`, unless this is a dry run.
    fn commit(&mut self, changes: Vec<Change>) -> Result<(), IngestError> {
        if self.session.dry_run || changes.is_empty() {
            return Ok(());
        }
        self.session.commit(changes, &mut self.scratch)
    }

    /// Returns the changes to the conversations of the family `id`.
    fn changes(&mut self, id: &str) -> Result<Vec<Change>, IngestError> {
        let store = &self.inner.store;
        let stored = store.conversation(id, None)?;
        let family = ConversationProvenance::load(store, id, stored.as_ref())?;
        let [before, after] = &self.left_out;
        if family.included(before, false).eq(family.included(after, false)) {
            return Ok(Vec::new());
        }
        if family.consists_of_rows() {
            return self.rows(id, family);
        }
        Ok(self.conversation(id, stored, &family)?.into_iter().collect())
    }

    fn conversation(
        &mut self,
        id: &str,
        stored: Option<ConversationRecord>,
        family: &ConversationProvenance,
    ) -> Result<Option<Change>, IngestError> {
        let (store, [_, after]) = (&self.inner.store, &self.left_out);
        let planned = replayed(store, id, family.included(after, false))?;
        let shown = stored.as_ref().filter(|stored| !stored.withdrawn);
        let effect = &mut self.outcome.conversations;
        match (planned, shown) {
            (None, None) => Ok(None),
            (None, Some(_)) => {
                effect.withdrawn += 1;
                Ok(stored.map(withdrawal_of))
            }
            (Some(planned), Some(shown))
                if conversation_record::known(shown).same_content(&planned.state()) =>
            {
                Ok(None)
            }
            (Some(planned), shown) => {
                if shown.is_some() {
                    effect.changed += 1;
                } else {
                    effect.restored += 1;
                }
                let Some(stored) = &stored else { return Ok(None) };
                let counted = family.included(after, false).last();
                let by = counted.map(|part| self.import_of_part(part)).transpose()?.flatten();
                let import = by.or_else(|| stored.header.import_metadata.clone());
                let platform = stored.header.provider.name.clone();
                let import = import.unwrap_or_default();
                let labels = WriteLabels { id, platform: &platform, fallback: 0, import };
                Ok(Some(write_of(planned, labels, Some(stored))))
            }
        }
    }

    /// Returns the import metadata of a part: that of the newest import that counts and brought it.
    fn import_of_part(&self, part: &Contribution) -> Result<Option<ImportMetadata>, IngestError> {
        let store = &self.inner.store;
        if self.newest.get().is_none() {
            // Another import may have brought it since; it does not matter which of them is named.
            drop(self.newest.set(provenance::newest_imports(
                store,
                ContributionKind::Contributions,
                &self.after,
            )?));
        }
        let by = self.newest.get().zip(part.key()).and_then(|(newest, key)| newest.get(&key));
        let by = by.map(|by| ledger::get(store, &by.to_string())).transpose()?.flatten();
        Ok(by.as_ref().map(import_of))
    }

    /// Updates memories and relations to follow from the evidence that counts.
    fn memories(&mut self) -> Result<(), IngestError> {
        self.session.lock()?;
        let store = &self.inner.store;
        let stop = || self.session.cancel.cancelled();
        let counted =
            |undone| ActiveEvidence::load_until(store, undone, &stop)?.ok_or(IngestError::Cancelled);
        let untrusted_ids = |counted: &ActiveEvidence| -> BTreeSet<String> {
            let documents = counted.documents.iter().filter(|document| document.untrusted_signer.is_some());
            documents.map(|document| document.memory.id.clone()).collect()
        };
        let (was, had, mut foreign) = {
            let counted = counted(&self.before)?;
            (counted.derive(), vectors::current_vectors(&counted.vectors), untrusted_ids(&counted))
        };
        let counted = counted(&self.after)?;
        foreign.extend(untrusted_ids(&counted));
        let vectors = self.vectors(&had, &vectors::current_vectors(&counted.vectors))?;
        let (now, replayed) = (counted.derive(), counted.implicit_relations());
        let mut changes = withdrawals(store, &was, &now)?;
        let relations = changes.iter().filter(|change| matches!(change, Change::WithdrawRelation(_))).count();
        self.outcome.relations.withdrawn += relations as u64;
        self.outcome.memories.withdrawn += (changes.len() - relations) as u64;
        for id in foreign {
            changes.extend(provenance::record_untrusted_signer(store, &id, now.untrusted.get(&id))?);
        }
        for (id, memory) in now.memories {
            let stored = store.memory(&id, None)?;
            match stored {
                Some(stored) if !stored.withdrawn && stored.memory == memory => continue,
                Some(stored) if !stored.withdrawn => self.outcome.memories.changed += 1,
                Some(_) | None => self.outcome.memories.restored += 1,
            }
            changes.push(Change::Memory(Box::new(memory)));
        }
        let drawn = relation_changes(store, now.relations, &replayed, &self.after)?;
        self.outcome.relations.restored += drawn.len() as u64;
        changes.extend(drawn);
        changes.extend(vectors);
        let mut rest = changes.into_iter().peekable();
        while rest.peek().is_some() && !self.session.dry_run {
            let batch = rest.by_ref().take(BATCH_CHANGES).collect();
            self.session.check_cancelled()?;
            self.commit(batch)?;
            satchel_failpoints::reached("undo of memories stored");
        }
        self.session.unlock();
        Ok(())
    }

    /// Returns the changes that show the vectors which are current without the import, or with it again.
    fn vectors(
        &self,
        was: &BTreeMap<VectorKey, VectorIdentity>,
        now: &BTreeMap<VectorKey, VectorIdentity>,
    ) -> Result<Vec<Change>, IngestError> {
        let mut changes = Vec::new();
        let places: BTreeSet<&VectorKey> = was.keys().chain(now.keys()).collect();
        for place in places.into_iter().filter(|place| was.get(*place) != now.get(*place)) {
            changes.extend(vectors::visibility_changes(
                &self.inner.store,
                place,
                now.get(place),
                BTreeMap::new(),
            )?);
        }
        Ok(changes)
    }
}
