//! A copy that is taken during commits is a store at one revision, with an id of its own.

use std::{
    fs,
    io::Read as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    damage::{copy, files, flip, make},
    world::{Model, TestRng, open_real, seal, show_all},
};
use crate::{Health, OpenEvent, Revision, Store, StoreError, StoreSnapshot, assign_new_store_id};

/// Restores pinned data as a backup does.
fn restore(store: &Store, pinned: &StoreSnapshot, to: &Path) {
    fs::create_dir_all(to.join("journal")).unwrap();
    for segment in &pinned.segments {
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
pub(super) fn a_copy_taken_while_commits_go_on_is_the_store_of_one_revision() {
    let (dir, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(dir.path(), 21, 20);
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let ended = AtomicBool::new(false);
    let (pinned, committed) = std::thread::scope(|scope| {
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
        let pinned = store.snapshot(&mut |_| {}).unwrap();
        // The copy is made only now, after more commits, and contains none of them.
        while store.revision() <= pinned.revision {
            std::thread::yield_now();
        }
        assert!(pinned.revision >= before);
        restore(&store, &pinned, copied.path());
        assert!(store.check(true, &mut |_| {}).unwrap().clean(), "a check while commits go on");
        ended.store(true, Ordering::Release);
        (pinned, writing.join().unwrap())
    });
    assert!(committed > 0 && store.revision() > pinned.revision);
    let id = assign_new_store_id(copied.path(), seal().as_ref(), &mut |_| {}).unwrap();
    assert_ne!(id, pinned.store_id);
    let (copy, _) = open_real(copied.path(), "boot").unwrap();
    assert_eq!((copy.store_id(), copy.revision(), copy.state_digest()), (id, pinned.revision, pinned.digest));
    assert_eq!(copy.health(), Health::Good);
    assert!(copy.check(true, &mut |_| {}).unwrap().clean());
    let at_that_revision = super::world::show(&store, pinned.revision).unwrap();
    assert_eq!(super::world::show(&copy, pinned.revision).unwrap(), at_that_revision);
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
pub(super) fn an_empty_store_is_copied_too() {
    let (dir, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let pinned = store.snapshot(&mut |_| {}).unwrap();
    restore(&store, &pinned, copied.path());
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
