//! Runs one importer over one export: the sandbox on one thread, ids and encoding on a second, the store on a third.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    thread,
    time::Duration,
};

use satchel_host::{
    Emitted, Limits, Memo, Pace, Plugin, RunError, Stride, Summary, Verdict,
    channel::{self, Next, Receiver, Sender, Weight},
};
use satchel_merge::evidence::{Document, Witness, memories_of};
use satchel_pam::{
    embedding::Embedding,
    record::{
        AccountRecord, EmbeddingRecord, Evidence, RecordKind, RelationRecord, Skip, Source as FileSource,
        Warning,
    },
    relation::Relation,
};
use satchel_source::{Bundle, CancelToken, Files};
use satchel_store::Store;

use super::{
    IngestError,
    attach::Keeper,
    memo::{self, Account, Known},
    normalise::{Conversation, Place, Reader},
    purge::gate::{self, Passage},
    receipt::ImportRecord,
    write::Writer,
};
use crate::{
    exported::{About, ExportRecord},
    lineage::{Purged, vectors},
};

/// Memory of the queue of encoded records between the second and the third thread, in bytes.
const QUEUE_BYTES: usize = 4 << 20;
/// The reason of an import that stops because the cached result of an earlier import cannot be read.
const UNREAD: &str = "what is known of an earlier import does not read; `satchel doctor` looks at the store, and `--again` \
                      reads the export anew";
/// How long the writer waits for the next record before it commits the open batch.
pub(super) const IDLE: Duration = Duration::from_millis(200);

/// The export to read, its importer, and the options.
pub(super) struct Run<'a> {
    pub(super) store: &'a Store,
    pub(super) plugin: &'a Plugin,
    pub(super) bundle: Bundle,
    pub(super) format: &'a str,
    pub(super) limits: &'a Limits,
    pub(super) cancel: &'a CancelToken,
    pub(super) dry_run: bool,
    /// Slows the import down while clients make requests.
    pub(super) pace: &'a Pace,
    /// Whether cached results of earlier imports may be used instead of reading pieces again.
    pub(super) recall: bool,
}

/// An item that the second thread passes to the third.
pub(super) enum Normalised {
    Conversation(Box<Conversation>),
    Evidence(Vec<Witness>),
    Document(Box<Document>),
    Account(AccountRecord),
    Skip(Skip),
    Warning(Warning),
    Stored,
    /// The start of a piece of the source.
    Piece,
    /// A piece to be cached.
    Known(Box<Known>),
    /// A piece whose cached result is used.
    Again(Box<Account>),
}

/// Records that are stored at the end of a run. Relations and embeddings refer to items by keys that are only resolved
/// by then.
#[derive(Default)]
pub(super) struct Tail {
    pub(super) relations: Vec<RelationRecord>,
    pub(super) embeddings: Vec<EmbeddingRecord>,
    /// Memory ids by item key.
    pub(super) keys: BTreeMap<String, String>,
    /// Relations of PAM documents, which refer to memories by id.
    pub(super) drawn: Vec<Relation>,
    pub(super) vectors: Vec<ToldVector>,
    /// Other statements of the document on vectors.
    pub(super) told_vectors: vectors::Told,
    /// Relations that were withdrawn at the origin of the document, with the time of that statement in microseconds.
    pub(super) withdrawn: Vec<(String, i64)>,
    /// Files of the export that are attachments of messages.
    pub(super) attached: BTreeSet<String>,
    /// The document, for the ledger of exports.
    pub(super) applied: Option<Box<Applied>>,
    /// The stranger whose PAM documents they are: a key, or the marker for unsigned documents.
    pub(super) stranger: Option<String>,
}

/// A vector of a PAM document.
pub(super) struct ToldVector {
    pub(super) embedding: Embedding,
    /// A fingerprint of the content of its memory in the same documents, if they hold the memory.
    pub(super) of: Option<u64>,
}

/// A document that was read.
pub(super) struct Applied {
    /// Its entry for the ledger of exports; `None` if it has no export id.
    pub(super) record: Option<ExportRecord>,
    /// The owner of its memories, and the description of their meaning.
    pub(super) about: About,
}

impl Tail {
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            relations,
            embeddings,
            keys: _,
            drawn,
            vectors,
            told_vectors,
            withdrawn,
            attached: _,
            applied: _,
            stranger: _,
        } = self;
        relations.is_empty()
            && embeddings.is_empty()
            && drawn.is_empty()
            && vectors.is_empty()
            && told_vectors.withdrawn.is_empty()
            && withdrawn.is_empty()
    }
}

