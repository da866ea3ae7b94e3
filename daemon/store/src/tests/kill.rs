//! A real process with real files that kills itself at the k-th call to the disk or the engine: before the call, in the middle of
//! its bytes, or after it.
//!
//! The calls are those of commits, attachments, segment rolls, seals, writes of `db.state` and starts: create, write, fsync,
//! rename and remove of files, fsync of folders, truncations, and batches and flushes of sled.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    damage::files,
    fixture::{SEGMENT_LIMIT, open_real, show_all},
    rounds,
    workload::{Workload, WorkloadRun},
};
use crate::{
    Health, OpenOptions, Store,
    disk::{Disk, DiskFile, OsDisk},
    engine::{
        Changes, Engine, EngineError, Pair,
        folder::{EngineFolder, FileFingerprint, SledFolder},
    },
    open::StoreEnvironment,
};

/// Set in the child process: the store's folder, the call, and how far it gets.
const DIR: &str = "SATCHEL_TEST_DYING_DIR";
const CALL: &str = "SATCHEL_TEST_DYING_CALL";
const MOMENT: &str = "SATCHEL_TEST_DYING_WHEN";
const MOMENTS: [&str; 3] = ["before", "within", "after"];
const SEED: u64 = 61;

/// Counts calls, and ends the process at the chosen one as `kill -9` would.
#[derive(Clone)]
struct KillSwitch {
    calls: Arc<AtomicU64>,
    at: u64,
    moment: String,
}

impl KillSwitch {
    fn call<T>(&self, within: impl FnOnce(), call: impl FnOnce() -> T) -> T {
        let chosen = self.calls.fetch_add(1, Ordering::AcqRel) + 1 == self.at;
        if chosen && self.moment != "after" {
            if self.moment == "within" {
                within();
            }
            die();
        }
        let done = call();
        if chosen {
            die();
        }
        done
    }
}

pub(super) fn die() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
}

struct KillDisk(KillSwitch);
struct KillFile(KillSwitch, Arc<dyn DiskFile>);

impl Disk for KillDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.0.call(|| (), || OsDisk.create(path))?;
        Ok(Arc::new(KillFile(self.0.clone(), file)))
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(KillFile(self.0.clone(), OsDisk.open(path, write)?)))
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        self.0.call(|| (), || OsDisk.create_folders(path))
    }

    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        OsDisk.names(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.call(|| (), || OsDisk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.call(|| (), || OsDisk.remove(path))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.0.call(|| (), || OsDisk.sync_folder(path))
    }

    fn free(&self, path: &Path) -> u64 {
        OsDisk.free(path)
    }
}

impl DiskFile for KillFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let half = || self.1.write_at(offset, &bytes[..bytes.len() / 2]).unwrap();
        self.0.call(half, || self.1.write_at(offset, bytes))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.read_at(offset, buffer)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.call(|| (), || self.1.sync())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.call(|| (), || self.1.set_length(length))
    }

    fn length(&self) -> io::Result<u64> {
        self.1.length()
    }
}

struct KillFolder(KillSwitch, SledFolder);
struct KillEngine(KillSwitch, Arc<dyn Engine>);

impl EngineFolder for KillFolder {
    fn released(&self) -> io::Result<bool> {
        self.1.released()
    }

    fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        let engine = self.0.call(|| (), || self.1.open())?;
        Ok(Arc::new(KillEngine(self.0.clone(), engine)))
    }

    fn set_aside(&self) -> io::Result<()> {
        self.0.call(|| (), || self.1.set_aside())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.call(|| (), || self.1.sync())
    }

    fn fingerprints(&self) -> io::Result<Vec<FileFingerprint>> {
        self.1.fingerprints()
    }
}

impl Engine for KillEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.1.get(key)
    }

    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        self.1.scan(from, until, limit, reverse)
    }

    fn apply(&self, batch: Changes) -> Result<(), EngineError> {
        self.0.call(|| (), || self.1.apply(batch))
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.0.call(|| (), || self.1.flush())
    }

    fn size(&self) -> u64 {
        self.1.size()
    }
}

