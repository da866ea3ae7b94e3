use super::*;
use crate::{
    author::Author,
    change::Change,
    fixture::{NOTE, counter, foreign, head, key, seen, written},
    limits::MAX_ORIGINS,
    payload::PayloadId,
};

/// The series up to the second of these changes, and the changes.
fn held() -> (Series, Vec<SignedChange>) {
    let (_, changes) = written(1, &["two", "three", "four"]);
    let mut series = Series::begin(&changes[0]).unwrap();
    assert_eq!(series.accept(&changes[1], Held::Nothing), Ok(Accepted::Next));
    (series, changes)
}

/// The other branch: the same first change, then others.
fn branch() -> Vec<SignedChange> {
    written(1, &["zwei", "drei", "vier"]).1
}

/// Checks that a change is refused, and that this leaves the series as it was.
fn refusal(series: &mut Series, change: &SignedChange, held: Held<'_>) -> SeriesError {
    let before = series.clone();
    let error = series.accept(change, held).unwrap_err();
    assert_eq!(*series, before);
    error
}

fn next(series: &Series, context: Frontier) -> SignedChange {
    let Head { counter, hash: previous } = series.head();
    let (origin, counter) = (series.origin(), counter.next().unwrap());
    let change = Change { origin, counter, previous, context, kind: NOTE, payload: PayloadId::of(b"") };
    change.sign(&key(1)).unwrap()
}

#[test]
fn a_series_grows_by_its_next_change() {
    let (mut series, changes) = held();
    assert_eq!(series.accept(&changes[2], Held::Nothing), Ok(Accepted::Next));
    assert_eq!(series.head(), changes[2].head());
}

#[test]
fn a_gap_is_refused() {
    let (mut series, changes) = held();
    let (expected, found) = (counter(3), counter(4));
    let error = SeriesError::Gap { origin: series.origin(), expected, found };
    assert_eq!(refusal(&mut series, &changes[3], Held::Nothing), error);
}

#[test]
fn a_repeated_change_is_recognised() {
    let (mut series, changes) = held();
    for (change, held) in [
        (1, Held::Nothing),
        (1, Held::Change(&changes[1])),
        (0, Held::Change(&changes[0])),
        (0, Held::Hash(changes[0].hash())),
    ] {
        assert_eq!(series.accept(&changes[change], held), Ok(Accepted::Repeated));
    }
    assert_eq!(series.head(), changes[1].head());
}

#[test]
fn an_earlier_change_needs_a_comparison() {
    let (mut series, changes) = held();
    let origin = series.origin();
    let error = SeriesError::NotCompared { origin, counter: counter(1), head: counter(2) };
    // Another change than the one at this counter of this origin says nothing.
    let (_, other) = written(2, &[]);
    for held in [Held::Nothing, Held::Change(&changes[2]), Held::Change(&other[0])] {
        assert_eq!(refusal(&mut series, &changes[0], held), error);
    }
    // At the head, the series itself has the hash.
    assert_eq!(series.accept(&changes[1], Held::Change(&changes[2])), Ok(Accepted::Repeated));
}

#[test]
fn a_fork_is_proven_if_both_changes_are_at_hand() {
    let (mut series, changes) = held();
    let other = branch();
    let fork = Fork {
        origin: series.origin(),
        counter: counter(2),
        ours: changes[1].hash(),
        theirs: other[1].hash(),
    };
    let proof = ForkProof::new(*series.key(), changes[1].clone(), other[1].clone()).unwrap();
    let proven = SeriesError::Fork { fork, proof: Some(Box::new(proof)) };
    assert_eq!(refusal(&mut series, &other[1], Held::Change(&changes[1])), proven);
    let unproven = SeriesError::Fork { fork, proof: None };
    for held in [Held::Nothing, Held::Hash(changes[1].hash())] {
        assert_eq!(refusal(&mut series, &other[1], held), unproven);
    }
}

#[test]
fn a_next_change_on_another_branch_shows_the_fork_before_it() {
    let (mut series, changes) = held();
    let other = branch();
    let fork = Fork {
        origin: series.origin(),
        counter: counter(2),
        ours: changes[1].hash(),
        theirs: other[1].hash(),
    };
    let error = SeriesError::Fork { fork, proof: None };
    assert_eq!(refusal(&mut series, &other[2], Held::Nothing), error);
}

#[test]
fn nobody_else_can_fork_an_origin() {
    let (mut series, changes) = held();
    let forged = |at: u64, text: &str| {
        let change = changes[1].change().clone();
        let payload = PayloadId::of(text.as_bytes());
        Change { counter: counter(at), payload, ..change }.sign(&key(2)).unwrap()
    };
    for at in [2, 3] {
        let error = SeriesError::BadSignature { origin: series.origin(), counter: counter(at) };
        assert_eq!(refusal(&mut series, &forged(at, "forged"), Held::Nothing), error);
    }
    // The same content with the signature of somebody else is no repetition either.
    let error = SeriesError::BadSignature { origin: series.origin(), counter: counter(2) };
    let same = changes[1].change().clone().sign(&key(2)).unwrap();
    assert_eq!(refusal(&mut series, &same, Held::Change(&changes[1])), error);
}

#[test]
fn changes_of_another_origin_are_refused() {
    let (mut series, _) = held();
    let (_, other) = written(2, &["two", "three"]);
    let error = SeriesError::WrongOrigin { expected: series.origin(), found: other[2].change().origin };
    assert_eq!(refusal(&mut series, &other[2], Held::Nothing), error);
}

