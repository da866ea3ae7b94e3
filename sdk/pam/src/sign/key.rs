//! Public keys in the forms that PAM documents hold them.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::{SigningKey, VerifyingKey};
use p256::ecdsa::signature::Verifier as _;
use serde_json::Value;

use super::{SignatureError, decode};

/// A key that signatures are checked with: Ed25519, or ECDSA on P-256 with SHA-256 (ES256).
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Ed25519(VerifyingKey),
    P256(p256::ecdsa::VerifyingKey),
}

/// Why a text is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// None of the forms.
    #[error("is not multibase, base58, base64url, did:key, JWK or PEM of an Ed25519 or P-256 key")]
    Form,
    /// The right form, and no key.
    #[error("is not a point of its curve")]
    Point,
}

/// Multicodec prefixes, as varints.
const ED25519_CODEC: [u8; 2] = [0xed, 0x01];
const P256_CODEC: [u8; 2] = [0x80, 0x24];
/// What stands before the key in a `SubjectPublicKeyInfo` (RFC 8410; RFC 5480, uncompressed point).
const ED25519_SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Bytes; longer texts are no key, and base58 takes quadratic time.
const LONGEST: usize = 1024;
/// Bytes of a base58 key: 35 bytes of key and prefix are 48 characters.
const LONGEST_BASE58: usize = 64;

impl PublicKey {
    /// The public half of a signing key.
    #[must_use]
    pub fn of(key: &SigningKey) -> Self {
        Self(Kind::Ed25519(key.verifying_key()))
    }

    /// An Ed25519 key from its 32 bytes.
    ///
    /// # Errors
    /// If they are no point.
    pub fn from_ed25519(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        VerifyingKey::from_bytes(bytes).map(|key| Self(Kind::Ed25519(key))).map_err(|_| KeyError::Point)
    }

    /// Reads any form: `z…` multibase, `did:key:z…` with or without fragment, base58 or base64url of the 32 bytes of
    /// an Ed25519 key, a JWK (OKP or EC) as JSON, a PEM `PUBLIC KEY`.
    ///
    /// # Errors
    /// If it is none of them, or the key is no point of its curve.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(KeyError::Form);
        }
        if text.starts_with('{') {
            return Self::from_jwk(text);
        }
        if text.starts_with("-----BEGIN PUBLIC KEY-----") {
            return Self::from_pem(text);
        }
        if let Some(identifier) = text.strip_prefix("did:key:") {
            let multibase = identifier.split('#').next().unwrap_or_default();
            return Self::from_multibase(multibase).ok_or(KeyError::Form)?;
        }
        if let Some(key) = Self::from_multibase(text) {
            return key;
        }
        // A base58 text may be base64url too; the schema's words name base58, so it goes first.
        let bytes = base58(text).filter(|bytes| bytes.len() == 32);
        let bytes = bytes.or_else(|| decode(text)).ok_or(KeyError::Form)?;
        Self::from_ed25519(bytes.as_slice().try_into().map_err(|_| KeyError::Form)?)
    }

    /// `Ed25519` or `ES256`.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match self.0 {
            Kind::Ed25519(_) => "Ed25519",
            Kind::P256(_) => "ES256",
        }
    }

    /// `z6Mk…`: base58btc of the key with its multicodec prefix.
    #[must_use]
    pub fn multibase(&self) -> String {
        let bytes = match &self.0 {
            Kind::Ed25519(key) => [&ED25519_CODEC[..], key.as_bytes()].concat(),
            Kind::P256(key) => [&P256_CODEC[..], key.to_sec1_point(true).as_bytes()].concat(),
        };
        format!("z{}", bs58::encode(bytes).into_string())
    }

    /// `did:key:z6Mk…`, which resolves without a network.
    #[must_use]
    pub fn did_key(&self) -> String {
        format!("did:key:{}", self.multibase())
    }

    /// The DID URL of the key: its DID, `#`, its multibase.
    #[must_use]
    pub fn key_id(&self) -> String {
        format!("{}#{}", self.did_key(), self.multibase())
    }

    pub(super) fn verify(&self, bytes: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
        match &self.0 {
            Kind::Ed25519(key) => {
                let signature =
                    ed25519_dalek::Signature::from_slice(signature).map_err(|_| SignatureError::Length)?;
                // Strict: no small-order keys, one signature per message and key.
                key.verify_strict(bytes, &signature).map_err(|_| SignatureError::Mismatch)
            }
            Kind::P256(key) => {
                let signature = p256::ecdsa::Signature::from_slice(signature)
                    .or_else(|_| p256::ecdsa::Signature::from_der(signature))
                    .map_err(|_| SignatureError::Length)?;
                key.verify(bytes, &signature).map_err(|_| SignatureError::Mismatch)
            }
        }
    }

    /// None if the text is no multibase of a codec that we know.
    fn from_multibase(text: &str) -> Option<Result<Self, KeyError>> {
        let bytes = base58(text.strip_prefix('z')?)?;
        match bytes.split_first_chunk() {
            Some((&ED25519_CODEC, key)) => Some(Self::from_ed25519(key.try_into().ok()?)),
            Some((&P256_CODEC, key)) => Some(Self::from_p256(key)),
            _ => None,
        }
    }

    fn from_p256(point: &[u8]) -> Result<Self, KeyError> {
        p256::ecdsa::VerifyingKey::from_sec1_bytes(point)
            .map(|key| Self(Kind::P256(key)))
            .map_err(|_| KeyError::Point)
    }

    fn from_jwk(text: &str) -> Result<Self, KeyError> {
        let jwk: Value = serde_json::from_str(text).map_err(|_| KeyError::Form)?;
        let name = |key: &str| jwk.get(key).and_then(Value::as_str).unwrap_or_default();
        let coordinate = |key: &str| -> Result<[u8; 32], KeyError> {
            let bytes = decode(name(key)).ok_or(KeyError::Form)?;
            bytes.try_into().map_err(|_| KeyError::Form)
        };
        match (name("kty"), name("crv")) {
            ("OKP", "Ed25519") => Self::from_ed25519(&coordinate("x")?),
            ("EC", "P-256") => Self::from_p256(&[&[0x04][..], &coordinate("x")?, &coordinate("y")?].concat()),
            _ => Err(KeyError::Form),
        }
    }

    fn from_pem(text: &str) -> Result<Self, KeyError> {
        let body: String = text.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        let der = STANDARD.decode(body).map_err(|_| KeyError::Form)?;
        if let Some(key) = der.strip_prefix(&ED25519_SPKI) {
            return Self::from_ed25519(key.try_into().map_err(|_| KeyError::Form)?);
        }
        Self::from_p256(der.strip_prefix(&P256_SPKI).ok_or(KeyError::Form)?)
    }
}

fn base58(text: &str) -> Option<Vec<u8>> {
    (text.len() <= LONGEST_BASE58).then(|| bs58::decode(text).into_vec().ok()).flatten()
}

impl From<VerifyingKey> for PublicKey {
    fn from(key: VerifyingKey) -> Self {
        Self(Kind::Ed25519(key))
    }
}

/// Multibase.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.multibase())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
