use super::*;
use crate::{
    fixture::{NOTE, counter, foreign, head, key, seen, written},
    limits::MAX_PAYLOAD_BYTES,
};

fn append(author: &mut Author, seen: &Frontier) -> Result<Frontier, AuthorError> {
    author.append(NOTE, Vec::new(), seen).map(|change| change.change().context.clone())
}

#[test]
fn a_context_has_only_what_is_new() {
    let (mut author, _) = Author::begin(key(1), [1; 16], &seen(&[(2, 1)])).unwrap();
    assert_eq!(append(&mut author, &seen(&[(2, 1)])), Ok(seen(&[])));
    assert_eq!(append(&mut author, &seen(&[(2, 4), (3, 1)])), Ok(seen(&[(2, 4), (3, 1)])));
    let mut with_own = seen(&[(2, 4), (3, 2)]);
    with_own.advance(author.series().origin(), author.series().head()).unwrap();
    assert_eq!(append(&mut author, &with_own), Ok(seen(&[(3, 2)])));
    assert_eq!(*author.series().context(), seen(&[(2, 4), (3, 2)]));
}

#[test]
fn a_store_that_lost_what_it_had_seen_does_not_go_on() {
    let (mut author, _) = Author::begin(key(1), [1; 16], &seen(&[(2, 5)])).unwrap();
    let mut other_branch = Frontier::new();
    other_branch.advance(foreign(2), Head { counter: counter(5), hash: head(6).hash }).unwrap();
    let (origin, of, expected) = (author.series().origin(), foreign(2), counter(5));
    for now in [seen(&[]), seen(&[(2, 4)]), other_branch] {
        let error = AuthorError::RolledBack { origin, of, expected };
        assert_eq!(append(&mut author, &now), Err(error));
    }
    assert_eq!(author.series().head().counter, counter(1));
}

#[test]
fn a_store_that_holds_later_changes_of_its_own_origin_does_not_go_on() {
    let (mut author, _) = written(1, &["two"]);
    let origin = author.series().origin();
    for own in [head(1), head(2), head(3)] {
        let mut now = Frontier::new();
        now.advance(origin, own).unwrap();
        let error = AuthorError::RolledBack { origin, of: origin, expected: counter(2) };
        assert_eq!(append(&mut author, &now), Err(error));
    }
}

#[test]
fn the_last_counter_has_no_successor() {
    let (author, _) = written(1, &[]);
    let last = Head { counter: Counter::MAX, hash: head(1).hash };
    let series = Series::resume(*author.series().key(), last, Frontier::new());
    let mut author = Author::resume(key(1), series).unwrap();
    let origin = author.series().origin();
    assert_eq!(append(&mut author, &Frontier::new()), Err(AuthorError::CounterOverflow { origin }));
}

#[test]
fn only_the_key_of_an_origin_continues_it() {
    let (author, _) = written(1, &[]);
    let origin = author.series().origin();
    let error = Author::resume(key(2), author.series().clone()).err();
    assert_eq!(error, Some(AuthorError::WrongKey { origin }));
}

#[test]
fn one_key_begins_several_origins() {
    let (one, _) = Author::begin(key(1), [1; 16], &Frontier::new()).unwrap();
    let (other, _) = Author::begin(key(1), [2; 16], &Frontier::new()).unwrap();
    assert_ne!(one.series().origin(), other.series().origin());
}

#[test]
fn a_store_recognises_what_it_wrote_and_what_it_lost() {
    let (author, changes) = written(1, &["two", "three"]);
    assert_eq!(author.recognise(&changes[1], Held::Change(&changes[1])), Ok(()));
    let (restored, _) = written(1, &["two"]);
    let origin = restored.series().origin();
    let error = AuthorError::RolledBack { origin, of: origin, expected: counter(3) };
    assert_eq!(restored.recognise(&changes[2], Held::Nothing), Err(error));
    let (other, _) = written(1, &["zwei"]);
    let error = other.recognise(&changes[1], Held::Nothing);
    assert!(matches!(error, Err(AuthorError::Series(SeriesError::Fork { .. }))), "{error:?}");
}

#[test]
fn a_change_of_a_digest_is_that_of_its_payload() {
    let (mut one, mut other) = (written(1, &[]).0, written(1, &[]).0);
    let whole = one.append(NOTE, b"tea".to_vec(), &Frontier::new()).unwrap();
    let bare = other.append_id(NOTE, PayloadId::of(b"tea"), &Frontier::new()).unwrap();
    assert_eq!((whole.payload(), bare.payload()), (Some(&b"tea"[..]), None));
    assert_eq!(bare.with_payload(b"tea".to_vec()), Ok(whole));
    assert_eq!(one.series(), other.series());
}

#[test]
fn a_long_payload_is_signed_and_not_with_its_change() {
    let (mut author, _) = written(1, &[]);
    let longest = author.append(NOTE, vec![0; MAX_INLINE_BYTES], &Frontier::new()).unwrap();
    assert_eq!(longest.payload().map(<[u8]>::len), Some(MAX_INLINE_BYTES));
    let payload = vec![0; MAX_INLINE_BYTES + 1];
    let id = PayloadId::of(&payload);
    let longer = author.append(NOTE, payload, &Frontier::new()).unwrap();
    assert_eq!((longer.change().payload, longer.payload()), (id, None));
    assert_eq!(author.series().head(), longer.head());
}

#[test]
fn a_payload_that_is_too_long_leaves_the_series_as_it_was() {
    let (mut author, _) = written(1, &[]);
    let before = author.series().clone();
    let id = |length| PayloadId { length, ..PayloadId::of(b"") };
    let found = MAX_PAYLOAD_BYTES + 1;
    let error = AuthorError::Change(ChangeError::TooLarge { found });
    assert_eq!(author.append_id(NOTE, id(found), &Frontier::new()), Err(error));
    assert_eq!(*author.series(), before);
    let longest = author.append_id(NOTE, id(MAX_PAYLOAD_BYTES), &Frontier::new()).unwrap();
    assert_eq!(author.series().head(), longest.head());
}

#[test]
fn only_the_beginning_of_an_origin_is_a_genesis() {
    let (mut author, _) = written(1, &[]);
    let (origin, counter) = (author.series().origin(), counter(2));
    let error = AuthorError::Change(ChangeError::Genesis { origin, counter });
    assert_eq!(author.append_id(Kind::GENESIS, PayloadId::of(b""), &Frontier::new()), Err(error));
}
