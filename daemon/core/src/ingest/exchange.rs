//! Merges what imports of other stores brought, as if the import had been made here.

use std::{
    collections::BTreeSet,
    sync::{Arc, MutexGuard, PoisonError},
};

use satchel_merge::evidence::{StoredEvidence, memories_of};
use satchel_pam::hash::Sha256Digest;
use satchel_source::CancelToken;
use satchel_store::{Batch, Change, Ledger, LedgerWrite, Origin, Store, record_key};
use uuid::Uuid;

use super::{
    Imports, Inner, erased,
    error::IngestError,
    evidence::encode_evidence,
    ledger,
    normalise::NormalisedConversation,
    receipt::{Counts, HeldBack, ImportRecord},
    records::{DeferredRecords, ImportItem},
    session::Session,
    write::{Writer, conversation::import_of},
};
use crate::{
    edits::Edits,
    provenance::{EvidenceItem, EvidenceKey, PurgedData, UndoRecord},
    recording::Recordings,
    series::{SeriesKey, payload::ContributionPayload},
    write_lock::WriteGuard,
};

/// The actor in the history of what was exchanged.
pub(crate) const ACTOR: &str = "sync";
/// The reason in the history of what another store imported.
pub(crate) const REASON: &str = "imported in another store";

impl Imports {
    /// Returns the state that the exchange of changes shares with imports and edits.
    pub(crate) fn shared(&self) -> &Arc<Inner> {
        &self.0
    }
}

impl Inner {
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn edits(&self) -> &Edits {
        &self.edits
    }

    pub(crate) fn recordings(&self) -> &Recordings {
        &self.recordings
    }

    pub(crate) fn series_key(&self) -> &SeriesKey {
        &self.series_key
    }

    pub(crate) fn now_micros(&self) -> i64 {
        self.clock.now_micros()
    }

    /// Waits until nobody else writes.
    pub(crate) fn lock_writes(&self) -> Option<WriteGuard<'_>> {
        self.write_lock.lock(&CancelToken::new())
    }

    /// Waits until nobody else exchanges changes.
    pub(crate) fn lock_exchange(&self) -> MutexGuard<'_, ()> {
        self.exchanging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits entries of ledgers. Durable when this returns.
    pub(crate) fn commit_entries(&self, changes: Vec<Change>) -> Result<(), satchel_store::StoreError> {
        let origin =
            Origin { actor: ACTOR.to_owned(), at_micros: self.clock.now_micros(), ..Origin::default() };
        self.store.commit(Batch { origin, changes }).map(drop)
    }

    /// Waits until nobody else undoes an import.
    pub(crate) fn lock_undos(&self) -> MutexGuard<'_, ()> {
        self.undoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the records in line with the undo or redo of `import` that the ledger has, if it has not taken effect or `again` is set.
    /// Returns false if that was cancelled.
    pub(crate) fn follow_undo(
        &self,
        import: Uuid,
        again: bool,
        cancel: &CancelToken,
    ) -> Result<bool, IngestError> {
        let _alone = self.lock_undos();
        let Some(record) = ledger::get(&self.store, &import.to_string())? else { return Ok(true) };
        match UndoRecord::load(&self.store, import)?.filter(|note| again || !note.done) {
            Some(note) => Ok(!self.follow(UndoRecord { done: false, ..note }, &record, cancel)?.cancelled),
            None => Ok(true),
        }
    }
}

/// The merge of one import of another store.
pub(crate) struct ImportMerge<'a> {
    inner: &'a Inner,
    writer: Writer<'a>,
    /// Counts what is new here; the receipt keeps the counts of the store that made the import.
    counts: ImportRecord,
    purged: PurgedData,
}

impl<'a> ImportMerge<'a> {
    /// Begins to merge the import `record`.
    ///
    /// # Errors
    /// When the id of the import is no UUID.
    pub(crate) fn begin(
        inner: &'a Inner,
        record: &ImportRecord,
        cancel: &CancelToken,
    ) -> Result<Self, IngestError> {
        let import = Uuid::parse_str(&record.id)
            .map_err(|_| IngestError::Unencodable { what: "the id of an import" })?;
        let origin = Origin {
            import: Some(import),
            actor: record.plugin.clone().unwrap_or_default(),
            reason: REASON.to_owned(),
            at_micros: record.started_at,
        };
        let lock = (&*inner.write_lock, cancel.clone(), inner.plugins.pace().clone());
        let session = Session::new(&inner.store, lock, origin, false);
        let writer = Writer::new(session, import_of(record));
        Ok(Self { inner, writer, counts: uncounted(record), purged: PurgedData::load(&inner.store)? })
    }

