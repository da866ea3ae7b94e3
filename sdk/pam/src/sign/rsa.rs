//! RSA public keys, used only to check signatures.
//!
//! The known weakness of the library (timing of private-key operations, RUSTSEC-2023-0071) does not apply: there are no private
//! keys here.

use rsa::{
    BigUint, Pkcs1v15Sign, RsaPublicKey,
    pkcs1::{EncodeRsaPublicKey as _, der::Decode as _},
    traits::PublicKeyParts as _,
};

use super::{KeyError, SignatureError, algorithm::Digested};

/// Minimum size of the modulus in bits (RFC 7518 §3.3).
pub(super) const MIN_BITS: usize = 2048;
/// Maximum size of the modulus in bits, because a check takes quadratic time and documents may be hostile.
pub(super) const MAX_BITS: usize = 8192;

/// A modulus of [`MIN_BITS`] to [`MAX_BITS`] and an odd exponent of 3 to 2^33 − 1.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(RsaPublicKey);

impl Key {
    /// Creates a key from big-endian numbers.
    pub(super) fn from_numbers(modulus: &[u8], exponent: &[u8]) -> Result<Self, KeyError> {
        // Leading zeros do not count. Numbers that are too long are refused before any arithmetic.
        let length = modulus.len() - modulus.iter().take_while(|byte| **byte == 0).count();
        if length > MAX_BITS / 8 {
            return Err(KeyError::Large);
        }
        if exponent.len() > MAX_BITS / 8 {
            return Err(KeyError::Numbers);
        }
        let (modulus, exponent) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent));
        if modulus.bits() < MIN_BITS {
            return Err(KeyError::Weak);
        }
        RsaPublicKey::new_with_max_size(modulus, exponent, MAX_BITS).map(Self).map_err(|_| KeyError::Numbers)
    }

    /// Parses an `RSAPublicKey` (RFC 8017 §A.1.1), the content of a `SubjectPublicKeyInfo` and of a multicodec key.
    pub(super) fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let key = rsa::pkcs1::RsaPublicKey::from_der(der).map_err(|_| KeyError::Form)?;
        Self::from_numbers(key.modulus.as_bytes(), key.public_exponent.as_bytes())
    }

    /// Writes an `RSAPublicKey`.
    pub(super) fn to_der(&self) -> Vec<u8> {
        // The two numbers are bounded, so encoding does not fail.
        self.0.to_pkcs1_der().map(|der| der.as_bytes().to_vec()).unwrap_or_default()
    }

    pub(super) fn verify(&self, digested: Digested, signature: &[u8]) -> Result<(), SignatureError> {
        if signature.len() != self.0.size() {
            return Err(SignatureError::Length);
        }
        let padding =
            Pkcs1v15Sign { hash_len: Some(digested.digest.len()), prefix: Box::from(digested.prefix) };
        self.0.verify(padding, &digested.digest, signature).map_err(|_| SignatureError::Mismatch)
    }
}
