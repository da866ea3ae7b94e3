//! Changes: what an origin writes, and the bytes that it signs.

use std::fmt;

use ed25519_dalek::{Signer as _, SigningKey};

use crate::{
    cursor::{Truncated, length_u32},
    frontier::{Frontier, FrontierError},
    head::{ChangeHash, Counter, Head},
    limits::{
        CHANGE_FIXED_BYTES, FRONTIER_ENTRY_BYTES, MAX_COUNTER, MAX_INLINE_BYTES, MAX_PAYLOAD_BYTES, VERSION,
    },
    origin::{OriginId, OriginKey},
    payload::PayloadId,
};

mod decode;

/// What is signed before the bytes of a change, so that a signature has no other meaning anywhere.
const DOMAIN: &[u8] = b"satchel-sync-change-v1\0";

/// What a payload is, as a number.
///
/// Only the genesis has a meaning here. All other kinds, also those that a store does not know, are checked, held and passed on in the
/// same way. A store that does not know a kind does not apply the change, and applies it when a newer program knows the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u16);

/// A change before it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The origin that wrote it.
    pub origin: OriginId,
    /// Its position in the series of the origin.
    pub counter: Counter,
    /// The hash of the change before it; [`ChangeHash::ZERO`] in a genesis.
    pub previous: ChangeHash,
    /// The heads of *other* origins that its author has seen since its previous change. What it had seen before is in the contexts
    /// of its earlier changes: [`crate::Series::context`] is the sum.
    pub context: Frontier,
    /// What the payload is.
    pub kind: Kind,
    /// The bytes that only the application understands. They are not part of what is signed.
    pub payload: PayloadId,
}

/// A change with a signature and the form that the format asks for, with or without its payload. A payload that is present is the one
/// that the change names.
///
/// **The signature is not checked yet**: [`crate::Series::accept`] does that, because only the series knows the key.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedChange {
    change: Change,
    hash: ChangeHash,
    signature: [u8; 64],
    payload: Option<Vec<u8>>,
}

/// Why bytes are not a change, or why a change cannot be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The encoding has a version that this program does not know. Nothing after the counter is interpreted.
    #[error(
        "change {counter} of origin {origin} has format {found}; this program reads formats up to {VERSION}"
    )]
    UnknownVersion {
        /// The origin; at the same place in all versions.
        origin: OriginId,
        /// The counter as it is written, possibly not a valid one; at the same place in all versions.
        counter: u64,
        /// The version of the change.
        found: u16,
    },
    /// The bytes end too early.
    #[error("a change ends early")]
    Truncated,
    /// Bytes follow after the end.
    #[error("{bytes} bytes follow after a change")]
    Trailing {
        /// The number of bytes.
        bytes: usize,
    },
    /// The payload is too long.
    #[error("a change names a payload of {found} bytes; at most {MAX_PAYLOAD_BYTES} are allowed")]
    TooLarge {
        /// The bytes of the payload.
        found: u64,
    },
    /// The payload is too long to be with its change.
    #[error(
        "a change contains a payload of {found} bytes; longer ones than {MAX_INLINE_BYTES} travel by themselves"
    )]
    NotInline {
        /// The bytes of the payload.
        found: usize,
    },
    /// The payload is not the one that the change names.
    #[error("change {counter} of origin {origin} names another payload")]
    WrongPayload {
        /// The origin.
        origin: OriginId,
        /// The counter.
        counter: Counter,
    },
    /// The byte which says whether the payload is present is neither 0 nor 1.
    #[error("a change does not say whether its payload is present: {found}")]
    Presence {
        /// The byte.
        found: u8,
    },
    /// A genesis without its payload, which has the key.
    #[error("the genesis of origin {origin} has no payload")]
    NoKey {
        /// The origin.
        origin: OriginId,
    },
    /// A counter that no change has: 0.
    #[error("a change of origin {origin} has counter 0")]
    ZeroCounter {
        /// The origin.
        origin: OriginId,
    },
    /// A counter that no change has: more than [`MAX_COUNTER`].
    #[error("a change of origin {origin} has counter {counter}; the greatest is {MAX_COUNTER}")]
    CounterOverflow {
        /// The origin.
        origin: OriginId,
        /// The counter.
        counter: u64,
    },
    /// A first change that is no genesis, or a genesis that is not the first change.
    #[error("change {counter} of origin {origin} is wrongly a genesis, or wrongly none")]
    Genesis {
        /// The origin.
        origin: OriginId,
        /// The counter.
        counter: Counter,
    },
    /// A genesis that names a previous change, or a later change that names none.
    #[error("change {counter} of origin {origin} has the previous hash of a genesis, or a genesis has none")]
    Previous {
        /// The origin.
        origin: OriginId,
        /// The counter.
        counter: Counter,
    },
    /// The context names the origin itself, at the change itself or a later one: it refers to the future.
    #[error("the context of change {counter} of origin {origin} refers to its own change {seen}")]
    FutureContext {
        /// The origin.
        origin: OriginId,
        /// The counter of the change.
        counter: Counter,
        /// The counter in the context.
        seen: Counter,
    },
    /// The context names the origin itself, at an earlier change. The previous hash already says that, and one change has one encoding.
    #[error("the context of change {counter} of origin {origin} repeats its own change {seen}")]
    OwnContext {
        /// The origin.
        origin: OriginId,
        /// The counter of the change.
        counter: Counter,
        /// The counter in the context.
        seen: Counter,
    },
    /// The context is not a frontier.
    #[error("a change has an invalid context")]
    Context(#[from] FrontierError),
}

