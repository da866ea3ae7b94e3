//! Watched folders: each file that arrives there is imported once it is complete, and only once.
//!
//! Each folder has its own thread, so that a share that hangs does not block the others. Events of the system are
//! hints; decisions are based on inspecting the folder. `settle` decides when a file has arrived, `scan` inspects the
//! folder without ever leaving it, `watcher` combines both, and `verdicts` stores the verdict for each path.
//!
//! **Invariant:** files are read, never changed, moved or deleted (`watched_files_stay_unchanged` in `tests/`).

mod folder_fs;
mod folder_thread;
mod mailbox;
mod notifier;
mod outcome;
mod queue;
mod scan;
mod settle;
mod spec;
mod verdicts;
mod watcher;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use satchel_store::{Health, Store, StoreError};

use self::folder_thread::FolderThread;
pub use self::{
    spec::{SpecError, WatchConfig, WatchSpec},
    watcher::{FileStatus, FolderStatus, WatchIntervals, WatchProblem, WatchState},
};
use satchel_core::{clock::Clock, ingest::Imports};

/// Largest number of folders that are watched at once; each has a thread.
const MAX_FOLDERS: usize = 64;
/// How long a stop waits for the threads. A thread that hangs on a dead share is abandoned.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why a folder is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchOrigin {
    /// The configuration names it.
    Configured,
    /// `serve --watch` names it.
    Flag,
    /// It was added at run time; the store keeps it.
    Added,
}

/// A watched folder and its current status.
#[derive(Clone, Debug)]
pub struct WatchedFolder {
    pub path: PathBuf,
    pub origin: WatchOrigin,
    pub spec: WatchSpec,
    pub status: FolderStatus,
}

/// The reason why a folder cannot be watched, or its watch cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The folder as specified cannot be watched.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The folder contains a watched folder, or is inside one.
    #[error("{path:?} overlaps the watched folder {other:?}; watch only the outer one")]
    Overlap { path: PathBuf, other: PathBuf },
    /// The limit of watched folders is reached.
    #[error("{MAX_FOLDERS} folders are already watched; remove one first")]
    TooMany,
    /// The folder is not watched.
    #[error("{path:?} is not watched")]
    Unknown { path: PathBuf },
    /// The folder was not added at run time, so it cannot be removed at run time.
    #[error("{path:?} is watched because {why}; remove it there")]
    Fixed { path: PathBuf, why: &'static str },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All watched folders of a store. Clones share them.
#[derive(Clone)]
pub struct Watch(Arc<WatchInner>);

struct WatchInner {
    store: Store,
    imports: Imports,
    clock: Arc<dyn Clock>,
    data_dir: PathBuf,
    intervals: WatchIntervals,
    start: Instant,
    /// Guards the set of folders.
    folders: Mutex<FolderSet>,
}

#[derive(Default)]
struct FolderSet {
    /// Whether threads should run.
    serving: bool,
    entries: BTreeMap<PathBuf, WatchEntry>,
    /// The folders of the configuration that cannot be watched, with the reasons.
    refused: Vec<String>,
}

struct WatchEntry {
    origin: WatchOrigin,
    spec: WatchSpec,
    thread: Option<FolderThread>,
}

impl Watch {
    /// Takes the folders of the configuration and those that were added. Nothing is inspected before [`Watch::start`].
    ///
    /// # Errors
    /// If the added folders cannot be read from the store.
    pub fn new(
        store: Store,
        imports: Imports,
        clock: Arc<dyn Clock>,
        data_dir: PathBuf,
        config: &WatchConfig,
    ) -> Result<Self, WatchError> {
        let added = verdicts::load_added(&store)?;
        let intervals = config.intervals.clone();
        let (start, folders) = (Instant::now(), Mutex::default());
        let watch = Self(Arc::new(WatchInner { store, imports, clock, data_dir, intervals, start, folders }));
        {
            let mut folders = watch.0.folders();
            for (origin, specs) in
                [(WatchOrigin::Flag, &config.flags), (WatchOrigin::Configured, &config.folders)]
            {
                specs.iter().for_each(|spec| folders.insert_or_refuse(spec.clone(), origin));
            }
            added.into_iter().for_each(|spec| folders.insert_or_refuse(spec, WatchOrigin::Added));
        }
        Ok(watch)
    }

    /// Starts to watch.
    pub fn start(&self) {
        let mut folders = self.0.folders();
        folders.serving = self.0.store.health() == Health::Good;
        self.0.start_threads(&mut folders);
    }

    /// Scans every folder now, regardless of events.
    pub fn rescan(&self) {
        self.0.folders().threads().for_each(FolderThread::rescan);
    }

    /// Applies the folders of another configuration. Folders that are in both are not interrupted.
    pub fn reconfigure(&self, specs: &[WatchSpec]) {
        let mut folders = self.0.folders();
        folders.refused.clear();
        folders
            .entries
            .retain(|_, entry| entry.origin != WatchOrigin::Configured || specs.contains(&entry.spec));
        let known: Vec<WatchSpec> = folders.entries.values().map(|entry| entry.spec.clone()).collect();
        for spec in specs.iter().filter(|spec| !known.contains(spec)) {
            folders.insert_or_refuse(spec.clone(), WatchOrigin::Configured);
        }
        self.0.start_threads(&mut folders);
    }

    /// Watches one more folder or file, from now on and after every start; durable when this returns. Of the specification, `sessions`,
    /// `settle` and `ignore` are kept. Returns true if the path is new.
    ///
    /// # Errors
    /// If the path is neither a folder nor a file that importers read, or is inside a watched folder or contains one.
    pub fn add(&self, spec: WatchSpec) -> Result<bool, WatchError> {
        let spec = spec.checked_on_disk()?;
        let mut folders = self.0.folders();
        if folders.entries.contains_key(&spec.path) {
            return Ok(false);
        }
        folders.check_addable(&spec)?;
        let path = spec.path.clone();
        let entry = WatchEntry { origin: WatchOrigin::Added, spec, thread: None };
        folders.entries.insert(path.clone(), entry);
        if let Err(error) = self.0.store_added(&folders) {
            folders.entries.remove(&path);
            return Err(error);
        }
        self.0.start_threads(&mut folders);
        Ok(true)
    }

    /// Stops watching a folder. Data imported from it stays. Durable when this returns.
    ///
    /// # Errors
    /// If the folder is not watched, or was not added by [`Watch::add`].
    pub fn remove(&self, path: &Path) -> Result<(), WatchError> {
        let mut folders = self.0.folders();
        let entry = folders.entries.get(path).ok_or_else(|| WatchError::Unknown { path: path.to_owned() })?;
        let fixed_by = match entry.origin {
            WatchOrigin::Added => None,
            WatchOrigin::Configured => Some("the configuration names it"),
            WatchOrigin::Flag => Some("`satchel serve --watch` names it"),
        };
        if let Some(why) = fixed_by {
            return Err(WatchError::Fixed { path: path.to_owned(), why });
        }
        let Some(entry) = folders.entries.remove(path) else { return Ok(()) };
        if let Err(error) = self.0.store_added(&folders) {
            folders.entries.insert(path.to_owned(), entry);
            return Err(error);
        }
        Ok(())
    }

    /// Returns every watched folder with its current status, by path.
    pub fn folders(&self) -> Vec<WatchedFolder> {
        let folders = self.0.folders();
        let folders = folders.entries.iter().map(|(path, entry)| WatchedFolder {
            path: path.clone(),
            origin: entry.origin,
            spec: entry.spec.clone(),
            status: entry.thread.as_ref().map(FolderThread::status).unwrap_or_default(),
        });
        folders.collect()
    }

    /// Returns the first `limit` names, in order, that no importer recognised when they were last inspected.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn unrecognised(&self, root: &Path, limit: usize) -> Result<Vec<OsString>, StoreError> {
        let folders = self.0.folders();
        let folder = folders.entries.get(root).map_or(root, |entry| entry.spec.folder()).to_owned();
        drop(folders);
        verdicts::unrecognised(&self.0.store, &folder, limit)
    }

    /// Returns the reasons for folders of the configuration that cannot be watched.
    pub fn refused(&self) -> Vec<String> {
        self.0.folders().refused.clone()
    }

    /// Returns the time left until a moment in a [`FileStatus`] or [`WatchProblem`].
    pub fn time_until(&self, moment: Duration) -> Duration {
        moment.saturating_sub(self.0.start.elapsed())
    }

    /// Stops watching and waits until no folder is being inspected. Jobs that were started are left to
    /// [`Imports::stop`].
    pub fn stop(&self) {
        let mut folders = self.0.folders();
        folders.serving = false;
        let threads: Vec<FolderThread> =
            folders.entries.values_mut().filter_map(|entry| entry.thread.take()).collect();
        drop(folders);
        threads.iter().for_each(FolderThread::stop);
        let end = Instant::now() + STOP_TIMEOUT;
        for thread in threads {
            if !thread.wait_for_end(end.saturating_duration_since(Instant::now())) {
                tracing::warn!("a watched folder does not respond; its thread is abandoned");
            }
        }
    }
}

