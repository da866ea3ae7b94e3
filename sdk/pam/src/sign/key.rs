//! Public keys in the forms that PAM documents use (PAM 1.0 §18, A-20).

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::{SigningKey, VerifyingKey};
use p256::ecdsa::signature::Verifier as _;
use rsa::pkcs8::SubjectPublicKeyInfoRef;
use serde_json::Value;

use super::{
    Algorithm, SignatureError,
    algorithm::digested,
    decode,
    rsa::{Key as RsaKey, MAX_BITS, MIN_BITS},
};

/// A key to check signatures with: Ed25519, ECDSA on P-256 or P-384, or RSA of 2048 to 8192 bits.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Ed25519(VerifyingKey),
    P256(p256::ecdsa::VerifyingKey),
    P384(p384::ecdsa::VerifyingKey),
    Rsa(RsaKey),
}

/// Why a text is not an accepted public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// None of the known forms, or another kind of key.
    #[error(
        "is not multibase, base58, base64url, did:key, JWK or PEM of an Ed25519, P-256, P-384 or RSA key"
    )]
    Form,
    /// The right form, but not a point of the curve.
    #[error("is not a point of its curve")]
    Point,
    /// An even modulus, or an exponent that is even or beyond 33 bits.
    #[error("has numbers that no RSA key has")]
    Numbers,
    /// An RSA key that is too short to be secure.
    #[error("is an RSA key of less than {MIN_BITS} bits, which proves nothing")]
    Weak,
    /// An RSA key that takes too long to check.
    #[error("is an RSA key of more than {MAX_BITS} bits, which we do not check")]
    Large,
}

/// Multicodec prefixes, as varints.
const ED25519_CODEC: [u8; 2] = [0xed, 0x01];
const P256_CODEC: [u8; 2] = [0x80, 0x24];
const P384_CODEC: [u8; 2] = [0x81, 0x24];
const RSA_CODEC: [u8; 2] = [0x85, 0x24];
/// Object identifiers in a `SubjectPublicKeyInfo`: RFC 8410, RFC 5480, RFC 8017.
const ED25519_OID: &str = "1.3.101.112";
const EC_OID: &str = "1.2.840.10045.2.1";
const P256_OID: &str = "1.2.840.10045.3.1.7";
const P384_OID: &str = "1.3.132.0.34";
const RSA_OID: &str = "1.2.840.113549.1.1.1";
/// Maximum length of a key in bytes, twice that of a PEM of the largest RSA key.
const MAX_TEXT: usize = 4096;
/// Maximum length of a base58 key, because decoding takes quadratic time. The largest RSA key has 1,035 bytes with its prefix.
const MAX_BASE58: usize = 1500;

impl PublicKey {
    /// The public half of a signing key.
    #[must_use]
    pub fn of(key: &SigningKey) -> Self {
        Self(Kind::Ed25519(key.verifying_key()))
    }

    /// Creates an Ed25519 key from its 32 bytes.
    ///
    /// # Errors
    /// If they are not a point of the curve.
    pub fn from_ed25519(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        VerifyingKey::from_bytes(bytes).map(|key| Self(Kind::Ed25519(key))).map_err(|_| KeyError::Point)
    }

    /// The 32 bytes of an Ed25519 key; none for another kind of key.
    #[must_use]
    pub fn ed25519(&self) -> Option<[u8; 32]> {
        if let Kind::Ed25519(key) = &self.0 { Some(*key.as_bytes()) } else { None }
    }

