//! Imports: jobs that read what a person points at, and the ledger of what came of it.
//!
//! A job looks at one path and makes one import for each export that it finds there. Two run at a time; more wait.

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
use satchel_source::{CancelToken, IntakeError, Limits, envelope::Keys};
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

/// The reason that stands in the history of what an import wrote.
pub(crate) const REASON: &str = "import";
/// The reason that stands in the history of what an undo, or its taking back, wrote.
pub(crate) const UNDONE: &str = "undo of an import";
/// Imports that run at once: one parses while the other writes.
const AT_ONCE: usize = 2;

/// What to import.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// A file or a folder.
    pub path: PathBuf,
    /// Only this platform's importers.
    pub provider: Option<String>,
    /// Even if the same bytes were imported before.
    pub again: bool,
    /// Say what would happen, store nothing.
    pub dry_run: bool,
    /// Merge PAM documents by the specification's rules on whose they are and what they build on; nothing else is read then.
    pub apply: Option<Apply>,
}

/// What a person lets pass when they apply a PAM document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// Whose the store is; none: nobody's yet.
    pub owner: Option<String>,
    /// Take it although it is somebody else's.
    pub any_owner: bool,
    /// Merge it although its base is not known, something of it does not hold, or nobody whom they trust signed it.
    pub force: bool,
    /// Trust this key from now on; the document must be signed by it.
    pub trust: Option<PublicKey>,
}

/// What a watched folder brings.
#[derive(Clone, Debug)]
pub struct WatchedImport {
    /// The folder; nothing outside of it is read.
    pub root: PathBuf,
    /// The file or folder in it.
    pub name: OsString,
    /// Only these platforms' importers; empty: any.
    pub providers: Vec<String>,
}

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Others come first.
    Waiting,
    /// The source is opened and its importer chosen.
    Looking,
    /// Its bytes are hashed.
    Hashing,
    /// Records arrive and are stored.
    Reading,
    /// Memories are derived.
    Settling,
    /// It is over.
    Ended,
}

/// A job as it stands.
#[derive(Clone, Debug)]
pub struct JobView {
    pub id: Uuid,
    pub path: PathBuf,
    pub phase: Phase,
    /// When it was asked for, in microseconds since the Unix epoch.
    pub created_at: i64,
    /// When it ended.
    pub finished_at: Option<i64>,
    /// Bytes of this phase.
    pub done: u64,
    /// Of how many.
    pub total: u64,
    /// One for each export found so far; the last may still run.
    pub imports: Vec<ImportRecord>,
}

impl JobView {
    /// A job that has just been asked for.
    fn waiting(id: Uuid, path: PathBuf, created_at: i64) -> Self {
        let imports = Vec::new();
        Self { id, path, phase: Phase::Waiting, created_at, finished_at: None, done: 0, total: 0, imports }
    }

    fn end(&mut self, now: i64) {
        self.phase = Phase::Ended;
        self.finished_at = Some(now);
    }
}