impl Kind {
    /// The first change of an origin; its payload is an [`OriginKey`].
    pub const GENESIS: Self = Self(0);
}

impl Change {
    /// Signs the change, without its payload. A genesis has to be given its payload by [`SignedChange::with_payload`]: without it,
    /// the genesis begins no series and is not decoded. It is not checked that the key is that of the origin; [`crate::Author`] does.
    ///
    /// # Errors
    /// If the change does not have the form that a reader asks for: the same errors as [`SignedChange::decode`].
    pub fn sign(self, key: &SigningKey) -> Result<SignedChange, ChangeError> {
        self.check()?;
        let bytes = self.signed_bytes();
        let signature = key.sign(&bytes).to_bytes();
        Ok(SignedChange { change: self, hash: ChangeHash::of(&bytes), signature, payload: None })
    }

    /// The bytes that are signed and hashed: a domain, then the encoding without the signature (`FORMAT.md`, section 2).
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        let length = CHANGE_FIXED_BYTES + FRONTIER_ENTRY_BYTES * self.context.heads().len();
        let mut bytes = Vec::with_capacity(DOMAIN.len() + length);
        bytes.extend_from_slice(DOMAIN);
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(self.origin.as_bytes());
        bytes.extend_from_slice(&self.counter.get().to_be_bytes());
        bytes.extend_from_slice(self.previous.as_bytes());
        bytes.extend_from_slice(&self.kind.0.to_be_bytes());
        self.context.write(&mut bytes);
        bytes.extend_from_slice(&self.payload.length.to_be_bytes());
        bytes.extend_from_slice(self.payload.digest.as_bytes());
        bytes
    }

    /// Checks what every change has to fulfil by itself, without its series.
    fn check(&self) -> Result<(), ChangeError> {
        let (origin, counter, first) = (self.origin, self.counter, self.counter == Counter::FIRST);
        if self.payload.length > MAX_PAYLOAD_BYTES {
            return Err(ChangeError::TooLarge { found: self.payload.length });
        }
        if first != (self.kind == Kind::GENESIS) {
            return Err(ChangeError::Genesis { origin, counter });
        }
        if first != (self.previous == ChangeHash::ZERO) {
            return Err(ChangeError::Previous { origin, counter });
        }
        match self.context.head(origin).map(|head| head.counter) {
            Some(seen) if seen >= counter => Err(ChangeError::FutureContext { origin, counter, seen }),
            Some(seen) => Err(ChangeError::OwnContext { origin, counter, seen }),
            None => Ok(()),
        }
    }
}

impl SignedChange {
    /// What was signed.
    #[must_use]
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// What was signed, without the signature.
    #[must_use]
    pub fn into_change(self) -> Change {
        self.change
    }

    /// The payload, if it is present.
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        self.payload.as_deref()
    }

    /// The payload without the change, if it is present.
    #[must_use]
    pub fn into_payload(self) -> Option<Vec<u8>> {
        self.payload
    }

    /// The same change with its payload.
    ///
    /// # Errors
    /// [`ChangeError::WrongPayload`] if the change names another one, [`ChangeError::NotInline`] if it is too long.
    pub fn with_payload(self, payload: Vec<u8>) -> Result<Self, ChangeError> {
        if payload.len() > MAX_INLINE_BYTES {
            return Err(ChangeError::NotInline { found: payload.len() });
        }
        if PayloadId::of(&payload) != self.change.payload {
            let Change { origin, counter, .. } = self.change;
            return Err(ChangeError::WrongPayload { origin, counter });
        }
        Ok(Self { payload: Some(payload), ..self })
    }

    /// The same change without its payload. A genesis keeps it, as nobody can check the series without the key.
    #[must_use]
    pub fn without_payload(self) -> Self {
        let payload = self.payload.filter(|_| self.change.kind == Kind::GENESIS);
        Self { payload, ..self }
    }

    /// The hash of the signed bytes.
    #[must_use]
    pub fn hash(&self) -> ChangeHash {
        self.hash
    }

    /// Counter and hash: the head of a series that ends here.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { counter: self.change.counter, hash: self.hash }
    }

    /// Encodes the change (`FORMAT.md`, section 2): the bytes that were decoded.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.change.signed_bytes();
        bytes.drain(..DOMAIN.len());
        bytes.extend_from_slice(&self.signature);
        bytes.push(u8::from(self.payload.is_some()));
        if let Some(payload) = &self.payload {
            bytes.extend_from_slice(&length_u32(payload.len()));
            bytes.extend_from_slice(payload);
        }
        bytes
    }

    /// Whether the signature is of this key. The id of the origin is not compared.
    #[must_use]
    pub fn verify(&self, key: &OriginKey) -> bool {
        key.verifies(&self.change.signed_bytes(), &self.signature)
    }
}

impl From<Truncated> for ChangeError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Without the payload, which may be private.
impl fmt::Debug for SignedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedChange")
            .field("origin", &self.change.origin)
            .field("counter", &self.change.counter)
            .field("kind", &self.change.kind)
            .field("payload_bytes", &self.change.payload.length)
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
