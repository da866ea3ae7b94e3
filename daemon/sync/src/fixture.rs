//! Authors and series for the unit tests.

use crate::{
    author::Author,
    change::{Kind, SignedChange},
    frontier::Frontier,
    head::{ChangeHash, Counter, Head},
    origin::OriginId,
};
use ed25519_dalek::SigningKey;

pub(crate) const NOTE: Kind = Kind(1);

pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

pub(crate) fn counter(number: u64) -> Counter {
    Counter::new(number).unwrap()
}

pub(crate) fn head(number: u64) -> Head {
    Head { counter: counter(number), hash: ChangeHash::of(&number.to_be_bytes()) }
}

pub(crate) fn foreign(number: u8) -> OriginId {
    OriginId::from_bytes([number; 16])
}

pub(crate) fn seen(heads: &[(u8, u64)]) -> Frontier {
    let mut frontier = Frontier::new();
    for (origin, counter) in heads {
        frontier.advance(foreign(*origin), head(*counter)).unwrap();
    }
    frontier
}

/// An author and its first changes: a genesis, then one change for each text.
pub(crate) fn written(number: u8, texts: &[&str]) -> (Author, Vec<SignedChange>) {
    let (mut author, genesis) = Author::begin(key(number), [number; 16], &Frontier::new()).unwrap();
    let mut changes = vec![genesis];
    for text in texts {
        changes.push(author.append(NOTE, text.as_bytes().to_vec(), &Frontier::new()).unwrap());
    }
    (author, changes)
}
