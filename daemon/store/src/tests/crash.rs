//! Power losses, kills and failing disks: nothing acknowledged is lost, and no batch is visible in part.

use std::io::ErrorKind;

use super::{
    disk::{CrashDisk, Files, Loss},
    fixture::{Model, TestRng, open, show, show_all},
    map::MapFolder,
};
use crate::{Batch, Health, OpenEvent, Revision, StoreError};

/// A run of random batches: `models[n]` is the content after `n` of them, `revisions[n]` the revision at that point.
struct Plan {
    batches: Vec<Batch>,
    models: Vec<Model>,
    revisions: Vec<u64>,
}

impl Plan {
    fn new(seed: u64, count: usize) -> Self {
        let mut plan = Self { batches: Vec::new(), models: vec![Model::default()], revisions: vec![0] };
        let (mut model, mut rng) = (Model::default(), TestRng(seed));
        for _ in 0..count {
            let batch = model.batch(&mut rng);
            let raised = u64::from(batch.raises_revision());
            plan.revisions.push(plan.revisions.last().unwrap() + raised);
            plan.models.push(model.clone());
            plan.batches.push(batch);
        }
        plan
    }

    /// Checks that the store in the folder is in the state after some number of batches, not fewer than `acknowledged`.
    fn check(
        &self,
        disk: &CrashDisk,
        db: &MapFolder,
        boot: &str,
        acknowledged: usize,
        what: &str,
    ) -> Vec<OpenEvent> {
        let (store, events) = open(folder().path(), disk, db, boot).unwrap();
        assert_eq!(store.health(), Health::Good, "{what}");
        let shown = show_all(&store).unwrap();
        let found = (acknowledged..self.models.len()).find(|&n| self.models[n] == shown);
        let Some(found) = found else { panic!("{what}: not the state after {acknowledged} batches or more") };
        assert_eq!(store.revision().get(), self.revisions[found], "{what}");
        for n in 0..=found {
            let then = show(&store, Revision::new(self.revisions[n])).unwrap();
            if self.revisions.get(n + 1) != Some(&self.revisions[n]) {
                assert_eq!(then, self.models[n].versioned(), "{what}: revision {}", self.revisions[n]);
            }
        }
        let report = store.check(true, &mut |_| {}).unwrap();
        assert!(report.clean(), "{what}: {report:?}");
        // It accepts the remaining batches as if nothing had happened.
        for batch in &self.batches[found..] {
            store.commit(batch.clone()).unwrap();
        }
        assert_eq!(show_all(&store).unwrap(), *self.models.last().unwrap(), "{what}");
        events
    }
}

/// Returns the folder of a test's stores. It is the same for all of them, because the disk's double keeps full paths.
fn folder() -> &'static tempfile::TempDir {
    thread_local! {
        static FOLDER: &'static tempfile::TempDir = Box::leak(Box::new(tempfile::tempdir().unwrap()));
    }
    FOLDER.with(|folder| *folder)
}

/// Runs a plan and returns the disk as it is after each acknowledged batch.
fn images(plan: &Plan) -> Vec<(usize, Files)> {
    let (disk, db) = (CrashDisk::default(), MapFolder::default());
    let (store, _) = open(folder().path(), &disk, &db, "boot").unwrap();
    let mut images = Vec::new();
    for (n, batch) in plan.batches.iter().enumerate() {
        store.commit(batch.clone()).unwrap();
        images.push((n + 1, disk.image()));
    }
    images
}

#[test]
fn a_power_loss_between_commits_loses_nothing() {
    let plan = Plan::new(11, 14);
    for (acknowledged, image) in images(&plan) {
        let disk = CrashDisk::default();
        disk.restore(image.after(Loss::Cut(0)));
        let events = plan.check(&disk, &MapFolder::default(), "next boot", acknowledged, "cut");
        assert!(matches!(events[0], OpenEvent::Rebuilding { .. }), "{events:?}");
    }
}

/// Returns the disk in the middle of a commit: all bytes of the group are written, but not fsynced.
fn unsynced(plan: &Plan, acknowledged: usize) -> Files {
    let attempt = |syncs: usize| {
        let (disk, db) = (CrashDisk::default(), MapFolder::default());
        let (store, _) = open(folder().path(), &disk, &db, "boot").unwrap();
        for batch in &plan.batches[..acknowledged] {
            store.commit(batch.clone()).unwrap();
        }
        // A batch that changes a record of an earlier batch is committed in a group of its own, and a new segment has an fsync of
        // its own.
        disk.lock().syncs = Some(syncs);
        match store.commit_group(plan.batches[acknowledged..].to_vec()) {
            Ok(_) => assert_eq!(disk.image().unsynced(), 0),
            Err(_) => assert!(store.revision().get() < *plan.revisions.last().unwrap()),
        }
        disk.image()
    };
    (0..4).map(attempt).max_by_key(Files::unsynced).unwrap()
}

