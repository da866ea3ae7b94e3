//! RSA public keys: read from numbers or DER, and used to check signatures, never to make them.
//!
//! The library's known weakness (timing of private-key operations, RUSTSEC-2023-0071) is not touched: there is no private
//! key here, and what a check handles is public.

use rsa::{
    BigUint, Pkcs1v15Sign, RsaPublicKey,
    pkcs1::{EncodeRsaPublicKey as _, der::Decode as _},
    traits::PublicKeyParts as _,
};

use super::{KeyError, SignatureError, algorithm::Digested};

/// Bits of the modulus; less can be broken (RFC 7518 §3.3).
pub const FEWEST_BITS: usize = 2048;
/// Bits of the modulus; a check takes time by its square, and documents are hostile.
pub const MOST_BITS: usize = 8192;

/// A modulus of [`FEWEST_BITS`] to [`MOST_BITS`] and an odd exponent of 3 to 2^33 − 1.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(RsaPublicKey);

impl Key {
    /// From big-endian bytes.
    pub(super) fn from_numbers(modulus: &[u8], exponent: &[u8]) -> Result<Self, KeyError> {
        // Leading zeros are no size; what is too long to be one is refused before any arithmetic.
        let length = modulus.len() - modulus.iter().take_while(|byte| **byte == 0).count();
        if length > MOST_BITS / 8 {
            return Err(KeyError::Large);
        }
        if exponent.len() > MOST_BITS / 8 {
            return Err(KeyError::Numbers);
        }
        let (modulus, exponent) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent));
        if modulus.bits() < FEWEST_BITS {
            return Err(KeyError::Weak);
        }
        RsaPublicKey::new_with_max_size(modulus, exponent, MOST_BITS).map(Self).map_err(|_| KeyError::Numbers)
    }

    /// From an `RSAPublicKey` (RFC 8017 §A.1.1), as it stands in a `SubjectPublicKeyInfo` and behind a multicodec.
    pub(super) fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let key = rsa::pkcs1::RsaPublicKey::from_der(der).map_err(|_| KeyError::Form)?;
        Self::from_numbers(key.modulus.as_bytes(), key.public_exponent.as_bytes())
    }

    /// The `RSAPublicKey`.
    pub(super) fn to_der(&self) -> Vec<u8> {
        // The two numbers are bounded, and DER has a place for each.
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
