//! The test vector of `FORMAT.md`, which a Python program made independently of this crate (`vector/make.py`).
#![expect(clippy::unwrap_used, reason = "tests")]

use satchel_sync::{
    Accepted, Author, ChangeHash, Continuation, Counter, ForkProof, Frontier, Head, Held, Kind, OriginId,
    Series, SignedChange, SigningKey,
    batch::{BatchReader, BatchWriter},
};

const VECTOR: &str = include_str!("vector/vector.txt");

fn text(name: &str) -> &'static str {
    VECTOR.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap()
}

fn bytes(name: &str) -> Vec<u8> {
    let digits = text(name).as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn hash(name: &str) -> ChangeHash {
    ChangeHash::from_bytes(bytes(name).try_into().unwrap())
}

fn foreign() -> (OriginId, Head) {
    let origin = "03030303-0303-0303-0303-030303030303".parse().map(OriginId::from_uuid).unwrap();
    (origin, Head { counter: Counter::new(7).unwrap(), hash: ChangeHash::from_bytes([4; 32]) })
}

fn written() -> (Author, [SignedChange; 2]) {
    let key = SigningKey::from_bytes(&[1; 32]);
    let (mut author, genesis) = Author::begin(key, [2; 16], &Frontier::new()).unwrap();
    let mut seen = Frontier::new();
    seen.advance(foreign().0, foreign().1).unwrap();
    let change = author.append(Kind(1), b"tea, not coffee".to_vec(), &seen).unwrap();
    (author, [genesis, change])
}

#[test]
fn changes_are_written_as_in_the_vector() {
    let (author, [genesis, change]) = written();
    assert_eq!(author.series().origin().to_string(), text("origin"));
    assert_eq!((genesis.encode(), genesis.hash()), (bytes("genesis"), hash("genesis-hash")));
    assert_eq!((change.encode(), change.hash()), (bytes("change"), hash("change-hash")));
    assert_eq!(change.without_payload().encode(), bytes("bare-change"));
}

#[test]
fn changes_of_the_vector_are_accepted() {
    let mut series = Series::begin(&SignedChange::decode(&bytes("genesis")).unwrap()).unwrap();
    let change = SignedChange::decode(&bytes("change")).unwrap();
    assert_eq!(series.accept(&change, Held::Nothing), Ok(Accepted::Next));
    assert_eq!(series, *written().0.series());
}

#[test]
fn the_frontier_of_the_vector_is_that_of_its_changes() {
    let (author, _) = written();
    let mut frontier = author.series().context().clone();
    frontier.advance(author.series().origin(), author.series().head()).unwrap();
    assert_eq!(frontier.encode(), bytes("frontier"));
    assert_eq!(Frontier::decode(&bytes("frontier")), Ok(frontier));
}

#[test]
fn the_batch_of_the_vector_has_its_changes() {
    let (_, changes) = written();
    let mut writer = BatchWriter::begin(Vec::new()).unwrap();
    for change in &changes {
        assert_eq!(writer.push(change).unwrap(), satchel_sync::batch::Pushed::Written);
    }
    assert_eq!(writer.finish().unwrap(), bytes("batch"));
    let batch = bytes("batch");
    let read: Result<Vec<_>, _> = BatchReader::open(&batch[..]).unwrap().unwrap().collect();
    assert_eq!(read.unwrap(), changes);
}

#[test]
fn the_proof_of_the_vector_proves_its_fork() {
    let proof = ForkProof::decode(&bytes("proof")).unwrap();
    assert_eq!(proof.origin(), written().0.series().origin());
    assert!(proof.changes().iter().any(|change| change.hash() == hash("change-hash")));
    assert_eq!(proof.encode(), bytes("proof"));
}

#[test]
fn the_continuation_of_the_vector_repeats_the_other_branch() {
    let (author, [genesis, _]) = written();
    let (series, (by, _)) = (author.series(), foreign());
    let mut other = Author::resume(
        SigningKey::from_bytes(&[1; 32]),
        Series::resume(*series.key(), genesis.head(), Frontier::new()),
    )
    .unwrap();
    let branch = other.append(Kind(1), b"coffee".to_vec(), &Frontier::new()).unwrap();
    let key = SigningKey::from_bytes(&[1; 32]);
    let continuation = Continuation::sign(&key, series.origin(), genesis.head(), vec![branch.hash()], by);
    assert_eq!(continuation.encode(), bytes("continuation"));
    let read = Continuation::decode(&bytes("continuation")).unwrap();
    assert!(read.verify(series.key(), by));
    assert_eq!(read.position(branch.head()), Some(1));
}