#[test]
fn an_origin_belongs_to_the_key_in_its_genesis() {
    let (_, ours) = written(1, &[]);
    let origin = ours[0].change().origin;
    let (_, theirs) = written(2, &[]);
    let signed = |change: Change, of: &SignedChange| {
        change.sign(&key(2)).unwrap().with_payload(of.payload().unwrap().to_vec()).unwrap()
    };
    let claim = signed(Change { origin, ..theirs[0].change().clone() }, &theirs[0]);
    let expected = theirs[0].change().origin;
    assert_eq!(Series::begin(&claim), Err(SeriesError::WrongOrigin { expected, found: origin }));
    let forged = signed(ours[0].change().clone(), &ours[0]);
    let error = SeriesError::BadSignature { origin, counter: counter(1) };
    assert_eq!(Series::begin(&forged), Err(error));
}

#[test]
fn a_series_begins_with_a_genesis_that_has_a_key() {
    let (_, changes) = written(1, &["two"]);
    let origin = changes[0].change().origin;
    let error = SeriesError::NotGenesis { origin, found: counter(2) };
    assert_eq!(Series::begin(&changes[1]), Err(error));
    let keyless = Change { payload: PayloadId::of(&[0; 3]), ..changes[0].change().clone() };
    let keyless = keyless.sign(&key(1)).unwrap().with_payload(vec![0; 3]).unwrap();
    let error = SeriesError::Key { origin, source: OriginError::Length { found: 3 } };
    assert_eq!(Series::begin(&keyless), Err(error));
}

#[test]
fn the_context_of_a_series_is_the_sum_of_those_of_its_changes() {
    let (mut series, _) = held();
    for context in [seen(&[(9, 3)]), seen(&[]), seen(&[(8, 1), (9, 4)])] {
        let change = next(&series, context);
        assert_eq!(series.accept(&change, Held::Nothing), Ok(Accepted::Next));
    }
    assert_eq!(*series.context(), seen(&[(8, 1), (9, 4)]));
}

#[test]
fn a_context_never_goes_backwards() {
    let (mut series, _) = held();
    let first = next(&series, seen(&[(9, 3)]));
    assert_eq!(series.accept(&first, Held::Nothing), Ok(Accepted::Next));
    for number in [2, 3] {
        let change = next(&series, seen(&[(8, 1), (9, number)]));
        let error = SeriesError::ContextBackwards {
            origin: series.origin(),
            counter: counter(4),
            of: foreign(9),
            seen: counter(3),
            found: counter(number),
        };
        assert_eq!(refusal(&mut series, &change, Held::Nothing), error);
    }
}

#[test]
fn all_contexts_together_are_bounded() {
    let (mut series, _) = held();
    let mut full = Frontier::new();
    for number in 0..MAX_ORIGINS as u128 {
        full.advance(OriginId::from_uuid(uuid::Uuid::from_u128(number)), head(1)).unwrap();
    }
    let change = next(&series, full);
    assert_eq!(series.accept(&change, Held::Nothing), Ok(Accepted::Next));
    let change = next(&series, seen(&[(9, 1)]));
    let source = FrontierError::TooManyOrigins { found: MAX_ORIGINS + 1 };
    let error = SeriesError::Context { origin: series.origin(), source };
    assert_eq!(refusal(&mut series, &change, Held::Nothing), error);
}

#[test]
fn a_series_is_resumed_with_what_was_kept_of_it() {
    let (author, changes) = written(1, &["two"]);
    let kept = author.series();
    let mut series = Series::resume(*kept.key(), kept.head(), kept.context().clone());
    assert_eq!(series, *kept);
    let mut author = Author::resume(key(1), series.clone()).unwrap();
    let third = author.append(NOTE, b"three".to_vec(), &Frontier::new()).unwrap();
    assert_eq!(third.change().previous, changes[1].hash());
    assert_eq!(series.accept(&third, Held::Nothing), Ok(Accepted::Next));
}

#[test]
fn a_series_can_be_checked_without_its_payloads() {
    let (author, changes) = written(1, &["two", "three"]);
    let bare: Vec<SignedChange> = changes.iter().cloned().map(SignedChange::without_payload).collect();
    let mut series = Series::begin(&bare[0]).unwrap();
    for change in &bare[1..] {
        assert_eq!(change.payload(), None);
        assert_eq!(series.accept(change, Held::Nothing), Ok(Accepted::Next));
    }
    assert_eq!(series, *author.series());
    // It is the same change with and without its payload.
    assert_eq!(series.accept(&changes[1], Held::Change(&bare[1])), Ok(Accepted::Repeated));
    assert_eq!(series.accept(&bare[1], Held::Change(&changes[1])), Ok(Accepted::Repeated));
    assert_eq!(series.accept(&bare[2], Held::Nothing), Ok(Accepted::Repeated));
    assert_eq!(series, *author.series());
}

#[test]
fn a_fork_is_proven_without_payloads() {
    let (mut series, changes) = held();
    let (ours, theirs) = (changes[1].clone(), branch().remove(1));
    let proof = ForkProof::new(*series.key(), ours.clone(), theirs.clone()).unwrap();
    let (hash, other) = (ours.hash(), theirs.hash());
    let fork = Fork { origin: series.origin(), counter: counter(2), ours: hash, theirs: other };
    let (bare_ours, bare_theirs) = (ours.clone().without_payload(), theirs.clone().without_payload());
    for (ours, theirs) in [(&bare_ours, &theirs), (&ours, &bare_theirs), (&bare_ours, &bare_theirs)] {
        let proven = SeriesError::Fork { fork, proof: Some(Box::new(proof.clone())) };
        assert_eq!(refusal(&mut series, theirs, Held::Change(ours)), proven);
    }
}