    /// Merges a contribution, but for what was erased here.
    ///
    /// # Errors
    /// When a message cannot be decoded, or the store returns an error.
    pub(crate) fn add_contribution(&mut self, contribution: ContributionPayload) -> Result<(), IngestError> {
        let ContributionPayload { conversation: id, platform, import, untrusted, mut report, nodes } =
            contribution;
        let mut nodes = ContributionPayload::decode_nodes(nodes)
            .map_err(|_| IngestError::Unencodable { what: "a message of another store" })?;
        if !self.purged.is_empty() {
            let all = nodes.len();
            nodes.retain(|node| !self.purged.contains_row(&node.id));
            if self.purged.contains_conversation(&id) || (nodes.is_empty() && all > 0) {
                return Ok(());
            }
            if nodes.len() < all {
                // Importers make titles of the first words, so it may quote an erased message.
                report.title = None;
            }
        }
        let weight = nodes.iter().map(|node| node.bytes.len() + 512).sum();
        let import = Some(import);
        let conversation =
            NormalisedConversation { id, platform, import, foreign: true, untrusted, report, nodes, weight };
        self.writer.write(ImportItem::Conversation(Box::new(conversation)), &mut self.counts)
    }

    /// Merges a piece of evidence, which is stored under `key`, but for what was erased here.
    ///
    /// # Errors
    /// When the temporary file for what does not fit into memory fails.
    pub(crate) fn add_evidence(
        &mut self,
        key: EvidenceKey,
        json: &[u8],
        item: &EvidenceItem,
    ) -> Result<(), IngestError> {
        if !self.purged.is_empty() && self.purged.redact_evidence(json)?.is_some() {
            let EvidenceItem::Stored(evidence) = item else { return Ok(()) };
            let mut left = vec![StoredEvidence::clone(evidence)];
            erased::evidence(&self.purged, &mut left);
            return left.into_iter().try_for_each(|left| {
                let (key, json) = encode_evidence(&left)?;
                let memories = memories_of(&left.claim);
                let memories = memories.iter().map(|id| record_key(id));
                self.writer.add_encoded_evidence(key, &json, memories, false)
            });
        }
        let memories = match item {
            EvidenceItem::Stored(evidence) => memories_of(&evidence.claim),
            EvidenceItem::Document(document) => vec![document.memory.id.clone()],
            EvidenceItem::Edge(_) | EvidenceItem::Vector(_) | EvidenceItem::Edit(_) => Vec::new(),
        };
        let is_document = matches!(item, EvidenceItem::Document(_));
        let memories = memories.iter().map(|id| record_key(id));
        self.writer.add_encoded_evidence(key, json, memories, is_document)
    }

    /// Derives memories, and stores the receipt under its `sources` together with `entries`. Durable when this returns.
    ///
    /// # Errors
    /// When the store returns an error, or the merge was cancelled. It can be repeated then.
    pub(crate) fn finish(
        self,
        record: ImportRecord,
        sources: Vec<String>,
        entries: Vec<Change>,
    ) -> Result<(), IngestError> {
        let Self { inner, mut writer, mut counts, .. } = self;
        writer.flush(&mut counts)?;
        writer.derive(DeferredRecords::default(), &mut counts)?;
        writer.store_skips(&mut counts)?;
        // What it lacked may have come in a later merge.
        let before = ledger::get(&inner.store, &record.id)?.and_then(|known| known.revisions);
        let revisions = match (before, counts.revisions) {
            (Some([first, _]), Some([_, last])) => Some([first, last]),
            (before, now) => now.or(before),
        };
        let record = ImportRecord { revisions, ..record };
        let (id, at_micros) = (record.id.clone(), record.started_at);
        let value =
            serde_json::to_vec(&record).map_err(|_| IngestError::Unencodable { what: "a receipt" })?;
        let mut changes = entries;
        changes.push(Change::Ledger(ledger::size_note(&record)));
        let receipt = LedgerWrite::Entry { ledger: Ledger::Import, id: id.clone(), at_micros, value };
        changes.push(Change::Ledger(receipt));
        let own: BTreeSet<String> = sources.into_iter().filter(|source| is_identity(source)).collect();
        for source in own {
            if ledger::lacks_pieces(&inner.store, &record)?
                && ledger::is_imported_here(&inner.store, &source)?
            {
                continue;
            }
            let (ledger, value) = (Ledger::Source, id.clone().into_bytes());
            changes.push(Change::Ledger(LedgerWrite::Entry { ledger, id: source, at_micros, value }));
        }
        Ok(inner.commit_entries(changes)?)
    }
}

/// Returns whether this is the identity of a source, a digest, and no other entry of its ledger.
fn is_identity(source: &str) -> bool {
    source.parse::<Sha256Digest>().is_ok()
}

/// Returns a receipt that has counted nothing yet.
fn uncounted(record: &ImportRecord) -> ImportRecord {
    ImportRecord {
        conversations: Counts::default(),
        messages: Counts::default(),
        memories: Counts::default(),
        embeddings: Counts::default(),
        attachments: 0,
        skipped: Vec::new(),
        warnings: Vec::new(),
        warnings_found: 0,
        issue_pages: 0,
        revisions: None,
        differences: Vec::new(),
        differences_found: 0,
        would_change: HeldBack::default(),
        ..record.clone()
    }
}
