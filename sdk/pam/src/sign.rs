//! Signatures (PAM 1.0 §18): who vouches for a store's checksum, export and owner.
//!
//! Nothing else is covered: not relations, index, base or conversations. Show it so.

use base64::{
    Engine,
    engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD},
};
use ed25519_dalek::Signer as _;
pub use ed25519_dalek::{SigningKey, VerifyingKey};

use crate::{issue::quote, jcs, store::SignatureBlock, time::Timestamp};

mod algorithm;
mod key;
mod rsa;

pub use algorithm::Algorithm;
pub use key::{KeyError, PublicKey};
pub use rsa::{FEWEST_BITS, MOST_BITS};

/// What a signature covers: the literal strings of the file, whatever they look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// `integrity.checksum`.
    pub checksum: &'a str,
    /// `export_id`.
    pub export_id: &'a str,
    /// `export_date`.
    pub export_date: &'a str,
    /// `owner.id`.
    pub owner_id: &'a str,
}

/// The strings of a document that a signature is about, each as it stands there; none: absent or null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signed {
    /// `integrity.checksum`.
    pub checksum: Option<String>,
    /// `export_id`.
    pub export_id: Option<String>,
    /// `export_date`.
    pub export_date: Option<String>,
    /// `owner.id`.
    pub owner_id: Option<String>,
    /// The three strings of `signature` that are needed.
    pub signature: Option<Literal>,
}

/// A signature block's strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// `algorithm`.
    pub algorithm: String,
    /// `public_key`.
    pub public_key: String,
    /// `value`.
    pub value: String,
}

/// What came of checking a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// The holder of this key vouches for the payload. Whose key it is, is another question.
    Valid {
        /// Multibase where there is one.
        key: PublicKey,
    },
    /// It does not fit the document; why.
    Invalid(String),
    /// There is none.
    Absent,
    /// We cannot tell; why.
    Unsupported(String),
}

impl Payload<'_> {
    /// The bytes that are signed: RFC 8785.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let fields = [
            ("{\"checksum\":", self.checksum),
            (",\"export_date\":", self.export_date),
            (",\"export_id\":", self.export_id),
            (",\"owner_id\":", self.owner_id),
        ];
        let mut out = Vec::new();
        for (key, value) in fields {
            out.extend_from_slice(key.as_bytes());
            jcs::write_string(&mut out, value);
        }
        out.push(b'}');
        out
    }
}

/// Signs a payload with Ed25519; `key_id` is the `did:key` of the key.
#[must_use]
pub fn sign(key: &SigningKey, payload: &Payload<'_>, signed_at: Timestamp) -> SignatureBlock {
    let public = PublicKey::of(key);
    SignatureBlock {
        algorithm: public.algorithm().to_owned(),
        public_key: public.multibase(),
        value: sign_bytes(key, &payload.to_bytes()),
        signed_at,
        key_id: Some(public.key_id()),
    }
}

/// Checks the signature of a document's strings. Does not recompute the checksum: [`crate::validate`] does both.
#[must_use]
pub fn verify(signed: &Signed) -> SignatureCheck {
    let Some(literal) = &signed.signature else { return SignatureCheck::Absent };
    let payload = match payload(signed) {
        Ok(payload) => payload,
        Err(missing) => {
            return SignatureCheck::Invalid(format!("{missing} is missing, so nothing is signed"));
        }
    };
    let Ok(algorithm) = literal.algorithm.parse::<Algorithm>() else {
        return SignatureCheck::Unsupported(format!("algorithm {}", quote(&literal.algorithm)));
    };
    if literal.value.contains('.') {
        return SignatureCheck::Unsupported("the value is a JWS, not base64url of a signature".to_owned());
    }
    let key = match PublicKey::parse(&literal.public_key) {
        Ok(key) if key.serves(algorithm) => key,
        Ok(key) => {
            let problem = format!("the key is of {}, not {algorithm}", key.algorithm());
            return SignatureCheck::Invalid(problem);
        }
        Err(problem @ KeyError::Large) => {
            return SignatureCheck::Unsupported(format!("the public key {problem}"));
        }
        Err(problem) => return SignatureCheck::Invalid(format!("the public key {problem}")),
    };
    match verify_bytes_as(algorithm, &key, &payload.to_bytes(), &literal.value) {
        Ok(()) => SignatureCheck::Valid { key },
        Err(problem) => SignatureCheck::Invalid(problem.to_string()),
    }
}

/// The payload, or which of its parts is missing; an empty export id is missing.
fn payload(signed: &Signed) -> Result<Payload<'_>, &'static str> {
    Ok(Payload {
        checksum: part(signed.checksum.as_deref(), "integrity.checksum")?,
        export_id: part(signed.export_id.as_deref(), "export_id")?,
        export_date: part(signed.export_date.as_deref(), "export_date")?,
        owner_id: part(signed.owner_id.as_deref(), "owner.id")?,
    })
}

fn part<'a>(value: Option<&'a str>, name: &'static str) -> Result<&'a str, &'static str> {
    value.filter(|text| !text.is_empty()).ok_or(name)
}

/// `z6Mk…`: base58btc of an Ed25519 key with its multicodec prefix.
#[must_use]
pub fn multibase(key: &VerifyingKey) -> String {
    PublicKey::from(*key).multibase()
}

/// `did:key:z6Mk…` of an Ed25519 key; resolves without a network.
#[must_use]
pub fn did_key(key: &VerifyingKey) -> String {
    PublicKey::from(*key).did_key()
}

/// Why a signature does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// Not base64url.
    #[error("the signature is not base64url")]
    Form,
    /// Not as long as the algorithm's signatures.
    #[error("the signature has another length than the algorithm's")]
    Length,
    /// Made by another key, or over other bytes.
    #[error("the signature is not of this key over this content")]
    Mismatch,
    /// Of an algorithm that is not for such keys.
    #[error("the signature's algorithm is not for keys of this kind")]
    Algorithm,
}

/// Signs bytes with Ed25519; unpadded base64url.
#[must_use]
pub fn sign_bytes(key: &SigningKey, bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(key.sign(bytes).to_bytes())
}

/// base64url with whole padding or none.
fn decode(text: &str) -> Option<Vec<u8>> {
    let engine = if text.ends_with('=') { URL_SAFE } else { URL_SAFE_NO_PAD };
    engine.decode(text).ok()
}

/// Checks a detached signature, base64url with or without padding; of an RSA key, one with SHA-256.
///
/// # Errors
/// If the text is no signature, or one of another key or other bytes.
pub fn verify_bytes(key: &PublicKey, bytes: &[u8], signature: &str) -> Result<(), SignatureError> {
    verify_bytes_as(key.algorithm_of(), key, bytes, signature)
}

/// Checks a detached signature of this algorithm; ECDSA as `r ‖ s` or as DER.
///
/// # Errors
/// As [`verify_bytes`], and if the key does not serve the algorithm.
pub fn verify_bytes_as(
    algorithm: Algorithm,
    key: &PublicKey,
    bytes: &[u8],
    signature: &str,
) -> Result<(), SignatureError> {
    let signature = decode(signature).ok_or(SignatureError::Form)?;
    key.verify(algorithm, bytes, &signature)
}
