//! Continuations: how an origin that forked says under which other origin one of its branches goes on.

use ed25519_dalek::{Signer as _, SigningKey};

use crate::{
    cursor::{Cursor, Truncated, length_u32},
    head::{ChangeHash, Counter, Head},
    limits::MAX_REPEATED,
    origin::{OriginId, OriginKey},
};

/// What is signed before the other bytes, so that the signature has no other meaning anywhere.
const DOMAIN: &[u8] = b"satchel-sync-continuation-v1\0";
const SIGNATURE_BYTES: usize = 64;

/// Says that the end of a branch of `origin` was written again under another origin, and is to be dropped.
///
/// It is in a change of the other origin. The changes that follow this one repeat those of the branch, one by one, in their order. It is
/// signed with the key of `origin`, so that nobody else can have a branch dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    origin: OriginId,
    base: Head,
    hashes: Vec<ChangeHash>,
    signature: [u8; SIGNATURE_BYTES],
}

/// Why bytes are no continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContinuationError {
    /// The bytes end too early.
    #[error("a continuation ends early")]
    Truncated,
    /// Bytes follow after the end.
    #[error("{bytes} bytes follow after a continuation")]
    Trailing {
        /// The number of bytes.
        bytes: usize,
    },
    /// A counter that no change has, or more changes than a series can have.
    #[error("a continuation has a counter that no change has")]
    Counter,
    /// More changes than [`MAX_REPEATED`].
    #[error("a continuation repeats more than {MAX_REPEATED} changes")]
    TooMany,
    /// It repeats no change.
    #[error("a continuation repeats no change")]
    Empty,
}

impl Continuation {
    /// Signs with the key of `origin` that `by` repeats the changes with these hashes, which follow `base`. There must be one at least.
    #[must_use]
    pub fn sign(
        key: &SigningKey,
        origin: OriginId,
        base: Head,
        hashes: Vec<ChangeHash>,
        by: OriginId,
    ) -> Self {
        let mut continuation = Self { origin, base, hashes, signature: [0; SIGNATURE_BYTES] };
        continuation.signature = key.sign(&continuation.signed_bytes(by)).to_bytes();
        continuation
    }

    /// Whether the holder of `key`, which is that of the origin that forked, signed this for `by`.
    #[must_use]
    pub fn verify(&self, key: &OriginKey, by: OriginId) -> bool {
        key.id() == self.origin && key.verifies(&self.signed_bytes(by), &self.signature)
    }

    /// The origin that forked.
    #[must_use]
    pub fn origin(&self) -> OriginId {
        self.origin
    }

    /// The last change before the branch. Both branches have it.
    #[must_use]
    pub fn base(&self) -> Head {
        self.base
    }

    /// The hashes of the changes that are repeated, in their order. The first one follows [`Continuation::base`].
    #[must_use]
    pub fn hashes(&self) -> &[ChangeHash] {
        &self.hashes
    }

    /// Returns how many changes of the branch there are up to the one with this counter; `None` if it is not on the branch, or is another
    /// change.
    #[must_use]
    pub fn position(&self, head: Head) -> Option<u64> {
        let position = head.counter.get().checked_sub(self.base.counter.get())?;
        let index = usize::try_from(position.checked_sub(1)?).ok()?;
        (self.hashes.get(index) == Some(&head.hash)).then_some(position)
    }

