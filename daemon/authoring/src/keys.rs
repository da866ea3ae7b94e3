//! The key of an author, and signing with it.
//!
//! A key is a text file that only its owner can read: a comment that has the public key, then the secret as multibase.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use ed25519_dalek::SigningKey;
use satchel_core::plain_file;
use satchel_registry::package::{AuthorKey, MAX_PACKAGE_BYTES, Package, PackageError};
use zeroize::Zeroizing;

use crate::atomic::{self, Existing};

/// The usual name of the file, in the folder of the program's configuration.
pub const FILE_NAME: &str = "author.key";

/// Multicodec prefix of a secret Ed25519 key, as a varint.
const SECRET_CODEC: [u8; 2] = [0x80, 0x26];
/// Largest file that is read as a key, in bytes.
const MAX_KEY_FILE: u64 = 4096;
/// Permissions that others than the owner have.
const OTHERS: u32 = 0o077;

/// Why a key cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A key is never overwritten: what was signed with it could not be upgraded.
    #[error(
        "{path:?} exists already; a key is never overwritten, because only it can sign upgrades of your importers"
    )]
    Exists { path: PathBuf },
    /// There is no key.
    #[error("there is no key at {path:?}; `satchel plugins key new` makes one")]
    Missing { path: PathBuf },
    /// Others can read the key.
    #[error("others can read the key {path:?}; run `chmod 600 {}`", path.display())]
    Open { path: PathBuf },
    /// The file is not a key.
    #[error("{path:?} is not an author's key: {reason}")]
    NotAKey { path: PathBuf, reason: &'static str },
    /// The file system refuses.
    #[error("cannot read or write {path:?}")]
    Io { path: PathBuf, source: io::Error },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random(#[source] getrandom::Error),
}

/// Why a package cannot be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The file system refuses.
    #[error("cannot read or write {path:?}")]
    Io { path: PathBuf, source: io::Error },
    /// The file is not a package.
    #[error("cannot sign {path:?}")]
    Package { path: PathBuf, source: PackageError },
}

/// A package that was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The file, which now has the signature.
    pub path: PathBuf,
    /// The importer's name and version.
    pub name: String,
    pub version: String,
    /// The public key.
    pub key: AuthorKey,
    /// The key that had signed it before.
    pub replaced: Option<AuthorKey>,
    /// The SHA-256 of the file as 64 hex digits.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// Makes a key and writes it to `path`, together with missing folders.
///
/// # Errors
/// [`KeyError::Exists`] if there is a file, or the file system refuses.
pub fn key_new(path: &Path) -> Result<AuthorKey, KeyError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
        _ => KeyError::Io { path: path.to_owned(), source },
    };
    if path.symlink_metadata().is_ok() {
        return Err(KeyError::Exists { path: path.to_owned() });
    }
    let mut secret = Zeroizing::new([0; 32]);
    getrandom::fill(secret.as_mut_slice()).map_err(KeyError::Random)?;
    let key = AuthorKey::of(&SigningKey::from_bytes(&secret));
    let text = Zeroizing::new(format!(
        "# Satchel author key {key}: keep this file secret, whoever has it can sign importers in your name\n{}\n",
        secret_to_text(&secret).as_str()
    ));
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    }
    atomic::write(path, text.as_bytes(), 0o600, Existing::Refuse).map_err(refused)?;
    Ok(key)
}

/// Reads the key at `path`.
///
/// # Errors
/// There is none, others can read it, or the file is not a key.
pub fn load(path: &Path) -> Result<SigningKey, KeyError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => KeyError::Missing { path: path.to_owned() },
        _ => KeyError::Io { path: path.to_owned(), source },
    };
    let file = plain_file::open(path).map_err(refused)?;
    if file.metadata().map_err(refused)?.permissions().mode() & OTHERS != 0 {
        return Err(KeyError::Open { path: path.to_owned() });
    }
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(MAX_KEY_FILE + 1).read_to_end(&mut bytes).map_err(refused)?;
    let not_a_key = |reason| KeyError::NotAKey { path: path.to_owned(), reason };
    let text = str::from_utf8(&bytes).map_err(|_| not_a_key("it is not text"))?;
    if bytes.len() as u64 > MAX_KEY_FILE {
        return Err(not_a_key("it is too large"));
    }
    parse(text).map_err(not_a_key)
}

/// Parses the text of a key's file.
fn parse(text: &str) -> Result<SigningKey, &'static str> {
    let is_secret = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut secrets = text.lines().map(str::trim).filter(is_secret);
    let secret = secrets.next().ok_or("it has no secret key")?;
    if secrets.next().is_some() {
        return Err("it has more than one line that is no comment");
    }
    if secret.parse::<AuthorKey>().is_ok() {
        return Err("it has a public key; the file that `satchel plugins key new` wrote has the secret one");
    }
    let key = SigningKey::from_bytes(
        &*text_to_secret(secret).ok_or("its secret key is damaged or of another kind")?,
    );
    // The comment tells a person whose key it is, so it must not mislead.
    let named = text.split_whitespace().find_map(|word| word.trim_end_matches(':').parse::<AuthorKey>().ok());
    if named.is_some_and(|named| named != AuthorKey::of(&key)) {
        return Err("the public key in its comment belongs to another secret key");
    }
    Ok(key)
}

fn secret_to_text(secret: &[u8; 32]) -> Zeroizing<String> {
    let bytes = Zeroizing::new([SECRET_CODEC.as_slice(), secret].concat());
    let encoded = Zeroizing::new(bs58::encode(bytes.as_slice()).into_string());
    Zeroizing::new(format!("z{}", encoded.as_str()))
}

fn text_to_secret(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let bytes = Zeroizing::new(bs58::decode(text.strip_prefix('z')?).into_vec().ok()?);
    bytes.strip_prefix(&SECRET_CODEC)?.try_into().ok().map(Zeroizing::new)
}

/// Signs the package `file` in place. An earlier signature is replaced.
///
/// # Errors
/// The file is not a package, or the file system refuses.
pub fn sign(file: &Path, key: &SigningKey) -> Result<Signed, SignError> {
    let refused = |source| SignError::Io { path: file.to_owned(), source };
    let invalid = |source| SignError::Package { path: file.to_owned(), source };
    let opened = plain_file::open(file).map_err(refused)?;
    let mode = opened.metadata().map_err(refused)?.permissions().mode() & 0o777;
    let mut bytes = Vec::new();
    opened.take(MAX_PACKAGE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(refused)?;
    let package = Package::read(bytes).map_err(invalid)?;
    let signed = package.sign(key).map_err(invalid)?;
    atomic::write(file, signed.bytes(), mode, Existing::Replace).map_err(refused)?;
    Ok(Signed {
        path: file.to_owned(),
        name: signed.manifest().name.clone(),
        version: signed.manifest().version.clone(),
        key: AuthorKey::of(key),
        replaced: package.signer().copied().filter(|signer| *signer != AuthorKey::of(key)),
        sha256: signed.sha256_hex(),
        bytes: signed.bytes().len() as u64,
    })
}
