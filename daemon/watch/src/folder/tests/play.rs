//! A test harness for the state machine, with simulated time, disk and imports.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use super::super::*;
use crate::{
    events::{Deaf, Hints},
    memory::Known,
    queue::{Outcome, Refused},
    settle::{Hold, Stamp},
};

/// Everything that the machine sees, under the control of a test.
#[derive(Default)]
pub(super) struct World {
    pub(super) now: Moment,
    pub(super) files: BTreeMap<OsString, File>,
    /// The error with which the folder itself cannot be read.
    pub(super) down: Option<io::ErrorKind>,
    pub(super) volume: u64,
    pub(super) silent: bool,
    pub(super) limit: Option<Deaf>,
    pub(super) listening: Vec<PathBuf>,
    pub(super) started: Vec<String>,
    pub(super) refuse: Option<Refused>,
    pub(super) kept: HashMap<OsString, Known>,
    /// The volume of each stored entry.
    pub(super) kept_on: HashMap<OsString, u64>,
    /// Names that cannot be inspected, like those of a share whose server lost them.
    pub(super) stale: BTreeSet<OsString>,
    pub(super) importers: String,
    pub(super) looks: usize,
    /// Number of names that were removed from the store one by one.
    pub(super) forgotten: usize,
    /// Number of walks through all stored entries.
    pub(super) walks: usize,
}

#[derive(Clone)]
pub(super) struct File {
    pub(super) stamp: Stamp,
    pub(super) hold: Option<Hold>,
    pub(super) whole: bool,
    pub(super) denied: bool,
    pub(super) folders: Vec<PathBuf>,
}

#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

impl Disk for Shared {
    fn identity(&self) -> io::Result<(u64, u64)> {
        let world = self.world();
        world.down.map_or(Ok((1, world.volume)), |kind| Err(kind.into()))
    }

    fn tells(&self) -> bool {
        !self.world().silent
    }

    fn list(&self) -> io::Result<(Vec<OsString>, bool)> {
        let world = self.world();
        world.down.map_or_else(|| Ok((world.files.keys().cloned().collect(), false)), |kind| Err(kind.into()))
    }

    fn look(&self, name: &OsStr) -> io::Result<Sight> {
        let mut world = self.world();
        world.looks += 1;
        if let Some(kind) = world.down {
            return Err(kind.into());
        }
        if world.stale.contains(name) {
            return Err(io::ErrorKind::StaleNetworkFileHandle.into());
        }
        let Some(file) = world.files.get(name) else { return Ok(Sight::default()) };
        let look = Look { stamp: file.stamp, hold: file.hold.clone(), took: Duration::ZERO };
        Ok(Sight { look: Some(look), folders: file.folders.clone() })
    }

    fn whole(&self, name: &OsStr) -> io::Result<Result<(), String>> {
        let world = self.world();
        match world.files.get(name) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(file) if file.denied => Err(io::ErrorKind::PermissionDenied.into()),
            Some(file) if file.whole => Ok(Ok(())),
            Some(_) => Ok(Err("the directory at the end of the ZIP cannot be read".to_owned())),
        }
    }
}

impl Hints for Shared {
    fn watch(&mut self, folder: &Path) -> Result<(), Deaf> {
        let mut world = self.world();
        if let Some(limit) = world.limit.clone() {
            return Err(limit);
        }
        world.listening.push(folder.to_owned());
        Ok(())
    }

    fn forget(&mut self, folder: &Path) {
        self.world().listening.retain(|one| one != folder);
    }
}

impl Queue for Shared {
    fn start(&self, name: &OsStr) -> Result<String, Refused> {
        let mut world = self.world();
        if let Some(refused) = &world.refuse {
            return Err(refused.clone());
        }
        world.started.push(name.to_string_lossy().into_owned());
        Ok("job".to_owned())
    }

    fn importers(&self) -> String {
        self.world().importers.clone()
    }
}

impl Memory for Shared {
    fn recall(&self, name: &OsStr) -> Option<Known> {
        self.world().kept.get(name).cloned()
    }

    fn keep(&self, name: &OsStr, known: &Known, _: i64) {
        let mut world = self.world();
        let volume = world.volume;
        world.kept.insert(name.to_owned(), known.clone());
        world.kept_on.insert(name.to_owned(), volume);
    }

    fn forget(&self, folder: u64, name: &OsStr) {
        let mut world = self.world();
        world.forgotten += 1;
        if world.kept_on.get(name) == Some(&folder) {
            world.kept.remove(name);
        }
    }

    fn keep_only(&self, folder: u64, there: &dyn Fn(&OsStr) -> bool) {
        let World { kept, kept_on, walks, .. } = &mut *self.world();
        *walks += 1;
        kept.retain(|name, _| kept_on.get(name) != Some(&folder) || there(name));
    }
}

/// The machine and its simulated world.
pub(super) struct Play {
    pub(super) shared: Shared,
    pub(super) folder: Folder,
}

impl Play {
    pub(super) fn new() -> Self {
        Self::on(Shared::default(), false)
    }

    pub(super) fn on(shared: Shared, poll: bool) -> Self {
        let (listen, clock) = (shared.clone(), shared.clone());
        let parts = Parts {
            root: "/r".into(),
            pace: Pace::default(),
            poll,
            disk: Box::new(shared.clone()),
            listen: Box::new(move || match listen.world().limit.clone() {
                Some(Deaf::Watchers) => Err(Deaf::Watchers),
                _ => Ok(Box::new(listen.clone())),
            }),
            queue: Box::new(shared.clone()),
            memory: Box::new(shared.clone()),
            wall: Box::new(|| 0),
            clock: Box::new(move || clock.world().now),
            stopping: Box::new(|| false),
        };
        Self { shared, folder: Folder::new(parts) }
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }

    pub(super) fn put(&self, name: &str, modified: i64) {
        let stamp = Stamp { bytes: 5, modified, inode: 1, below: 0 };
        let file = File { stamp, hold: None, whole: true, denied: false, folders: Vec::new() };
        self.world().files.insert(name.into(), file);
    }

    pub(super) fn change(&self, name: &str, change: impl FnOnce(&mut File)) {
        change(self.world().files.get_mut(OsStr::new(name)).unwrap());
    }

    /// Advances the time, with a step whenever one is due; the system reports no events.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.world().now + time;
        loop {
            self.folder.step(Pending::default());
            let next = self.folder.next();
            let mut world = self.world();
            if next > end {
                world.now = end;
                return;
            }
            assert!(next > world.now || world.looks < 1_000_000, "it turns in a circle");
            world.now = world.now.max(next);
        }
    }

    pub(super) fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    pub(super) fn told(&mut self, name: &str) {
        let names = BTreeSet::from([name.into()]);
        self.folder.step(Pending { names, ..Pending::default() });
    }

    pub(super) fn ended(&mut self, name: &str, outcome: Outcome) {
        let ended = vec![(name.into(), outcome)];
        self.folder.step(Pending { ended, ..Pending::default() });
    }

    pub(super) fn started(&self) -> Vec<String> {
        std::mem::take(&mut self.world().started)
    }
}
