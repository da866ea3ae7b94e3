//! The stored data does not depend on whether readers are expected.

use proptest::prelude::*;

use super::fixture::{Model, TestRng};
use crate::{Batch, Change, EvidenceWrite, OpenOptions, Origin, Store};

fn open(dir: &std::path::Path) -> Store {
    Store::open(dir, OpenOptions::default(), &mut |_| {}).unwrap()
}

/// Returns more changes than the engine accepts in one of its small batches.
fn many(round: u32) -> Batch {
    let evidence = |number: u32| {
        let id = uuid::Uuid::from_u128(u128::from(number) << 64 | u128::from(round % 3)).into_bytes();
        Change::Evidence(EvidenceWrite {
            id,
            json: format!("{{\"of\":{round},\"is\":{number}}}").into_bytes(),
        })
    };
    Batch { origin: Origin::default(), changes: (0..1_500).map(evidence).collect() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn expecting_readers_does_not_change_the_store(
        seed in 1_u64..1_000,
        expected in prop::collection::vec(any::<bool>(), 4..8),
    ) {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (left, right) = (open(one.path()), open(other.path()));
        let (mut of_left, mut of_right) = ((Model::default(), TestRng(seed)), (Model::default(), TestRng(seed)));
        for (round, expected) in (0..).zip(expected) {
            right.expect_readers(expected);
            for batch in [of_left.0.batch(&mut of_left.1), many(round)] {
                left.commit(batch).unwrap();
            }
            for batch in [of_right.0.batch(&mut of_right.1), many(round)] {
                right.commit(batch).unwrap();
            }
            prop_assert_eq!(left.state_digest(), right.state_digest());
        }
        let Change::Evidence(last) = many(0).changes.pop().unwrap() else { unreachable!() };
        prop_assert!(right.evidence(last.id).unwrap().is_some());
        right.close().unwrap();
        prop_assert_eq!(open(other.path()).state_digest(), left.state_digest());
    }
}
