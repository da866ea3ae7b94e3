//! The store: a single entry for writes, and reads at a revision.

mod blobs;
mod commit;
mod fallback;
mod validate;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use uuid::Uuid;

use crate::{
    apply::Applier,
    blob::PendingBlobs,
    change::Batch,
    engine::{Engine, swappable::SwappableEngine},
    error::StoreError,
    journal::{frame::FrameKind, reader::FrameReader, writer::JournalWriter},
    ledger::{Durability, LedgerWrite},
    open::{
        self, OpenedStore, StoreEnvironment, damage_file, in_memory,
        state::{ShutdownState, StateFile},
    },
    options::OpenOptions,
    recent_evidence::RecentEvidence,
    report::{Damage, Health, OpenEvent, StateDigest},
    revision::Revision,
};

/// An open store. Clones share it; it is closed when the last one is dropped.
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("dir", &self.inner.dir).field("revision", &self.revision()).finish()
    }
}

/// Is told of each new revision.
type RevisionObserver = Box<dyn Fn(Revision) + Send + Sync>;

/// The shared state of a store. Fields are dropped in this order: writer and engine first, then `state_file`, which writes
/// `db.state`, then the lock.
struct StoreInner {
    dir: PathBuf,
    /// The revision that readers see.
    revision: AtomicU64,
    /// Is told of each new revision.
    observer: OnceLock<RevisionObserver>,
    /// Guards the health of the store.
    health: Mutex<Health>,
    /// Guards the single writer.
    writer: Mutex<StoreWriter>,
    engine: SwappableEngine,
    reader: FrameReader,
    pending_blobs: PendingBlobs,
    recent_evidence: Mutex<RecentEvidence>,
    state_file: StateFile,
    /// Held by the check that sums up the records; only one runs at a time.
    checking: Mutex<()>,
    headroom: u64,
    /// Whether other threads may be reading during a commit.
    readers: AtomicBool,
    _lock: Option<fs::File>,
}

/// The single writer.
struct StoreWriter {
    journal: JournalWriter,
    applier: Applier,
    /// Whether anything was written since the last seal.
    dirty: bool,
    /// Whether the engine is in memory, because the disk accepted no writes of the other one.
    in_memory: bool,
    /// Whether the store was opened for reading only.
    read_only: bool,
    payload: Vec<u8>,
}

impl Store {
    /// Opens the store in `dir`, or creates one there. Holds the folder's lock until the last clone is dropped.
    ///
    /// Truncates an unfinished tail of the journal, brings an engine that is behind or not trusted up to date, and reports this
    /// to `report`. A damaged journal does not make the call fail: the store is then read-only, see [`Store::health`].
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process has the store open, [`StoreError::NewerFormat`] if a newer program wrote it,
    /// [`StoreError::DamagedJournal`] if no segment is readable or if there is a database but its journal is missing; any error
    /// of the file system.
    pub fn open(
        dir: &Path,
        options: OpenOptions,
        report: &mut dyn FnMut(OpenEvent),
    ) -> Result<Self, StoreError> {
        let environment = StoreEnvironment::new(dir, &options);
        Self::open_in(dir, options, environment, report)
    }

    pub(crate) fn open_in(
        dir: &Path,
        options: OpenOptions,
        environment: StoreEnvironment,
        report: &mut dyn FnMut(OpenEvent),
    ) -> Result<Self, StoreError> {
        Ok(Self::new(open::open(dir, options, environment, report)?))
    }

    /// Opens the store in `dir` for reading only. Nothing is written to its disk, which may be full or accept no writes at all.
    /// `reason` explains this to callers that try to write.
    ///
    /// The database is built in memory, from the journal.
    ///
    /// # Errors
    /// The errors of [`Store::open`]; also an error if there is no store.
    pub fn open_read_only(
        dir: &Path,
        options: OpenOptions,
        reason: String,
        report: &mut dyn FnMut(OpenEvent),
    ) -> Result<Self, StoreError> {
        let environment = StoreEnvironment::new(dir, &options);
        Ok(Self::new(in_memory::open_read_only(dir, options, environment, reason, report)?))
    }

    fn new(opened: OpenedStore) -> Self {
        let inner = Arc::new(StoreInner::new(opened));
        let weak = Arc::downgrade(&inner);
        inner
            .engine
            .on_failure(Box::new(move || weak.upgrade().is_some_and(|inner| inner.repair_for_reader())));
        Self { inner }
    }

