//! Laws of the encodings and of frontiers.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*, sample::Index};
use satchel_sync::{
    Accepted, Author, Change, ChangeHash, Counter, CounterRange, ForkProof, Frontier, FrontierOrder, Head,
    Held, Kind, OriginId, PayloadId, Series, SignedChange, SigningKey,
    batch::{BatchError, BatchReader, BatchWriter, Pushed},
    limits::MAX_COUNTER,
};

fn key() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

fn origin(number: u8) -> OriginId {
    OriginId::from_uuid(uuid::Uuid::from_bytes([number; 16]))
}

/// The head of the one series of an origin.
fn head(counter: u64) -> Head {
    let mut hash = [9; 32];
    hash[..8].copy_from_slice(&counter.to_be_bytes());
    Head { counter: Counter::new(counter).unwrap(), hash: ChangeHash::from_bytes(hash) }
}

fn frontier_of(heads: &[(u8, u64)]) -> Frontier {
    let mut frontier = Frontier::new();
    for (number, counter) in heads {
        let higher = frontier.head(origin(*number)).is_none_or(|head| head.counter.get() < *counter);
        if higher {
            frontier.advance(origin(*number), head(*counter)).unwrap();
        }
    }
    frontier
}

/// Few origins and low counters, so that frontiers have much in common.
fn frontier() -> impl Strategy<Value = Frontier> {
    vec((0..5_u8, 1..6_u64), 0..6).prop_map(|heads| frontier_of(&heads))
}

/// The changes below a frontier.
fn contents(frontier: &Frontier) -> BTreeSet<(OriginId, u64)> {
    frontier.heads().flat_map(|(origin, head)| (1..=head.counter.get()).map(move |at| (origin, at))).collect()
}

fn change() -> impl Strategy<Value = (Change, Vec<u8>)> {
    let context = vec((0..200_u8, 1..=MAX_COUNTER), 0..4).prop_map(|heads| frontier_of(&heads));
    let payload = vec(any::<u8>(), 0..300);
    (2..=MAX_COUNTER, any::<[u8; 32]>(), context, 1..=u16::MAX, payload).prop_map(
        |(counter, previous, context, kind, payload)| {
            let change = Change {
                origin: origin(255),
                counter: Counter::new(counter).unwrap(),
                previous: ChangeHash::from_bytes(previous),
                context,
                kind: Kind(kind),
                payload: PayloadId::of(&payload),
            };
            (change, payload)
        },
    )
}

/// A series of three, the middle one with this payload and context.
fn series(payload: &[u8], seen: &Frontier) -> Vec<SignedChange> {
    let (mut author, genesis) = Author::begin(key(), [1; 16], &Frontier::new()).unwrap();
    let change = author.append(Kind(1), payload.to_vec(), seen).unwrap();
    let last = author.append(Kind(1), payload.to_vec(), seen).unwrap();
    vec![genesis, change, last]
}

fn batch(changes: &[SignedChange]) -> Vec<u8> {
    let mut writer = BatchWriter::begin(Vec::new()).unwrap();
    for change in changes {
        assert_eq!(writer.push(change).unwrap(), Pushed::Written);
    }
    writer.finish().unwrap()
}

/// Bytes that are close to valid ones: some replaced, some removed, some inserted.
fn damaged(mut bytes: Vec<u8>, damage: &[(Index, u8, u8)]) -> Vec<u8> {
    for (at, what, byte) in damage {
        let at = at.index(bytes.len() + 1);
        match what % 4 {
            0 => bytes.insert(at, *byte),
            1 => bytes.truncate(at),
            _ if at == bytes.len() => {}
            2 => drop(bytes.remove(at)),
            _ => bytes[at] = *byte,
        }
    }
    bytes
}

fn damage() -> impl Strategy<Value = Vec<(Index, u8, u8)>> {
    vec(any::<(Index, u8, u8)>(), 0..4)
}

/// Decodes bytes as everything that can be encoded; whatever is accepted encodes to the same bytes.
fn decode_all(bytes: &[u8]) {
    if let Ok(change) = SignedChange::decode(bytes) {
        assert_eq!(change.encode(), bytes);
    }
    if let Ok(frontier) = Frontier::decode(bytes) {
        assert_eq!(frontier.encode(), bytes);
    }
    if let Ok(proof) = ForkProof::decode(bytes) {
        assert_eq!(proof.encode(), bytes);
    }
    let Ok(Some(mut reader)) = BatchReader::open(bytes) else { return };
    let read: Vec<_> = reader.by_ref().collect();
    if reader.ended() && read.iter().all(Result::is_ok) {
        let changes: Vec<_> = read.into_iter().map(Result::unwrap).collect();
        let (again, rest) = (batch(&changes), reader.into_source());
        assert_eq!(again, bytes[..bytes.len() - rest.len()]);
    }
}

