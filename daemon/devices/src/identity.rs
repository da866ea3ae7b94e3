//! Identities of daemons and devices: hashes of public keys, which stay the same when certificates are renewed.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::base32;

/// Characters of a fingerprint's text between two check characters: a quarter of 52.
const FINGERPRINT_BLOCK: usize = 13;
/// Bytes of a key hash in a device id: 24 characters. 120 bits cannot be hit by trying keys.
const ID_BYTES: usize = 15;
const ID_CHARACTERS: usize = 25;

/// SHA-256 over the public key (`SubjectPublicKeyInfo`, DER) of a daemon's certificate authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint of a public key, given as DER.
    #[must_use]
    pub fn of_public_key(spki_der: &[u8]) -> Self {
        Self(Sha256::digest(spki_der).into())
    }

    /// Wraps the bytes of a fingerprint.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns as much of it as a typed pairing code contains.
    pub(crate) fn first_80_bits(&self) -> [u8; 10] {
        let mut first = [0; 10];
        for (to, from) in first.iter_mut().zip(self.0) {
            *to = from;
        }
        first
    }
}

/// 52 characters in Crockford's base32, a check character after each 13, in eight groups of seven.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut symbols = Vec::new();
        for block in base32::encode(&self.0).chunks(FINGERPRINT_BLOCK) {
            symbols.extend(block);
            symbols.push(base32::check_symbol(block));
        }
        f.write_str(&base32::grouped(&base32::text(&symbols), 7))
    }
}

/// As much of a fingerprint as a pairing code contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FingerprintPrefix {
    /// The first 80 bits, from a typed code.
    Short([u8; 10]),
    /// The whole fingerprint, from a link or QR code.
    Full(Fingerprint),
}

impl FingerprintPrefix {
    /// Returns whether `fingerprint` begins with this. The comparison takes constant time.
    pub fn matches(&self, fingerprint: &Fingerprint) -> bool {
        let expected = self.as_bytes();
        fingerprint.0.get(..expected.len()).is_some_and(|found| expected.ct_eq(found).into())
    }

    /// Returns the bytes: 10 or 32.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(bytes) => bytes,
            Self::Full(fingerprint) => &fingerprint.0,
        }
    }
}

/// The characters that the owner sees on both sides.
impl fmt::Display for FingerprintPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(bytes) => f.write_str(&base32::grouped(&base32::text(&base32::encode(bytes)), 5)),
            Self::Full(fingerprint) => fingerprint.fmt(f),
        }
    }
}

/// SHA-256 over a device's public key (`SubjectPublicKeyInfo`, DER), or over a token's secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// Returns the hash of a public key, given as DER.
    #[must_use]
    pub fn of_public_key(spki_der: &[u8]) -> Self {
        Self(Sha256::digest(spki_der).into())
    }

    /// Returns the hash of a token's secret.
    pub(crate) fn of_secret(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Compares in constant time.
    pub(crate) fn same(&self, other: &Self) -> subtle::Choice {
        self.0.ct_eq(&other.0)
    }
}

/// 64 hex digits.
impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHash({self})")
    }
}

impl From<KeyHash> for String {
    fn from(hash: KeyHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for KeyHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = || format!("{text:?} is not a hash of 64 hex digits");
        let digits = text.chars().map(|it| it.to_digit(16).and_then(|it| u8::try_from(it).ok()));
        let digits: Vec<u8> = digits.collect::<Option<_>>().ok_or_else(wrong)?;
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(wrong()) };
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        Ok(Self(bytes.try_into().map_err(|_| wrong())?))
    }
}

/// The id of a device: 24 characters of its key's hash and a check character, as `xxxxx-xxxxx-xxxxx-xxxxx-xxxxx`.
///
/// It stays when the certificate is renewed, since the key stays.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceId(String);

impl DeviceId {
    /// Returns the id of the device with this key.
    #[must_use]
    pub fn of(key: &KeyHash) -> Self {
        let symbols = base32::encode(key.0.get(..ID_BYTES).unwrap_or_default());
        Self::from_symbols(&symbols)
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the id begins with what a person typed: in any case, with or without hyphens. The start must have
    /// at least one character.
    pub(crate) fn starts_with(&self, typed: &str) -> bool {
        let own = self.0.chars().filter_map(base32::symbol_of);
        let Some(typed) = symbols_of(typed) else { return false };
        !typed.is_empty() && own.take(typed.len()).eq(typed)
    }

    fn from_symbols(symbols: &[u8]) -> Self {
        let mut all = symbols.to_vec();
        all.push(base32::check_symbol(symbols));
        Self(base32::grouped(&base32::text(&all).to_ascii_lowercase(), 5))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceId({})", self.0)
    }
}

impl From<DeviceId> for String {
    fn from(id: DeviceId) -> Self {
        id.0
    }
}

impl TryFrom<String> for DeviceId {
    type Error = DeviceIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Reads an id in any case, with or without hyphens.
impl FromStr for DeviceId {
    type Err = DeviceIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let symbols =
            symbols_of(text).filter(|symbols| symbols.len() == ID_CHARACTERS).ok_or(DeviceIdError)?;
        let (check, rest) = symbols.split_last().ok_or(DeviceIdError)?;
        if base32::check_symbol(rest) != *check {
            return Err(DeviceIdError);
        }
        Ok(Self::from_symbols(rest))
    }
}

/// The text is not the id of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a device id: it needs 25 letters and digits, and one of them may be wrong")]
pub struct DeviceIdError;

fn symbols_of(text: &str) -> Option<Vec<u8>> {
    text.chars().filter(|it| *it != '-' && *it != ' ').map(base32::symbol_of).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_fingerprint_is_shown_in_eight_groups_of_seven() {
        let text = Fingerprint::of_public_key(b"key").to_string();
        assert_eq!(text.split('-').map(str::len).collect::<Vec<_>>(), [7; 8]);
    }

    #[test]
    fn a_prefix_matches_only_its_fingerprint() {
        let fingerprint = Fingerprint::of_public_key(b"key");
        let short = FingerprintPrefix::Short(fingerprint.first_80_bits());
        let other = Fingerprint::of_public_key(b"other");
        assert!(short.matches(&fingerprint) && FingerprintPrefix::Full(fingerprint).matches(&fingerprint));
        assert!(!short.matches(&other) && !FingerprintPrefix::Full(fingerprint).matches(&other));
        let mut changed = *fingerprint.as_bytes();
        changed[31] ^= 1;
        assert!(short.matches(&Fingerprint::new(changed)));
        assert!(!FingerprintPrefix::Full(fingerprint).matches(&Fingerprint::new(changed)));
    }

    proptest! {
        #[test]
        fn ids_and_hashes_are_read_as_they_are_written(key in any::<[u8; 32]>()) {
            let hash = KeyHash::of_public_key(&key);
            prop_assert_eq!(KeyHash::try_from(hash.to_string()).unwrap(), hash);
            let id = DeviceId::of(&hash);
            prop_assert_eq!(id.as_str().len(), 29);
            prop_assert_eq!(&id.to_string().parse::<DeviceId>().unwrap(), &id);
            prop_assert_eq!(&id.as_str().replace('-', "").to_uppercase().parse::<DeviceId>().unwrap(), &id);
            prop_assert!(id.starts_with(&id.as_str()[..8].to_uppercase()));
            prop_assert!(!id.starts_with("") && !id.starts_with("-"));
        }

        #[test]
        fn arbitrary_text_is_no_id(text in ".{0,40}") {
            prop_assert!(text.parse::<DeviceId>().is_err());
            prop_assert!(KeyHash::try_from(text).is_err());
        }
    }
}
