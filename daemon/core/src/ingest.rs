//! Imports: jobs that read a path which the user names, and the ledger of their results.
//!
//! A job reads one path and makes one import for each export that it finds there. Two jobs run at a time; further jobs
//! are queued.

mod attachments;
mod derive;
mod detect;
mod erased;
mod error;
mod evidence;
pub(crate) mod exchange;
mod interrupted;
mod job;
mod ledger;
mod normalise;
mod outcome;
mod pam;
mod pieces;
mod plugin_run;
mod queue;
pub mod receipt;
mod records;
mod request;
mod secrets;
pub(crate) mod session;
mod skips;
mod stalled;
pub mod undo;
pub mod unrecognized;
mod write;

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use satchel_host::{Plugin, PluginLimits};
use satchel_pam::record::Skip;
use satchel_registry::{PluginLoadError, Plugins};
use satchel_source::{CancelToken, Limits, envelope::DecryptionKeys};
use satchel_store::{Cursor, Health, Page, Store};
use tokio::sync::watch;
use uuid::Uuid;

pub use self::{
    error::IngestError,
    queue::{JobView, OnEnd, Phase},
    request::{Apply, ImportRequest, WatchedImport},
    secrets::SecretHandling,
    stalled::StalledJob,
};
use self::{
    pam::KnownKeys,
    queue::{Job, JobQueue},
    receipt::ImportRecord,
    undo::{UndoOutcome, UndoRequest},
};
use crate::{
    clock::Clock,
    edits::Edits,
    embeddings::Embeddings,
    priority::{IMPORT_NICE, lower_priority},
    recording::Recordings,
    series::SeriesKey,
    trust,
    uploads::UploadedFile,
    write_lock::WriteLock,
};

/// Jobs that run at the same time: one parses while the other writes.
const AT_ONCE: usize = 2;

