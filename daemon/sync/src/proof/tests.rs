use super::*;
use crate::fixture::{counter, key, written};

fn branches() -> (OriginKey, Vec<SignedChange>, Vec<SignedChange>) {
    let (author, ours) = written(1, &["two", "three"]);
    (*author.series().key(), ours, written(1, &["zwei", "drei"]).1)
}

#[test]
fn both_sides_make_the_same_proof() {
    let (key, ours, theirs) = branches();
    let one = ForkProof::new(key, ours[1].clone(), theirs[1].clone()).unwrap();
    let other = ForkProof::new(key, theirs[1].clone(), ours[1].clone()).unwrap();
    assert_eq!(one, other);
    assert_eq!(one.fork().counter, counter(2));
    assert_eq!(ForkProof::decode(&one.encode()), Ok(one));
}

#[test]
fn the_same_change_twice_proves_nothing() {
    let (key, ours, _) = branches();
    assert_eq!(ForkProof::new(key, ours[1].clone(), ours[1].clone()), Err(ProofError::Order));
}

#[test]
fn changes_with_different_counters_prove_nothing() {
    let (key, ours, theirs) = branches();
    let error = ForkProof::new(key, ours[1].clone(), theirs[2].clone());
    assert!(matches!(error, Err(ProofError::Counters { .. })), "{error:?}");
}

#[test]
fn a_change_that_somebody_else_signed_proves_nothing() {
    let (origin_key, ours, theirs) = branches();
    let forged = theirs[1].change().clone().sign(&key(2)).unwrap();
    let error = ProofError::BadSignature { origin: origin_key.id(), counter: counter(2) };
    assert_eq!(ForkProof::new(origin_key, ours[1].clone(), forged.clone()), Err(error.clone()));
    assert_eq!(ForkProof::new(origin_key, forged, ours[1].clone()), Err(error));
}

#[test]
fn the_key_in_a_proof_is_that_of_the_origin() {
    let (_, ours, theirs) = branches();
    let other = *written(2, &[]).0.series().key();
    let error = ProofError::WrongOrigin { expected: other.id(), found: ours[1].change().origin };
    assert_eq!(ForkProof::new(other, ours[1].clone(), theirs[1].clone()), Err(error));
}

#[test]
fn a_proof_with_another_byte_or_length_is_refused() {
    let (key, ours, theirs) = branches();
    let bytes = ForkProof::new(key, ours[1].clone(), theirs[1].clone()).unwrap().encode();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert!(ForkProof::decode(&flipped).is_err(), "{at}");
        assert!(ForkProof::decode(&bytes[..at]).is_err(), "{at}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(ForkProof::decode(&longer), Err(ProofError::Trailing { bytes: 1 }));
    let mut newer = bytes.clone();
    newer[9] = 2;
    assert_eq!(ForkProof::decode(&newer), Err(ProofError::UnknownVersion { found: 2 }));
    assert_eq!(ForkProof::decode(b"SATCHELC"), Err(ProofError::Magic));
}

#[test]
fn an_encoded_proof_has_its_changes_in_order() {
    let (key, ours, theirs) = branches();
    let mut proof = ForkProof::new(key, ours[1].clone(), theirs[1].clone()).unwrap();
    proof.changes.reverse();
    assert_eq!(ForkProof::decode(&proof.encode()), Err(ProofError::Order));
}
