//! Imports: jobs that read a path which the user names, and the ledger of their results.
//!
//! A job reads one path and makes one import for each export that it finds there. Two jobs run at a time; further jobs
//! are queued.

mod attach;
mod background;
mod conclude;
mod detect;
pub mod hand;
mod interrupted;
mod job;
mod ledger;
pub mod leftover;
mod memo;
mod memories;
mod normalise;
mod pam;
mod pen;
pub mod purge;
mod queue;
pub mod receipt;
mod run;
mod silent;
pub mod undo;
mod write;

use std::{
    ffi::OsString,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use satchel_host::{Limits as PluginLimits, Plugin};
use satchel_pam::{record::Skip, sign::PublicKey};
use satchel_seal::PackedError;
use satchel_source::{CancelToken, Limits, SourceError, envelope::Keys};
use satchel_store::{Cursor, Health, Page, Store, StoreError};
use tokio::sync::watch;
use uuid::Uuid;

use self::{
    pam::KnownKeys,
    pen::Pen,
    queue::{Job, Jobs, WAITING},
    receipt::ImportRecord,
    undo::{Outcome, TurnRequest},
};
pub use self::{queue::OnEnd, silent::Silent};
use crate::{
    clock::Clock,
    lineage::LineageError,
    plugins::{Plugins, PluginsError},
    trust,
};

/// The reason recorded in the history of records that an import wrote.
pub(crate) const REASON: &str = "import";
/// The reason recorded in the history of records that an undo or a redo of an import wrote.
pub(crate) const UNDONE: &str = "undo of an import";
/// Jobs that run at the same time: one parses while the other writes.
const AT_ONCE: usize = 2;

/// A request to import one path.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// A file or a folder.
    pub path: PathBuf,
    /// Use only the importers of this platform.
    pub provider: Option<String>,
    /// Import even if the same bytes were imported before.
    pub again: bool,
    /// Report what would happen, but store nothing.
    pub dry_run: bool,
    /// Merge PAM documents by the rules of the specification on owner and base export. Only PAM documents are read
    /// then.
    pub apply: Option<Apply>,
}

/// The checks that the user waives when they apply a PAM document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// The owner of the store; `None` if the store has no owner yet.
    pub owner: Option<String>,
    /// Accept the document even if it belongs to another owner.
    pub any_owner: bool,
    /// Merge the document even if its base is unknown, if part of it fails verification, or if no trusted key signed
    /// it.
    pub force: bool,
    /// Trust this key from now on; the document must be signed by it.
    pub trust: Option<PublicKey>,
}

/// A file or folder that a watched folder submits for import.
#[derive(Clone, Debug)]
pub struct WatchedImport {
    /// The watched folder; nothing outside of it is read.
    pub root: PathBuf,
    /// The name of the file or folder in it.
    pub name: OsString,
    /// Use only the importers of these platforms; if empty, use all.
    pub providers: Vec<String>,
}

/// The phase that a job is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The job is queued behind others.
    Waiting,
    /// The source is being opened, and its importer chosen.
    Looking,
    /// The bytes of the source are being hashed.
    Hashing,
    /// Records are being read and stored.
    Reading,
    /// Memories are being derived.
    Settling,
    /// The job has ended.
    Ended,
}

/// A snapshot of the state of a job.
#[derive(Clone, Debug)]
pub struct JobView {
    pub id: Uuid,
    pub path: PathBuf,
    pub phase: Phase,
    /// When the job was requested, in microseconds since the Unix epoch.
    pub created_at: i64,
    /// When the job ended, in microseconds since the Unix epoch.
    pub finished_at: Option<i64>,
    /// Bytes processed in this phase.
    pub done: u64,
    /// Total bytes of this phase.
    pub total: u64,
    /// One record for each export found so far; the last import may still be running.
    pub imports: Vec<ImportRecord>,
}

impl JobView {
    /// Returns the view of a job that has just been requested.
    fn waiting(id: Uuid, path: PathBuf, created_at: i64) -> Self {
        let imports = Vec::new();
        Self { id, path, phase: Phase::Waiting, created_at, finished_at: None, done: 0, total: 0, imports }
    }

    fn end(&mut self, now: i64) {
        self.phase = Phase::Ended;
        self.finished_at = Some(now);
    }
}

