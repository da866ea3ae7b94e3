//! Signatures (PAM 1.0 §18) over checksum, export id, export date and owner id of a store.
//!
//! Relations, index, base and conversations are not covered; applications should say so.

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

/// The strings that a signature covers, exactly as in the file.
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

/// The strings of a document that matter for its signature, as written; none if absent or null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedFields {
    /// `integrity.checksum`.
    pub checksum: Option<String>,
    /// `export_id`.
    pub export_id: Option<String>,
    /// `export_date`.
    pub export_date: Option<String>,
    /// `owner.id`.
    pub owner_id: Option<String>,
    /// The strings of `signature`.
    pub signature: Option<SignatureFields>,
}

/// The strings of a signature block, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureFields {
    /// `algorithm`.
    pub algorithm: String,
    /// `public_key`.
    pub public_key: String,
    /// `value`.
    pub value: String,
}

/// The result of [`verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// The payload was signed with this key. The caller decides whether to trust it.
    Valid {
        /// The key that signed.
        key: PublicKey,
    },
    /// The signature does not match the document; the reason.
    Invalid(String),
    /// There is no signature.
    Absent,
    /// The signature cannot be checked; the reason.
    Unsupported(String),
}

impl Payload<'_> {
    /// The signed bytes: canonical JSON (RFC 8785).
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

/// Signs a payload with Ed25519. The `key_id` of the block is the DID URL of the key.
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

/// Checks the signature of a document. It does not compute the checksum; [`crate::validate`] does both.
#[must_use]
pub fn verify(signed: &SignedFields) -> SignatureCheck {
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
        Ok(key) if key.supports(algorithm) => key,
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

/// The payload, or the name of a missing part. Empty strings count as missing.
fn payload(signed: &SignedFields) -> Result<Payload<'_>, &'static str> {
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

/// Why a signature is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// Not base64url.
    #[error("the signature is not base64url")]
    Form,
    /// The length does not fit the algorithm.
    #[error("the signature has another length than the algorithm's")]
    Length,
    /// Made with another key or over other bytes.
    #[error("the signature is not of this key over this content")]
    Mismatch,
    /// The algorithm does not support this kind of key.
    #[error("the signature's algorithm is not for keys of this kind")]
    Algorithm,
}

/// Signs bytes with Ed25519 and returns unpadded base64url.
#[must_use]
pub fn sign_bytes(key: &SigningKey, bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(key.sign(bytes).to_bytes())
}

/// Decodes base64url with full padding or none.
fn decode(text: &str) -> Option<Vec<u8>> {
    let engine = if text.ends_with('=') { URL_SAFE } else { URL_SAFE_NO_PAD };
    engine.decode(text).ok()
}

/// Checks a detached signature, base64url with or without padding, of the key's [`PublicKey::default_algorithm`].
///
/// # Errors
/// If the text is not a signature, or was made with another key or over other bytes.
pub fn verify_bytes(key: &PublicKey, bytes: &[u8], signature: &str) -> Result<(), SignatureError> {
    verify_bytes_as(key.default_algorithm(), key, bytes, signature)
}

/// Checks a detached signature of this algorithm, for ECDSA as `r ‖ s` or DER.
///
/// # Errors
/// Like [`verify_bytes`], and if the key does not support the algorithm.
pub fn verify_bytes_as(
    algorithm: Algorithm,
    key: &PublicKey,
    bytes: &[u8],
    signature: &str,
) -> Result<(), SignatureError> {
    let signature = decode(signature).ok_or(SignatureError::Form)?;
    key.verify(algorithm, bytes, &signature)
}
