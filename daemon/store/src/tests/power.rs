//! The machine loses power, or the process is killed, at each single call to the disk: during creation of the store, commits,
//! attachments, segment rolls, seals, and a second start.

use std::{io::Read as _, path::Path};

use super::{
    disk::{CrashDisk, Files, Loss},
    fixture::{open, show_all},
    map::{MapEngine, MapFolder},
    rounds,
    workload::{Workload, WorkloadRun},
};
use crate::{Health, StoreError, blob::blob_path};

/// Checks that the store is in the state after the acknowledged batches, or one more, complete, with all attachments.
fn check(
    dir: &Path,
    workload: &Workload,
    run: &WorkloadRun,
    image: Files,
    engine: MapEngine,
    boot: &str,
    what: &str,
) {
    let disk = CrashDisk::default();
    disk.restore(image);
    let (store, _) =
        open(dir, &disk, &MapFolder(engine), boot).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(store.health(), Health::Good, "{what}");
    let shown = show_all(&store).unwrap();
    let n = (run.acknowledged..workload.models.len()).find(|&n| workload.models[n] == shown);
    let Some(n) = n else { panic!("{what}: not the state after {} batches or more", run.acknowledged) };
    assert!(n <= run.acknowledged + 1, "{what}");
    // The attachment of a batch that is there exists, whether the batch was acknowledged or not.
    let later = workload.batches[..n].iter().filter_map(|(_, picture)| picture.as_ref());
    for bytes in later.chain(run.blobs.iter().map(|(_, bytes)| bytes)) {
        let sha256: [u8; 32] =
            sha2::Digest::finalize(sha2::Digest::chain_update(sha2::Sha256::default(), bytes)).into();
        let mut read = Vec::new();
        let blob = store.blob_open(&sha256).unwrap();
        blob.unwrap_or_else(|| panic!("{what}: no {}", blob_path(dir, &sha256).display()))
            .read_to_end(&mut read)
            .unwrap();
        assert!(read == *bytes, "{what}: an attachment differs");
    }
    assert!(store.check(true, &mut |_| {}).unwrap().clean(), "{what}");
    for (batch, _) in &workload.batches[n..] {
        store.commit(batch.clone()).unwrap();
    }
    assert_eq!(show_all(&store).unwrap(), *workload.models.last().unwrap(), "{what}");
    // Data that is acknowledged from now on is durable, whatever the first run left unfinished.
    let image = disk.image().after(Loss::Cut(0));
    drop(store);
    disk.restore(image);
    let (store, _) = open(dir, &disk, &MapFolder::default(), "last boot")
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(show_all(&store).unwrap(), *workload.models.last().unwrap(), "{what}");
}

#[test]
pub(super) fn power_loss_at_any_call_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..rounds(1) {
        let workload = Workload::new(seed);
        let mut call = 0;
        loop {
            call += 1;
            let (disk, db) = (CrashDisk::default(), MapFolder::default());
            disk.lock().dead_from = Some(call);
            let run = workload.run(dir.path(), &disk, &db);
            let image = disk.image();
            if image.calls < call {
                break;
            }
            let others = [
                Loss::Cut(call * 37 % 9_000),
                Loss::Torn(512, seed * 1_009 + call as u64 * 31),
                Loss::Torn(4_096, seed * 1_013 + call as u64 * 37),
                Loss::Garbage(512, seed * 1_019 + call as u64 * 41),
                Loss::Garbage(4_096, seed * 1_021 + call as u64 * 43),
            ];
            for loss in [Loss::Cut(0), others[(call + seed as usize) % others.len()]] {
                let what = format!("seed {seed}, dark at call {call}, {loss:?}");
                let engine = MapEngine::default();
                check(dir.path(), &workload, &run, image.clone().after(loss), engine, "next boot", &what);
            }
        }
        assert!(call > 90, "only {call} calls were tried");
    }
}

#[test]
pub(super) fn a_kill_at_any_call_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..rounds(1) {
        let workload = Workload::new(seed + 100);
        let mut call = 0;
        loop {
            call += 1;
            let (disk, db) = (CrashDisk::default(), MapFolder::default());
            disk.lock().dead_from = Some(call);
            let run = workload.run(dir.path(), &disk, &db);
            let image = disk.image();
            if image.calls < call {
                break;
            }
            let what = format!("seed {seed}, killed at call {call}");
            check(dir.path(), &workload, &run, image.after(Loss::Killed), db.0.fork(), "boot", &what);
        }
        assert!(call > 90, "only {call} calls were tried");
    }
}

