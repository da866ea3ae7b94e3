//! Watched folders: each file that arrives there is imported once it is complete, and only once.
//!
//! Each folder has its own thread, so that a share that hangs does not block the others. Events of the system are
//! hints; decisions are based on inspecting the folder. `settle` decides when a file has arrived, `scan` inspects the
//! folder without ever leaving it, `folder` combines both, and `memory` stores the verdict for each path.
//!
//! **Invariant:** files are read, never changed, moved or deleted (`files_stay_as_they_are` in `tests/`).

mod disk;
mod events;
mod folder;
mod mailbox;
mod memory;
mod queue;
mod run;
mod scan;
mod settle;
mod spec;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use satchel_store::{Health, Store, StoreError};

use self::run::Running;
pub use self::{
    folder::{FolderView, Notice, Pace, State, Trouble},
    spec::{SpecError, WatchSpec, Watching},
};
use satchel_core::{clock::Clock, ingest::Imports};

/// Largest number of folders that are watched at once; each has a thread.
pub const MAX_FOLDERS: usize = 64;
/// How long a stop waits for the threads. A thread that hangs on a dead share is abandoned.
const STOP: Duration = Duration::from_secs(1);

/// The reason why a folder is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
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
    pub origin: Origin,
    pub spec: WatchSpec,
    pub view: FolderView,
}

/// The reason why a folder cannot be watched, or its watch cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The folder as specified cannot be watched.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The folder contains a watched folder, or is inside one.
    #[error("{path:?} and the watched folder {other:?} lie in each other; watch the outer one alone")]
    Overlap { path: PathBuf, other: PathBuf },
    /// The limit of watched folders is reached.
    #[error("{MAX_FOLDERS} folders are watched already; remove one first")]
    TooMany,
    /// The folder is not watched.
    #[error("{path:?} is not watched")]
    Unknown { path: PathBuf },
    /// The folder was not added at run time, so it cannot be removed at run time.
    #[error("{path:?} is watched because {why}; take it out there")]
    Fixed { path: PathBuf, why: &'static str },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All watched folders of a store. Clones share them.
#[derive(Clone)]
pub struct Watch(Arc<Inner>);

struct Inner {
    store: Store,
    imports: Imports,
    clock: Arc<dyn Clock>,
    data_dir: PathBuf,
    pace: Pace,
    base: Instant,
    /// Guards the set of folders.
    folders: Mutex<Folders>,
}

#[derive(Default)]
struct Folders {
    /// Whether threads should run.
    serving: bool,
    all: BTreeMap<PathBuf, One>,
    /// The folders of the configuration that cannot be watched, with the reasons.
    refused: Vec<String>,
}

struct One {
    origin: Origin,
    spec: WatchSpec,
    running: Option<Running>,
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
        watching: &Watching,
    ) -> Result<Self, WatchError> {
        let added = memory::added(&store)?;
        let pace = watching.pace.clone();
        let (base, folders) = (Instant::now(), Mutex::default());
        let watch = Self(Arc::new(Inner { store, imports, clock, data_dir, pace, base, folders }));
        {
            let mut folders = watch.0.folders();
            for (origin, specs) in [(Origin::Flag, &watching.flags), (Origin::Configured, &watching.folders)]
            {
                specs.iter().for_each(|spec| folders.take_in(spec.clone(), origin));
            }
            added.into_iter().for_each(|path| folders.take_in(WatchSpec::of(path), Origin::Added));
        }
        Ok(watch)
    }

    /// Starts to watch.
    pub fn start(&self) {
        let mut folders = self.0.folders();
        folders.serving = self.0.store.health() == Health::Good;
        self.0.run_all(&mut folders);
    }

    /// Scans every folder now, regardless of events.
    pub fn rescan(&self) {
        self.0.folders().running().for_each(Running::rescan);
    }

    /// Applies the folders of another configuration. Folders that are in both are not interrupted.
    pub fn reconfigure(&self, specs: &[WatchSpec]) {
        let mut folders = self.0.folders();
        folders.refused.clear();
        folders.all.retain(|_, one| one.origin != Origin::Configured || specs.contains(&one.spec));
        let known: Vec<WatchSpec> = folders.all.values().map(|one| one.spec.clone()).collect();
        for spec in specs.iter().filter(|spec| !known.contains(spec)) {
            folders.take_in(spec.clone(), Origin::Configured);
        }
        self.0.run_all(&mut folders);
    }

    /// Watches one more folder, from now on and after every start; durable when this returns. Returns true if it is
    /// new.
    ///
    /// # Errors
    /// If the path is not a folder, or the folder is inside a watched one or contains one.
    pub fn add(&self, path: &Path) -> Result<bool, WatchError> {
        let spec = WatchSpec::of(path.to_owned()).checked_now()?;
        let mut folders = self.0.folders();
        if folders.all.contains_key(&spec.path) {
            return Ok(false);
        }
        folders.fits(&spec)?;
        let path = spec.path.clone();
        let one = One { origin: Origin::Added, spec, running: None };
        folders.all.insert(path.clone(), one);
        if let Err(error) = self.0.keep_added(&folders) {
            folders.all.remove(&path);
            return Err(error);
        }
        self.0.run_all(&mut folders);
        Ok(true)
    }

    /// Stops watching a folder. Data imported from it stays. Durable when this returns.
    ///
    /// # Errors
    /// If the folder is not watched, or was not added by [`Watch::add`].
    pub fn remove(&self, path: &Path) -> Result<(), WatchError> {
        let mut folders = self.0.folders();
        let one = folders.all.get(path).ok_or_else(|| WatchError::Unknown { path: path.to_owned() })?;
        let why = match one.origin {
            Origin::Added => None,
            Origin::Configured => Some("the configuration names it"),
            Origin::Flag => Some("`satchel serve --watch` names it"),
        };
        if let Some(why) = why {
            return Err(WatchError::Fixed { path: path.to_owned(), why });
        }
        let Some(one) = folders.all.remove(path) else { return Ok(()) };
        if let Err(error) = self.0.keep_added(&folders) {
            folders.all.insert(path.to_owned(), one);
            return Err(error);
        }
        Ok(())
    }

    /// Returns every watched folder with its current status, by path.
    pub fn folders(&self) -> Vec<WatchedFolder> {
        let folders = self.0.folders();
        let shown = folders.all.iter().map(|(path, one)| WatchedFolder {
            path: path.clone(),
            origin: one.origin,
            spec: one.spec.clone(),
            view: one.running.as_ref().map(Running::view).unwrap_or_default(),
        });
        shown.collect()
    }

    /// Returns the first `most` names, in order, that no importer recognised when they were last inspected.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn unrecognised(&self, root: &Path, most: usize) -> Result<Vec<OsString>, StoreError> {
        memory::unrecognised(&self.0.store, root, most)
    }

    /// Returns the reasons for folders of the configuration that cannot be watched.
    pub fn refused(&self) -> Vec<String> {
        self.0.folders().refused.clone()
    }

    /// Returns the time left until a moment in a [`Notice`] or [`Trouble`].
    pub fn until(&self, moment: Duration) -> Duration {
        moment.saturating_sub(self.0.base.elapsed())
    }

    /// Stops watching and waits until no folder is being inspected. Jobs that were started are left to
    /// [`Imports::stop`].
    pub fn stop(&self) {
        let mut folders = self.0.folders();
        folders.serving = false;
        let running: Vec<Running> = folders.all.values_mut().filter_map(|one| one.running.take()).collect();
        drop(folders);
        running.iter().for_each(Running::stop);
        let end = Instant::now() + STOP;
        for one in running {
            if !one.wait(end.saturating_duration_since(Instant::now())) {
                tracing::warn!("a watched folder does not answer; its watcher is left behind");
            }
        }
    }
}

