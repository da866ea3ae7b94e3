//! `keys/data-key.json`: the data key, wrapped once for each key that opens it. The file is not secret, but without it
//! the data cannot be opened. It is therefore stored twice, with a checksum, and the intact copy repairs the other.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::VaultError;
use crate::{key_checksum, plain_file};

/// File version that this program writes.
const VERSION: u32 = 2;
/// Largest file that is read, in bytes; files of this program have a few hundred.
const MAX_BYTES: u64 = 64 << 10;
const NAME: &str = "data-key.json";
/// The second copy.
const COPY_NAME: &str = "data-key.copy.json";

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keyring {
    /// The file version: 2. It was 1 before the checksum was introduced.
    version: u32,
    pub(super) state: EncryptionState,
    #[serde(rename = "locks")]
    pub(super) wrapped_keys: Vec<WrappedKey>,
    /// SHA-256 of the JCS form of all other fields, lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// One of the two files as it was found.
#[derive(Debug)]
pub(super) struct KeyringFile {
    pub(super) path: PathBuf,
    /// The contents of the file. `None` if it does not exist.
    pub(super) keyring: Result<Option<Keyring>, VaultError>,
}

/// The state of the encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EncryptionState {
    /// The encrypted store exists next to the unencrypted one and is about to replace it.
    Replacing,
    /// Everything is encrypted.
    On,
}

/// A key that opens the data directory, with the data key that it wraps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrappedKey {
    /// A key file outside of the data directory that only its owner can read.
    KeyFile { path: PathBuf, wrapped: Base64Bytes },
    /// A passphrase, by Argon2id.
    Passphrase { memory_kib: u32, passes: u32, lanes: u32, salt: Base64Bytes, wrapped: Base64Bytes },
    /// The operating system's key store.
    KeyStore { account: String, wrapped: Base64Bytes },
    /// The recovery phrase, for when the other key is lost.
    Recovery { wrapped: Base64Bytes },
}

/// Bytes that are base64url in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base64Bytes(pub(super) Vec<u8>);

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        URL_SAFE_NO_PAD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl Keyring {
    pub(super) fn new(state: EncryptionState, wrapped_keys: Vec<WrappedKey>) -> Self {
        Self { version: VERSION, state, wrapped_keys, checksum: None }
    }

    /// Reads the file of a data directory. Returns `None` if the directory is not encrypted. If one of the two files is
    /// damaged or missing, the other is used.
    pub(super) fn read(data_dir: &Path) -> Result<Option<Self>, VaultError> {
        let [first, second] = Self::both(data_dir).map(|file| file.keyring);
        match (first, second) {
            (Ok(Some(keyring)), _) => Ok(Some(keyring)),
            (Err(newer @ VaultError::Newer { .. }), _) => Err(newer),
            (Ok(None) | Err(_), Ok(Some(copy))) => Ok(Some(copy)),
            (Ok(None), Ok(None)) => Ok(None),
            (Err(error), _) | (Ok(None), Err(error)) => Err(error),
        }
    }

    /// Reads both files, the first one being the one that takes precedence.
    pub(super) fn both(data_dir: &Path) -> [KeyringFile; 2] {
        [NAME, COPY_NAME].map(|name| {
            let path = path(data_dir, name);
            KeyringFile { keyring: Self::read_one(&path), path }
        })
    }

    fn read_one(path: &Path) -> Result<Option<Self>, VaultError> {
        let path = path.to_owned();
        let file = match plain_file::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|source| VaultError::Read { path: path.clone(), source })?,
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidData => VaultError::Damaged { path: path.clone() },
            _ => VaultError::Read { path: path.clone(), source },
        })?;
        let damaged = |_| VaultError::Damaged { path: path.clone() };
        // Check the version first: nothing else is known about a newer format.
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(found) if found > u64::from(VERSION) => Err(VaultError::Newer { path }),
            _ => {
                let keyring: Self = serde_json::from_value(value).map_err(damaged)?;
                if keyring.is_intact() { Ok(Some(keyring)) } else { Err(VaultError::Damaged { path }) }
            }
        }
    }

    /// Returns whether the file is intact, as far as that can be told: files of older programs have no checksum.
    fn is_intact(&self) -> bool {
        match self.version {
            0 => false,
            1 => self.checksum.is_none(),
            _ => self.checksum.is_some() && self.checksum == key_checksum::compute(self),
        }
    }

    /// Writes both files, each one atomically. Durable when this returns. The first file takes precedence as soon as it
    /// is written.
    pub(super) fn write(&self, data_dir: &Path) -> Result<(), VaultError> {
        let mut keyring = Self { version: VERSION, checksum: None, ..self.clone() };
        keyring.checksum = key_checksum::compute(&keyring);
        [NAME, COPY_NAME].iter().try_for_each(|name| keyring.write_one(data_dir, name))
    }

    fn write_one(&self, data_dir: &Path, name: &str) -> Result<(), VaultError> {
        let path = path(data_dir, name);
        let failed = |source| VaultError::Write { path: path.clone(), source };
        let folder = data_dir.join("keys");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let mut file = tempfile::Builder::new().prefix(".data-key-").tempfile_in(&folder).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        let synced = [&folder, data_dir].iter().try_for_each(|folder| File::open(folder)?.sync_all());
        synced.map_err(failed)
    }

    /// Repairs a file that is damaged, missing, or written by an older program. If both files are intact but differ,
    /// the first one is used only if it is `proven` that its data key opens the store: somebody may have copied the
    /// file of another store there.
    pub(super) fn repair(data_dir: &Path, proven: bool) -> Result<(), VaultError> {
        // Read the files again: another command may have changed the keys since.
        let [first, second] = Self::both(data_dir).map(|file| file.keyring.ok().flatten());
        let differ = first.is_some() && second.is_some() && first != second;
        let intact = first.as_ref().is_some_and(|keyring| keyring.version == VERSION) && first == second;
        match first.or(second) {
            Some(keyring) if !intact && (proven || !differ) => keyring.write(data_dir),
            _ => Ok(()),
        }
    }

    /// Returns the regular key, as opposed to the recovery phrase.
    pub(super) fn primary(&self) -> Option<&WrappedKey> {
        self.wrapped_keys.iter().find(|key| !matches!(key, WrappedKey::Recovery { .. }))
    }

    pub(super) fn recovery(&self) -> Option<&Base64Bytes> {
        self.wrapped_keys.iter().find_map(|key| match key {
            WrappedKey::Recovery { wrapped } => Some(wrapped),
            WrappedKey::KeyFile { .. } | WrappedKey::Passphrase { .. } | WrappedKey::KeyStore { .. } => None,
        })
    }
}

fn path(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join("keys").join(name)
}
