//! The six algorithms of PAM 1.0 §18.

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::names::names;

names! {
    /// How a signature was made; all six are checked.
    Algorithm {
        /// `EdDSA` on Curve25519 (RFC 8032), the one that we sign with.
        Ed25519 = "Ed25519",
        /// ECDSA on P-256 with SHA-256 (RFC 7518 §3.4).
        Es256 = "ES256",
        /// ECDSA on P-384 with SHA-384 (RFC 7518 §3.4).
        Es384 = "ES384",
        /// RSA, PKCS #1 v1.5, with SHA-256 (RFC 7518 §3.3).
        Rs256 = "RS256",
        /// RSA, PKCS #1 v1.5, with SHA-384.
        Rs384 = "RS384",
        /// RSA, PKCS #1 v1.5, with SHA-512.
        Rs512 = "RS512",
    }
}

/// A digest, and what PKCS #1 v1.5 puts before it: the DER of a `DigestInfo` up to its bytes (RFC 8017 §9.2, note 1).
pub(super) struct Digested {
    pub(super) prefix: &'static [u8],
    pub(super) digest: Vec<u8>,
}

/// The digest that an RSA signature of this algorithm is over; none of the others.
pub(super) fn digested(algorithm: Algorithm, bytes: &[u8]) -> Option<Digested> {
    let (prefix, digest): (&[u8], Vec<u8>) = match algorithm {
        Algorithm::Rs256 => (&SHA256, Sha256::digest(bytes).to_vec()),
        Algorithm::Rs384 => (&SHA384, Sha384::digest(bytes).to_vec()),
        Algorithm::Rs512 => (&SHA512, Sha512::digest(bytes).to_vec()),
        Algorithm::Ed25519 | Algorithm::Es256 | Algorithm::Es384 => return None,
    };
    Some(Digested { prefix, digest })
}

const SHA256: [u8; 19] = info(0x01, 32);
const SHA384: [u8; 19] = info(0x02, 48);
const SHA512: [u8; 19] = info(0x03, 64);

/// `SEQUENCE { SEQUENCE { OID 2.16.840.1.101.3.4.2.<hash>, NULL }, OCTET STRING of <length> … }` without the octets.
const fn info(hash: u8, length: u8) -> [u8; 19] {
    [
        0x30,
        17 + length,
        0x30,
        0x0d,
        0x06,
        0x09,
        0x60,
        0x86,
        0x48,
        0x01,
        0x65,
        0x03,
        0x04,
        0x02,
        hash,
        0x05,
        0x00,
        0x04,
        length,
    ]
}
