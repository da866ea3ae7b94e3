//! A disk of a few megabytes that is really full.

use std::{fs, io::Write as _, path::Path, process::Command};

use super::{
    disk::CrashDisk,
    fixture::{self, Model, TestRng, show_all},
    map::MapFolder,
};
use crate::{Health, OpenOptions, Store, StoreError, open::StoreEnvironment};

/// A file system in memory; it is unmounted when this value is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Returns `None` if this process may not mount one.
    fn mount(megabytes: u64) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let size = format!("size={megabytes}m,mode=0700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "satchel-test"]).arg(dir.path()).status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{:?} stays mounted", self.0.path());
    }
}

fn open(dir: &Path, headroom: u64) -> Store {
    let options =
        OpenOptions { boot_id: Some("boot".to_owned()), cache_bytes: 8 << 20, ..OpenOptions::default() };
    let environment = StoreEnvironment { headroom, ..StoreEnvironment::new(dir, &options) };
    Store::open_in(dir, options, environment, &mut |_| {}).unwrap()
}

/// Reports a skipped test on the real stderr, because the captured output of a test that passes is not shown.
fn skipped(why: &str) {
    writeln!(std::io::stderr(), "{why}").unwrap();
}

/// The content when the disk is full, the content that the refused commit would have produced, and the error.
struct FullDisk {
    committed: Model,
    attempted: Model,
    error: StoreError,
}

fn fill(store: &Store, rng: &mut TestRng) -> FullDisk {
    let mut committed = Model::default();
    for _ in 0..500 {
        let mut attempted = committed.clone();
        let batch = attempted.large_batch(rng);
        match store.commit(batch) {
            Ok(_) => committed = attempted,
            Err(error) => return FullDisk { committed, attempted, error },
        }
    }
    panic!("the disk is never full");
}

#[test]
fn a_full_disk_refuses_whole_commits_until_there_is_space() {
    let Some(small) = SmallDisk::mount(100) else {
        skipped(
            "not run: no tmpfs can be mounted here; power::commits_are_refused_below… and crash::a_disk_that_fails… cover it in part",
        );
        return;
    };
    let dir = small.0.path().join("store");
    let ballast = small.0.path().join("ballast");
    let store = open(&dir, StoreEnvironment::new(&dir, &OpenOptions::default()).headroom);
    let mut rng = TestRng(51);
    let FullDisk { committed, error, .. } = fill(&store, &mut rng);
    let mut model = committed.clone();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    // Something else takes the rest of the disk.
    fs::write(&ballast, vec![1; 40 << 20]).unwrap();
    for _ in 0..3 {
        let refused = store.commit(model.clone().batch(&mut rng));
        assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
        assert_eq!(show_all(&store).unwrap(), committed, "reads go on");
    }
    fs::remove_file(&ballast).unwrap();
    // The store's own files keep their space. A larger disk simulates one on which other files were deleted.
    let grown = Command::new("mount").args(["-o", "remount,size=200m"]).arg(small.0.path()).status().unwrap();
    assert!(grown.success());
    for _ in 0..3 {
        store.commit(model.batch(&mut rng)).unwrap();
    }
    assert_eq!((store.health(), show_all(&store).unwrap()), (Health::Good, model.clone()));
    assert!(store.check(true, &mut |_| {}).unwrap().clean());
    store.close().unwrap();
    assert_eq!(show_all(&open(&dir, 0)).unwrap(), model);
}

#[test]
fn a_disk_that_fills_up_loses_nothing() {
    let Some(small) = SmallDisk::mount(16) else {
        skipped("not run: no tmpfs can be mounted here; crash::a_disk_that_fails… covers it in part");
        return;
    };
    let dir = small.0.path().join("store");
    // Without headroom the writes of the engine fail too.
    let store = open(&dir, 0);
    let FullDisk { committed, attempted, error } = fill(&store, &mut TestRng(52));
    assert!(matches!(error, StoreError::Full { .. } | StoreError::Engine { .. }), "{error}");
    drop(store);
    let grown = Command::new("mount").args(["-o", "remount,size=80m"]).arg(small.0.path()).status().unwrap();
    assert!(grown.success());
    let store = open(&dir, 0);
    assert_eq!(store.health(), Health::Good);
    let shown = show_all(&store).unwrap();
    // A commit whose engine write failed is in the journal, complete, as its message says.
    let whole = shown == committed || (matches!(error, StoreError::Engine { .. }) && shown == attempted);
    assert!(whole, "{error}");
    store.commit(Model::default().batch(&mut TestRng(3))).unwrap();
    assert!(store.check(true, &mut |_| {}).unwrap().clean());
}

fn mount(small: &SmallDisk, option: &str) {
    let done = Command::new("mount").args(["-o", option]).arg(small.0.path()).status().unwrap();
    assert!(done.success(), "{option}");
}

/// Fills the rest of a disk.
fn fill_rest(ballast: &Path) {
    let mut file = fs::File::create(ballast).unwrap();
    while file.write_all(&[1; 8 << 10]).is_ok() {}
    while file.write_all(&[1]).is_ok() {}
}

