//! Payloads: what the application says in a change. A change is signed over the digest of its payload, so that it can be checked and
//! passed on without it.
//!
//! The digest of a short text can be guessed by trying texts. An application whose payloads may be erased or withheld begins each of
//! them with random bytes.

use std::fmt;

use satchel_pam::hash::Sha256Digest;

/// A payload, as a change names it: its length and its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayloadId {
    /// The length in bytes, at most [`crate::limits::MAX_PAYLOAD_BYTES`].
    pub length: u64,
    /// The digest of the bytes.
    pub digest: Sha256Digest,
}

impl PayloadId {
    /// Names these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, digest: Sha256Digest::of(bytes) }
    }
}

impl fmt::Debug for PayloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, SHA-256 {}", self.length, self.digest.to_hex())
    }
}