impl Inner {
    fn folders(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_all(&self, folders: &mut Folders) {
        if !folders.serving {
            return;
        }
        for one in folders.all.values_mut().filter(|one| one.running.is_none()) {
            one.running = Some(Running::start(self, &one.spec));
        }
    }

    fn keep_added(&self, folders: &Folders) -> Result<(), WatchError> {
        let added = folders.all.iter().filter(|(_, one)| one.origin == Origin::Added);
        let paths: Vec<&str> = added.filter_map(|(path, _)| path.to_str()).collect();
        Ok(memory::keep_added(&self.store, &paths, self.clock.now_micros())?)
    }
}

impl Folders {
    fn running(&self) -> impl Iterator<Item = &Running> {
        self.all.values().filter_map(|one| one.running.as_ref())
    }

    /// Adds a folder when no caller waits for the result.
    fn take_in(&mut self, spec: WatchSpec, origin: Origin) {
        if self.all.contains_key(&spec.path) {
            return;
        }
        match self.fits(&spec) {
            Ok(()) => {
                self.all.insert(spec.path.clone(), One { origin, spec, running: None });
            }
            Err(error) => {
                tracing::warn!(%error, "a folder is not watched");
                self.refused.push(error.to_string());
            }
        }
    }

    fn fits(&self, spec: &WatchSpec) -> Result<(), WatchError> {
        let inside = |other: &&PathBuf| other.starts_with(&spec.path) || spec.path.starts_with(other);
        if let Some(other) = self.all.keys().find(inside) {
            return Err(WatchError::Overlap { path: spec.path.clone(), other: other.clone() });
        }
        if self.all.len() >= MAX_FOLDERS {
            return Err(WatchError::TooMany);
        }
        Ok(())
    }
}
