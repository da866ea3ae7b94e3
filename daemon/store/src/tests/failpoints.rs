//! A real process that dies at each named place of the commit path, the first and the last time that it is reached.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use tempfile::TempDir;

use super::{
    damage::files,
    fixture::open_real,
    kill::{check_store, die},
    rounds,
    workload::{Workload, WorkloadRun},
};

/// Set in the child process: the store's folder, the place, and the pass at which it dies there. Without a place it survives.
const DIR: &str = "SATCHEL_TEST_POINTS_DIR";
const NAME: &str = "SATCHEL_TEST_POINTS_PLACE";
const TIME: &str = "SATCHEL_TEST_POINTS_TIME";
const SEED: u64 = 62;
/// Processes that run at the same time.
const AT_ONCE: usize = 4;

/// Every step of the commit path, so that the test fails if one of them loses its name.
const FAILPOINTS: [&str; 20] = [
    "blob copied",
    "blob folders synced",
    "blob renamed",
    "blobs synced",
    "commit encoded",
    "commit framed",
    "database prepared",
    "database written",
    "db.state written",
    "journal synced",
    "journal written",
    "revision published",
    "seal applied",
    "seal synced",
    "segment created",
    "segment full",
    "segment header synced",
    "segment header written",
    "store closed",
    "tail truncated",
];

/// Not a test of its own, but the code of the child process in the test below.
#[test]
fn child_that_kills_itself_at_a_failpoint() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let (name, time) = (std::env::var(NAME).unwrap_or_default(), std::env::var(TIME).unwrap_or_default());
    let time: u64 = time.parse().unwrap_or(0);
    let counts = Mutex::new(BTreeMap::<&str, u64>::new());
    let log = dir.join("places");
    assert!(satchel_failpoints::listen(move |point| {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(point).or_default();
        *count += 1;
        if point == name && *count == time {
            die();
        }
        if name.is_empty() {
            std::fs::write(&log, serde_json::to_vec(&*counts).unwrap()).unwrap();
        }
    }));
    let workload = Workload::new(SEED);
    let mut run = WorkloadRun::default();
    let half = workload.batches.len() / 2;
    for part in [&workload.batches[..half], &workload.batches[half..]] {
        let (store, _) = open_real(&dir.join("store"), "boot").unwrap();
        for step in part {
            run.step(&store, step).unwrap();
            std::fs::write(dir.join("acknowledged").join(run.acknowledged.to_string()), "").unwrap();
        }
        store.close().unwrap();
        tear(&dir.join("store/journal"));
    }
    // This open truncates the torn end.
    open_real(&dir.join("store"), "boot").unwrap().0.close().unwrap();
}

/// Leaves half a frame behind, as a kill in the middle of a write does.
fn tear(journal: &Path) {
    use std::io::Write;
    let last = files(journal).pop().unwrap();
    std::fs::File::options().append(true).open(last).unwrap().write_all(&[0x5a; 37]).unwrap();
}

/// Runs the child process. Returns true if it died.
fn child(dir: &Path, name: &str, time: u64) -> bool {
    std::fs::create_dir(dir.join("acknowledged")).unwrap();
    let arguments =
        ["--exact", "tests::failpoints::child_that_kills_itself_at_a_failpoint", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments).env(DIR, dir).env(NAME, name).env(TIME, time.to_string());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.code().is_none_or(|code| code == 0), "the child failed at {name}, time {time}");
    !status.success()
}

#[test]
fn a_process_killed_at_any_failpoint_keeps_acknowledged_commits() {
    let dir = memory_dir();
    assert!(!child(dir.path(), "", 0), "it died of itself");
    let reached: BTreeMap<String, u64> =
        serde_json::from_slice(&std::fs::read(dir.path().join("places")).unwrap()).unwrap();
    assert_eq!(reached.keys().map(String::as_str).collect::<Vec<_>>(), FAILPOINTS);
    let mut cases = Vec::new();
    for (name, times) in reached {
        let mut chosen = vec![1, times];
        // A longer run also tries passes in between.
        chosen.extend((1..rounds(1)).map(|round| 1 + round * 7 % times));
        chosen.sort_unstable();
        chosen.dedup();
        cases.extend(chosen.into_iter().map(|time| (name.clone(), time)));
    }
    let (workload, next) = (Workload::new(SEED), Mutex::new(cases.into_iter()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, time)) = { next.lock().unwrap().next() } {
                    kill_at(&name, time, &workload);
                }
            });
        }
    });
}

fn kill_at(name: &str, time: u64, workload: &Workload) {
    let dir = memory_dir();
    let what = format!("{name}, time {time}");
    assert!(child(dir.path(), name, time), "{what}: it lives");
    let acknowledged = files(&dir.path().join("acknowledged")).len();
    check_store(&dir.path().join("store"), workload, acknowledged, &what);
}

/// Returns a folder, in memory if possible: there too, data that a killed process has written survives it.
fn memory_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}