impl Weight for Normalised {
    fn weight(&self) -> usize {
        match self {
            Self::Conversation(conversation) => conversation.weight,
            Self::Evidence(witnesses) => witnesses.len() * 1024,
            Self::Document(document) => document.memory.content.len() * 2 + 1024,
            Self::Account(_) | Self::Skip(_) | Self::Warning(_) | Self::Stored | Self::Piece => 256,
            Self::Known(known) => known.note.len() + 512,
            Self::Again(_) => 512,
        }
    }
}

impl Run<'_> {
    /// Reads the whole export. `record` is kept up to date; `progress` is called with the bytes done and the total.
    ///
    /// # Errors
    /// When the store refuses a write. How the plugin ended is the second part of the result.
    pub(super) fn go(
        self,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
        progress: &(dyn Fn(u64, u64, &ImportRecord) + Sync),
    ) -> Result<(Tail, Result<Summary, RunError>), IngestError> {
        let reader = Reader {
            platform: self.plugin.info().platform.clone(),
            extractor: format!("{}/{}", self.plugin.info().name, self.plugin.info().version),
        };
        let (sender, receiver) = channel::bounded(QUEUE_BYTES);
        let purged = Purged::of(self.store)?;
        let memo = if self.recall { Some(memo::of(self.store.clone())?) } else { None };
        let bytes = std::sync::atomic::AtomicU64::new(0);
        let (total, mut stride) = (self.bundle.bytes(), self.pace.stride());
        thread::scope(|scope| {
            let shown = &bytes;
            let reading = scope.spawn(move || self.read((&reader, &purged), memo, &sender, shown));
            let written = write_all(&receiver, writer, record, &mut |record| {
                stride.step();
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
        (reader, purged): (&Reader, &Purged),
        memo: Option<Arc<dyn Memo>>,
        sender: &Sender<Normalised>,
        bytes: &std::sync::atomic::AtomicU64,
    ) -> (Tail, Result<Summary, RunError>) {
        let mut stage = Stage {
            store: self.store,
            bundle: &self.bundle,
            reader,
            purged,
            sender,
            dry_run: self.dry_run,
            tail: Tail::default(),
            newest: i64::MIN,
            undated: Vec::new(),
            natural: BTreeMap::new(),
            piece: None,
            unread: false,
            stride: self.pace.stride(),
        };
        let files: Arc<dyn Files> = Arc::new(self.bundle.clone());
        let (plugin, limits) = (self.plugin, self.limits);
        let outcome = plugin.run_knowing(files, self.format, limits, self.cancel, memo, &mut |emitted| {
            if let Emitted::Progress { done, .. } = &emitted {
                bytes.store(*done, std::sync::atomic::Ordering::Relaxed);
                return Verdict::Proceed;
            }
            if stage.take(emitted) { Verdict::Proceed } else { Verdict::Stop }
        });
        stage.finish();
        let outcome = if stage.unread { Err(RunError::Host(UNREAD.to_owned())) } else { outcome };
        (stage.tail, outcome)
    }
}

pub(super) fn write_all(
    receiver: &Receiver<Normalised>,
    writer: &mut Writer<'_>,
    record: &mut ImportRecord,
    progress: &mut dyn FnMut(&ImportRecord),
) -> Result<(), IngestError> {
    loop {
        if writer.cancel.cancelled() {
            // Items left in the queue are dropped: looking all of them up could take seconds. The reader may have
            // finished successfully.
            writer.flush(record)?;
            return Err(IngestError::Cancelled);
        }
        match receiver.recv_within(IDLE) {
            Next::Item(item) => writer.take(item, record)?,
            // Other imports must not wait while the disk of this one does not answer.
            Next::Idle => writer.let_others(record)?,
            Next::End => return writer.flush(record),
        }
        progress(record);
        satchel_failpoints::reached("record taken");
    }
}

struct Stage<'a> {
    store: &'a Store,
    bundle: &'a Bundle,
    reader: &'a Reader,
    /// Erased records that must not be stored again.
    purged: &'a Purged,
    sender: &'a Sender<Normalised>,
    dry_run: bool,
    tail: Tail,
    newest: i64,
    /// Evidence without a time is held back until the newest time of the export is known.
    undated: Vec<Evidence>,
    /// Conversations whose key is not the provider's.
    natural: BTreeMap<String, Place>,
    /// The account of the current piece; `None` if the piece cannot be cached.
    piece: Option<Account>,
    /// Whether the cached account of a piece could not be read.
    unread: bool,
    stride: Stride,
}

impl Stage<'_> {
    /// Processes one emitted item; returns false once the receiver is gone or reading has to stop.
    fn take(&mut self, emitted: Emitted) -> bool {
        self.stride.step();
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
                self.tail.relations.extend(relations);
                true
            }
            Emitted::Embeddings(embeddings) => {
                self.tail.embeddings.extend(embeddings);
                true
            }
            Emitted::Account(account) => {
                // The account of a piece has no field for it.
                self.piece = None;
                self.send(Normalised::Account(account))
            }
            Emitted::Skip(skip) => self.send(Normalised::Skip(skip)),
            Emitted::Warning(warning) => self.send(Normalised::Warning(warning)),
            Emitted::Piece => {
                self.piece = Some(Account::default());
                self.send(Normalised::Piece)
            }
            Emitted::Noted { digest, note } => match self.piece.take() {
                Some(account) => self.send(Normalised::Known(Box::new(Known { digest, note, account }))),
                None => true,
            },
            Emitted::Again(account) => self.again(&account),
            Emitted::Progress { .. } => true,
        }
    }

    fn again(&mut self, account: &[u8]) -> bool {
        self.piece = None;
        let Some(account) = Account::read(account) else {
            // The plugin was told that the piece is cached, so nobody else reads it.
            self.unread = true;
            return false;
        };
        self.newest = account.newest.map_or(self.newest, |newest| newest.max(self.newest));
        self.send(Normalised::Again(Box::new(account)))
    }

    fn conversation(&mut self, mut record: satchel_pam::record::ConversationRecord) -> bool {
        let attachments = record.messages.iter().flat_map(|message| &message.attachments);
        self.tail.attached.extend(attachments.filter_map(|file| match &file.source {
            Some(FileSource::Path(path)) => Some(path.clone()),
            Some(FileSource::Bytes(_) | FileSource::Uri(_)) | None => None,
        }));
        let passage = gate::conversation(self.purged, self.reader, &mut record);
        if passage != Passage::Whole {
            // The cached account of the piece could hold data of erased messages.
            self.piece = None;
        }
        if passage == Passage::Refused {
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
        let mut notes = Vec::new();
        let keeper = Keeper { store: self.store, bundle: self.bundle, dry_run: self.dry_run };
        let normalised =
            self.reader.conversation(record, &mut |file| keeper.keep(file, &locator, &mut notes));
        if self.bundle.stopped() {
            // Its attachments may have been cut off. A later import brings the conversation as a whole.
            return false;
        }
        self.account(|account| account.newest = account.newest.max(newest));
        let sent = notes.into_iter().all(|note| {
            match note {
                Normalised::Stored => self.account(|account| account.attachments += 1),
                // Warnings have to be repeated by each import, so the piece is not cached.
                _ => self.piece = None,
            }
            self.send(note)
        });
        sent && match normalised {
            Ok(conversation) => {
                self.natural.extend(natural.map(|key| (key, Place::of(&conversation))));
                self.account(|account| account.messages += messages);
                self.send(Normalised::Conversation(Box::new(conversation)))
            }
            Err(error) => {
                self.piece = None;
                let reason = format!("it cannot be written as JSON: {error}");
                self.send(Normalised::Skip(Skip { kind: RecordKind::Conversation, locator, reason }))
            }
        }
    }

    fn refused(&mut self, locator: String) -> bool {
        let (kind, reason) = (RecordKind::Conversation, gate::REASON.to_owned());
        self.send(Normalised::Skip(Skip { kind, locator, reason }))
    }

    fn evidence(&mut self, evidence: Vec<Evidence>) -> bool {
        if evidence.is_empty() {
            return true;
        }
        let newest = if self.newest == i64::MIN { 0 } else { self.newest };
        let witnesses = evidence.into_iter().map(|one| {
            let place = one.conversation.as_ref().and_then(|key| self.natural.get(key));
            self.reader.evidence(one, newest, place.unwrap_or(&Place::Provider))
        });
        let mut witnesses: Vec<Witness> = witnesses.collect();
        for skip in gate::evidence(self.purged, &mut witnesses) {
            self.piece = None;
            if !self.send(Normalised::Skip(skip)) {
                return false;
            }
        }
        self.account(|account| {
            account.memories.extend(witnesses.iter().flat_map(|witness| memories_of(&witness.claim)));
        });
        for item in witnesses.iter().flat_map(|witness| satchel_merge::evidence::items_of(&witness.claim)) {
            if item.key.is_some() || item.superseded_by.is_some() {
                // An item of another piece may refer to this one, or the reverse.
                self.piece = None;
            }
            if let Some(key) = &item.key {
                self.tail.keys.insert(key.clone(), satchel_merge::evidence::memory_id(item));
            }
        }
        self.send(Normalised::Evidence(witnesses))
    }

    fn account(&mut self, note: impl FnOnce(&mut Account)) {
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

    fn send(&self, item: Normalised) -> bool {
        self.sender.send(item).is_ok()
    }
}
