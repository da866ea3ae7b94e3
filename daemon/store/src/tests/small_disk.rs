//! A disk of a few megabytes, which is really full.

use std::{fs, io::Write as _, path::Path, process::Command};

use super::world::{Dice, Model, show_all};
use crate::{Health, OpenOptions, Store, StoreError, open::Ground};

/// A file system in memory; it is unmounted when this goes.
struct Small(tempfile::TempDir);

impl Small {
    /// None where this process may not mount one.
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

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{:?} stays mounted", self.0.path());
    }
}

fn open(dir: &Path, headroom: u64) -> Store {
    let options =
        OpenOptions { boot_id: Some("boot".to_owned()), cache_bytes: 8 << 20, ..OpenOptions::default() };
    let ground = Ground { headroom, ..Ground::new(dir, &options) };
    Store::open_on(dir, options, ground, &mut |_| {}).unwrap()
}

/// Says so past the capture of the test's output, which nobody sees of a test that passes.
fn skipped(why: &str) {
    writeln!(std::io::stderr(), "{why}").unwrap();
}

/// What stands when the disk is full, what the refused commit would have made of it, and the refusal.
struct Filled {
    stands: Model,
    attempted: Model,
    error: StoreError,
}

fn fill(store: &Store, dice: &mut Dice) -> Filled {
    let mut stands = Model::default();
    for _ in 0..500 {
        let mut attempted = stands.clone();
        let batch = attempted.large_batch(dice);
        match store.commit(batch) {
            Ok(_) => stands = attempted,
            Err(error) => return Filled { stands, attempted, error },
        }
    }
    panic!("the disk is never full");
}

#[test]
fn a_full_disk_refuses_whole_commits_and_takes_them_again_when_there_is_room() {
    let Some(small) = Small::mount(100) else {
        skipped(
            "not run: no tmpfs can be mounted here; power::a_nearly_full_disk… and crash::a_disk_that_refuses… stand in",
        );
        return;
    };
    let dir = small.0.path().join("store");
    let ballast = small.0.path().join("ballast");
    let store = open(&dir, Ground::new(&dir, &OpenOptions::default()).headroom);
    let mut dice = Dice(51);
    let Filled { stands, error, .. } = fill(&store, &mut dice);
    let mut model = stands.clone();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    // Somebody else takes the rest of the disk.
    fs::write(&ballast, vec![1; 40 << 20]).unwrap();
    for _ in 0..3 {
        let refused = store.commit(model.clone().batch(&mut dice));
        assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
        assert_eq!(show_all(&store).unwrap(), stands, "reads go on");
    }
    fs::remove_file(&ballast).unwrap();
    // What the store wrote keeps its room; a larger disk stands for one on which other things were deleted.
    let grown = Command::new("mount").args(["-o", "remount,size=200m"]).arg(small.0.path()).status().unwrap();
    assert!(grown.success());
    for _ in 0..3 {
        store.commit(model.batch(&mut dice)).unwrap();
    }
    assert_eq!((store.health(), show_all(&store).unwrap()), (Health::Good, model.clone()));
    assert!(store.check(true, &mut |_| {}).unwrap().clean());
    store.close().unwrap();
    assert_eq!(show_all(&open(&dir, 0)).unwrap(), model);
}

#[test]
fn a_disk_that_fills_up_under_the_database_loses_nothing() {
    let Some(small) = Small::mount(16) else {
        skipped("not run: no tmpfs can be mounted here; crash::a_disk_that_refuses… stands in");
        return;
    };
    let dir = small.0.path().join("store");
    // Without headroom the engine too is refused its pieces.
    let store = open(&dir, 0);
    let Filled { stands, attempted, error } = fill(&store, &mut Dice(52));
    assert!(matches!(error, StoreError::Full { .. } | StoreError::Engine { .. }), "{error}");
    drop(store);
    let grown = Command::new("mount").args(["-o", "remount,size=80m"]).arg(small.0.path()).status().unwrap();
    assert!(grown.success());
    let store = open(&dir, 0);
    assert_eq!(store.health(), Health::Good);
    let shown = show_all(&store).unwrap();
    // A commit that the engine was refused is in the journal, whole, as its message says.
    let whole = shown == stands || (matches!(error, StoreError::Engine { .. }) && shown == attempted);
    assert!(whole, "{error}");
    store.commit(Model::default().batch(&mut Dice(3))).unwrap();
    assert!(store.check(true, &mut |_| {}).unwrap().clean());
}
