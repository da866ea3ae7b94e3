//! The package of an importer: one file that holds the component, its manifest and its author's signature.
//!
//! A package is a WebAssembly component with one or two custom sections at its end. `satchel:manifest` is the
//! [`Manifest`] as JSON. `satchel:signature`, if there is one, is the last section: the Ed25519 public key of the
//! author (32 bytes), then the signature (64 bytes) over `SIGNED_PREFIX` and the SHA-256 of all bytes before the
//! section. An engine ignores both sections, so the file is loaded as it is.
//!
//! **Invariant:** no byte of a signed package can change without [`Package::read`] noticing it; held by
//! `every_flipped_bit_is_noticed`.

mod author_key;
mod manifest;
mod sections;

use satchel_pam::hash::Sha256Digest;
use sha2::{Digest as _, Sha256};

pub(crate) use self::manifest::version_key;
use self::sections::Layout;
pub use self::{
    author_key::{AuthorKey, AuthorKeyError},
    manifest::{MANIFEST_VERSION, MAX_MEMORY_MIB, MIN_MEMORY_MIB, Manifest},
};

/// The ending of a package's file name, without the dot.
pub const EXTENSION: &str = "satchel";
/// Largest package in bytes: the largest component, and its manifest and signature.
pub const MAX_PACKAGE_BYTES: usize = satchel_host::MAX_COMPONENT_BYTES + MAX_MANIFEST_BYTES + 4096;
/// Largest manifest, in bytes.
pub const MAX_MANIFEST_BYTES: usize = 64 << 10;
/// The text before the digest that an author signs, so that the signature fits nothing else.
const SIGNED_PREFIX: &[u8] = b"satchel importer package v1\0";

/// The reason why a file is not a package.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The file is larger than a package may be.
    #[error("the file has {bytes} bytes, more than the {limit} that an importer may have")]
    TooLarge { bytes: usize, limit: usize },
    /// The bytes are not a WebAssembly component.
    #[error(
        "the file is not a WebAssembly component, or it is incomplete: {reason}; download or build it again"
    )]
    NotAComponent { reason: String },
    /// The component has no manifest, or the manifest is not where it has to be.
    #[error("the file is not an importer's package: {reason}; `satchel plugins build` makes packages")]
    Layout { reason: &'static str },
    /// The manifest cannot be parsed.
    #[error("the manifest in the package is not valid: {reason}; ask its author for a new package")]
    Manifest { reason: String },
    /// A field of the manifest breaks a rule.
    #[error("{field} in the manifest is {value:?}, but must be {rule}")]
    Field { field: &'static str, value: String, rule: &'static str },
    /// The signature does not belong to these bytes.
    #[error(
        "the signature of the package is not valid: the file was changed after its author signed it, or it is damaged; \
         do not install it, and get it again from its author"
    )]
    Signature,
}

/// A package whose layout, manifest and signature were checked. The component inside has not been compiled.
#[derive(Clone, Debug)]
pub struct Package {
    bytes: Vec<u8>,
    manifest: Manifest,
    signer: Option<AuthorKey>,
    /// Where the signature's section begins; the length of `bytes` if there is none.
    signed: usize,
}

impl Package {
    /// Reads a package and checks everything that can be checked without running it.
    ///
    /// # Errors
    /// The file is no package, breaks a limit, or was changed after it was signed.
    pub fn read(bytes: Vec<u8>) -> Result<Self, PackageError> {
        if bytes.len() > MAX_PACKAGE_BYTES {
            return Err(PackageError::TooLarge { bytes: bytes.len(), limit: MAX_PACKAGE_BYTES });
        }
        let Layout { manifest, signature, signed, .. } = sections::layout(&bytes)?;
        let manifest = manifest.ok_or(PackageError::Layout { reason: "it has no manifest" })?;
        let manifest = Manifest::from_json(&bytes[manifest])?;
        let signer = match signature {
            Some(signature) => Some(verified(&bytes[..signed], &bytes[signature])?),
            None => None,
        };
        Ok(Self { bytes, manifest, signer, signed })
    }

    /// Makes an unsigned package. If `component` is a package itself, its manifest and signature are replaced.
    ///
    /// # Errors
    /// The bytes are no component, or the manifest breaks a rule.
    pub fn pack(component: &[u8], manifest: &Manifest) -> Result<Self, PackageError> {
        manifest.check()?;
        let end = sections::layout(component)?.component;
        let mut bytes = component[..end].to_vec();
        sections::append(&mut bytes, sections::MANIFEST, &manifest.to_json());
        Self::read(bytes)
    }

    /// Returns the package signed with `key`, instead of an earlier signature.
    ///
    /// # Errors
    /// None in practice: the result is read back like any package.
    pub fn sign(&self, key: &ed25519_dalek::SigningKey) -> Result<Self, PackageError> {
        use ed25519_dalek::Signer as _;
        let mut bytes = self.bytes[..self.signed].to_vec();
        let signature = key.sign(&signed_message(&bytes));
        let content = [key.verifying_key().as_bytes().as_slice(), &signature.to_bytes()].concat();
        sections::append(&mut bytes, sections::SIGNATURE, &content);
        Self::read(bytes)
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the SHA-256 of the whole file as 64 lower-case hex digits.
    pub fn sha256_hex(&self) -> String {
        Sha256Digest::of(&self.bytes).to_hex()
    }

    /// Returns the key of the author who signed it; `None` if it is unsigned.
    pub fn signer(&self) -> Option<&AuthorKey> {
        self.signer.as_ref()
    }

    /// Returns the usual name of its file, `NAME-VERSION.satchel`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.{EXTENSION}", self.manifest.name, self.manifest.version)
    }
}

/// Returns the key that signed `bytes`.
fn verified(bytes: &[u8], signature: &[u8]) -> Result<AuthorKey, PackageError> {
    let (key, signature) = signature.split_first_chunk::<32>().ok_or(PackageError::Signature)?;
    let signature = <[u8; 64]>::try_from(signature).map_err(|_| PackageError::Signature)?;
    let key = AuthorKey::from_bytes(key).map_err(|_| PackageError::Signature)?;
    if key.verifies(&signed_message(bytes), &signature) { Ok(key) } else { Err(PackageError::Signature) }
}

fn signed_message(bytes: &[u8]) -> Vec<u8> {
    [SIGNED_PREFIX, Sha256::digest(bytes).as_slice()].concat()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(crate) mod tests;