#[test]
pub(super) fn a_power_loss_at_any_byte_of_a_group_leaves_whole_batches() {
    for seed in 0..4 {
        let plan = Plan::new(seed, 7);
        let image = unsynced(&plan, 4);
        let bytes = image.unsynced();
        assert!(bytes > 0);
        let step = (bytes / 150).max(1);
        for cut in (0..=bytes).step_by(step).chain([bytes]) {
            let disk = CrashDisk::default();
            disk.restore(image.clone().after(Loss::Cut(cut)));
            plan.check(
                &disk,
                &MapFolder::default(),
                "next boot",
                4,
                &format!("seed {seed}, cut at {cut} of {bytes}"),
            );
        }
    }
}

#[test]
pub(super) fn torn_sectors_of_a_group_leave_whole_batches() {
    for seed in 0..12_u64 {
        let plan = Plan::new(seed, 7);
        let image = unsynced(&plan, 4);
        for sector in [512, 4_096] {
            for tear in 0..6 {
                let disk = CrashDisk::default();
                disk.restore(image.clone().after(Loss::Torn(sector, seed * 977 + tear * 31 + 1)));
                let what = format!("seed {seed}, tear {tear} at {sector}");
                plan.check(&disk, &MapFolder::default(), "next boot", 4, &what);
            }
        }
    }
}

#[test]
pub(super) fn a_killed_process_loses_nothing_whatever_its_engine_had_written() {
    for seed in 20..26_u64 {
        let plan = Plan::new(seed, 10);
        for acknowledged in [3, 7, 10] {
            for choose in 0..8 {
                let (disk, db) = (CrashDisk::default(), MapFolder::default());
                let (store, _) = open(folder().path(), &disk, &db, "boot").unwrap();
                db.0.checkpoint();
                for batch in &plan.batches[..acknowledged] {
                    store.commit(batch.clone()).unwrap();
                }
                let image = disk.image();
                let engine = db.0.fork();
                drop(store);
                disk.restore(image);
                engine.kill(choose * 5);
                let what = format!("seed {seed}, killed after {acknowledged}, engine at {choose}");
                plan.check(&disk, &MapFolder(engine), "boot", acknowledged, &what);
            }
        }
    }
}

#[test]
fn a_disk_that_fails_any_call_loses_nothing() {
    for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
        let plan = Plan::new(5, 8);
        let mut touched = true;
        let mut call = 0;
        while touched {
            call += 1;
            let (disk, db) = (CrashDisk::default(), MapFolder::default());
            disk.lock().fail = Some((call, kind));
            let Ok((store, _)) = open(folder().path(), &disk, &db, "boot") else {
                let events = plan.check(&disk, &db, "boot", 0, &format!("{kind:?} at {call} while opening"));
                drop(events);
                continue;
            };
            let mut acknowledged = 0;
            for batch in &plan.batches {
                let mut done = store.commit(batch.clone());
                if matches!(done, Err(StoreError::Full { .. })) && store.health() == Health::Good {
                    // There is room again.
                    done = store.commit(batch.clone());
                }
                match done {
                    Ok(_) => acknowledged += 1,
                    Err(_) if store.health() == Health::Good => {
                        store.commit(batch.clone()).unwrap();
                        acknowledged += 1;
                    }
                    Err(_) => break,
                }
            }
            if acknowledged < plan.batches.len() {
                assert!(matches!(store.commit(plan.batches[0].clone()), Err(StoreError::Stopped { .. })));
                assert_eq!(show_all(&store).unwrap(), plan.models[acknowledged], "reads go on");
            }
            let calls = disk.lock().calls;
            touched = call <= calls;
            drop(store);
            let image = disk.image();
            for lost in [Loss::Cut(0), Loss::Cut(usize::MAX)] {
                let disk = CrashDisk::default();
                disk.restore(image.clone().after(lost));
                let what = format!("{kind:?} at call {call}, {lost:?}");
                plan.check(&disk, &MapFolder::default(), "next boot", acknowledged, &what);
            }
        }
        assert!(call > 30, "only {call} calls were tried");
    }
}

