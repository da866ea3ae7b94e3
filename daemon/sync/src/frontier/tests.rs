use uuid::Uuid;

use super::*;

fn origin(number: u8) -> OriginId {
    OriginId::from_uuid(Uuid::from_bytes([number; 16]))
}

fn counter(number: u64) -> Counter {
    Counter::new(number).unwrap()
}

/// The head of the one series of an origin whose hashes are its counters.
fn head(number: u64) -> Head {
    branch(number, 0)
}

fn branch(number: u64, branch: u8) -> Head {
    let mut hash = [branch; 32];
    hash[..8].copy_from_slice(&number.to_be_bytes());
    Head { counter: counter(number), hash: ChangeHash::from_bytes(hash) }
}

fn frontier(heads: &[(u8, u64)]) -> Frontier {
    let mut frontier = Frontier::new();
    for (number, held) in heads {
        frontier.advance(origin(*number), head(*held)).unwrap();
    }
    frontier
}

#[test]
fn a_difference_has_what_the_other_lacks() {
    let ours = frontier(&[(1, 5), (2, 7), (3, 2), (4, 1)]);
    let theirs = frontier(&[(1, 5), (2, 4), (3, 9)]);
    let expected = Difference {
        ranges: vec![
            CounterRange { origin: origin(2), first: counter(5), last: counter(7), base: head(4).hash },
            CounterRange { origin: origin(4), first: counter(1), last: counter(1), base: ChangeHash::ZERO },
        ],
        forks: Vec::new(),
    };
    assert_eq!(ours.lacked_by(&theirs), expected);
}

#[test]
fn frontiers_are_ordered_by_what_they_contain() {
    let (low, high) = (frontier(&[(1, 5)]), frontier(&[(1, 6), (2, 1)]));
    assert_eq!(low.order(&low), FrontierOrder::Equal);
    assert_eq!(low.order(&high), FrontierOrder::Behind);
    assert_eq!(high.order(&low), FrontierOrder::Ahead);
    assert_eq!(high.order(&frontier(&[(1, 7)])), FrontierOrder::Concurrent);
    assert_eq!(Frontier::new().order(&low), FrontierOrder::Behind);
}

#[test]
fn a_frontier_contains_the_changes_up_to_its_heads() {
    let held = frontier(&[(1, 5)]);
    let contains = |number, at| held.contains(origin(number), counter(at));
    assert!(contains(1, 1) && contains(1, 5));
    assert!(!contains(1, 6) && !contains(2, 1));
}

#[test]
fn heads_of_two_branches_are_a_fork() {
    let mut theirs = frontier(&[(2, 3)]);
    theirs.advance(origin(1), branch(5, 1)).unwrap();
    let ours = frontier(&[(1, 5), (2, 1)]);
    let fork = Fork { origin: origin(1), counter: counter(5), ours: head(5).hash, theirs: branch(5, 1).hash };
    assert_eq!(ours.order(&theirs), FrontierOrder::Forked(fork));
    assert_eq!(ours.lacked_by(&theirs), Difference { ranges: Vec::new(), forks: vec![fork] });
    assert_eq!(ours.join(&theirs), Err(FrontierError::Forked(fork)));
}

#[test]
fn a_fork_below_the_heads_is_found_at_the_base() {
    let mut theirs = Frontier::new();
    theirs.advance(origin(1), branch(3, 1)).unwrap();
    let range = frontier(&[(1, 5)]).lacked_by(&theirs).ranges[0];
    let fork = Fork { origin: origin(1), counter: counter(3), ours: head(3).hash, theirs: branch(3, 1).hash };
    assert_eq!(range.check_base(head(3).hash), Err(fork));
    assert_eq!(range.check_base(branch(3, 1).hash), Ok(()));
    let whole = frontier(&[(1, 5)]).lacked_by(&Frontier::new()).ranges[0];
    assert_eq!(whole.check_base(head(3).hash), Ok(()));
}

#[test]
fn a_head_never_goes_back() {
    let mut held = frontier(&[(1, 5)]);
    let error = FrontierError::Backwards { origin: origin(1), held: counter(5), found: counter(4) };
    assert_eq!(held.advance(origin(1), head(4)), Err(error));
    assert!(matches!(held.advance(origin(1), branch(5, 1)), Err(FrontierError::Forked(_))));
    assert_eq!(held, frontier(&[(1, 5)]));
    assert_eq!(held.advance(origin(1), head(5)), Ok(()));
}

#[test]
fn only_the_canonical_encoding_is_decoded() {
    let bytes = frontier(&[(1, 5), (2, 7)]).encode();
    assert_eq!(bytes.len(), 4 + 2 * FRONTIER_ENTRY_BYTES);
    assert_eq!(Frontier::decode(&bytes), Ok(frontier(&[(1, 5), (2, 7)])));
    assert_eq!(Frontier::decode(&bytes[..115]), Err(FrontierError::Truncated));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(Frontier::decode(&longer), Err(FrontierError::Trailing { bytes: 1 }));
    let swapped = [&bytes[..4], &bytes[60..], &bytes[4..60]].concat();
    assert_eq!(Frontier::decode(&swapped), Err(FrontierError::Order));
    let twice = [&bytes[..60], &bytes[4..60]].concat();
    assert_eq!(Frontier::decode(&twice), Err(FrontierError::Order));
}

#[test]
fn counters_outside_the_range_are_refused() {
    let mut bytes = frontier(&[(1, 5)]).encode();
    bytes[20..28].fill(0);
    assert_eq!(Frontier::decode(&bytes), Err(FrontierError::ZeroCounter { origin: origin(1) }));
    bytes[20] = 0x80;
    let error = FrontierError::CounterOverflow { origin: origin(1), counter: 1 << 63 };
    assert_eq!(Frontier::decode(&bytes), Err(error));
}

#[test]
fn the_number_of_origins_is_bounded() {
    let mut full = Frontier::new();
    for number in 0..MAX_ORIGINS as u128 {
        full.advance(OriginId::from_uuid(Uuid::from_u128(number)), head(1)).unwrap();
    }
    let error = FrontierError::TooManyOrigins { found: MAX_ORIGINS + 1 };
    assert_eq!(full.advance(origin(255), head(1)), Err(error));
    assert_eq!(full.advance(OriginId::from_uuid(Uuid::from_u128(9)), head(2)), Ok(()));
    assert_eq!(Frontier::decode(&full.encode()).as_ref(), Ok(&full));
    let claim = [0, 0, 4, 1];
    assert_eq!(Frontier::decode(&claim), Err(error));
}