#[test]
fn a_failed_fsync_is_final_even_if_the_next_one_would_succeed() {
    let dir = tempfile::tempdir().unwrap();
    let workload = Workload::new(7);
    let mut stopped = 0;
    let mut call = 0;
    loop {
        call += 1;
        let (disk, db) = (CrashDisk::default(), MapFolder::default());
        disk.lock().fail = Some((call, std::io::ErrorKind::Other));
        let mut run = WorkloadRun::default();
        if let Ok((store, _)) = open(dir.path(), &disk, &db, "boot") {
            for (n, step) in workload.batches.iter().enumerate() {
                // One more attempt after a refusal, but not if only the write of `db.state` after the commit was refused.
                let mut done = run.step(&store, step);
                if done.is_err() && run.acknowledged == n {
                    done = run.step(&store, step);
                }
                if done.is_err() {
                    break;
                }
            }
            if let Health::Stopped(_) = store.health() {
                stopped += 1;
                let refused = store.commit(workload.batches[0].0.clone());
                assert!(matches!(refused, Err(StoreError::Stopped { .. })), "{refused:?}");
                assert_eq!(show_all(&store).unwrap(), workload.models[run.acknowledged], "reads go on");
            }
        }
        if disk.image().calls < call {
            break;
        }
        // Another process of the same boot trusts the content that the system shows, and then the power is lost.
        disk.lock().fail = None;
        let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
        assert_eq!(store.health(), Health::Good, "call {call}");
        let shown = show_all(&store).unwrap();
        let n = (run.acknowledged..workload.models.len()).find(|&n| workload.models[n] == shown).unwrap();
        run.acknowledged = n;
        if let Some(step) = workload.batches.get(n) {
            run.step(&store, step).unwrap();
        }
        let image = disk.image().after(Loss::Cut(0));
        drop(store);
        check(dir.path(), &workload, &run, image, MapEngine::default(), "next boot", &format!("call {call}"));
    }
    assert!(stopped > 10, "{stopped} of {call} calls stopped the journal");
}

#[test]
fn failed_reads_do_not_truncate_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let workload = Workload::new(3);
    let (disk, db) = (CrashDisk::default(), MapFolder::default());
    let run = workload.run(dir.path(), &disk, &db);
    let whole = disk.image();
    let mut refused = 0;
    for boot in ["boot", "next boot"] {
        let mut call = 0;
        loop {
            call += 1;
            let (disk, db) = (CrashDisk::default(), MapFolder(db.0.fork()));
            let loss = if boot == "boot" { Loss::Killed } else { Loss::Cut(0) };
            disk.restore(whole.clone().after(loss));
            disk.lock().reads = 0;
            disk.lock().fail_read = Some(call);
            match open(dir.path(), &disk, &db, boot) {
                Ok((store, _)) => assert_eq!(store.health(), Health::Good, "read {call}"),
                Err(_) => refused += 1,
            }
            if disk.image().reads < call {
                break;
            }
            let after = disk.image().after(Loss::Killed);
            check(dir.path(), &workload, &run, after, db.0.fork(), boot, &format!("{boot}, read {call}"));
        }
    }
    assert!(refused > 20, "{refused} reads were refused");
}

#[test]
fn commits_are_refused_below_the_headroom_and_accepted_again() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, db) = (CrashDisk::default(), MapFolder::default());
    let (store, _) = super::fixture::open_with(dir.path(), &disk, &db, "boot", 1 << 20).unwrap();
    let workload = Workload::new(1);
    let mut run = WorkloadRun::default();
    run.step(&store, &workload.batches[0]).unwrap();
    disk.lock().free = Some((1 << 20) - 1);
    for _ in 0..3 {
        let refused = run.step(&store, &workload.batches[1]);
        assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
        assert_eq!(show_all(&store).unwrap(), workload.models[1]);
    }
    disk.lock().free = Some(1 << 20);
    for step in &workload.batches[1..] {
        run.step(&store, step).unwrap();
    }
    assert_eq!(store.health(), Health::Good);
    assert_eq!(show_all(&store).unwrap(), *workload.models.last().unwrap());
}