    /// Commits one batch. Durable when this returns: the journal's fsync is the commit point.
    ///
    /// Returns the revision of the commit, or the previous one if the batch contains only evidence and ledger entries.
    ///
    /// # Errors
    /// Nothing is written, except with [`StoreError::Engine`]: the commit is then in the journal and becomes visible after a
    /// restart.
    pub fn commit(&self, batch: Batch) -> Result<Revision, StoreError> {
        let revisions = self.commit_group(vec![batch])?;
        Ok(revisions.last().copied().unwrap_or_else(|| self.revision()))
    }

    /// Commits several batches, each with a revision of its own, with one fsync. All are durable when this returns.
    ///
    /// If a batch changes a record that an earlier batch of the same call changed, the earlier batches are fsynced first. So
    /// after an error the batches before it may have been committed; [`Store::revision`] shows this.
    ///
    /// # Errors
    /// The errors of [`Store::commit`].
    pub fn commit_group(&self, batches: Vec<Batch>) -> Result<Vec<Revision>, StoreError> {
        self.inner.commit_group(batches, Durability::Now)
    }

    /// Puts one ledger entry. Does not raise the revision.
    ///
    /// # Errors
    /// The errors of [`Store::commit`].
    pub fn put_ledger(&self, write: LedgerWrite, durability: Durability) -> Result<(), StoreError> {
        let batch = Batch { changes: vec![crate::change::Change::Ledger(write)], ..Batch::default() };
        self.inner.commit_group(vec![batch], durability).map(|_| ())
    }

    /// Returns the last revision that readers see.
    #[must_use]
    pub fn revision(&self) -> Revision {
        Revision::new(self.inner.revision.load(Ordering::Acquire))
    }

    /// Calls `observer` with each revision, after readers see it. A store has one observer; returns false if it has one
    /// already. The observer runs within the commit, so it must return at once, and must not use the store.
    pub fn observe_revisions(&self, observer: impl Fn(Revision) + Send + Sync + 'static) -> bool {
        self.inner.observer.set(Box::new(observer)).is_ok()
    }

    /// Returns the id in all segments of this store's journal. Revisions of different stores cannot be compared.
    #[must_use]
    pub fn store_id(&self) -> Uuid {
        Uuid::from_bytes(self.inner.reader.context().store_id)
    }

    /// Returns whether the store was opened for reading only, because its location accepts no writes.
    #[must_use]
    pub fn opened_read_only(&self) -> bool {
        self.inner.writer().read_only
    }

    /// Returns whether the store accepts writes.
    #[must_use]
    pub fn health(&self) -> Health {
        self.inner.record_read_damage();
        self.inner.health().clone()
    }

    /// Returns the digest of all shown records.
    #[must_use]
    pub fn state_digest(&self) -> StateDigest {
        self.inner.writer().applier.meta().digest
    }

    /// Seals the journal and flushes the engine. The store is closed when the last clone is dropped. Dropping without this call
    /// does the same, and logs errors instead of returning them.
    ///
    /// # Errors
    /// Any error of the file system, except lack of space. Nothing committed is lost by such an error.
    pub fn close(self) -> Result<(), StoreError> {
        let sealed = self.inner.seal();
        drop(self);
        satchel_failpoints::reached("store closed");
        match sealed {
            // Everything that was confirmed is in the journal; the next start only takes a little longer.
            Err(error) if error.unwritable() => {
                tracing::warn!(%error, "the store is not closed cleanly");
                Ok(())
            }
            sealed => sealed,
        }
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &self.inner.engine
    }

    pub(crate) fn reader(&self) -> &FrameReader {
        &self.inner.reader
    }

    pub(crate) fn pending_blobs(&self) -> &PendingBlobs {
        &self.inner.pending_blobs
    }

