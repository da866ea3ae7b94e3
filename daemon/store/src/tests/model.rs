//! Random batches against the model, with a restart after each.

use proptest::prelude::*;

use super::{
    disk::CrashDisk,
    fixture::{Model, TestRng, open, open_real, show, show_all},
    map::MapFolder,
};
use crate::{ChangePosition, Health, OpenEvent, Revision, Store};

/// Checks that every earlier revision still shows the same content.
fn check(store: &Store, model: &Model, history: &[Model]) {
    assert_eq!(show_all(store).unwrap(), *model);
    assert_eq!(store.revision().get() + 1, history.len() as u64);
    for (revision, then) in history.iter().enumerate() {
        assert_eq!(show(store, Revision::new(revision as u64)).unwrap(), *then, "at revision {revision}");
    }
    let report = store.check(true, &mut |_| {}).unwrap();
    assert!(report.clean(), "{report:?}");
}

/// Checks that each revision is in the feed, that changes are numbered without gaps, and that the previous revisions are right.
fn check_feed(store: &Store) {
    let all = store.changes_since(ChangePosition::after(Revision::ZERO), usize::MAX).unwrap();
    let mut last = std::collections::BTreeMap::new();
    let (mut revision, mut n) = (0, 0);
    for entry in &all {
        let position = entry.position;
        if position.revision.get() == revision {
            assert_eq!(position.n, n + 1);
        } else {
            assert_eq!((position.revision.get(), position.n), (revision + 1, 0));
        }
        (revision, n) = (position.revision.get(), position.n);
        let before = last.insert((entry.kind, entry.id.clone()), position.revision);
        assert_eq!(entry.previous, before.unwrap_or_default(), "{entry:?}");
        let created = entry.op == crate::ChangeOp::Created;
        assert!(created == before.is_none() || entry.op == crate::ChangeOp::Withdrawn, "{entry:?}");
    }
    assert_eq!(revision, store.revision().get());
    let (mut after, mut piecewise) = (ChangePosition::after(Revision::ZERO), Vec::new());
    loop {
        let some = store.changes_since(after, 3).unwrap();
        let Some(last) = some.last() else { break };
        after = last.position;
        piecewise.extend(some);
    }
    assert_eq!(piecewise, all);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_store_shows_what_was_committed_after_each_restart(seed in any::<u64>()) {
        let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
        let (mut model, mut rng) = (Model::default(), TestRng(seed));
        let mut history = vec![Model::default()];
        for step in 0..25 {
            let (store, events) = open(dir.path(), &disk, &db, "boot").unwrap();
            let only_ready = events.iter().all(|event| matches!(event, OpenEvent::Ready { .. }));
            prop_assert!(only_ready, "{:?}", events);
            prop_assert_eq!(store.health(), Health::Good);
            let batches: Vec<_> = (0..=rng.roll(3))
                .map(|_| {
                    let batch = model.batch(&mut rng);
                    if batch.raises_revision() {
                        history.push(model.versioned());
                    }
                    batch
                })
                .collect();
            store.commit_group(batches).unwrap();
            if step % 6 == 5 {
                check(&store, &model, &history);
            } else {
                prop_assert_eq!(&show_all(&store).unwrap(), &model);
            }
            if step == 24 {
                check_feed(&store);
                let digest = store.state_digest();
                let content = db.0.entries();
                drop(store);
                // A power loss that loses nothing: the engine is rebuilt with the same entries, byte for byte.
                let (again, events) = open(dir.path(), &disk, &db, "boot").unwrap();
                drop(again);
                prop_assert_eq!(events.len(), 1);
                disk.lock().fail = None;
                db.0.clear();
                let (again, events) = open(dir.path(), &disk, &db, "boot").unwrap();
                let rebuilding = matches!(events[0], OpenEvent::Rebuilding { .. });
                prop_assert!(rebuilding);
                prop_assert_eq!(again.state_digest(), digest);
                let mut rebuilt = db.0.entries();
                rebuilt.insert(crate::keys::META.to_vec(), content[crate::keys::META].clone());
                prop_assert_eq!(rebuilt.len(), content.len());
                prop_assert!(rebuilt == content);
            }
        }
    }
}

#[test]
pub(super) fn sled_shows_what_was_committed_after_each_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (mut model, mut rng) = (Model::default(), TestRng(7));
    let mut history = vec![Model::default()];
    for step in 0..16 {
        let (store, events) = open_real(dir.path(), "boot").unwrap();
        assert!(events.iter().all(|event| matches!(event, OpenEvent::Ready { .. })), "{events:?}");
        let batch = model.batch(&mut rng);
        if batch.raises_revision() {
            history.push(model.versioned());
        }
        store.commit(batch).unwrap();
        if step % 5 == 0 {
            check(&store, &model, &history);
        }
        store.close().unwrap();
    }
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    check(&store, &model, &history);
    check_feed(&store);
}

#[test]
pub(super) fn equal_content_has_equal_digests_in_any_order() {
    let mut rng = TestRng(3);
    let mut model = Model::default();
    let batches: Vec<_> = (0..12).map(|_| model.batch(&mut rng)).collect();
    let digest = |groups: &mut dyn Iterator<Item = Vec<crate::Batch>>| {
        let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
        let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
        groups.for_each(|group| drop(store.commit_group(group).unwrap()));
        store.state_digest()
    };
    let one_by_one = digest(&mut batches.iter().map(|batch| vec![batch.clone()]));
    let together = digest(&mut std::iter::once(batches.clone()));
    assert_eq!(one_by_one, together);
    let fewer = digest(&mut batches[..11].iter().map(|batch| vec![batch.clone()]));
    assert_ne!(one_by_one, fewer);
}