/// Not a test of its own, but the code of the child process in the test below.
#[test]
fn child_that_kills_itself() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let kill_switch = KillSwitch {
        calls: Arc::default(),
        at: std::env::var(CALL).unwrap().parse().unwrap(),
        moment: std::env::var(MOMENT).unwrap(),
    };
    let workload = Workload::new(SEED);
    let mut run = WorkloadRun::default();
    let half = workload.batches.len() / 2;
    for part in [&workload.batches[..half], &workload.batches[half..]] {
        let options = OpenOptions { boot_id: Some("boot".to_owned()), ..OpenOptions::default() };
        let environment = StoreEnvironment {
            disk: Arc::new(KillDisk(kill_switch.clone())),
            db: Arc::new(KillFolder(
                kill_switch.clone(),
                SledFolder::new(&dir.join("store"), options.cache_bytes),
            )),
            segment_limit: SEGMENT_LIMIT,
            headroom: 0,
        };
        let store = Store::open_in(&dir.join("store"), options, environment, &mut |_| {}).unwrap();
        for step in part {
            run.step(&store, step).unwrap();
            // The log of acknowledged batches: one file for each, so that only its name is needed.
            std::fs::write(dir.join("acknowledged").join(run.acknowledged.to_string()), "").unwrap();
        }
        store.close().unwrap();
    }
}

/// Runs the child process. Returns true if it died.
fn child(dir: &Path, call: u64, moment: &str) -> bool {
    let arguments = ["--exact", "tests::kill::child_that_kills_itself", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments).env(DIR, dir).env(CALL, call.to_string()).env(MOMENT, moment);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.code().is_none_or(|code| code == 0), "the child failed at call {call}, {moment}");
    !status.success()
}

#[test]
fn a_process_killed_at_any_call_keeps_acknowledged_commits() {
    let workload = Workload::new(SEED);
    // About twenty calls in a short run; `SATCHEL_FAULT_ROUNDS=20` tries every one.
    let stride = (23 / rounds(1)).max(1);
    let (mut call, mut deaths) = (1, 0);
    loop {
        let moment = MOMENTS[(call / stride % 3) as usize];
        let moments = if stride == 1 { MOMENTS.to_vec() } else { vec![moment] };
        let mut died = false;
        for moment in moments {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("acknowledged")).unwrap();
            died |= child(dir.path(), call, moment);
            let acknowledged = files(&dir.path().join("acknowledged")).len();
            check_store(
                &dir.path().join("store"),
                &workload,
                acknowledged,
                &format!("call {call}, {moment}"),
            );
        }
        if !died {
            break;
        }
        deaths += 1;
        call += stride;
    }
    assert!(deaths > 5, "{deaths} deaths");
}

/// Checks that all acknowledged batches are there, at most one more, each of them complete, and that a rebuild gives the same
/// content.
pub(super) fn check_store(dir: &Path, workload: &Workload, acknowledged: usize, what: &str) {
    let (store, _) = open_real(dir, "boot").unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(store.health(), Health::Good, "{what}");
    let shown = show_all(&store).unwrap();
    let n =
        (acknowledged..workload.models.len().min(acknowledged + 2)).find(|&n| workload.models[n] == shown);
    let Some(n) = n else { panic!("{what}: not the state after {acknowledged} batches or one more") };
    let report = store.check(true, &mut |_| {}).unwrap();
    assert!(report.clean(), "{what}: {report:?}");
    for bytes in workload.batches[..n].iter().filter_map(|(_, picture)| picture.as_ref()) {
        let sha256 = sha2::Digest::finalize(sha2::Digest::chain_update(sha2::Sha256::default(), bytes));
        assert!(store.blob_open(&sha256.into()).unwrap().is_some(), "{what}: an attachment is gone");
    }
    let digest = store.state_digest();
    drop(store);
    let rebuilt =
        Store::open(dir, OpenOptions { rebuild: true, ..OpenOptions::default() }, &mut |_| {}).unwrap();
    assert_eq!(rebuilt.state_digest(), digest, "{what}");
    for (batch, _) in &workload.batches[n..] {
        rebuilt.commit(batch.clone()).unwrap();
    }
    assert_eq!(show_all(&rebuilt).unwrap(), *workload.models.last().unwrap(), "{what}");
}
