//! Authors and series for the unit tests.

use crate::{
    change::Kind,
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
