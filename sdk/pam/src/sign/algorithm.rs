//! The six signature algorithms of PAM 1.0 §18.

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::names::names;

names! {
    /// A signature algorithm (§18). All six can be verified.
    Algorithm {
        /// `EdDSA` on Curve25519 (RFC 8032), the algorithm of [`super::sign`].
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

/// A digest and its prefix in PKCS #1 v1.5: the DER of a `DigestInfo` up to the digest (RFC 8017 §9.2, note 1).
pub(super) struct Digested {
    pub(super) prefix: &'static [u8],
    pub(super) digest: Vec<u8>,
}

/// The digest that an RSA signature of this algorithm signs; none for other algorithms.
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

/// `SEQUENCE { SEQUENCE { OID 2.16.840.1.101.3.4.2.<hash>, NULL }, OCTET STRING of <length> … }` without the content of the string.
const fn info(hash: u8, length: u8) -> [u8; 19] {
    let mut der = *b"\x30\x00\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x00\x05\x00\x04\x00";
    (der[1], der[14], der[18]) = (17 + length, hash, length);
    der
}
