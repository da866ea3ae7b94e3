//! A test harness for the state machine, with simulated time, disk and imports.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use super::super::*;
use crate::{
    notifier::{Notifier, NotifierError},
    outcome::FileOutcome,
    queue::StartError,
    settle::{Hold, Stamp},
    verdicts::KnownFile,
};

/// Everything that the watcher sees, under the control of a test.
#[derive(Default)]
pub(super) struct Simulation {
    pub(super) now: MonotonicTime,
    pub(super) files: BTreeMap<OsString, SimulatedFile>,
    /// The error with which the folder itself cannot be read.
    pub(super) folder_error: Option<io::ErrorKind>,
    pub(super) volume: u64,
    pub(super) no_events: bool,
    pub(super) notifier_error: Option<NotifierError>,
    pub(super) watched_folders: Vec<PathBuf>,
    pub(super) started: Vec<String>,
    pub(super) start_error: Option<StartError>,
    pub(super) verdicts: HashMap<OsString, KnownFile>,
    /// The volume of each stored entry.
    pub(super) verdict_volumes: HashMap<OsString, u64>,
    /// Names that cannot be inspected, like those of a share whose server lost them.
    pub(super) stale: BTreeSet<OsString>,
    pub(super) importers: String,
    pub(super) inspections: usize,
    /// Number of names that were removed from the store one by one.
    pub(super) removals: usize,
    /// Number of walks through all stored entries.
    pub(super) ledger_walks: usize,
}

#[derive(Clone)]
pub(super) struct SimulatedFile {
    pub(super) stamp: Stamp,
    pub(super) hold: Option<Hold>,
    pub(super) complete: bool,
    pub(super) denied: bool,
    pub(super) folders: Vec<PathBuf>,
    pub(super) related: Vec<OsString>,
}

#[derive(Clone, Default)]
pub(super) struct SharedSimulation(Arc<Mutex<Simulation>>);

impl SharedSimulation {
    pub(super) fn simulation(&self) -> MutexGuard<'_, Simulation> {
        self.0.lock().unwrap()
    }
}

impl FolderFs for SharedSimulation {
    fn identity(&self) -> io::Result<(u64, u64)> {
        let simulation = self.simulation();
        simulation.folder_error.map_or(Ok((1, simulation.volume)), |kind| Err(kind.into()))
    }

    fn reports_changes(&self) -> bool {
        !self.simulation().no_events
    }

    fn list(&self) -> io::Result<(Vec<OsString>, bool)> {
        let simulation = self.simulation();
        simulation
            .folder_error
            .map_or_else(|| Ok((simulation.files.keys().cloned().collect(), false)), |kind| Err(kind.into()))
    }

    fn inspect(&self, name: &OsStr) -> io::Result<Inspection> {
        let mut simulation = self.simulation();
        simulation.inspections += 1;
        if let Some(kind) = simulation.folder_error {
            return Err(kind.into());
        }
        if simulation.stale.contains(name) {
            return Err(io::ErrorKind::StaleNetworkFileHandle.into());
        }
        let Some(file) = simulation.files.get(name) else { return Ok(Inspection::default()) };
        let observation = Observation { stamp: file.stamp, hold: file.hold.clone(), took: Duration::ZERO };
        Ok(Inspection {
            observation: Some(observation),
            folders: file.folders.clone(),
            related: file.related.clone(),
        })
    }

    fn check_complete(&self, name: &OsStr) -> io::Result<Result<(), String>> {
        let simulation = self.simulation();
        match simulation.files.get(name) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(file) if file.denied => Err(io::ErrorKind::PermissionDenied.into()),
            Some(file) if file.complete => Ok(Ok(())),
            Some(_) => Ok(Err("the directory at the end of the ZIP cannot be read".to_owned())),
        }
    }
}

impl Notifier for SharedSimulation {
    fn watch(&mut self, folder: &Path) -> Result<(), NotifierError> {
        let mut simulation = self.simulation();
        if let Some(limit) = simulation.notifier_error.clone() {
            return Err(limit);
        }
        simulation.watched_folders.push(folder.to_owned());
        Ok(())
    }

    fn unwatch(&mut self, folder: &Path) {
        self.simulation().watched_folders.retain(|watched| watched != folder);
    }
}

impl ImportQueue for SharedSimulation {
    fn start(&self, name: &OsStr) -> Result<String, StartError> {
        let mut simulation = self.simulation();
        if let Some(error) = &simulation.start_error {
            return Err(error.clone());
        }
        simulation.started.push(name.to_string_lossy().into_owned());
        Ok("job".to_owned())
    }