#[test]
fn a_store_on_a_filled_disk_stays_readable_and_recovers() {
    let Some(small) = SmallDisk::mount(300) else {
        skipped("not run: no tmpfs can be mounted here; a_database_without_space… covers it in part");
        return;
    };
    let (dir, ballast) = (small.0.path().join("store"), small.0.path().join("ballast"));
    let store = open(&dir, StoreEnvironment::new(&dir, &OpenOptions::default()).headroom);
    let (mut rng, mut model) = (TestRng(57), Model::default());
    // The database cannot write the data that is still pending: sled fails permanently from then on. It may have written
    // everything before.
    let failed = (0..8).any(|_| {
        for _ in 0..3 {
            store.commit(model.large_batch(&mut rng)).unwrap();
        }
        fill_rest(&ballast);
        let failed = store.engine().flush().is_err();
        if !failed {
            fs::remove_file(&ballast).unwrap();
        }
        failed
    });
    assert!(failed, "the database was always quicker");
    let refused = store.commit(model.clone().batch(&mut rng));
    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
    assert_eq!((store.health(), show_all(&store).unwrap()), (Health::Good, model.clone()));
    fs::remove_file(&ballast).unwrap();
    for _ in 0..3 {
        store.commit(model.batch(&mut rng)).unwrap();
        assert_eq!((store.health(), show_all(&store).unwrap()), (Health::Good, model.clone()));
    }
    assert!(store.check(true, &mut |_| {}).unwrap().clean());
    store.close().unwrap();
    let store = open(&dir, 0);
    assert_eq!((store.health(), show_all(&store).unwrap()), (Health::Good, model.clone()));
    store.commit(model.batch(&mut rng)).unwrap();
    fill_rest(&ballast);
    store.close().unwrap();
    fs::remove_file(&ballast).unwrap();
    assert_eq!(
        show_all(&open(&dir, 0)).unwrap(),
        model,
        "nothing confirmed is lost by a stop on a full disk"
    );
}

/// Lets each batch to the database fail in turn: a commit for which it finds no room is either confirmed or absent.
#[test]
fn a_database_without_space_is_replaced_by_one_in_memory() {
    check_memory_fallback();
    fixture::sealed(check_memory_fallback);
}

fn check_memory_fallback() {
    for batches in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let (disk, db) = (CrashDisk::default(), MapFolder::default());
        let (store, _) = fixture::open(folder.path(), &disk, &db, "boot").unwrap();
        let (mut rng, mut model) = (TestRng(61 + batches as u64), Model::default());
        for _ in 0..3 {
            store.commit(model.batch(&mut rng)).unwrap();
        }
        db.0.fill_after(batches);
        for _ in 0..5 {
            let mut attempted = model.clone();
            match store.commit(attempted.batch(&mut rng)) {
                Ok(_) => model = attempted,
                Err(error) => assert!(matches!(error, StoreError::Full { .. }), "{error}"),
            }
            assert_eq!((store.health(), show_all(&store).unwrap()), (Health::Good, model.clone()));
        }
        assert!(store.check(true, &mut |_| {}).unwrap().clean());
        drop(store);
        let (store, _) = fixture::open(folder.path(), &disk, &MapFolder::default(), "next boot").unwrap();
        assert_eq!(show_all(&store).unwrap(), model, "after {batches} batches");
    }
}

#[test]
fn a_full_or_read_only_disk_is_read_without_writes() {
    let Some(small) = SmallDisk::mount(90) else {
        skipped("not run: no tmpfs can be mounted here");
        return;
    };
    let (dir, ballast) = (small.0.path().join("store"), small.0.path().join("ballast"));
    let (mut rng, mut model) = (TestRng(71), Model::default());
    let store = open(&dir, 0);
    for _ in 0..3 {
        store.commit(model.batch(&mut rng)).unwrap();
    }
    let (digest, revision) = (store.state_digest(), store.revision());
    store.close().unwrap();
    fill_rest(&ballast);
    let plain = || OpenOptions { boot_id: Some("boot".to_owned()), ..OpenOptions::default() };
    let error = Store::open(&dir, plain(), &mut |_| {}).unwrap_err();
    assert!(error.unwritable(), "{error}");
    let files = || {
        let mut all = vec![dir.clone()];
        let mut seen = Vec::new();
        while let Some(path) = all.pop() {
            let found = fs::metadata(&path).unwrap();
            seen.push((path.clone(), found.len(), found.modified().unwrap()));
            if found.is_dir() {
                all.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        seen.sort();
        seen
    };
    let check_read_only = |why: &str| {
        let before = files();
        let read = || Store::open_read_only(&dir, plain(), why.to_owned(), &mut |_| {}).unwrap();
        // Readers do not block each other.
        let (store, other) = (read(), read());
        assert_eq!((store.state_digest(), store.revision()), (digest, revision));
        assert_eq!((show_all(&store).unwrap(), show_all(&other).unwrap()), (model.clone(), model.clone()));
        assert_eq!(store.health(), Health::ReadOnly(why.to_owned()));
        let refused = store.commit(model.clone().batch(&mut TestRng(5)));
        assert!(matches!(&refused, Err(StoreError::ReadOnly { reason, .. }) if reason == why), "{refused:?}");
        assert!(store.check(true, &mut |_| {}).unwrap().clean());
        other.close().unwrap();
        store.close().unwrap();
        assert_eq!(files(), before, "nothing was written");
    };
    check_read_only("full");
    fs::remove_file(&ballast).unwrap();
    mount(&small, "remount,ro");
    assert!(Store::open(&dir, plain(), &mut |_| {}).unwrap_err().unwritable());
    check_read_only("read-only");
    mount(&small, "remount,rw");
    let store = open(&dir, 0);
    assert_eq!(show_all(&store).unwrap(), model);
    store.commit(model.batch(&mut rng)).unwrap();
    let writing = Store::open_read_only(&dir, plain(), String::new(), &mut |_| {});
    assert!(matches!(writing, Err(StoreError::Locked { .. })), "{writing:?}");
}
