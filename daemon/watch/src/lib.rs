//! Watched folders: what lands there is imported once it has arrived, and once only.
//!
//! Each folder has a thread of its own, so that a share that hangs holds no other. Events of the system are hints; what counts
//! is what a look finds. `settle` decides when a file has arrived, `scan` looks without ever leaving the folder, `folder` brings
//! both together, `memory` keeps what was made of each path.
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

/// Folders that are watched at once; each has a thread.
pub const MAX_FOLDERS: usize = 64;
/// How long a stop waits for threads; one that hangs on a dead share is left behind.
const STOP: Duration = Duration::from_secs(1);

/// Who wants a folder watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration.
    Configured,
    /// `serve --watch`.
    Flag,
    /// Somebody added it at run time; it is kept.
    Added,
}

/// A watched folder as it stands.
#[derive(Clone, Debug)]
pub struct WatchedFolder {
    pub path: PathBuf,
    pub origin: Origin,
    pub spec: WatchSpec,
    pub view: FolderView,
}

/// Why a folder cannot be watched, or let go.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// What was given cannot be watched.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// It lies in another, or another lies in it.
    #[error("{path:?} and the watched folder {other:?} lie in each other; watch the outer one alone")]
    Overlap { path: PathBuf, other: PathBuf },
    /// There are enough.
    #[error("{MAX_FOLDERS} folders are watched already; remove one first")]
    TooMany,
    /// Nobody watches it.
    #[error("{path:?} is not watched")]
    Unknown { path: PathBuf },
    /// It is not ours to remove.
    #[error("{path:?} is watched because {why}; take it out there")]
    Fixed { path: PathBuf, why: &'static str },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All watched folders of a store. Clones share one.
#[derive(Clone)]
pub struct Watch(Arc<Inner>);

struct Inner {
    store: Store,
    imports: Imports,
    clock: Arc<dyn Clock>,
    data_dir: PathBuf,
    pace: Pace,
    base: Instant,
    /// Guards which folders there are.
    folders: Mutex<Folders>,
}

#[derive(Default)]
struct Folders {
    /// Whether threads are to run.
    serving: bool,
    all: BTreeMap<PathBuf, One>,
    /// What could not be taken from the configuration, and why.
    refused: Vec<String>,
}

struct One {
    origin: Origin,
    spec: WatchSpec,
    running: Option<Running>,
}

impl Watch {
    /// Knows the folders of the configuration and those that were added; nothing is looked at before [`Watch::start`].
    ///
    /// # Errors
    /// When the added ones cannot be read from the store.
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

    /// Begins to watch.
    pub fn start(&self) {
        let mut folders = self.0.folders();
        folders.serving = self.0.store.health() == Health::Good;
        self.0.run_all(&mut folders);
    }

    /// Looks at every folder now, whatever the system told.
    pub fn rescan(&self) {
        self.0.folders().running().for_each(Running::rescan);
    }

    /// Takes over the folders of another configuration; those that are in both are not disturbed.
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

    /// Watches one more folder, from now on and after every start; durable when this returns. True: it is new.
    ///
    /// # Errors
    /// When it is no folder, or lies in a watched one.
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

    /// Watches a folder no more; what was imported from it stays. Durable when this returns.
    ///
    /// # Errors
    /// When it is not watched, or not by [`Watch::add`].
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

    /// Every watched folder as it stands, by path.
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

    /// The names in a folder that no importer knew when they were last looked at, the first `most` of them in order.
    ///
    /// # Errors
    /// What the store refuses.
    pub fn unrecognised(&self, root: &Path, most: usize) -> Result<Vec<OsString>, StoreError> {
        memory::unrecognised(&self.0.store, root, most)
    }

    /// What of the configuration cannot be watched, and why.
    pub fn refused(&self) -> Vec<String> {
        self.0.folders().refused.clone()
    }

    /// How long until a moment of a [`Notice`] or [`Trouble`].
    pub fn until(&self, moment: Duration) -> Duration {
        moment.saturating_sub(self.0.base.elapsed())
    }

    /// Watches no more, and waits until nothing is looked at. Jobs that it began are left to [`Imports::stop`].
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

    /// Takes in a folder that nobody waits for an answer about.
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
