//! Imports: jobs that read what a person points at, and the ledger of what came of it.
//!
//! A job looks at one path and makes one import for each export that it finds there. Two run at a time; more wait.

mod attach;
mod conclude;
mod detect;
mod job;
mod ledger;
mod leftover;
mod memo;
mod memories;
mod normalise;
mod pam;
pub mod receipt;
mod run;
mod write;

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use satchel_host::{CancelToken, Limits as PluginLimits, Plugin};
use satchel_pam::record::Skip;
use satchel_store::{Cursor, Health, Page, Store, StoreError};
use tokio::sync::watch;
use uuid::Uuid;

use self::receipt::ImportRecord;
use crate::{
    clock::Clock,
    intake::{IntakeError, Limits},
    plugins::{Plugins, PluginsError},
};

/// The reason that stands in the history of what an import wrote.
pub(crate) const REASON: &str = "import";
/// Imports that run at once: one parses while the other writes.
const AT_ONCE: usize = 2;
/// Jobs that wait; a client that starts more is told to wait itself.
const WAITING: usize = 1_000;
/// Ended jobs whose outcome can still be watched.
const REMEMBERED: usize = 1_000;

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
    /// Take it although its base is not known, or its checksum or signature does not hold.
    pub force: bool,
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
    /// Bytes of this phase.
    pub done: u64,
    /// Of how many.
    pub total: u64,
    /// One for each export found so far; the last may still run.
    pub imports: Vec<ImportRecord>,
}

/// Why an import could not be made, or broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
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
    /// Too many at once.
    #[error("{WAITING} imports are waiting already; try again when some have ended")]
    Busy,
    /// A bug.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
    /// A bug.
    #[error("the import broke off by an internal error; please report this")]
    Panicked,
}

/// All imports of a store. Clones share one.
#[derive(Clone)]
pub struct Imports(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    plugins: Arc<Plugins>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    plugin_limits: PluginLimits,
    /// Guards the way from a look-up to its commit.
    turn: Mutex<()>,
    /// Guards who runs and who waits.
    jobs: Mutex<Jobs>,
    /// Told when a job ends.
    idle: Condvar,
}

#[derive(Default)]
struct Jobs {
    running: usize,
    waiting: Vec<Uuid>,
    order: Vec<Uuid>,
    all: BTreeMap<Uuid, Job>,
}

struct Job {
    request: ImportRequest,
    cancel: CancelToken,
    view: watch::Sender<JobView>,
}

impl Imports {
    /// Serves imports into `store`; those that an earlier run left behind are closed.
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
        let (turn, jobs, idle) = (Mutex::new(()), Mutex::default(), Condvar::new());
        Ok(Self(Arc::new(Inner { store, plugins, clock, limits, plugin_limits, turn, jobs, idle })))
    }

    /// The importers, in the order in which they are asked.
    ///
    /// # Errors
    /// When one of them does not load.
    pub fn plugins(&self) -> Result<&[Plugin], PluginsError> {
        self.0.plugins.all()
    }

    /// Queues an import and answers its job.
    ///
    /// # Errors
    /// When the provider is unknown or too many wait.
    pub fn start(&self, request: ImportRequest) -> Result<Uuid, IngestError> {
        self.0.check(&request)?;
        let id = Uuid::new_v4();
        let view = JobView {
            id,
            path: request.path.clone(),
            phase: Phase::Waiting,
            done: 0,
            total: 0,
            imports: Vec::new(),
        };
        let mut jobs = self.0.jobs();
        if jobs.waiting.len() >= WAITING {
            return Err(IngestError::Busy);
        }
        jobs.all.insert(id, Job { request, cancel: CancelToken::new(), view: watch::Sender::new(view) });
        jobs.order.push(id);
        jobs.waiting.push(id);
        jobs.forget_old();
        drop(jobs);
        self.start_next();
        Ok(id)
    }

    /// Follows a job; none if it is unknown or long over.
    pub fn subscribe(&self, job: Uuid) -> Option<watch::Receiver<JobView>> {
        self.0.jobs().all.get(&job).map(|job| job.view.subscribe())
    }

    /// The jobs that run or wait.
    pub fn active(&self) -> Vec<JobView> {
        let jobs = self.0.jobs();
        jobs.all
            .values()
            .map(|job| job.view.borrow().clone())
            .filter(|view| view.phase != Phase::Ended)
            .collect()
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
        known.map_or_else(|| ledger::get(&self.0.store, id), |import| Ok(Some(import)))
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

    /// Asks all jobs to stop and waits until none runs.
    pub fn stop(&self) {
        let mut jobs = self.0.jobs();
        jobs.waiting.clear();
        jobs.all.values().for_each(|job| job.cancel.cancel());
        drop(self.0.idle.wait_while(jobs, |jobs| jobs.running > 0));
    }

    fn start_next(&self) {
        let mut jobs = self.0.jobs();
        while jobs.running < AT_ONCE && !jobs.waiting.is_empty() {
            let id = jobs.waiting.remove(0);
            let Some(job) = jobs.all.get(&id) else { continue };
            let task = job::Task {
                inner: Arc::clone(&self.0),
                id,
                request: job.request.clone(),
                cancel: job.cancel.clone(),
                view: job.view.clone(),
            };
            jobs.running += 1;
            let place = Place(self.clone());
            thread::spawn(move || {
                let _place = place;
                // Whoever follows the job waits for its end, so it has to have one.
                if panic::catch_unwind(AssertUnwindSafe(|| task.go())).is_err() {
                    task.broke_off();
                }
            });
        }
    }
}

/// One of the [`AT_ONCE`] places; freed for the next job however this one ends.
struct Place(Imports);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.jobs().running -= 1;
        self.0.0.idle.notify_all();
        self.0.start_next();
    }
}

impl Inner {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, request: &ImportRequest) -> Result<(), IngestError> {
        let Some(provider) = &request.provider else { return Ok(()) };
        let plugins = self.plugins.all()?.iter().map(|plugin| plugin.info().platform.as_str());
        let known: Vec<&str> = plugins.chain([pam::PLATFORM]).collect();
        if known.contains(&provider.as_str()) {
            return Ok(());
        }
        Err(IngestError::UnknownProvider { provider: provider.clone(), known: known.join(", ") })
    }
}

impl Jobs {
    fn forget_old(&mut self) {
        while self.order.len() > REMEMBERED + WAITING {
            let oldest = self.order.remove(0);
            self.all.remove(&oldest);
        }
    }
}