/// Why an import could not be made, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// What an import must not be asked for as it stands.
    #[error("{0}")]
    Refused(String),
    /// The importers.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// The source.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger of exports.
    #[error(transparent)]
    Exported(#[from] crate::exported::ExportedError),
    /// No importer of that name.
    #[error("no importer reads exports of {provider:?}; known are {known}")]
    UnknownProvider { provider: String, known: String },
    /// The clock of the machine.
    #[error(transparent)]
    Clock(#[from] crate::clock::ClockError),
    /// Too many at once.
    #[error("{WAITING} imports are waiting already; try again when some have ended")]
    Busy,
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
    /// Somebody stopped it.
    #[error("it was cancelled")]
    Cancelled,
    /// Records that this import counted as stored are shown no more.
    #[error("an earlier import of the same records was undone meanwhile; import it again")]
    UndoneMeanwhile,
    /// The disk.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[source] std::io::Error),
    /// A bug.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
    /// A bug.
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

/// All imports of a store. Clones share one.
#[derive(Clone)]
pub struct Imports(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    plugins: Arc<Plugins>,
    clock: Arc<dyn Clock>,
    /// Guards what the next import may unpack; it can change while the daemon runs.
    limits: Mutex<Limits>,
    plugin_limits: PluginLimits,
    /// Guards the way from a look-up to its commit.
    pen: Pen,
    /// Guards that one import is undone at a time.
    undoing: Mutex<()>,
    /// Guards who runs and who waits.
    jobs: Mutex<Jobs>,
    /// Told when a job ends.
    idle: Condvar,
    /// Milliseconds that a source may be silent.
    patience: AtomicU64,
    /// Answers the keys that sign and signed here.
    signers: OnceLock<Box<dyn Fn() -> Vec<String> + Send + Sync>>,
}

impl Imports {
    /// Serves imports into `store`; those that an earlier run left behind are closed, and undos that it left behind are
    /// completed.
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

    /// Says which keys sign and signed here: the documents of their holder are merged as the person's own. Until it is said, none
    /// are.
    pub fn know_signers(&self, signers: impl Fn() -> Vec<String> + Send + Sync + 'static) {
        if self.0.signers.set(Box::new(signers)).is_err() {
            tracing::debug!("which keys sign here is known already");
        }
    }

    /// The importers, in the order in which they are asked.
    ///
    /// # Errors
    /// When one of them does not load.
    pub fn plugins(&self) -> Result<Vec<Plugin>, PluginsError> {
        self.0.plugins.all()
    }

    /// Queues an import and answers its job.
    ///
    /// # Errors
    /// When the provider is unknown or too many wait.
    pub fn start(&self, request: ImportRequest) -> Result<Uuid, IngestError> {
        self.start_with(request, None)
    }

    /// As [`Imports::start`]; `keys` open a source that is encrypted.
    ///
    /// # Errors
    /// As [`Imports::start`].
    pub fn start_with(&self, request: ImportRequest, keys: Option<Keys>) -> Result<Uuid, IngestError> {
        Inner::check(request.provider.as_slice())?;
        self.add(request, keys, None, None)
    }

    /// Queues what a watched folder brings and answers its job; `on_end` hears how it ended.
    ///
    /// # Errors
    /// When a provider is unknown or too many wait.
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

    /// Which importers there are, and of which make: another text, and what was not recognised is worth another look.
    pub fn importers(&self) -> &str {
        self.0.plugins.fingerprint()
    }

    /// Follows a job; none if it is unknown or long over.
    pub fn subscribe(&self, job: Uuid) -> Option<watch::Receiver<JobView>> {
        self.0.jobs().all.get(&job).map(|job| job.view.subscribe())
    }

    /// The jobs that run or wait.
    pub fn active(&self) -> Vec<JobView> {
        self.jobs().into_iter().filter(|view| view.phase != Phase::Ended).collect()
    }

    /// All jobs that are remembered.
    pub fn jobs(&self) -> Vec<JobView> {
        self.0.jobs().all.values().map(|job| job.view.borrow().clone()).collect()
    }

    /// Asks a job, or the job of an import, to stop; false if none such runs.
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

    /// One import, as its job or the ledger has it. The ledger has no dry runs: they are known as long as their job is.
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
            // What became of it since then, the ledger knows.
            known => Ok(ledger::get(&self.0.store, id)?.or(known)),
        }
    }

    /// Undoes an import, or takes that back; none if there is no such import. Durable when this returns.
    ///
    /// # Errors
    /// [`IngestError::Refused`], which says what to do; what the store refuses.
    pub fn turn(
        &self,
        request: TurnRequest<'_>,
        cancel: &CancelToken,
    ) -> Result<Option<Outcome>, IngestError> {
        self.0.turn(request, cancel)
    }

    /// Imports, newest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn list(&self, after: Option<&Cursor>, limit: usize) -> Result<Page<ImportRecord>, IngestError> {
        ledger::list(&self.0.store, after, limit)
    }

    /// The skips of an import from the `from`th on, at most `limit`.
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

    /// What imports may unpack.
    pub fn limits(&self) -> Limits {
        self.0.limits()
    }

    /// What imports that begin from now on may unpack.
    pub fn set_limits(&self, limits: Limits) {
        *self.0.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Begins nothing new and asks all jobs to stop; each does so at its next whole record.
    pub fn refuse(&self) {
        let mut jobs = self.0.jobs();
        jobs.stopping = true;
        jobs.clear_waiting();
        jobs.all.values().for_each(|job| job.cancel.cancel());
    }

    /// Asks all jobs to stop and waits until none runs, at most for `patience`. False if one still does.
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
                // Whoever follows the job waits for its end, so it has to have one.
                if panic::catch_unwind(AssertUnwindSafe(|| task.go())).is_err() {
                    task.broke_off();
                }
                drop(place);
                task.tell_end();
            });
        }
    }
}

/// One of the [`AT_ONCE`] places; freed for the next job however this one ends.
struct Place {
    imports: Imports,
    id: Uuid,
    /// Whether others have it already.
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

    /// Whose documents are merged.
    fn known_keys(&self) -> Result<KnownKeys, IngestError> {
        let own = self.signers.get().map(|signers| signers()).unwrap_or_default();
        let trusted = trust::list(&self.store)?.into_iter().map(|key| key.public_key).collect();
        Ok(KnownKeys { own, trusted })
    }

    fn limits(&self) -> Limits {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check(providers: &[String]) -> Result<(), IngestError> {
        // The caller waits, and to compile importers may take longer than a call does: none is compiled for this.
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