proptest! {
    #[test]
    fn a_change_is_decoded_as_it_was_encoded((change, payload) in change(), present in any::<bool>()) {
        let bare = change.clone().sign(&key()).unwrap();
        let signed = if present { bare.with_payload(payload).unwrap() } else { bare };
        let decoded = SignedChange::decode(&signed.encode()).unwrap();
        prop_assert_eq!(decoded.change(), &change);
        prop_assert_eq!(decoded, signed);
    }

    #[test]
    fn a_change_with_another_byte_is_refused(
        payload in vec(any::<u8>(), 0..100), seen in frontier(), at in any::<Index>(), flip in 1..=255_u8,
    ) {
        let changes = series(&payload, &seen);
        for (number, change) in changes.iter().enumerate() {
            let mut bytes = change.encode();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let Ok(flipped) = SignedChange::decode(&bytes) else { continue };
            prop_assert!(Series::begin(&flipped).is_err());
            // Also by a series that waits for it, has it as its head, or has it below its head.
            let mut series = Series::begin(&changes[0]).unwrap();
            for (position, next) in changes.iter().enumerate() {
                for held in [Held::Nothing, Held::Hash(change.hash()), Held::Change(change), Held::Change(&flipped)] {
                    prop_assert!(series.accept(&flipped, held).is_err(), "change {number}, byte {at}");
                }
                if position > 0 {
                    prop_assert_eq!(series.accept(next, Held::Nothing), Ok(Accepted::Next));
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in vec(any::<u8>(), 0..400)) {
        decode_all(&bytes);
        decode_all(&[&batch(&[])[..12], &bytes].concat());
    }

    #[test]
    fn what_decodes_encodes_to_the_same_bytes(
        payload in vec(any::<u8>(), 0..100), seen in frontier(), damage in damage(),
    ) {
        let changes = series(&payload, &seen);
        let (mut author, _) = Author::begin(key(), [1; 16], &Frontier::new()).unwrap();
        let other = author.append(Kind(2), Vec::new(), &Frontier::new()).unwrap();
        let proof = ForkProof::new(*author.series().key(), other, changes[1].clone()).unwrap();
        for valid in [seen.encode(), changes[0].encode(), changes[1].encode(), proof.encode(), batch(&changes)] {
            decode_all(&valid);
            decode_all(&damaged(valid, &damage));
        }
    }

    #[test]
    fn changes_before_damage_are_read(payload in vec(any::<u8>(), 0..100), damage in damage()) {
        let changes = series(&payload, &Frontier::new());
        let whole = batch(&changes);
        let bytes = damaged(whole.clone(), &damage);
        let same = whole.iter().zip(&bytes).take_while(|(one, other)| one == other).count();
        let Ok(Some(reader)) = BatchReader::open(&bytes[..]) else { return Ok(()) };
        let read: Vec<_> = reader.map_while(Result::ok).collect();
        let mut end = 12;
        for (number, change) in changes.iter().enumerate() {
            end += 4 + change.encode().len();
            if end <= same {
                prop_assert_eq!(&read[number], change);
            }
        }
    }

    #[test]
    fn a_frontier_is_the_set_of_changes_below_it(ours in frontier(), theirs in frontier()) {
        let (our_set, their_set) = (contents(&ours), contents(&theirs));
        let lacked = ours.lacked_by(&theirs);
        prop_assert_eq!(&lacked.forks, &[]);
        let counters = |range: &CounterRange| (range.first.get()..=range.last.get()).map({
            let origin = range.origin;
            move |at| (origin, at)
        });
        let lacked: Vec<_> = lacked.ranges.iter().flat_map(counters).collect();
        prop_assert_eq!(lacked, our_set.difference(&their_set).copied().collect::<Vec<_>>());
        let joined = ours.join(&theirs).unwrap();
        prop_assert_eq!(contents(&joined), our_set.union(&their_set).copied().collect());
        let expected = match (our_set.is_subset(&their_set), their_set.is_subset(&our_set)) {
            (true, true) => FrontierOrder::Equal,
            (true, false) => FrontierOrder::Behind,
            (false, true) => FrontierOrder::Ahead,
            (false, false) => FrontierOrder::Concurrent,
        };
        prop_assert_eq!(ours.order(&theirs), expected);
    }

    #[test]
    fn joining_frontiers_is_a_join(one in frontier(), two in frontier(), three in frontier()) {
        prop_assert_eq!(one.join(&two), two.join(&one));
        prop_assert_eq!(one.join(&one), Ok(one.clone()));
        let left = one.join(&two).unwrap().join(&three);
        prop_assert_eq!(left, one.join(&two.join(&three).unwrap()));
    }
}

#[test]
fn a_batch_error_says_what_it_means() {
    let bytes = &batch(&series(b"tea", &Frontier::new()))[..100];
    let error = BatchReader::open(bytes).unwrap().unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error, BatchError::Truncated { changes: 0 }));
    assert_eq!(error.to_string(), "the batch ends early, after 0 whole changes");
}
