//! Rotation of signing keys: a record signed by both keys that one replaced the other, so that anybody who trusts the
//! old key can trust the new one.
//!
//! A record names no person: it only links two keys, and may be part of exports from which all identifiers were
//! removed.

use ed25519_dalek::SigningKey;
use satchel_pam::{
    jcs,
    sign::{self, PublicKey},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

/// The purpose of a record. It is part of the signed bytes, so that the signatures cannot be used for anything else.
const PURPOSE: &str = "satchel signing key rotation";
/// The maximum number of rotations in a chain; each of them is part of every later manifest.
pub const MAX_ROTATIONS: usize = 100;

/// The replacement of one key by another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRotation {
    /// The old public key, multibase.
    pub from: String,
    /// The new public key, multibase.
    pub to: String,
    /// The time of the rotation.
    pub at: Timestamp,
    /// base64url of the old key's signature, which names the successor.
    pub from_signature: String,
    /// base64url of the new key's signature, which proves that the named successor holds its key.
    pub to_signature: String,
}

/// The statement that both keys sign.
#[derive(Serialize)]
struct Statement<'a> {
    at: String,
    from: &'a str,
    purpose: &'a str,
    to: &'a str,
}

impl KeyRotation {
    /// Creates a record that `new` replaces `old`.
    #[must_use]
    pub fn sign(old: &SigningKey, new: &SigningKey, at: Timestamp) -> Option<Self> {
        let (from, to) = (PublicKey::of(old).multibase(), PublicKey::of(new).multibase());
        let bytes = statement(&from, &to, at)?;
        let (from_signature, to_signature) = (sign::sign_bytes(old, &bytes), sign::sign_bytes(new, &bytes));
        Some(Self { from, to, at, from_signature, to_signature })
    }

    /// Returns the two keys if both signatures are valid.
    fn verified_keys(&self) -> Option<(PublicKey, PublicKey)> {
        let bytes = statement(&self.from, &self.to, self.at)?;
        let (from, to) = (PublicKey::parse(&self.from).ok()?, PublicKey::parse(&self.to).ok()?);
        sign::verify_bytes(&from, &bytes, &self.from_signature).ok()?;
        sign::verify_bytes(&to, &bytes, &self.to_signature).ok()?;
        Some((from, to))
    }
}

fn statement(from: &str, to: &str, at: Timestamp) -> Option<Vec<u8>> {
    jcs::write(&Statement { at: at.to_string(), from, purpose: PURPOSE, to }).ok()
}

/// Returns the predecessors of `key`, the newest first, as far as the records prove them. Invalid records prove
/// nothing.
#[must_use]
pub fn predecessors(rotations: &[KeyRotation], key: &PublicKey) -> Vec<PublicKey> {
    let mut proven = Vec::new();
    let mut newest = key.clone();
    // Each record is used at most once, starting with the last, so a ring of rotations terminates too.
    for rotation in rotations.iter().rev().take(MAX_ROTATIONS) {
        if let Some((from, to)) = rotation.verified_keys()
            && to == newest
        {
            newest = from.clone();
            proven.push(from);
        }
    }
    proven
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_bytes(&[seed; 32])
    }

    fn rotation(old: u8, new: u8) -> KeyRotation {
        KeyRotation::sign(&key(old), &key(new), Timestamp::EPOCH).unwrap()
    }

    #[test]
    fn a_chain_leads_back_to_the_first_key_and_a_broken_one_only_to_the_break() {
        let public = |seed: u8| PublicKey::of(&key(seed));
        let chain = [rotation(1, 2), rotation(2, 3)];
        assert_eq!(predecessors(&chain, &public(3)), [public(2), public(1)]);
        assert_eq!(predecessors(&chain, &public(4)), []);
        let gap = [rotation(1, 2), rotation(7, 3)];
        assert_eq!(predecessors(&gap, &public(3)), [public(7)]);
        let ring = [rotation(3, 2), rotation(2, 3)];
        assert_eq!(predecessors(&ring, &public(3)), [public(2), public(3)]);
    }

    #[test]
    fn every_field_of_a_record_is_signed_by_both_keys() {
        let whole = rotation(1, 2);
        let other = rotation(1, 3);
        let changed = [
            KeyRotation { at: Timestamp::saturating(1_000_000), ..whole.clone() },
            KeyRotation { to: other.to.clone(), ..whole.clone() },
            KeyRotation { from: other.to.clone(), ..whole.clone() },
            KeyRotation { from_signature: whole.to_signature.clone(), ..whole.clone() },
            KeyRotation { to_signature: other.to_signature, ..whole.clone() },
        ];
        assert!(whole.verified_keys().is_some());
        assert!(changed.iter().all(|one| one.verified_keys().is_none()));
    }
}