impl WatchInner {
    fn folders(&self) -> MutexGuard<'_, FolderSet> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_threads(&self, folders: &mut FolderSet) {
        if !folders.serving {
            return;
        }
        for entry in folders.entries.values_mut().filter(|entry| entry.thread.is_none()) {
            entry.thread = Some(FolderThread::start(self, &entry.spec));
        }
    }

    fn store_added(&self, folders: &FolderSet) -> Result<(), WatchError> {
        let added = folders.entries.iter().filter(|(_, entry)| entry.origin == WatchOrigin::Added);
        let specs = added.map(|(_, entry)| &entry.spec);
        Ok(verdicts::store_added(&self.store, specs, self.clock.now_micros())?)
    }
}

impl FolderSet {
    fn threads(&self) -> impl Iterator<Item = &FolderThread> {
        self.entries.values().filter_map(|entry| entry.thread.as_ref())
    }

    /// Adds a folder when no caller waits for the result.
    fn insert_or_refuse(&mut self, spec: WatchSpec, origin: WatchOrigin) {
        if self.entries.contains_key(&spec.path) {
            return;
        }
        match self.check_addable(&spec) {
            Ok(()) => {
                self.entries.insert(spec.path.clone(), WatchEntry { origin, spec, thread: None });
            }
            Err(error) => {
                tracing::warn!(%error, "a folder is not watched");
                self.refused.push(error.to_string());
            }
        }
    }

    fn check_addable(&self, spec: &WatchSpec) -> Result<(), WatchError> {
        let inside = |other: &&PathBuf| other.starts_with(&spec.path) || spec.path.starts_with(other);
        if let Some(other) = self.entries.keys().find(inside) {
            return Err(WatchError::Overlap { path: spec.path.clone(), other: other.clone() });
        }
        if self.entries.len() >= MAX_FOLDERS {
            return Err(WatchError::TooMany);
        }
        Ok(())
    }
}