/// All imports of a store. Clones share the same state.
#[derive(Clone)]
pub struct Imports(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    plugins: Arc<Plugins>,
    clock: Arc<dyn Clock>,
    /// Guards the limits on what the next import may unpack; they can change while the daemon runs.
    limits: Mutex<Limits>,
    /// Guards what the next import does with secrets; it can change while the daemon runs.
    secrets: Mutex<SecretHandling>,
    plugin_limits: PluginLimits,
    /// Held from a look-up until its result is committed.
    write_lock: Arc<WriteLock>,
    edits: Edits,
    recordings: Recordings,
    embeddings: Embeddings,
    /// Guards undos, so that only one import is undone at a time.
    undoing: Mutex<()>,
    /// Guards the exchange of changes with other stores.
    exchanging: Mutex<()>,
    /// The key of the store's own series of changes.
    series_key: SeriesKey,
    /// Guards the running and waiting jobs.
    jobs: Mutex<JobQueue>,
    /// Notified when a job ends.
    idle: Condvar,
    /// How many jobs have ended.
    ended: watch::Sender<u64>,
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
        let (write_lock, undoing) = (Arc::<WriteLock>::default(), Mutex::new(()));
        let (exchanging, series_key) = (Mutex::new(()), SeriesKey::default());
        let edits =
            Edits::new(store.clone(), Arc::clone(&clock), Arc::clone(&write_lock), series_key.clone());
        let recordings =
            Recordings::new(store.clone(), Arc::clone(&clock), Arc::clone(&write_lock), series_key.clone());
        let embeddings = Embeddings::new(store.clone(), Arc::clone(&clock), Arc::clone(&write_lock));
        let (jobs, idle) = (Mutex::default(), Condvar::new());
        let limits = Mutex::new(limits);
        let patience = stalled::patience();
        let inner = Inner {
            store,
            plugins,
            clock,
            limits,
            secrets: Mutex::default(),
            plugin_limits,
            write_lock,
            edits,
            recordings,
            embeddings,
            undoing,
            exchanging,
            series_key,
            jobs,
            idle,
            ended: watch::Sender::new(0),
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

    /// Returns the changes by hand, which take turns with the imports.
    pub fn edits(&self) -> &Edits {
        &self.0.edits
    }

    /// Returns the recording of conversations, which takes turns with the imports.
    pub fn recordings(&self) -> &Recordings {
        &self.0.recordings
    }

    /// Returns the vectors that programs supply, which take turns with the imports.
    pub fn embeddings(&self) -> &Embeddings {
        &self.0.embeddings
    }

    /// Returns the built-in importers, loaded.
    ///
    /// # Errors
    /// When one of them does not load.
    pub fn plugins(&self) -> Result<Vec<Plugin>, PluginLoadError> {
        self.0.plugins.load_all()
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
    pub fn start_with(
        &self,
        request: ImportRequest,
        keys: Option<DecryptionKeys>,
    ) -> Result<Uuid, IngestError> {
        self.0.check(request.provider.as_slice())?;
        self.0.check_plugin(request.plugin.as_deref())?;
        self.add(request, keys, None, None)
    }

    /// Queues an import for a watched folder and returns the id of its job; `on_end` is called with the result.
    ///
    /// # Errors
    /// When a provider is unknown or too many jobs are waiting.
    pub fn start_watched(&self, watched: WatchedImport, on_end: OnEnd) -> Result<Uuid, IngestError> {
        self.0.check(&watched.providers)?;
        let path = watched.root.join(&watched.name);
        let request =
            ImportRequest { path, provider: None, plugin: None, again: false, dry_run: false, apply: None };
        self.add(request, None, Some(watched), Some(on_end))
    }

    /// Queues the import of an uploaded file, which has no path of its own, and returns the id of its job; `on_end` is
    /// called with the result.
    ///
    /// # Errors
    /// As for [`Imports::start`].
    pub fn start_uploaded(
        &self,
        request: ImportRequest,
        keys: Option<DecryptionKeys>,
        file: UploadedFile,
        on_end: OnEnd,
    ) -> Result<Uuid, IngestError> {
        self.0.check(request.provider.as_slice())?;
        self.0.check_plugin(request.plugin.as_deref())?;
        let request = ImportRequest { path: file.path.clone(), ..request };
        self.queue(request, |job| Job { keys, uploaded: Some(file), on_end: Some(on_end), ..job })
    }

    fn add(
        &self,
        request: ImportRequest,
        keys: Option<DecryptionKeys>,
        watched: Option<WatchedImport>,
        on_end: Option<OnEnd>,
    ) -> Result<Uuid, IngestError> {
        self.queue(request, |job| Job { keys, watched, on_end, ..job })
    }

    fn queue(&self, request: ImportRequest, complete: impl FnOnce(Job) -> Job) -> Result<Uuid, IngestError> {
        let now = crate::clock::check(self.0.clock.now_micros())?;
        let id = Uuid::new_v4();
        let view = watch::Sender::new(JobView::waiting(id, request.path.clone(), now));
        let job = complete(Job::new(request, view));
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
    pub fn importers(&self) -> String {
        self.0.plugins.fingerprint()
    }

    /// Subscribes to the state of a job; `None` if the job is unknown or was forgotten long after its end.
    pub fn subscribe(&self, job: Uuid) -> Option<watch::Receiver<JobView>> {
        self.0.jobs().all.get(&job).map(|job| job.view.subscribe())
    }

    /// Returns whether a job is running or waiting.
    pub fn is_active(&self) -> bool {
        self.0.jobs().all.values().any(|job| job.view.borrow().phase != Phase::Ended)
    }

    /// Returns how many jobs have ended in this process, and wakes at each further one.
    pub fn observe_ends(&self) -> watch::Receiver<u64> {
        self.0.ended.subscribe()
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
    pub fn undo_or_redo(
        &self,
        request: UndoRequest<'_>,
        cancel: &CancelToken,
    ) -> Result<Option<UndoOutcome>, IngestError> {
        self.0.undo_or_redo(request, cancel)
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

    /// Sets what imports that begin from now on do with secrets in what tools printed.
    pub fn set_secret_handling(&self, handling: SecretHandling) {
        *self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner) = handling;
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
            let task = Arc::new(job::ImportTask {
                inner: Arc::clone(&self.0),
                id,
                request: job.request.clone(),
                keys: job.keys.take(),
                watched: job.watched.clone(),
                uploaded: job.uploaded.take(),
                cancel: job.cancel.clone(),
                view: job.view.clone(),
                heartbeat: job.heartbeat.clone(),
                changed: AtomicBool::new(false),
                abandoned: Mutex::new(false),
                on_end: Mutex::new(on_end),
            });
            let running = Arc::clone(&task);
            job.abandon = Some(Arc::new(move || {
                running.abandon();
                running.notify_end();
            }));
            let slot = JobSlot { imports: self.clone(), id, released: Arc::clone(&job.slot_released) };
            jobs.running += 1;
            self.supervise(&mut jobs);
            thread::spawn(move || {
                let slot = slot;
                lower_priority(IMPORT_NICE);
                // Subscribers of the job wait for its end, so a job that panicked must be ended as well.
                if panic::catch_unwind(AssertUnwindSafe(|| task.run())).is_err() {
                    task.end_panicked();
                }
                drop(slot);
                task.notify_end();
            });
        }
    }
}

/// One of the [`AT_ONCE`] slots for running jobs. Dropping it frees the slot for the next job, however this one ended.
struct JobSlot {
    imports: Imports,
    id: Uuid,
    /// Whether the slot was already given to another job.
    released: Arc<AtomicBool>,
}

impl Drop for JobSlot {
    fn drop(&mut self) {
        let mut jobs = self.imports.0.jobs();
        if !self.released.swap(true, Ordering::Relaxed) {
            jobs.running -= 1;
        }
        if let Some(job) = jobs.all.get_mut(&self.id) {
            job.abandon = None;
        }
        drop(jobs);
        self.imports.0.idle.notify_all();
        self.imports.0.ended.send_modify(|ended| *ended += 1);
        self.imports.start_next();
    }
}

impl Inner {
    fn jobs(&self) -> MutexGuard<'_, JobQueue> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the keys whose documents are merged.
    fn known_keys(&self) -> Result<KnownKeys, IngestError> {
        let own = self.signers.get().map(|signers| signers()).unwrap_or_default();
        let trusted = trust::list(&self.store)?.into_iter().map(|key| key.public_key).collect();
        Ok(KnownKeys { own, trusted })
    }

    fn secret_handling(&self) -> SecretHandling {
        *self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self) -> Limits {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check(&self, providers: &[String]) -> Result<(), IngestError> {
        // The caller waits for the answer, and compiling importers may take longer than a call should: none is
        // compiled for this check.
        let known = self.plugins.platforms();
        match providers.iter().find(|provider| !known.contains(provider)) {
            None => Ok(()),
            Some(provider) => {
                Err(IngestError::UnknownProvider { provider: provider.clone(), known: known.join(", ") })
            }
        }
    }

    fn check_plugin(&self, plugin: Option<&str>) -> Result<(), IngestError> {
        let Some(plugin) = plugin else { return Ok(()) };
        let in_use = self.plugins.in_use();
        let mut names = in_use.iter().map(|importer| importer.name());
        if names.clone().any(|name| name == plugin) {
            return Ok(());
        }
        let known = names.by_ref().collect::<Vec<_>>().join(", ");
        Err(IngestError::UnknownPlugin { plugin: plugin.to_owned(), known })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
