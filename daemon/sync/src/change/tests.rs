use super::*;
use crate::fixture::{NOTE, counter, foreign, head, key, seen, written};

const TEXT: &[u8] = b"tea, not coffee";

fn signed(change: Change) -> SignedChange {
    change.sign(&key(1)).unwrap().with_payload(TEXT.to_vec()).unwrap()
}

fn change() -> Change {
    Change {
        origin: foreign(9),
        counter: counter(2),
        previous: head(1).hash,
        context: seen(&[(1, 5), (2, 7)]),
        kind: NOTE,
        payload: PayloadId::of(TEXT),
    }
}

fn refusal(change: Change) -> ChangeError {
    let error = change.clone().sign(&key(1)).unwrap_err();
    // What cannot be signed is not decoded either.
    let mut bytes = change.signed_bytes()[DOMAIN.len()..].to_vec();
    bytes.extend_from_slice(&[0; 65]);
    assert_eq!(SignedChange::decode(&bytes), Err(error));
    error
}

#[test]
fn a_change_is_decoded_as_it_was_encoded() {
    let (whole, bare) = (signed(change()), signed(change()).without_payload());
    assert_eq!(whole.encode().len(), CHANGE_FIXED_BYTES + 2 * FRONTIER_ENTRY_BYTES + 4 + TEXT.len());
    assert_eq!(bare.encode().len(), CHANGE_FIXED_BYTES + 2 * FRONTIER_ENTRY_BYTES);
    assert_eq!(SignedChange::decode(&whole.encode()), Ok(whole));
    assert_eq!(SignedChange::decode(&bare.encode()), Ok(bare));
}

