//! `keys/data-key.json`: the data key, wrapped once by each thing that opens it. The file is no secret, but without it nothing opens
//! the data; so it is kept twice, with a checksum, and whichever of the two is whole mends the other.

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

/// Version of the file that this program writes.
const VERSION: u32 = 2;
/// Longest file that is read, in bytes; ours are some hundred.
const MAX_BYTES: u64 = 64 << 10;
const NAME: &str = "data-key.json";
/// The second of the two.
const COPY: &str = "data-key.copy.json";

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ring {
    /// 2; 1 before there was a checksum.
    version: u32,
    pub(super) state: State,
    pub(super) locks: Vec<Lock>,
    /// SHA-256 of the JCS form of the rest, lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// One of the two files as it stands.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// What it holds; `None` if it is not there.
    pub(super) ring: Result<Option<Ring>, VaultError>,
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
        Self { version: VERSION, state, locks, checksum: None }
    }

    /// Reads that of a data directory; `None` if it is not encrypted. Where one of the two files is damaged or gone, the other counts.
    pub(super) fn read(data_dir: &Path) -> Result<Option<Self>, VaultError> {
        let [first, second] = Self::both(data_dir).map(|found| found.ring);
        match (first, second) {
            (Ok(Some(ring)), _) => Ok(Some(ring)),
            (Err(newer @ VaultError::Newer { .. }), _) => Err(newer),
            (Ok(None) | Err(_), Ok(Some(copy))) => Ok(Some(copy)),
            (Ok(None), Ok(None)) => Ok(None),
            (Err(error), _) | (Ok(None), Err(error)) => Err(error),
        }
    }

    /// The two files, that which counts first.
    pub(super) fn both(data_dir: &Path) -> [Found; 2] {
        [NAME, COPY].map(|name| {
            let path = path(data_dir, name);
            Found { ring: Self::read_one(&path), path }
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
        // The version first: of a newer one nothing else is known.
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(found) if found > u64::from(VERSION) => Err(VaultError::Newer { path }),
            _ => {
                let ring: Self = serde_json::from_value(value).map_err(damaged)?;
                if ring.holds() { Ok(Some(ring)) } else { Err(VaultError::Damaged { path }) }
            }
        }
    }

    /// Whether it is what was written, as far as it can tell: files of older programs say nothing of it.
    fn holds(&self) -> bool {
        match self.version {
            0 => false,
            1 => self.checksum.is_none(),
            _ => self.checksum.is_some() && self.checksum == key_checksum::of(self),
        }
    }

    /// Puts it in its two places, in one step each; durable when it returns. Once the first stands, it counts.
    pub(super) fn write(&self, data_dir: &Path) -> Result<(), VaultError> {
        let mut ring = Self { version: VERSION, checksum: None, ..self.clone() };
        ring.checksum = key_checksum::of(&ring);
        [NAME, COPY].iter().try_for_each(|name| ring.write_one(data_dir, name))
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

    /// Mends whichever of the two files is damaged, gone, or of an older program. Where both are whole and differ, the first counts
    /// only if it is `proven` that its data key opens the store: somebody may have put that of another store there.
    pub(super) fn mend(data_dir: &Path, proven: bool) -> Result<(), VaultError> {
        // Read anew: what opens it may have been changed since.
        let [first, second] = Self::both(data_dir).map(|found| found.ring.ok().flatten());
        let differ = first.is_some() && second.is_some() && first != second;
        let whole = first.as_ref().is_some_and(|ring| ring.version == VERSION) && first == second;
        match first.or(second) {
            Some(ring) if !whole && (proven || !differ) => ring.write(data_dir),
            _ => Ok(()),
        }
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

fn path(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join("keys").join(name)
}