    /// Parses any form: `z…` multibase, `did:key:z…` with or without fragment, base58 or base64url of the 32 bytes of
    /// an Ed25519 key, a JWK (OKP, EC or RSA) as JSON, a PEM `PUBLIC KEY`. At most 4,096 bytes.
    ///
    /// # Errors
    /// If it is none of them, the key is not a point of its curve, or an RSA key has less than 2048 or more than 8192 bits.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.len() > MAX_TEXT {
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
        // A text may be both base58 and base64url; the schema names base58, so it comes first.
        let bytes = base58(text).filter(|bytes| bytes.len() == 32);
        let bytes = bytes.or_else(|| decode(text)).ok_or(KeyError::Form)?;
        Self::from_ed25519(bytes.as_slice().try_into().map_err(|_| KeyError::Form)?)
    }

    /// The name of [`PublicKey::default_algorithm`].
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        self.default_algorithm().as_str()
    }

    /// The algorithm of signatures with this key; for RSA, which has three, the one with SHA-256.
    #[must_use]
    pub fn default_algorithm(&self) -> Algorithm {
        match self.0 {
            Kind::Ed25519(_) => Algorithm::Ed25519,
            Kind::P256(_) => Algorithm::Es256,
            Kind::P384(_) => Algorithm::Es384,
            Kind::Rsa(_) => Algorithm::Rs256,
        }
    }

    /// Whether this key can verify signatures of `algorithm`.
    #[must_use]
    pub fn supports(&self, algorithm: Algorithm) -> bool {
        match self.0 {
            Kind::Rsa(_) => matches!(algorithm, Algorithm::Rs256 | Algorithm::Rs384 | Algorithm::Rs512),
            Kind::Ed25519(_) | Kind::P256(_) | Kind::P384(_) => algorithm == self.default_algorithm(),
        }
    }

    /// The key as multibase, such as `z6Mk…`: base58btc of its multicodec prefix and bytes, for RSA its PKCS #1 DER.
    #[must_use]
    pub fn multibase(&self) -> String {
        let bytes = match &self.0 {
            Kind::Ed25519(key) => [&ED25519_CODEC[..], key.as_bytes()].concat(),
            Kind::P256(key) => [&P256_CODEC[..], key.to_sec1_point(true).as_bytes()].concat(),
            Kind::P384(key) => [&P384_CODEC[..], key.to_sec1_point(true).as_bytes()].concat(),
            Kind::Rsa(key) => [&RSA_CODEC[..], &key.to_der()].concat(),
        };
        format!("z{}", bs58::encode(bytes).into_string())
    }

    /// The key as `did:key:z6Mk…`, which resolves without a network.
    #[must_use]
    pub fn did_key(&self) -> String {
        format!("did:key:{}", self.multibase())
    }

    /// The DID URL of the key: its DID, `#`, its multibase.
    #[must_use]
    pub fn key_id(&self) -> String {
        format!("{}#{}", self.did_key(), self.multibase())
    }

    /// Checks a signature; the key must support `algorithm`.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        bytes: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureError> {
        if !self.supports(algorithm) {
            return Err(SignatureError::Algorithm);
        }
        match &self.0 {
            Kind::Ed25519(key) => {
                let signature =
                    ed25519_dalek::Signature::from_slice(signature).map_err(|_| SignatureError::Length)?;
                // Strict verification rejects keys of small order and malleable signatures.
                key.verify_strict(bytes, &signature).map_err(|_| SignatureError::Mismatch)
            }
            Kind::P256(key) => {
                let signature = p256::ecdsa::Signature::from_slice(signature)
                    .or_else(|_| p256::ecdsa::Signature::from_der(signature))
                    .map_err(|_| SignatureError::Length)?;
                key.verify(bytes, &signature).map_err(|_| SignatureError::Mismatch)
            }
            Kind::P384(key) => {
                let signature = p384::ecdsa::Signature::from_slice(signature)
                    .or_else(|_| p384::ecdsa::Signature::from_der(signature))
                    .map_err(|_| SignatureError::Length)?;
                key.verify(bytes, &signature).map_err(|_| SignatureError::Mismatch)
            }
            Kind::Rsa(key) => {
                let digested = digested(algorithm, bytes).ok_or(SignatureError::Algorithm)?;
                key.verify(digested, signature)
            }
        }
    }

    /// None if the text is not multibase or has an unknown codec.
    fn from_multibase(text: &str) -> Option<Result<Self, KeyError>> {
        let bytes = base58(text.strip_prefix('z')?)?;
        match bytes.split_first_chunk() {
            Some((&ED25519_CODEC, key)) => Some(Self::from_ed25519(key.try_into().ok()?)),
            Some((&P256_CODEC, key)) => Some(Self::from_p256(key)),
            Some((&P384_CODEC, key)) => Some(Self::from_p384(key)),
            Some((&RSA_CODEC, key)) => Some(RsaKey::from_der(key).map(|key| Self(Kind::Rsa(key)))),
            _ => None,
        }
    }

    fn from_p256(point: &[u8]) -> Result<Self, KeyError> {
        p256::ecdsa::VerifyingKey::from_sec1_bytes(point)
            .map(|key| Self(Kind::P256(key)))
            .map_err(|_| KeyError::Point)
    }

    fn from_p384(point: &[u8]) -> Result<Self, KeyError> {
        p384::ecdsa::VerifyingKey::from_sec1_bytes(point)
            .map(|key| Self(Kind::P384(key)))
            .map_err(|_| KeyError::Point)
    }

    fn from_jwk(text: &str) -> Result<Self, KeyError> {
        let jwk: Value = serde_json::from_str(text).map_err(|_| KeyError::Form)?;
        let name = |key: &str| jwk.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| decode(name(key)).filter(|bytes| !bytes.is_empty()).ok_or(KeyError::Form);
        let point = |length: usize| -> Result<Vec<u8>, KeyError> {
            let (x, y) = (number("x")?, number("y")?);
            let whole = x.len() == length && y.len() == length;
            if whole { Ok([&[0x04][..], &x, &y].concat()) } else { Err(KeyError::Form) }
        };
        match (name("kty"), name("crv")) {
            ("OKP", "Ed25519") => {
                Self::from_ed25519(number("x")?.as_slice().try_into().map_err(|_| KeyError::Form)?)
            }
            ("EC", "P-256") => Self::from_p256(&point(32)?),
            ("EC", "P-384") => Self::from_p384(&point(48)?),
            ("RSA", "") => RsaKey::from_numbers(&number("n")?, &number("e")?).map(|key| Self(Kind::Rsa(key))),
            _ => Err(KeyError::Form),
        }
    }

    fn from_pem(text: &str) -> Result<Self, KeyError> {
        let body: String = text.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        let der = STANDARD.decode(body).map_err(|_| KeyError::Form)?;
        let info = SubjectPublicKeyInfoRef::try_from(der.as_slice()).map_err(|_| KeyError::Form)?;
        let key = info.subject_public_key.as_bytes().ok_or(KeyError::Form)?;
        let parameters = match info.algorithm.parameters {
            None => String::new(),
            Some(null) if null.is_null() => "NULL".to_owned(),
            Some(_) => info.algorithm.parameters_oid().map_err(|_| KeyError::Form)?.to_string(),
        };
        match (info.algorithm.oid.to_string().as_str(), parameters.as_str()) {
            (ED25519_OID, "") => Self::from_ed25519(key.try_into().map_err(|_| KeyError::Form)?),
            (EC_OID, P256_OID) => Self::from_p256(key),
            (EC_OID, P384_OID) => Self::from_p384(key),
            // RFC 3279 requires NULL, but some programs leave it out.
            (RSA_OID, "NULL" | "") => RsaKey::from_der(key).map(|key| Self(Kind::Rsa(key))),
            _ => Err(KeyError::Form),
        }
    }
}

fn base58(text: &str) -> Option<Vec<u8>> {
    (text.len() <= MAX_BASE58).then(|| bs58::decode(text).into_vec().ok()).flatten()
}

impl From<VerifyingKey> for PublicKey {
    fn from(key: VerifyingKey) -> Self {
        Self(Kind::Ed25519(key))
    }
}

/// Writes the key as multibase.
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
