//! A store that is restored from a backup and writes on: the fork is found and proven, and a new origin loses neither side.

use proptest::prelude::*;
use satchel_sync::{Counter, Fork, ForkProof, OriginId};

use crate::store::{Store, batch};

fn pull(to: &mut Store, from: &Store) -> Vec<Fork> {
    let (changes, forks) = from.lacked_by(&to.frontier());
    assert!(to.receive(&batch(&changes)));
    forks
}

/// How often a store writes, before and after it is restored.
#[derive(Clone, Copy, Debug)]
struct Writes {
    /// Before the backup.
    saved: u8,
    /// After the backup, seen by the other store.
    spread: u8,
    /// After the backup, seen by nobody.
    lost: u8,
    /// After the backup was restored.
    again: u8,
}

/// The restored store, the other one, and the origin that both know.
fn restored(writes: Writes) -> (Store, Store, OriginId) {
    let (mut laptop, mut phone) = (Store::new(0), Store::new(1));
    let write = |store: &mut Store, name: &str, times| {
        (0..times).for_each(|number| store.write(&format!("{name} {number}")));
    };
    write(&mut laptop, "saved", writes.saved);
    write(&mut phone, "phone", 2);
    pull(&mut laptop, &phone);
    let mut backup = laptop.backup();
    write(&mut laptop, "spread", writes.spread);
    pull(&mut phone, &laptop);
    write(&mut laptop, "lost", writes.lost);
    write(&mut backup, "again", writes.again);
    let origin = laptop.origin();
    (backup, phone, origin)
}

fn writes() -> impl Strategy<Value = Writes> {
    (0..4_u8, 1..5_u8, 0..3_u8, 1..5_u8).prop_map(|(saved, spread, lost, again)| Writes {
        saved,
        spread,
        lost,
        again,
    })
}

proptest! {
    #[test]
    fn a_fork_is_found_before_anything_is_sent(writes in writes()) {
        let (mut laptop, mut phone, origin) = restored(writes);
        let found = pull(&mut phone, &laptop);
        let found_back = pull(&mut laptop, &phone);
        // The store whose head is not below the other one sees it.
        let (ours, theirs) = (1 + writes.saved + writes.again, 1 + writes.saved + writes.spread);
        prop_assert_eq!(found.iter().any(|fork| fork.origin == origin), ours >= theirs);
        prop_assert_eq!(found_back.iter().any(|fork| fork.origin == origin), theirs >= ours);
    }

    #[test]
    fn a_fork_is_found_when_all_is_sent(writes in writes()) {
        let (laptop, mut phone, origin) = restored(writes);
        let all: Vec<_> = laptop.changes.values().collect();
        prop_assert!(phone.receive(&batch(&all)));
        let (fork, proof) = phone.forks[&origin].clone();
        let first = Counter::new(u64::from(writes.saved) + 2).unwrap();
        prop_assert_eq!(fork.counter, first);
        let proof = proof.unwrap();
        // Anybody can check it, with nothing but its bytes.
        let checked = ForkProof::decode(&proof.encode()).unwrap();
        prop_assert_eq!(checked.origin(), origin);
        prop_assert_eq!(checked.fork().counter, first);
        // The other side makes the same one.
        let (ours, theirs) = laptop.first_difference(&phone, origin);
        prop_assert_eq!(ForkProof::new(laptop.key_of(origin), ours, theirs), Ok(proof));
    }

    #[test]
    fn a_new_origin_loses_neither_side(writes in writes()) {
        let (mut laptop, mut phone, origin) = restored(writes);
        let (ours, _) = laptop.first_difference(&phone, origin);
        let mut expected = [laptop.payloads(), phone.payloads()].concat();
        expected.sort();
        expected.dedup();
        laptop.begin_new_origin(100, ours.change().counter);
        for _ in 0..2 {
            prop_assert_eq!(pull(&mut laptop, &phone), []);
            prop_assert_eq!(pull(&mut phone, &laptop), []);
        }
        prop_assert_eq!(laptop.payloads(), expected.clone());
        prop_assert_eq!(phone.payloads(), expected);
        prop_assert_eq!(laptop.frontier(), phone.frontier());
        prop_assert!(laptop.changes == phone.changes && laptop.forks.is_empty() && phone.forks.is_empty());
        // Both origins go on.
        laptop.write("after");
        pull(&mut phone, &laptop);
        prop_assert!(phone.payloads().contains(&"after".to_owned()));
    }
}

#[test]
fn a_store_that_was_restored_learns_it_from_the_others() {
    let (mut laptop, mut phone, origin) = restored(Writes { saved: 1, spread: 2, lost: 0, again: 0 });
    let expected = phone.payloads();
    assert_eq!(pull(&mut laptop, &phone), []);
    assert!(laptop.rolled_back && laptop.forks.is_empty());
    let next = laptop.frontier().head(origin).unwrap().counter.next().unwrap();
    laptop.begin_new_origin(100, next);
    pull(&mut laptop, &phone);
    pull(&mut phone, &laptop);
    assert_eq!(laptop.payloads(), expected);
    assert!(laptop.changes == phone.changes && !laptop.rolled_back);
}
