//! Runs one importer over one export: the sandbox on one thread, ids and encoding on a second, the store on a third.

use std::{collections::BTreeMap, sync::Arc, thread};

use satchel_host::{
    Emitted, PieceMemo, Plugin, PluginError, PluginLimits, RunSummary, SinkVerdict, Throttle, WorkerThrottle,
    channel::{self, Sender},
};
use satchel_merge::evidence::{StoredEvidence, memories_of};
use satchel_pam::record::{Evidence, RecordKind, Skip, Source as FileSource};
use satchel_source::{Bundle, CancelToken, FileSet};
use satchel_store::Store;

use super::{
    attachments::AttachmentStore,
    erased::{self, FilterResult},
    error::IngestError,
    normalise::{KeyScope, Normaliser},
    pieces::{self, PieceResult, PieceToCache},
    receipt::ImportRecord,
    records::{DeferredRecords, ImportItem},
    secrets::{self, SecretHandling},
    write::Writer,
};
use crate::provenance::PurgedData;

/// Memory of the queue of encoded records between the second and the third thread, in bytes.
const QUEUE_BYTES: usize = 4 << 20;
/// The reason of an import that stops because the cached result of an earlier import cannot be read.
const UNREAD: &str = "what is known of an earlier import does not read; `satchel doctor` looks at the store, and `--again` \
                      reads the export anew";
/// The export to read, its importer, and the options.
pub(super) struct PluginRun<'a> {
    pub(super) store: &'a Store,
    pub(super) plugin: &'a Plugin,
    pub(super) bundle: Bundle,
    pub(super) format: &'a str,
    pub(super) limits: &'a PluginLimits,
    pub(super) cancel: &'a CancelToken,
    pub(super) dry_run: bool,
    pub(super) secrets: SecretHandling,
    /// Slows the import down while clients make requests.
    pub(super) pace: &'a Throttle,
    /// Whether cached results of earlier imports may be used instead of reading pieces again.
    pub(super) recall: bool,
}

impl PluginRun<'_> {
    /// Reads the whole export. `record` is kept up to date; `progress` is called with the bytes done and the total.
    ///
    /// # Errors
    /// When the store refuses a write. How the plugin ended is the second part of the result.
    pub(super) fn run(
        self,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
        progress: &(dyn Fn(u64, u64, &ImportRecord) + Sync),
    ) -> Result<(DeferredRecords, Result<RunSummary, PluginError>), IngestError> {
        let reader = Normaliser {
            platform: self.plugin.info().platform.clone(),
            extractor: format!("{}/{}", self.plugin.info().name, self.plugin.info().version),
        };
        let (sender, receiver) = channel::bounded(QUEUE_BYTES);
        let purged = PurgedData::load(self.store)?;
        let memo = if self.recall { Some(pieces::of(self.store.clone())?) } else { None };
        let bytes = std::sync::atomic::AtomicU64::new(0);
        let (total, mut stride) = (self.bundle.bytes(), self.pace.worker());
        thread::scope(|scope| {
            let shown = &bytes;
            let reading = scope.spawn(move || self.read((&reader, &purged), memo, &sender, shown));
            let written = writer.write_all(&receiver, record, &mut |record| {
                stride.pause_if_due();
                progress(bytes.load(std::sync::atomic::Ordering::Relaxed), total, record);
            });
            // Once the receiver is dropped, the reading thread ends at its next record.
            drop(receiver);
            let read = reading.join().map_err(|_| IngestError::Panicked)?;
            written.map(|()| read)
        })
    }

    fn read(
        self,
        (reader, purged): (&Normaliser, &PurgedData),
        memo: Option<Arc<dyn PieceMemo>>,
        sender: &Sender<ImportItem>,
        bytes: &std::sync::atomic::AtomicU64,
    ) -> (DeferredRecords, Result<RunSummary, PluginError>) {
        let mut stage = Normalisation {
            store: self.store,
            bundle: &self.bundle,
            reader,
            purged,
            sender,
            dry_run: self.dry_run,
            secrets: self.secrets,
            deferred: DeferredRecords::default(),
            newest: i64::MIN,
            undated: Vec::new(),
            natural: BTreeMap::new(),
            piece: None,
            unread: false,
            stride: self.pace.worker(),
        };
        let files: Arc<dyn FileSet> = Arc::new(self.bundle.clone());
        let (plugin, limits) = (self.plugin, self.limits);
        let outcome = plugin.run_with_memo(files, self.format, limits, self.cancel, memo, &mut |emitted| {
            if let Emitted::Progress { done, .. } = &emitted {
                bytes.store(*done, std::sync::atomic::Ordering::Relaxed);
                return SinkVerdict::Proceed;
            }
            if stage.accept(emitted) { SinkVerdict::Proceed } else { SinkVerdict::Stop }
        });
        stage.finish();
        let outcome = if stage.unread { Err(PluginError::Host(UNREAD.to_owned())) } else { outcome };
        (stage.deferred, outcome)
    }
}