    pub(crate) fn recent_evidence(&self) -> MutexGuard<'_, RecentEvidence> {
        self.inner.recent_evidence()
    }

    /// Returns the data directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// Runs `look` with the engine's meta record while nothing can be written.
    pub(crate) fn with_meta<T>(&self, look: impl FnOnce(&crate::value::EngineMeta) -> T) -> T {
        look(self.inner.writer().applier.meta())
    }

    /// Runs `work` while nothing else can be written.
    pub(crate) fn with_applier<T>(&self, work: impl FnOnce(&mut Applier) -> T) -> T {
        work(&mut self.inner.writer().applier)
    }

    /// Records damage to the journal that was found while the store is open. From now on, and after later starts, nothing is
    /// written until the damage is repaired.
    pub(crate) fn record_damage(&self, damage: &[Damage]) {
        self.inner.record_damage(damage);
    }

    /// Stops writing if an error outside a commit requires it.
    pub(crate) fn record_failure(&self, error: &StoreError) {
        self.inner.record_failure(error, &mut self.inner.writer());
    }

    pub(crate) fn lock_checks(&self) -> MutexGuard<'_, ()> {
        self.inner.checking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreInner {
    fn new(opened: OpenedStore) -> Self {
        let OpenedStore { dir, health, mut journal, applier, reader, state_file, headroom, read_only, lock } =
            opened;
        if let Health::Damaged(_) = health {
            journal.stop("the journal is damaged".to_owned());
        }
        let (revision, engine) = (applier.meta().revision, applier.engine());
        let writer = StoreWriter {
            journal,
            applier,
            dirty: false,
            in_memory: read_only,
            read_only,
            payload: Vec::new(),
        };
        Self {
            dir,
            revision: AtomicU64::new(revision),
            observer: OnceLock::new(),
            health: Mutex::new(health),
            writer: Mutex::new(writer),
            engine: SwappableEngine::new(engine),
            reader,
            pending_blobs: PendingBlobs::default(),
            recent_evidence: Mutex::default(),
            state_file,
            checking: Mutex::new(()),
            headroom,
            readers: AtomicBool::new(true),
            _lock: lock,
        }
    }

    fn recent_evidence(&self) -> MutexGuard<'_, RecentEvidence> {
        self.recent_evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a revision visible to readers.
    fn publish(&self, revision: u64) {
        self.revision.store(revision, Ordering::Release);
        if let Some(observer) = self.observer.get() {
            observer(Revision::new(revision));
        }
    }

    fn record_damage(&self, damage: &[Damage]) {
        if damage.is_empty() {
            return;
        }
        damage_file::write(
            self.reader.disk().as_ref(),
            &self.dir,
            self.revision.load(Ordering::Acquire),
            damage,
        );
        let mut health = self.health();
        if *health == Health::Good {
            *health = Health::Damaged(damage.to_vec());
        }
    }

    /// Records damage that a read has found since the last call.
    pub(crate) fn record_read_damage(&self) {
        let good = *self.health() == Health::Good;
        if good && let Some(damage) = self.reader.first_damage() {
            self.record_damage(&[damage]);
        }
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the writer. After a panic in a commit it is unknown how much of the commit was written, and another commit could use
    /// the same revision again, so the journal is stopped.
    fn writer(&self) -> MutexGuard<'_, StoreWriter> {
        self.writer.lock().unwrap_or_else(|poisoned| {
            let mut writer = poisoned.into_inner();
            writer.journal.stop("a commit panicked".to_owned());
            writer
        })
    }

    fn seal(&self) -> Result<(), StoreError> {
        let mut guard = self.writer();
        let writer = &mut *guard;
        if writer.journal.stopped().is_none() && writer.dirty {
            let revision = writer.applier.meta().revision;
            // Separate from the calls below: if `begin` fails, no group has begun, and an undo would remove the last acknowledged
            // one.
            writer.journal.begin(revision)?;
            let sealed =
                writer.journal.frame(FrameKind::Seal, &[], revision).and_then(|_| writer.journal.sync());
            if let Err(error) = sealed {
                writer.journal.undo();
                self.record_failure(&error, writer);
                return Err(error);
            }
            satchel_failpoints::reached("seal synced");
            writer.applier.advance_to(writer.journal.position());
            writer.applier.flush()?;
            satchel_failpoints::reached("seal applied");
            writer.dirty = false;
        }
        Ok(self.engine.flush()?)
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        let left = matches!(*self.health(), Health::Stopped(_) | Health::ReadOnly(_));
        if left || self.writer().read_only {
            return;
        }
        match self.seal() {
            Ok(()) => {
                let writer = self.writer();
                if writer.in_memory {
                    // The database on disk is behind. Its `db.state` says `open`, so the next start brings it up to date.
                    return;
                }
                let meta = writer.applier.meta();
                self.state_file.set_final(ShutdownState::Clean, meta.revision, meta.digest.to_string());
            }
            Err(error) => {
                tracing::warn!(dir = %self.dir.display(), %error, "the store is not closed cleanly");
            }
        }
    }
}