/// The reason why an import could not be made, or stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The request is not allowed in the current state.
    #[error("{0}")]
    Refused(String),
    /// An importer failed to load.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger of exports cannot be read or written.
    #[error(transparent)]
    Exported(#[from] crate::exported::ExportedError),
    /// There is no importer of this name.
    #[error("no importer reads exports of {provider:?}; known are {known}")]
    UnknownProvider { provider: String, known: String },
    /// The clock of the machine is unusable.
    #[error(transparent)]
    Clock(#[from] crate::clock::ClockError),
    /// Too many imports are waiting.
    #[error("{WAITING} imports are waiting already; try again when some have ended")]
    Busy,
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
    /// The import was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// Records that this import counted as stored are no longer shown.
    #[error("an earlier import of the same records was undone meanwhile; import it again")]
    UndoneMeanwhile,
    /// A temporary file could not be read or written.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[source] std::io::Error),
    /// A bug in Satchel.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
    /// A bug in Satchel.
    #[error("the import broke off by an internal error; please report this")]
    Panicked,
}

impl From<hand::HandError> for IngestError {
    fn from(error: hand::HandError) -> Self {
        match error {
            hand::HandError::Store(error) => Self::Store(error),
            _ => Self::Unencodable { what: "a change by hand" },
        }
    }
}

impl From<PackedError> for IngestError {
    fn from(error: PackedError) -> Self {
        LineageError::from(error).into()
    }
}

impl From<LineageError> for IngestError {
    fn from(error: LineageError) -> Self {
        match error {
            LineageError::Store(error) => Self::Store(error),
            LineageError::Unreadable { what } => Self::Unencodable { what },
            LineageError::Temporary(error) => Self::Temporary(error),
        }
    }
}

/// All imports of a store. Clones share the same state.
#[derive(Clone)]
pub struct Imports(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    plugins: Arc<Plugins>,
    clock: Arc<dyn Clock>,
    /// Guards the limits on what the next import may unpack; they can change while the daemon runs.
    limits: Mutex<Limits>,
    plugin_limits: PluginLimits,
    /// The commit lock: held from a look-up until its result is committed.
    pen: Pen,
    /// Guards undos, so that only one import is undone at a time.
    undoing: Mutex<()>,
    /// Guards the running and waiting jobs.
    jobs: Mutex<Jobs>,
    /// Notified when a job ends.
    idle: Condvar,
    /// Milliseconds for which a source may fail to answer.
    patience: AtomicU64,
    /// Returns the keys that this data directory signs with now, and those it signed with earlier.
    signers: OnceLock<Box<dyn Fn() -> Vec<String> + Send + Sync>>,
}

impl Imports {
    /// Creates the import service for `store`. Imports that an earlier run of the program left unfinished are closed as
    /// failed, and undos that it left unfinished are completed.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub fn new(
        store: Store,
        plugins: Arc<Plugins>,
        clock: Arc<dyn Clock>,
        limits: Limits,
        plugin_limits: PluginLimits,
    ) -> Result<Self, IngestError> {
        if store.health() == Health::Good {
            ledger::close_interrupted(&store, clock.now_micros())?;
        }
        let (pen, undoing) = (Pen::default(), Mutex::new(()));
        let (jobs, idle) = (Mutex::default(), Condvar::new());
        let limits = Mutex::new(limits);
        let patience = silent::patience();
        let inner = Inner {
            store,
            plugins,
            clock,
            limits,
            plugin_limits,
            pen,
            undoing,
            jobs,
            idle,
            patience,
            signers: OnceLock::new(),
        };
        interrupted::complete(&inner)?;
        Ok(Self(Arc::new(inner)))
    }

    /// Sets the function that returns the keys which this data directory signs with now, and those it signed with
    /// earlier. Documents signed by these keys are merged as the user's own. Until this is set, no document is.
    pub fn know_signers(&self, signers: impl Fn() -> Vec<String> + Send + Sync + 'static) {
        if self.0.signers.set(Box::new(signers)).is_err() {
            tracing::debug!("which keys sign here is known already");
        }
    }

    /// Returns the importers, in the order in which they are asked.
    ///
    /// # Errors
    /// When one of them does not load.
    pub fn plugins(&self) -> Result<Vec<Plugin>, PluginsError> {
        self.0.plugins.all()
    }

    /// Queues an import and returns the id of its job.
    ///
    /// # Errors
    /// When the provider is unknown or too many jobs are waiting.
    pub fn start(&self, request: ImportRequest) -> Result<Uuid, IngestError> {
        self.start_with(request, None)
    }

    /// Works as [`Imports::start`]; `keys` decrypt an encrypted source.
    ///
    /// # Errors
    /// As for [`Imports::start`].
    pub fn start_with(&self, request: ImportRequest, keys: Option<Keys>) -> Result<Uuid, IngestError> {
        Inner::check(request.provider.as_slice())?;
        self.add(request, keys, None, None)
    }

    /// Queues an import for a watched folder and returns the id of its job; `on_end` is called with the result.
    ///
    /// # Errors
    /// When a provider is unknown or too many jobs are waiting.
    pub fn start_watched(&self, watched: WatchedImport, on_end: OnEnd) -> Result<Uuid, IngestError> {
        Inner::check(&watched.providers)?;
        let path = watched.root.join(&watched.name);
        let request = ImportRequest { path, provider: None, again: false, dry_run: false, apply: None };
        self.add(request, None, Some(watched), Some(on_end))
    }

    fn add(
        &self,
        request: ImportRequest,
        keys: Option<Keys>,
        watched: Option<WatchedImport>,
        on_end: Option<OnEnd>,
    ) -> Result<Uuid, IngestError> {
        let now = crate::clock::check(self.0.clock.now_micros())?;
        let id = Uuid::new_v4();
        let view = watch::Sender::new(JobView::waiting(id, request.path.clone(), now));
        let job = Job::new(request, keys, watched, on_end, view);
        let mut jobs = self.0.jobs();
        if jobs.stopping {
            return Err(IngestError::Stopping);
        }
        let added = jobs.add(id, job);
        drop(jobs);
        if !added {
            return Err(IngestError::Busy);
        }
        self.start_next();
        Ok(id)
    }

    /// Returns a fingerprint of the set of importers and their versions. When it changes, files that were not
    /// recognised are worth another attempt.
    pub fn importers(&self) -> &str {
        self.0.plugins.fingerprint()
    }

    /// Subscribes to the state of a job; `None` if the job is unknown or was forgotten long after its end.
    pub fn subscribe(&self, job: Uuid) -> Option<watch::Receiver<JobView>> {
        self.0.jobs().all.get(&job).map(|job| job.view.subscribe())
    }

    /// Returns the jobs that are running or waiting.
    pub fn active(&self) -> Vec<JobView> {
        self.jobs().into_iter().filter(|view| view.phase != Phase::Ended).collect()
    }

    /// Returns all jobs that are still in memory.
    pub fn jobs(&self) -> Vec<JobView> {
        self.0.jobs().all.values().map(|job| job.view.borrow().clone()).collect()
    }

    /// Requests that a job, or the job of an import, stops; returns false if there is no such active job.
    pub fn cancel(&self, id: &str) -> bool {
        let jobs = self.0.jobs();
        let found = jobs.all.iter().find(|(job, entry)| {
            let view = entry.view.borrow();
            view.phase != Phase::Ended
                && (job.to_string() == id || view.imports.iter().any(|import| import.id == id))
        });
        found.is_some_and(|(_, job)| {
            job.cancel.cancel();
            true
        })
    }

    /// Returns one import, as its job or the ledger has it. Dry runs are not in the ledger: they are known only as long
    /// as their job is.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<ImportRecord>, IngestError> {
        let known = self
            .0
            .jobs()
            .all
            .values()
            .find_map(|job| job.view.borrow().imports.iter().find(|import| import.id == id).cloned());
        match known {
            Some(import) if !import.ended() => Ok(Some(import)),
            // The import may have been undone since its job ended; only the ledger has that.
            known => Ok(ledger::get(&self.0.store, id)?.or(known)),
        }
    }

    /// Undoes an import, or redoes one that was undone; `None` if there is no such import. Durable when this returns.
    ///
    /// # Errors
    /// [`IngestError::Refused`], whose message says what to do, or an error of the store.
    pub fn turn(
        &self,
        request: TurnRequest<'_>,
        cancel: &CancelToken,
    ) -> Result<Option<Outcome>, IngestError> {
        self.0.turn(request, cancel)
    }

    /// Returns a page of imports, newest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn list(&self, after: Option<&Cursor>, limit: usize) -> Result<Page<ImportRecord>, IngestError> {
        ledger::list(&self.0.store, after, limit)
    }

    /// Returns at most `limit` skips of an import, starting at index `from`.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn issues(&self, record: &ImportRecord, from: usize, limit: usize) -> Result<Vec<Skip>, IngestError> {
        let listed = record.skipped.iter().skip(from).take(limit).cloned();
        let mut issues: Vec<Skip> = listed.collect();
        let mut at = (from + issues.len()).saturating_sub(record.skipped.len());
        while issues.len() < limit {
            let page = u32::try_from(at / ledger::ISSUES_PER_PAGE).unwrap_or(u32::MAX);
            if page >= record.issue_pages {
                break;
            }
            let stored = ledger::issues(&self.0.store, record.same_as.as_ref().unwrap_or(&record.id), page)?;
            let rest: Vec<Skip> =
                stored.into_iter().skip(at % ledger::ISSUES_PER_PAGE).take(limit - issues.len()).collect();
            if rest.is_empty() {
                break;
            }
            at += rest.len();
            issues.extend(rest);
        }
        Ok(issues)
    }

    /// Returns the limits on what imports may unpack.
    pub fn limits(&self) -> Limits {
        self.0.limits()
    }

    /// Sets the limits on what an import may unpack, for imports that begin from now on.
    pub fn set_limits(&self, limits: Limits) {
        *self.0.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Stops accepting new jobs and requests all jobs to stop; each stops after the record that it is processing.
    pub fn refuse(&self) {
        let mut jobs = self.0.jobs();
        jobs.stopping = true;
        jobs.clear_waiting();
        jobs.all.values().for_each(|job| job.cancel.cancel());
    }

    /// Requests all jobs to stop and waits until none runs, for at most `patience`. Returns false if one is still
    /// running.
    pub fn stop(&self, patience: Duration) -> bool {
        self.refuse();
        let waited = self.0.idle.wait_timeout_while(self.0.jobs(), patience, |jobs| jobs.running > 0);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn start_next(&self) {
        let mut jobs = self.0.jobs();
        while jobs.running < AT_ONCE
            && let Some(id) = jobs.next()
        {
            let Some(job) = jobs.all.get_mut(&id) else { continue };
            let on_end = job.on_end.take();
            let task = Arc::new(job::Task {
                inner: Arc::clone(&self.0),
                id,
                request: job.request.clone(),
                keys: job.keys.take(),
                watched: job.watched.clone(),
                cancel: job.cancel.clone(),
                view: job.view.clone(),
                pulse: job.pulse.clone(),
                changed: AtomicBool::new(false),
                left: Mutex::new(false),
                on_end: Mutex::new(on_end),
            });
            job.task = Some(Arc::clone(&task));
            let place = Place { imports: self.clone(), id, lent: Arc::clone(&job.lent) };
            jobs.running += 1;
            self.oversee(&mut jobs);
            thread::spawn(move || {
                let place = place;
                background::stand_back();
                // Subscribers of the job wait for its end, so a job that panicked must be ended as well.
                if panic::catch_unwind(AssertUnwindSafe(|| task.go())).is_err() {
                    task.broke_off();
                }
                drop(place);
                task.tell_end();
            });
        }
    }
}

/// One of the [`AT_ONCE`] slots for running jobs. Dropping it frees the slot for the next job, however this one ended.
struct Place {
    imports: Imports,
    id: Uuid,
    /// Whether the slot was already given to another job.
    lent: Arc<AtomicBool>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut jobs = self.imports.0.jobs();
        if !self.lent.swap(true, Ordering::Relaxed) {
            jobs.running -= 1;
        }
        if let Some(job) = jobs.all.get_mut(&self.id) {
            job.task = None;
        }
        drop(jobs);
        self.imports.0.idle.notify_all();
        self.imports.start_next();
    }
}

impl Inner {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the keys whose documents are merged.
    fn known_keys(&self) -> Result<KnownKeys, IngestError> {
        let own = self.signers.get().map(|signers| signers()).unwrap_or_default();
        let trusted = trust::list(&self.store)?.into_iter().map(|key| key.public_key).collect();
        Ok(KnownKeys { own, trusted })
    }

    fn limits(&self) -> Limits {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check(providers: &[String]) -> Result<(), IngestError> {
        // The caller waits for the answer, and compiling importers may take longer than a call should: none is
        // compiled for this check.
        match providers.iter().find(|provider| !Plugins::knows(provider)) {
            None => Ok(()),
            Some(provider) => Err(IngestError::UnknownProvider {
                provider: provider.clone(),
                known: Plugins::platforms().join(", "),
            }),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