    fn importers(&self) -> String {
        self.simulation().importers.clone()
    }
}

impl VerdictStore for SharedSimulation {
    fn load(&self, name: &OsStr) -> Option<KnownFile> {
        self.simulation().verdicts.get(name).cloned()
    }

    fn save(&self, name: &OsStr, known: &KnownFile, _: i64) {
        let mut simulation = self.simulation();
        let volume = simulation.volume;
        simulation.verdicts.insert(name.to_owned(), known.clone());
        simulation.verdict_volumes.insert(name.to_owned(), volume);
    }

    fn remove(&self, folder: u64, name: &OsStr) {
        let mut simulation = self.simulation();
        simulation.removals += 1;
        if simulation.verdict_volumes.get(name) == Some(&folder) {
            simulation.verdicts.remove(name);
        }
    }

    fn retain(&self, folder: u64, exists: &dyn Fn(&OsStr) -> bool) {
        let Simulation { verdicts, verdict_volumes, ledger_walks, .. } = &mut *self.simulation();
        *ledger_walks += 1;
        verdicts.retain(|name, _| verdict_volumes.get(name) != Some(&folder) || exists(name));
    }
}

/// A watcher and its simulated surroundings.
pub(super) struct WatcherFixture {
    pub(super) simulated: SharedSimulation,
    pub(super) watcher: FolderWatcher,
}

impl WatcherFixture {
    pub(super) fn new() -> Self {
        Self::with_simulation(SharedSimulation::default(), false)
    }

    pub(super) fn with_simulation(simulated: SharedSimulation, poll: bool) -> Self {
        Self::watching(simulated, poll, false)
    }

    /// A watcher of a folder with sessions.
    pub(super) fn with_sessions() -> Self {
        Self::watching(SharedSimulation::default(), false, true)
    }

    fn watching(simulated: SharedSimulation, poll: bool, sessions: bool) -> Self {
        let (notifier, clock) = (simulated.clone(), simulated.clone());
        let dependencies = FolderDependencies {
            root: "/r".into(),
            intervals: WatchIntervals::default(),
            sessions,
            poll,
            fs: Box::new(simulated.clone()),
            notifier_factory: Box::new(move || match notifier.simulation().notifier_error.clone() {
                Some(NotifierError::InstanceLimit) => Err(NotifierError::InstanceLimit),
                _ => Ok(Box::new(notifier.clone())),
            }),
            queue: Box::new(simulated.clone()),
            verdicts: Box::new(simulated.clone()),
            wall_clock: Box::new(|| 0),
            clock: Box::new(move || clock.simulation().now),
            stopping: Box::new(|| false),
        };
        Self { simulated, watcher: FolderWatcher::new(dependencies) }
    }

    pub(super) fn simulation(&self) -> MutexGuard<'_, Simulation> {
        self.simulated.simulation()
    }

    pub(super) fn add_file(&self, name: &str, modified: i64) {
        let stamp = Stamp { bytes: 5, modified, inode: 1, below: 0 };
        let file = SimulatedFile {
            stamp,
            hold: None,
            complete: true,
            denied: false,
            folders: Vec::new(),
            related: Vec::new(),
        };
        self.simulation().files.insert(name.into(), file);
    }

    pub(super) fn change_file(&self, name: &str, change: impl FnOnce(&mut SimulatedFile)) {
        change(self.simulation().files.get_mut(OsStr::new(name)).unwrap());
    }

    /// Advances the time, with a step whenever one is due; the system reports no events.
    pub(super) fn advance(&mut self, time: Duration) {
        let end = self.simulation().now + time;
        loop {
            self.watcher.step(PendingEvents::default());
            let next = self.watcher.next();
            let mut simulation = self.simulation();
            if next > end {
                simulation.now = end;
                return;
            }
            assert!(
                next > simulation.now || simulation.inspections < 1_000_000,
                "the watcher makes no progress"
            );
            simulation.now = simulation.now.max(next);
        }
    }

    pub(super) fn advance_seconds(&mut self, seconds: u64) {
        self.advance(Duration::from_secs(seconds));
    }

    pub(super) fn notify(&mut self, name: &str) {
        let names = BTreeSet::from([name.into()]);
        self.watcher.step(PendingEvents { names, ..PendingEvents::default() });
    }

    pub(super) fn end_import(&mut self, name: &str, outcome: FileOutcome) {
        let ended_imports = vec![(name.into(), outcome)];
        self.watcher.step(PendingEvents { ended_imports, ..PendingEvents::default() });
    }

    pub(super) fn take_started(&self) -> Vec<String> {
        std::mem::take(&mut self.simulation().started)
    }
}