#[test]
fn a_failed_engine_is_rebuilt_with_the_commit() {
    let plan = Plan::new(9, 6);
    let (disk, db) = (CrashDisk::default(), MapFolder::default());
    let (store, _) = open(folder().path(), &disk, &db, "boot").unwrap();
    store.commit(plan.batches[0].clone()).unwrap();
    db.0.fail_after(0);
    assert!(matches!(store.commit(plan.batches[1].clone()), Err(StoreError::Engine { .. })));
    assert!(matches!(store.commit(plan.batches[2].clone()), Err(StoreError::Stopped { .. })));
    drop(store);
    let db = MapFolder::default();
    let events = plan.check(&disk, &db, "boot", 2, "after the engine failed");
    assert!(
        matches!(&events[0], OpenEvent::Rebuilding { reason } if reason.contains("failed before")),
        "{events:?}"
    );
}

#[test]
fn a_commit_that_panics_stops_the_store_and_is_applied_once() {
    let plan = Plan::new(9, 6);
    let (disk, db) = (CrashDisk::default(), MapFolder::default());
    let (store, _) = open(folder().path(), &disk, &db, "boot").unwrap();
    store.commit(plan.batches[0].clone()).unwrap();
    let engine = db.0.fork();
    db.0.panics();
    let second = plan.batches[1].clone();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.commit(second)));
    assert!(panicked.is_err());
    assert!(matches!(store.commit(plan.batches[2].clone()), Err(StoreError::Stopped { .. })));
    assert!(matches!(store.health(), Health::Stopped(_)));
    drop(store);
    plan.check(&disk, &MapFolder(engine), "boot", 2, "after a panic");
}

#[test]
fn an_acknowledged_ledger_entry_survives_a_power_loss() {
    use crate::{Durability, Ledger, LedgerWrite};
    let (disk, db) = (CrashDisk::default(), MapFolder::default());
    let (store, _) = open(folder().path(), &disk, &db, "boot").unwrap();
    let entry = |id: &str| LedgerWrite::Entry {
        ledger: Ledger::Import,
        id: id.to_owned(),
        at_micros: 1,
        value: vec![b'x'; 50_000],
    };
    store.put_ledger(entry("now"), Durability::Now).unwrap();
    store.put_ledger(entry("later"), Durability::WithNextCommit).unwrap();
    assert!(store.ledger_get(Ledger::Import, "later").unwrap().is_some());
    let image = disk.image().after(Loss::Cut(0));
    drop(store);
    disk.restore(image);
    let (store, events) = open(folder().path(), &disk, &MapFolder::default(), "next boot").unwrap();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(store.ledger_get(Ledger::Import, "now").unwrap().unwrap().value.len(), 50_000);
    assert_eq!(store.ledger_get(Ledger::Import, "later").unwrap(), None);
    assert_eq!(store.revision(), Revision::ZERO);
}

#[test]
pub(super) fn a_blob_is_durable_after_the_next_acknowledged_commit() {
    let picture = [b'p'; 5_000];
    let plan = Plan::new(3, 2);
    let (mut acknowledged, mut refused) = (0, 0);
    for call in 0..40 {
        let (disk, db) = (CrashDisk::default(), MapFolder::default());
        let (store, _) = open(folder().path(), &disk, &db, "boot").unwrap();
        let calls = disk.lock().calls;
        disk.lock().fail = Some((calls + call, ErrorKind::StorageFull));
        let put = store.blob_put(&mut picture.as_slice());
        // The second commit may be the first to succeed; it then includes what the refused one left.
        let commits: Vec<_> = plan.batches.iter().map(|batch| store.commit(batch.clone()).is_ok()).collect();
        drop(store);
        let after = CrashDisk::default();
        after.restore(disk.image().after(Loss::Cut(0)));
        let (store, _) = open(folder().path(), &after, &MapFolder::default(), "next boot").unwrap();
        let Ok(blob) = put else {
            refused += 1;
            continue;
        };
        let found = store.blob_open(&blob.sha256).unwrap();
        if commits.contains(&true) {
            acknowledged += 1;
            let mut read = Vec::new();
            std::io::Read::read_to_end(&mut found.expect("the blob"), &mut read).unwrap();
            assert!(read == picture, "call {call}");
        }
    }
    assert!(acknowledged > 20 && refused > 0, "{acknowledged} acknowledged, {refused} refused");
}
