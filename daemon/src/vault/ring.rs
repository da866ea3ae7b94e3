//! `keys/data-key.json`: the data key, wrapped once by each thing that opens it. The file is no secret.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::VaultError;

/// Version of the file that this program writes.
const VERSION: u32 = 1;
/// Longest file that is read, in bytes; ours are some hundred.
const MAX_BYTES: u64 = 64 << 10;
const NAME: &str = "data-key.json";

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ring {
    version: u32,
    pub(super) state: State,
    pub(super) locks: Vec<Lock>,
}

/// How far encryption is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The sealed store stands beside the plain one and is about to take its place.
    Replacing,
    /// All is sealed.
    On,
}

/// One thing that opens the data key, and the key as it wraps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Lock {
    /// A file elsewhere, closed to others.
    KeyFile { path: PathBuf, wrapped: Bytes },
    /// Something that a person knows, by Argon2id.
    Passphrase { memory_kib: u32, passes: u32, lanes: u32, salt: Bytes, wrapped: Bytes },
    /// The key store of the operating system.
    KeyStore { account: String, wrapped: Bytes },
    /// Words on paper, for when the other one is lost.
    Recovery { wrapped: Bytes },
}

/// base64url in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        URL_SAFE_NO_PAD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl Ring {
    pub(super) fn new(state: State, locks: Vec<Lock>) -> Self {
        Self { version: VERSION, state, locks }
    }

    /// Reads that of a data directory; `None` if it is not encrypted.
    pub(super) fn read(data_dir: &Path) -> Result<Option<Self>, VaultError> {
        let path = path(data_dir);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|source| VaultError::Read { path: path.clone(), source })?,
        };
        let mut text = String::new();
        let read = file.take(MAX_BYTES).read_to_string(&mut text);
        read.map_err(|source| VaultError::Read { path: path.clone(), source })?;
        let damaged = |_| VaultError::Damaged { path: path.clone() };
        // The version first: of a newer one nothing else is known.
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(found) if found > u64::from(VERSION) => Err(VaultError::Newer { path }),
            _ => serde_json::from_value(value).map(Some).map_err(damaged),
        }
    }

    /// Puts it in its place in one step; durable when it returns.
    pub(super) fn write(&self, data_dir: &Path) -> Result<(), VaultError> {
        let path = path(data_dir);
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

    /// What opens it, but for the words on paper.
    pub(super) fn usual(&self) -> Option<&Lock> {
        self.locks.iter().find(|lock| !matches!(lock, Lock::Recovery { .. }))
    }

    pub(super) fn recovery(&self) -> Option<&Bytes> {
        self.locks.iter().find_map(|lock| match lock {
            Lock::Recovery { wrapped } => Some(wrapped),
            Lock::KeyFile { .. } | Lock::Passphrase { .. } | Lock::KeyStore { .. } => None,
        })
    }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("keys").join(NAME)
}
