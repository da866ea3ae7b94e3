//! The public key of an importer's author.

use std::{fmt, str::FromStr};

use ed25519_dalek::{Signature, VerifyingKey};
use satchel_pam::sign::PublicKey;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The Ed25519 public key of an author, shown as multibase: `z6Mk…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorKey([u8; 32]);

/// The text or bytes are not an author's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the key of an author; it begins with `z6Mk`, as `satchel plugins show` and `satchel plugins keys` print it"
)]
pub struct AuthorKeyError;

impl AuthorKey {
    /// Creates a key from its 32 bytes.
    ///
    /// # Errors
    /// They are not a point of the curve, or one for which every signature could be forged.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, AuthorKeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| AuthorKeyError)?;
        if key.is_weak() { Err(AuthorKeyError) } else { Ok(Self(*bytes)) }
    }

    /// Returns the public half of a signing key.
    pub fn of(key: &ed25519_dalek::SigningKey) -> Self {
        Self(*key.verifying_key().as_bytes())
    }

    /// Returns whether `signature` over `message` was made with this key.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let key = VerifyingKey::from_bytes(&self.0);
        // Strict: a signature has one form only.
        key.is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
    }
}

impl fmt::Display for AuthorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PublicKey::from_ed25519(&self.0) {
            Ok(key) => f.write_str(&key.multibase()),
            Err(_) => Err(fmt::Error),
        }
    }
}

impl FromStr for AuthorKey {
    type Err = AuthorKeyError;

    fn from_str(text: &str) -> Result<Self, AuthorKeyError> {
        let key = PublicKey::parse(text).map_err(|_| AuthorKeyError)?;
        Self::from_bytes(&key.ed25519().ok_or(AuthorKeyError)?)
    }
}

impl Serialize for AuthorKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AuthorKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
