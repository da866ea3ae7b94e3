//! Origins: the identity of a store's history, bound to the key that signs it.

use std::fmt;

use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// What is hashed before key and salt, so that the hash has no other meaning anywhere.
const DOMAIN: &[u8] = b"satchel-sync-origin-v1\0";

/// The id of one history of one store: a UUID of version 8 that follows from the key and the salt in its genesis.
///
/// Nobody can write under the origin of somebody else: that takes another key with the same 122 bits of SHA-256. A restored backup
/// and a cloned disk continue under a new origin, because the old one goes on elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(Uuid);

/// The key and the salt of an origin, from which its id follows. Contained in the payload of its genesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginKey {
    key: VerifyingKey,
    salt: [u8; OriginKey::SALT_BYTES],
}

/// Why bytes are not the key of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// Not 32 bytes of key and 16 bytes of salt.
    #[error("a genesis has {found} bytes of key and salt instead of {}", OriginKey::BYTES)]
    Length {
        /// The number of bytes.
        found: usize,
    },
    /// Not a point of the curve, or one for which anybody can make signatures.
    #[error("the key of a genesis is not an Ed25519 key, or is one of the weak ones")]
    Key,
}

impl OriginId {
    /// Wraps the id of an origin that was accepted earlier.
    #[must_use]
    pub const fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }

    /// The UUID.
    #[must_use]
    pub const fn as_uuid(&self) -> &Uuid {
        &self.0
    }

    /// The 16 bytes of the UUID.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Wraps the bytes of an id, which [`OriginId::as_bytes`] has returned.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl OriginKey {
    /// The bytes of a salt.
    pub const SALT_BYTES: usize = 16;
    /// The bytes of key and salt.
    pub const BYTES: usize = 32 + Self::SALT_BYTES;

    /// The key of a new origin. The salt must be random: it makes the ids of two origins with one key different.
    #[must_use]
    pub fn new(key: &SigningKey, salt: [u8; Self::SALT_BYTES]) -> Self {
        Self { key: key.verifying_key(), salt }
    }

    /// Decodes key and salt.
    ///
    /// # Errors
    /// If these are not 48 bytes, or do not begin with an Ed25519 key of full order.
    pub fn decode(bytes: &[u8]) -> Result<Self, OriginError> {
        let length = OriginError::Length { found: bytes.len() };
        let (key, salt) = bytes.split_first_chunk::<32>().ok_or(length)?;
        let salt = salt.try_into().map_err(|_| length)?;
        let key = VerifyingKey::from_bytes(key).map_err(|_| OriginError::Key)?;
        if key.is_weak() { Err(OriginError::Key) } else { Ok(Self { key, salt }) }
    }

    /// Encodes key and salt.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..32].copy_from_slice(self.key.as_bytes());
        bytes[32..].copy_from_slice(&self.salt);
        bytes
    }

    /// The id that follows from key and salt.
    #[must_use]
    pub fn id(&self) -> OriginId {
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(self.encode()).finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        OriginId(uuid::Builder::from_custom_bytes(id).into_uuid())
    }

    /// Whether changes of this origin are signed with this key.
    #[must_use]
    pub fn signed_by(&self, key: &SigningKey) -> bool {
        self.key == key.verifying_key()
    }

    /// Whether the signature is of this key over these bytes. Strict: only the holder of the key can make one that passes, also for
    /// bytes that were signed before (RFC 8032 allows verifiers that are looser).
    pub(crate) fn verifies(&self, bytes: &[u8], signature: &[u8; 64]) -> bool {
        self.key.verify_strict(bytes, &Signature::from_bytes(signature)).is_ok()
    }
}

impl fmt::Display for OriginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for OriginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    #[test]
    fn the_id_depends_on_the_key_and_on_the_salt() {
        let id = OriginKey::new(&key(), [1; 16]).id();
        assert_ne!(id, OriginKey::new(&key(), [2; 16]).id());
        assert_ne!(id, OriginKey::new(&SigningKey::from_bytes(&[8; 32]), [1; 16]).id());
        assert_eq!(id.as_uuid().get_version_num(), 8);
    }

    #[test]
    fn a_key_for_which_anybody_can_sign_is_refused() {
        let mut bytes = OriginKey::new(&key(), [1; 16]).encode();
        // The neutral element: a point of the curve, of order 1.
        bytes[..32].fill(0);
        bytes[0] = 1;
        assert_eq!(OriginKey::decode(&bytes), Err(OriginError::Key));
    }

    #[test]
    fn a_key_has_48_bytes() {
        let bytes = OriginKey::new(&key(), [1; 16]).encode();
        assert_eq!(OriginKey::decode(&bytes), Ok(OriginKey::new(&key(), [1; 16])));
        for wrong in [&bytes[..47], &bytes[..3], &[&bytes[..], &[0]].concat()] {
            assert_eq!(OriginKey::decode(wrong), Err(OriginError::Length { found: wrong.len() }));
        }
    }
}