    /// Encodes it (`FORMAT.md`, section 8).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.unsigned_bytes();
        bytes.extend_from_slice(&self.signature);
        bytes
    }

    /// Decodes a continuation. The signature is not checked.
    ///
    /// # Errors
    /// If the bytes are anything other than what [`Continuation::encode`] writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, ContinuationError> {
        let mut cursor = Cursor::new(bytes);
        let origin = OriginId::from_bytes(cursor.array()?);
        let counter = Counter::new(cursor.u64()?).ok_or(ContinuationError::Counter)?;
        let base = Head { counter, hash: ChangeHash::from_bytes(cursor.array()?) };
        let count = cursor.u32()?;
        if count == 0 {
            return Err(ContinuationError::Empty);
        }
        if usize::try_from(count).map_or(true, |count| count > MAX_REPEATED) {
            return Err(ContinuationError::TooMany);
        }
        Counter::new(counter.get() + u64::from(count)).ok_or(ContinuationError::Counter)?;
        // Not with the capacity that the bytes claim.
        let mut hashes = Vec::new();
        for _ in 0..count {
            hashes.push(ChangeHash::from_bytes(cursor.array()?));
        }
        let signature = cursor.array()?;
        match cursor.left() {
            0 => Ok(Self { origin, base, hashes, signature }),
            bytes => Err(ContinuationError::Trailing { bytes }),
        }
    }

    fn unsigned_bytes(&self) -> Vec<u8> {
        let mut bytes = self.origin.as_bytes().to_vec();
        bytes.extend_from_slice(&self.base.counter.get().to_be_bytes());
        bytes.extend_from_slice(self.base.hash.as_bytes());
        bytes.extend_from_slice(&length_u32(self.hashes.len()));
        bytes.extend(self.hashes.iter().flat_map(ChangeHash::as_bytes));
        bytes
    }

    fn signed_bytes(&self, by: OriginId) -> Vec<u8> {
        [DOMAIN, by.as_bytes().as_slice(), &self.unsigned_bytes()].concat()
    }
}

impl From<Truncated> for ContinuationError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn hash(byte: u8) -> ChangeHash {
        ChangeHash::from_bytes([byte; 32])
    }

    fn head(counter: u64, byte: u8) -> Head {
        Head { counter: Counter::new(counter).unwrap(), hash: hash(byte) }
    }

    fn origin(byte: u8) -> (SigningKey, OriginKey) {
        let key = SigningKey::from_bytes(&[byte; 32]);
        let public = OriginKey::new(&key, [byte; 16]);
        (key, public)
    }

    fn example() -> Continuation {
        let ((key, forked), (_, by)) = (origin(1), origin(2));
        Continuation::sign(&key, forked.id(), head(4, 4), vec![hash(5), hash(6)], by.id())
    }

    #[test]
    fn only_the_key_of_the_origin_that_forked_makes_one() {
        let ((_, forked), (other, by)) = (origin(1), origin(2));
        assert!(example().verify(&forked, by.id()));
        assert!(!example().verify(&by, by.id()), "the key of the origin that goes on");
        assert!(!example().verify(&forked, forked.id()), "signed for another origin");
        let invented = Continuation::sign(&other, forked.id(), head(4, 4), vec![hash(5)], by.id());
        assert!(!invented.verify(&forked, by.id()));
    }

    #[test]
    fn every_changed_bit_is_found() {
        let ((_, forked), (_, by)) = (origin(1), origin(2));
        let bytes = example().encode();
        assert_eq!(Continuation::decode(&bytes), Ok(example()));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let read = Continuation::decode(&changed);
                assert!(!read.is_ok_and(|read| read.verify(&forked, by.id())), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn what_is_no_continuation_is_refused() {
        let bytes = example().encode();
        for end in 0..bytes.len() {
            assert!(Continuation::decode(&bytes[..end]).is_err(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Continuation::decode(&longer), Err(ContinuationError::Trailing { bytes: 1 }));
        let mut empty = bytes.clone();
        empty[56..60].fill(0);
        assert_eq!(Continuation::decode(&empty), Err(ContinuationError::Empty));
        let mut zero = bytes;
        zero[16..24].fill(0);
        assert_eq!(Continuation::decode(&zero), Err(ContinuationError::Counter));
    }

    #[test]
    fn positions_are_those_of_the_same_changes() {
        let continuation = example();
        assert_eq!(continuation.position(head(5, 5)), Some(1));
        assert_eq!(continuation.position(head(6, 6)), Some(2));
        for other in [head(4, 4), head(5, 6), head(7, 6), head(1, 5)] {
            assert_eq!(continuation.position(other), None, "{other:?}");
        }
    }
}
