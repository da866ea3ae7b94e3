//! A copy that is taken during commits is a store at one revision, with an id of its own.

use std::{
    fs,
    io::Read as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    damage::{copy, files, flip, make},
    fixture::{Model, TestRng, open_real, seal, show_all},
};
use crate::{Health, OpenEvent, Revision, Store, StoreError, StoreSnapshot, assign_new_store_id};

/// Restores pinned data as a backup does.
fn restore(store: &Store, snapshot: &StoreSnapshot, to: &Path) {
    fs::create_dir_all(to.join("journal")).unwrap();
    for segment in &snapshot.segments {
        let mut bytes = Vec::new();
        store.open_snapshot_segment(segment).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, segment.length);
        fs::write(to.join("journal").join(&segment.name), bytes).unwrap();
    }
    for sha256 in store.blobs().unwrap() {
        let (name, mut file) = store.blob_file(&sha256).unwrap().unwrap();
        let path = to.join("blobs").join(&name[..2]).join(&name[2..]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::io::copy(&mut file, &mut fs::File::create_new(path).unwrap()).unwrap();
    }
}

#[test]
pub(super) fn a_snapshot_during_commits_is_the_store_at_one_revision() {
    let (dir, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(dir.path(), 21, 20);
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let ended = AtomicBool::new(false);
    let (snapshot, committed) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let (mut model, mut rng, mut count) = (Model::default(), TestRng(22), 0_u8);
            while !ended.load(Ordering::Acquire) {
                store.blob_put(&mut [count; 900].as_slice()).unwrap();
                store.commit(model.batch(&mut rng)).unwrap();
                count = count.wrapping_add(1);
            }
            count
        });
        let before = store.revision();
        let snapshot = store.snapshot(&mut |_| {}).unwrap();
        // The copy is made only now, after more commits, and contains none of them.
        while store.revision() <= snapshot.revision {
            std::thread::yield_now();
        }
        assert!(snapshot.revision >= before);
        restore(&store, &snapshot, copied.path());
        assert!(store.check(true, &mut |_| {}).unwrap().clean(), "a check while commits go on");
        ended.store(true, Ordering::Release);
        (snapshot, writing.join().unwrap())
    });
    assert!(committed > 0 && store.revision() > snapshot.revision);
    let id = assign_new_store_id(copied.path(), seal().as_ref(), &mut |_| {}).unwrap();
    assert_ne!(id, snapshot.store_id);
    let (copy, _) = open_real(copied.path(), "boot").unwrap();
    assert_eq!(
        (copy.store_id(), copy.revision(), copy.state_digest()),
        (id, snapshot.revision, snapshot.digest)
    );
    assert_eq!(copy.health(), Health::Good);
    assert!(copy.check(true, &mut |_| {}).unwrap().clean());
    let at_that_revision = super::fixture::show(&store, snapshot.revision).unwrap();
    assert_eq!(super::fixture::show(&copy, snapshot.revision).unwrap(), at_that_revision);
    // The copy continues as a store of its own, across a restart.
    let mut model = Model::default();
    copy.commit(model.batch(&mut TestRng(5))).unwrap();
    let shown = show_all(&copy).unwrap();
    drop(copy);
    let (copy, events) = open_real(copied.path(), "boot").unwrap();
    assert!(matches!(events[..], [OpenEvent::Ready { .. }]), "{events:?}");
    assert_eq!(show_all(&copy).unwrap(), shown);
}

#[test]
pub(super) fn an_empty_store_can_be_copied() {
    let (dir, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let snapshot = store.snapshot(&mut |_| {}).unwrap();
    restore(&store, &snapshot, copied.path());
    let id = assign_new_store_id(copied.path(), seal().as_ref(), &mut |_| {}).unwrap();
    let (copy, _) = open_real(copied.path(), "boot").unwrap();
    assert_eq!((copy.store_id(), copy.revision()), (id, Revision::ZERO));
}

#[test]
fn a_damaged_journal_is_neither_backed_up_nor_restored() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), 23, 12);
    for segment in 0..files(&dir.path().join("journal")).len() {
        let copied = tempfile::tempdir().unwrap();
        copy(dir.path(), copied.path());
        let path = files(&copied.path().join("journal")).remove(segment);
        flip(&path, 8 * 200 + 3);
        let refused = assign_new_store_id(copied.path(), seal().as_ref(), &mut |_| {});
        assert!(matches!(refused, Err(StoreError::DamagedJournal { .. })), "{refused:?}");
        assert!(path.exists());
        fs::remove_dir_all(copied.path().join("journal.new")).unwrap();
        // A start reads only the newest frames; a backup reads all.
        let (store, _) = open_real(copied.path(), "boot").unwrap();
        let refused = store.snapshot(&mut |_| {});
        assert!(matches!(refused, Err(StoreError::DamagedJournal { .. })), "{refused:?}");
    }
}
