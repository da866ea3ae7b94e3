//! Payloads: what the application says in a change. A change is signed over the digest of its payload, so that it can be checked and
//! passed on without it.
//!
//! The digest of a short text can be guessed by trying texts. An application whose payloads may be erased or withheld begins each of
//! them with random bytes: [`salted`] adds them, [`unsalted`] removes them.

use std::fmt;

use satchel_pam::hash::Sha256Digest;

/// The random bytes at the beginning of a salted payload.
pub const SALT_BYTES: usize = 16;

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

/// Returns a payload of `salt` and then `content`.
///
/// The salt has to come from a secure source of randomness and has to be new for each payload. It counts towards the length of the
/// payload. The payload of a genesis is never salted.
#[must_use]
pub fn salted(salt: [u8; SALT_BYTES], content: &[u8]) -> Vec<u8> {
    [&salt[..], content].concat()
}

/// Returns the content of a payload that [`salted`] made; none if the payload is shorter than a salt.
#[must_use]
pub fn unsalted(payload: &[u8]) -> Option<&[u8]> {
    payload.split_first_chunk::<SALT_BYTES>().map(|(_, content)| content)
}

impl fmt::Debug for PayloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, SHA-256 {}", self.length, self.digest.to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_salted_payload_is_its_salt_and_its_content() {
        let payload = salted([7; 16], b"tea");
        assert_eq!(payload, b"\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07tea");
        assert_eq!(unsalted(&payload), Some(&b"tea"[..]));
        assert_eq!(unsalted(&salted([7; 16], b"")), Some(&b""[..]));
        assert_ne!(PayloadId::of(&payload), PayloadId::of(&salted([8; 16], b"tea")));
    }

    #[test]
    fn a_payload_shorter_than_a_salt_has_no_content() {
        assert_eq!(unsalted(b""), None);
        assert_eq!(unsalted(&[7; 15]), None);
    }

    #[test]
    fn a_payload_is_named_by_its_length_and_its_sha_256() {
        let id = PayloadId::of(b"abc");
        assert_eq!(id.length, 3);
        // FIPS 180-2, appendix B.1.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(id.digest.to_hex(), digest);
    }
}
