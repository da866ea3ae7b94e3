use super::*;
use crate::{
    author::Author,
    fixture::{counter, key, seen, written},
};

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

#[test]
fn a_proof_has_no_payloads() {
    let (key, ours, theirs) = branches();
    let proof = ForkProof::new(key, ours[1].clone(), theirs[1].clone()).unwrap();
    assert!(proof.changes().iter().all(|change| change.payload().is_none()));
    // Somebody else may have added one.
    let mut private = proof.clone();
    let [first, second] = if proof.changes()[0].hash() == ours[1].hash() {
        [&ours[1], &theirs[1]]
    } else {
        [&theirs[1], &ours[1]]
    };
    private.changes = [first.clone(), second.clone()];
    assert_eq!(ForkProof::decode(&private.encode()), Err(ProofError::Payload));
}

#[test]
fn two_geneses_of_one_origin_are_a_fork() {
    let begin = |heads: &[_]| Author::begin(key(1), [1; 16], &seen(heads)).unwrap();
    let (author, ours) = begin(&[]);
    let (_, theirs) = begin(&[(9, 1)]);
    let origin_key = *author.series().key();
    let proof = ForkProof::new(origin_key, ours, theirs.clone()).unwrap();
    assert_eq!(proof.fork().counter, counter(1));
    assert_eq!(ForkProof::decode(&proof.encode()), Ok(proof.clone()));
    // One that was signed but not given its payload.
    let bare = theirs.into_change().sign(&key(1)).unwrap();
    let [first, second] = proof.changes;
    let other = if first.hash() == bare.hash() { second } else { first };
    let error = ProofError::Change(ChangeError::NoKey { origin: origin_key.id() });
    assert_eq!(ForkProof::new(origin_key, bare, other), Err(error));
}
