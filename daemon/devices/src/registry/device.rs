//! A device: what is known about it, and the secret of those that have a token.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    error::DevicesError,
    identity::{DeviceId, KeyHash},
    policy::Policy,
};

/// Longest reason of a revocation that is stored, in characters.
pub(super) const MAX_REASON_CHARS: usize = 200;
/// Longest address that is stored, in characters.
pub(super) const MAX_ADDRESS_CHARS: usize = 100;
/// How secrets begin, so that they are recognised where they do not belong.
const SECRET_PREFIX: &str = "satchel_";
const SECRET_BYTES: usize = 32;

/// How a device proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// By the key of its certificate.
    Certificate,
    /// By a secret text.
    Token,
}

/// A paired device, or a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Its id, which follows from its key.
    pub id: DeviceId,
    /// How it proves who it is.
    pub kind: DeviceKind,
    /// 1 to 64 characters; no two devices that are not revoked have the same.
    pub name: String,
    /// Hash of its public key, or of its secret.
    pub key_hash: KeyHash,
    /// What it may do.
    pub policy: Policy,
    /// When it was paired, in microseconds since the Unix epoch.
    pub paired_at: i64,
    /// The name of the device whose owner paired it.
    pub paired_by: String,
    /// When its certificate or token ends, in microseconds since the Unix epoch.
    pub expires_at: i64,
    /// When it called last, in microseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<i64>,
    /// The address from which it called last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_address: Option<String>,
    /// When it was revoked, in microseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<i64>,
    /// Why it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke_reason: Option<String>,
}

/// A device that is about to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDevice {
    /// The hash of its public key, as [`CertificateAuthority::issue`](crate::CertificateAuthority::issue) returned it.
    pub key_hash: KeyHash,
    /// Its name.
    pub name: String,
    /// What it may do.
    pub policy: Policy,
    /// The name of the device whose owner paired it.
    pub paired_by: String,
    /// When its certificate ends, in microseconds since the Unix epoch.
    pub expires_at: i64,
}

impl Device {
    pub(super) fn paired(new: NewDevice, now: i64) -> Self {
        let NewDevice { key_hash, name, policy, paired_by, expires_at } = new;
        Self {
            id: DeviceId::of(&key_hash),
            kind: DeviceKind::Certificate,
            name,
            key_hash,
            policy,
            paired_at: now,
            paired_by,
            expires_at,
            last_seen: None,
            last_address: None,
            revoked_at: None,
            revoke_reason: None,
        }
    }

    pub(super) fn token(
        key_hash: KeyHash,
        name: &str,
        policy: Policy,
        created_by: &str,
        expires_at: i64,
        now: i64,
    ) -> Self {
        let new = NewDevice {
            key_hash,
            name: name.to_owned(),
            policy,
            paired_by: created_by.to_owned(),
            expires_at,
        };
        Self { kind: DeviceKind::Token, ..Self::paired(new, now) }
    }

    /// Returns whether it was revoked.
    pub fn revoked(&self) -> bool {
        self.revoked_at.is_some()
    }

    /// Returns whether its certificate or token has ended.
    pub fn expired(&self, now: i64) -> bool {
        now >= self.expires_at
    }
}

/// The secret of a token, shown once: `satchel_` and 32 random bytes in base64url. `Debug` does not show it.
pub struct TokenSecret(Zeroizing<String>);

impl TokenSecret {
    /// Returns the text that the program sends.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(super) fn random() -> Result<Self, DevicesError> {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        getrandom::fill(&mut *bytes)?;
        let encoded = Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes));
        Ok(Self(Zeroizing::new(format!("{SECRET_PREFIX}{}", *encoded))))
    }

    pub(super) fn hash(&self) -> KeyHash {
        KeyHash::of_secret(self.0.as_bytes())
    }

    /// Returns the hash of a text that may be a secret; `None` if it has another form.
    pub(super) fn hash_of(text: &str) -> Option<KeyHash> {
        let encoded = text.strip_prefix(SECRET_PREFIX)?;
        let length = SECRET_BYTES.saturating_mul(4).div_ceil(3);
        (encoded.len() == length).then(|| KeyHash::of_secret(text.as_bytes()))
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret(..)")
    }
}
