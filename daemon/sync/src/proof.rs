//! Proofs that an origin has forked, which anybody can check.

use crate::{
    change::{ChangeError, Kind, SignedChange},
    cursor::{Cursor, length_u32},
    head::{Counter, Fork},
    limits::MAX_CHANGE_BYTES,
    origin::{OriginError, OriginId, OriginKey},
};

/// What an encoded proof begins with.
const MAGIC: &[u8; 8] = b"SATCHELF";
/// The version of the encoding of proofs.
const VERSION: u16 = 1;

/// Two different changes with one counter, both signed by the key of their origin.
///
/// Only the holder of the key can make one. It contains the key, and the origin follows from the key, so that nothing else is needed
/// to check it. The proof of two changes is the same on both sides, and contains none of their payloads, except that of a genesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkProof {
    key: OriginKey,
    /// The changes, the one with the lesser hash first.
    changes: [SignedChange; 2],
}

/// Why something does not prove a fork.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The bytes do not begin as a proof does.
    #[error("this is not a proof of a fork")]
    Magic,
    /// A version that this program does not know.
    #[error("the proof of a fork has format {found}; this program reads format {VERSION}")]
    UnknownVersion {
        /// The version of the proof.
        found: u16,
    },
    /// The bytes end too early, or a change is longer than one can be.
    #[error("the proof of a fork ends early")]
    Truncated,
    /// Bytes follow after the end.
    #[error("{bytes} bytes follow after the proof of a fork")]
    Trailing {
        /// The number of bytes.
        bytes: usize,
    },
    /// The key is invalid.
    #[error("the proof of a fork has no valid key")]
    Key(#[source] OriginError),
    /// A change has a payload, which proves nothing and may be private.
    #[error("the proof of a fork contains a payload")]
    Payload,
    /// One of the changes is invalid.
    #[error("the proof of a fork has an invalid change")]
    Change(#[source] ChangeError),
    /// A change is not of the origin that follows from the key.
    #[error("the proof is about origin {expected}, but has a change of {found}")]
    WrongOrigin {
        /// The origin that follows from the key.
        expected: OriginId,
        /// The origin of the change.
        found: OriginId,
    },
    /// The changes have different counters.
    #[error("the changes have different counters, {first} and {second}, which is no fork")]
    Counters {
        /// The counter of the first one.
        first: Counter,
        /// The counter of the second one.
        second: Counter,
    },
    /// The changes are the same, or not in ascending order of their hashes.
    #[error("the changes are the same, or in the wrong order")]
    Order,
    /// A change is not signed with the key.
    #[error("change {counter} of origin {origin} is not signed by it")]
    BadSignature {
        /// The origin.
        origin: OriginId,
        /// The counter.
        counter: Counter,
    },
}

impl ForkProof {
    /// Makes a proof of two changes, in any order, and verifies it.
    ///
    /// # Errors
    /// The same errors as [`ForkProof::verify`].
    pub fn new(key: OriginKey, one: SignedChange, other: SignedChange) -> Result<Self, ProofError> {
        let (one, other) = (one.without_payload(), other.without_payload());
        let changes = if one.hash() <= other.hash() { [one, other] } else { [other, one] };
        let proof = Self { key, changes };
        proof.verify()?;
        Ok(proof)
    }

    /// Checks that the origin of this key signed both changes, and that they are a fork.
    ///
    /// # Errors
    /// [`ProofError::WrongOrigin`], [`ProofError::Counters`], [`ProofError::Order`] and [`ProofError::BadSignature`];
    /// [`ProofError::Change`] for a genesis without its payload.
    pub fn verify(&self) -> Result<(), ProofError> {
        let expected = self.key.id();
        let [first, second] = &self.changes;
        for change in &self.changes {
            let found = change.change().origin;
            if found != expected {
                return Err(ProofError::WrongOrigin { expected, found });
            }
            if change.change().kind == Kind::GENESIS && change.payload().is_none() {
                return Err(ProofError::Change(ChangeError::NoKey { origin: found }));
            }
        }
        let (a, b) = (first.change().counter, second.change().counter);
        if a != b {
            return Err(ProofError::Counters { first: a, second: b });
        }
        if first.hash() >= second.hash() {
            return Err(ProofError::Order);
        }
        if self.changes.iter().all(|change| change.verify(&self.key)) {
            Ok(())
        } else {
            Err(ProofError::BadSignature { origin: expected, counter: a })
        }
    }

    /// The origin that forked.
    #[must_use]
    pub fn origin(&self) -> OriginId {
        self.key.id()
    }

    /// Both changes, the one with the lesser hash first.
    #[must_use]
    pub fn changes(&self) -> &[SignedChange; 2] {
        &self.changes
    }

    /// The fork, where the change with the lesser hash is `ours`.
    #[must_use]
    pub fn fork(&self) -> Fork {
        let [first, second] = &self.changes;
        let counter = first.change().counter;
        Fork { origin: self.origin(), counter, ours: first.hash(), theirs: second.hash() }
    }

    /// Encodes the proof (`FORMAT.md`, section 5).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&self.key.encode());
        for change in &self.changes {
            let change = change.encode();
            bytes.extend_from_slice(&length_u32(change.len()));
            bytes.extend_from_slice(&change);
        }
        bytes
    }

    /// Decodes and verifies a proof.
    ///
    /// # Errors
    /// Any [`ProofError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ProofError> {
        let mut cursor = Cursor::new(bytes);
        if cursor.array() != Ok(*MAGIC) {
            return Err(ProofError::Magic);
        }
        let found = cursor.u16().map_err(|_| ProofError::Truncated)?;
        if found != VERSION {
            return Err(ProofError::UnknownVersion { found });
        }
        let key = cursor.take(OriginKey::BYTES).map_err(|_| ProofError::Truncated)?;
        let key = OriginKey::decode(key).map_err(ProofError::Key)?;
        let proof = Self { key, changes: [read_change(&mut cursor)?, read_change(&mut cursor)?] };
        if cursor.left() != 0 {
            return Err(ProofError::Trailing { bytes: cursor.left() });
        }
        proof.verify()?;
        Ok(proof)
    }
}

fn read_change(cursor: &mut Cursor<'_>) -> Result<SignedChange, ProofError> {
    let length = cursor.u32().map_err(|_| ProofError::Truncated)?;
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(MAX_CHANGE_BYTES);
    let bytes = cursor.take(length).map_err(|_| ProofError::Truncated)?;
    let change = SignedChange::decode(bytes).map_err(ProofError::Change)?;
    if change.payload().is_some() && change.change().kind != Kind::GENESIS {
        return Err(ProofError::Payload);
    }
    Ok(change)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