#[test]
fn a_change_ends_where_its_bytes_end() {
    let bytes = signed(change()).encode();
    for end in 0..bytes.len() {
        assert_eq!(SignedChange::decode(&bytes[..end]), Err(ChangeError::Truncated), "{end}");
    }
    let longer = [&bytes[..], &[0, 0]].concat();
    assert_eq!(SignedChange::decode(&longer), Err(ChangeError::Trailing { bytes: 2 }));
    // A bare change ends after its presence; a genesis is cut as any other one.
    let (bare, genesis) = (signed(change()).without_payload(), written(1, &[]).1.remove(0));
    for bytes in [bare.encode(), genesis.encode()] {
        for end in 0..bytes.len() {
            assert_eq!(SignedChange::decode(&bytes[..end]), Err(ChangeError::Truncated), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(SignedChange::decode(&longer), Err(ChangeError::Trailing { bytes: 1 }));
    }
}

#[test]
fn a_newer_version_is_named_and_nothing_else_of_it_is_read() {
    let mut bytes = signed(change()).encode();
    bytes[1] = 2;
    let error = ChangeError::UnknownVersion { origin: foreign(9), counter: 2, found: 2 };
    assert_eq!(SignedChange::decode(&bytes), Err(error));
    assert_eq!(SignedChange::decode(&bytes[..26]), Err(error));
    bytes[1] = 0;
    let error = ChangeError::UnknownVersion { origin: foreign(9), counter: 2, found: 0 };
    assert_eq!(SignedChange::decode(&bytes), Err(error));
}

#[test]
fn counters_outside_the_range_are_refused() {
    let mut bytes = signed(change()).encode();
    bytes[25] = 0;
    assert_eq!(SignedChange::decode(&bytes), Err(ChangeError::ZeroCounter { origin: foreign(9) }));
    bytes[18] = 0x80;
    let error = ChangeError::CounterOverflow { origin: foreign(9), counter: 1 << 63 };
    assert_eq!(SignedChange::decode(&bytes), Err(error));
}

#[test]
fn the_length_of_a_payload_is_bounded() {
    let named = |length| Change { payload: PayloadId { length, ..PayloadId::of(TEXT) }, ..change() };
    for length in [0, MAX_INLINE_BYTES as u64 + 1, MAX_PAYLOAD_BYTES] {
        let named = named(length).sign(&key(1)).unwrap();
        assert_eq!(SignedChange::decode(&named.encode()), Ok(named));
    }
    for found in [MAX_PAYLOAD_BYTES + 1, u64::MAX] {
        assert_eq!(refusal(named(found)), ChangeError::TooLarge { found });
    }
}

#[test]
fn a_long_payload_is_not_with_its_change() {
    let of = |length: usize| {
        let payload = vec![0; length];
        (Change { payload: PayloadId::of(&payload), ..change() }.sign(&key(1)).unwrap(), payload)
    };
    let (longest, payload) = of(MAX_INLINE_BYTES);
    let longest = longest.with_payload(payload).unwrap();
    assert_eq!(SignedChange::decode(&longest.encode()), Ok(longest));
    let (longer, payload) = of(MAX_INLINE_BYTES + 1);
    let error = ChangeError::NotInline { found: MAX_INLINE_BYTES + 1 };
    let mut bytes = longer.encode();
    assert_eq!(longer.with_payload(payload.clone()), Err(error));
    // A writer that does not keep to it.
    bytes.pop();
    bytes.push(1);
    bytes.extend_from_slice(&length_u32(payload.len()));
    bytes.extend_from_slice(&payload);
    assert_eq!(SignedChange::decode(&bytes), Err(error));
}

#[test]
fn only_the_payload_that_was_signed_is_taken() {
    let (origin, counter) = (foreign(9), counter(2));
    let wrong = ChangeError::WrongPayload { origin, counter };
    let bare = change().sign(&key(1)).unwrap();
    for payload in [&b"coffee, not tea"[..], b"", b"tea, not coffee!"] {
        assert_eq!(bare.clone().with_payload(payload.to_vec()), Err(wrong));
    }
    let mut bytes = signed(change()).encode();
    *bytes.last_mut().unwrap() ^= 1;
    assert_eq!(SignedChange::decode(&bytes), Err(wrong));
    assert_eq!(wrong.to_string(), format!("change 2 of origin {origin} names another payload"));
    assert_eq!(signed(change()).payload(), Some(TEXT));
    assert_eq!(signed(change()).into_payload(), Some(TEXT.to_vec()));
    assert_eq!(bare.into_payload(), None);
}

#[test]
fn a_payload_has_the_length_and_the_digest_that_were_signed() {
    let (origin, counter) = (foreign(9), counter(2));
    let wrong = ChangeError::WrongPayload { origin, counter };
    let right = PayloadId::of(TEXT);
    let others = [
        PayloadId { length: right.length + 1, ..right },
        PayloadId { length: right.length - 1, ..right },
        PayloadId { digest: PayloadId::of(b"").digest, ..right },
    ];
    for payload in others {
        let bare = Change { payload, ..change() }.sign(&key(1)).unwrap();
        let mut bytes = bare.encode();
        bytes.pop();
        bytes.push(1);
        bytes.extend_from_slice(&length_u32(TEXT.len()));
        bytes.extend_from_slice(TEXT);
        assert_eq!(SignedChange::decode(&bytes), Err(wrong));
        assert_eq!(bare.with_payload(TEXT.to_vec()), Err(wrong));
    }
}

#[test]
fn a_change_is_the_same_with_and_without_its_payload() {
    let (whole, bare) = (signed(change()), signed(change()).without_payload());
    assert_eq!((whole.hash(), whole.head()), (bare.hash(), bare.head()));
    assert_eq!(bare.with_payload(TEXT.to_vec()), Ok(whole));
}

#[test]
fn an_empty_payload_is_present_or_not() {
    let bare = Change { payload: PayloadId::of(b""), ..change() }.sign(&key(1)).unwrap();
    let whole = bare.clone().with_payload(Vec::new()).unwrap();
    assert_eq!((bare.payload(), whole.payload()), (None, Some(&b""[..])));
    assert_eq!(whole.encode().len(), bare.encode().len() + 4);
    assert_eq!(SignedChange::decode(&bare.encode()), Ok(bare));
    assert_eq!(SignedChange::decode(&whole.encode()), Ok(whole));
}

#[test]
fn a_change_says_whether_its_payload_is_present() {
    let mut bytes = change().sign(&key(1)).unwrap().encode();
    for found in [2, 0x80, 0xff] {
        *bytes.last_mut().unwrap() = found;
        assert_eq!(SignedChange::decode(&bytes), Err(ChangeError::Presence { found }));
    }
}

#[test]
fn a_genesis_keeps_its_payload() {
    let (_, changes) = written(1, &["two"]);
    let (genesis, second) = (&changes[0], &changes[1]);
    assert_eq!(genesis.clone().without_payload(), *genesis);
    assert_ne!(second.clone().without_payload(), *second);
    let bytes = genesis.encode();
    let bare = [&bytes[..bytes.len() - 53], &[0]].concat();
    let origin = genesis.change().origin;
    assert_eq!(SignedChange::decode(&bare), Err(ChangeError::NoKey { origin }));
    let mut other = bytes;
    *other.last_mut().unwrap() ^= 1;
    let wrong = ChangeError::WrongPayload { origin, counter: counter(1) };
    assert_eq!(SignedChange::decode(&other), Err(wrong));
}

#[test]
fn the_first_change_and_no_other_is_a_genesis() {
    let genesis = |counter, kind| Change { counter, kind, previous: ChangeHash::ZERO, ..change() };
    for (at, kind) in [(counter(1), NOTE), (counter(2), Kind::GENESIS)] {
        let error = ChangeError::Genesis { origin: foreign(9), counter: at };
        assert_eq!(refusal(genesis(at, kind)), error);
    }
}

#[test]
fn every_change_but_a_genesis_has_a_previous_one() {
    let (at, previous) = (counter(2), ChangeHash::ZERO);
    let error = ChangeError::Previous { origin: foreign(9), counter: at };
    assert_eq!(refusal(Change { previous, ..change() }), error);
    let genesis = Change { counter: counter(1), kind: Kind::GENESIS, ..change() };
    assert_eq!(refusal(genesis), ChangeError::Previous { origin: foreign(9), counter: counter(1) });
}

#[test]
fn a_context_never_names_its_own_origin() {
    let at = |seen| {
        let mut context = Frontier::new();
        context.advance(foreign(9), head(seen)).unwrap();
        refusal(Change { context, counter: counter(4), ..change() })
    };
    let (origin, counter) = (foreign(9), counter(4));
    for number in [4, 5] {
        let seen = head(number).counter;
        assert_eq!(at(number), ChangeError::FutureContext { origin, counter, seen });
    }
    let seen = head(3).counter;
    assert_eq!(at(3), ChangeError::OwnContext { origin, counter, seen });
}

#[test]
fn a_context_is_a_frontier() {
    let mut bytes = signed(change()).encode();
    // The first of two origins becomes the greater one.
    bytes[64] = 3;
    assert_eq!(SignedChange::decode(&bytes), Err(ChangeError::Context(FrontierError::Order)));
}

#[test]
fn a_kind_that_nobody_knows_is_passed_on_as_it_is() {
    let signed = signed(Change { kind: Kind(0xfffe), ..change() });
    let passed_on = SignedChange::decode(&signed.encode()).unwrap();
    assert_eq!(passed_on.change().kind, Kind(0xfffe));
    assert_eq!(passed_on.encode(), signed.encode());
}

#[test]
fn the_hash_does_not_depend_on_the_signature() {
    let (one, other) = (change().sign(&key(1)).unwrap(), change().sign(&key(2)).unwrap());
    assert_ne!(one, other);
    assert_eq!(one.hash(), other.hash());
}

#[test]
fn debug_output_has_no_payload() {
    let change = Change { payload: PayloadId::of(b"a secret"), ..change() };
    let text = format!("{:?}", change.sign(&key(1)).unwrap().with_payload(b"a secret".to_vec()).unwrap());
    assert!(!text.contains("secret") && !text.contains("115"), "{text}");
    assert!(text.contains("payload_bytes: 8"), "{text}");
}