struct Normalisation<'a> {
    store: &'a Store,
    bundle: &'a Bundle,
    reader: &'a Normaliser,
    /// Erased records that must not be stored again.
    purged: &'a PurgedData,
    sender: &'a Sender<ImportItem>,
    dry_run: bool,
    secrets: SecretHandling,
    deferred: DeferredRecords,
    newest: i64,
    /// Evidence without a time is held back until the newest time of the export is known.
    undated: Vec<Evidence>,
    /// Conversations whose key is not the provider's.
    natural: BTreeMap<String, KeyScope>,
    /// The account of the current piece; `None` if the piece cannot be cached.
    piece: Option<PieceResult>,
    /// Whether the cached account of a piece could not be read.
    unread: bool,
    stride: WorkerThrottle,
}

impl Normalisation<'_> {
    /// Processes one emitted item; returns false once the receiver is gone or reading has to stop.
    fn accept(&mut self, emitted: Emitted) -> bool {
        self.stride.pause_if_due();
        match emitted {
            Emitted::Conversation(record) => self.conversation(*record),
            Emitted::Evidence(evidence) => {
                let (dated, undated): (Vec<_>, Vec<_>) =
                    evidence.into_iter().partition(|one| one.at.is_some());
                if !undated.is_empty() {
                    self.piece = None;
                }
                self.undated.extend(undated);
                self.evidence(dated)
            }
            Emitted::Relations(relations) => {
                self.deferred.relations.extend(relations);
                true
            }
            Emitted::Embeddings(embeddings) => {
                self.deferred.embeddings.extend(embeddings);
                true
            }
            Emitted::Account(account) => {
                // The account of a piece has no field for it.
                self.piece = None;
                self.send(ImportItem::Account(account))
            }
            Emitted::Skip(skip) => self.send(ImportItem::Skip(skip)),
            Emitted::Warning(warning) => self.send(ImportItem::Warning(warning)),
            Emitted::PieceStarted => {
                self.piece = Some(PieceResult::default());
                self.send(ImportItem::Piece)
            }
            Emitted::PieceNoted { digest, note } => match self.piece.take() {
                Some(account) => {
                    self.send(ImportItem::Known(Box::new(PieceToCache { digest, note, account })))
                }
                None => true,
            },
            Emitted::PieceUnchanged(account) => self.again(&account),
            Emitted::Progress { .. } => true,
        }
    }

    fn again(&mut self, account: &[u8]) -> bool {
        self.piece = None;
        let Some(account) = PieceResult::read(account) else {
            // The plugin was told that the piece is cached, so no other code reads it.
            self.unread = true;
            return false;
        };
        self.newest = account.newest.map_or(self.newest, |newest| newest.max(self.newest));
        self.send(ImportItem::Again(Box::new(account)))
    }

    fn conversation(&mut self, mut record: satchel_pam::record::ConversationRecord) -> bool {
        let attachments = record.messages.iter().flat_map(|message| &message.attachments);
        self.deferred.attached.extend(attachments.filter_map(|file| match &file.source {
            Some(FileSource::Path(path)) => Some(path.clone()),
            Some(FileSource::Bytes(_) | FileSource::Uri(_)) | None => None,
        }));
        let passage = erased::conversation(self.purged, self.reader, &mut record);
        if passage != FilterResult::Whole {
            // The cached account of the piece could hold data of erased messages.
            self.piece = None;
        }
        if passage == FilterResult::Refused {
            return self.refused(record.locator);
        }
        let times = record.messages.iter().filter_map(|message| message.created_at);
        let newest = times.chain(record.created_at).chain(record.updated_at).max();
        self.newest = newest.map_or(self.newest, |newest| newest.max(self.newest));
        let natural = record.provider_conversation_id.is_none().then(|| record.id.clone());
        if natural.is_some() {
            self.piece = None;
        }
        let messages = record.messages.len() as u64;
        let locator = record.locator.clone();
        let mut notes: Vec<ImportItem> =
            secrets::check(&mut record, self.secrets).map(ImportItem::Warning).into_iter().collect();
        let files = AttachmentStore { store: self.store, bundle: self.bundle, dry_run: self.dry_run };
        let normalised =
            self.reader.conversation(record, &mut |file| files.store(file, &locator, &mut notes));
        if self.bundle.cancelled() {
            // Its attachments may have been cut off. A later import brings the conversation as a whole.
            return false;
        }
        self.account(|account| account.newest = account.newest.max(newest));
        let sent = notes.into_iter().all(|note| {
            match note {
                ImportItem::Stored => self.account(|account| account.attachments += 1),
                // Warnings have to be repeated by each import, so the piece is not cached.
                _ => self.piece = None,
            }
            self.send(note)
        });
        sent && match normalised {
            Ok(conversation) => {
                self.natural.extend(natural.map(|key| (key, KeyScope::of(&conversation))));
                self.account(|account| account.messages += messages);
                self.send(ImportItem::Conversation(Box::new(conversation)))
            }
            Err(error) => {
                self.piece = None;
                let reason = format!("it cannot be written as JSON: {error}");
                self.send(ImportItem::Skip(Skip { kind: RecordKind::Conversation, locator, reason }))
            }
        }
    }

    fn refused(&mut self, locator: String) -> bool {
        let (kind, reason) = (RecordKind::Conversation, erased::REASON.to_owned());
        self.send(ImportItem::Skip(Skip { kind, locator, reason }))
    }

    fn evidence(&mut self, evidence: Vec<Evidence>) -> bool {
        if evidence.is_empty() {
            return true;
        }
        let newest = if self.newest == i64::MIN { 0 } else { self.newest };
        let stored = evidence.into_iter().map(|one| {
            let place = one.conversation.as_ref().and_then(|key| self.natural.get(key));
            self.reader.evidence(one, newest, place.unwrap_or(&KeyScope::Provider))
        });
        let mut stored: Vec<StoredEvidence> = stored.collect();
        for skip in erased::evidence(self.purged, &mut stored) {
            self.piece = None;
            if !self.send(ImportItem::Skip(skip)) {
                return false;
            }
        }
        self.account(|account| {
            account.memories.extend(stored.iter().flat_map(|one| memories_of(&one.claim)));
        });
        for item in stored.iter().flat_map(|one| satchel_merge::evidence::items_of(&one.claim)) {
            if item.key.is_some() || item.superseded_by.is_some() {
                // An item of another piece may refer to this one, or the reverse.
                self.piece = None;
            }
            if let Some(key) = &item.key {
                self.deferred.keys.insert(key.clone(), satchel_merge::evidence::memory_id(item));
            }
        }
        self.send(ImportItem::Evidence(stored))
    }

    fn account(&mut self, note: impl FnOnce(&mut PieceResult)) {
        if let Some(account) = &mut self.piece {
            note(account);
        }
    }

    /// Sends the evidence that waited for the newest time; the receiver may be gone already.
    fn finish(&mut self) {
        let undated = std::mem::take(&mut self.undated);
        if !self.evidence(undated) {
            tracing::debug!("the import ended before its undated evidence");
        }
    }

    fn send(&self, item: ImportItem) -> bool {
        self.sender.send(item).is_ok()
    }
}
