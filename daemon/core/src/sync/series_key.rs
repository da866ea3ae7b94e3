//! The key of the store's own series, in a file beside the store: `peers/series.json`.
//!
//! The file is not part of backups. A store that was restored finds no key, or that of another series, and begins a new series, so that
//! no two stores continue the same one.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use satchel_sync::{OriginId, OriginKey, SigningKey};
use serde::{Deserialize, Serialize};

use crate::{data_dir::PEERS, key_checksum, plain_file};

const FILE: &str = "series.json";
const FORMAT: u32 = 1;
/// Prefix of a file of the folder that is being written, also by the server. One that a crash leaves behind is removed at the next start.
const UNFINISHED: &str = ".new-";
/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Why the key of the series cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SeriesKeyError {
    /// The file cannot be read or written.
    #[error("cannot {action} the key of the series of changes, {path:?}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// A newer program wrote the file.
    #[error("{path:?} was written by a newer program; use a newer satchel")]
    Newer { path: PathBuf },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    Randomness,
}

/// The key that signs a series, and the salt of its origin.
#[derive(Clone)]
pub(super) struct SeriesIdentity {
    pub(super) key: SigningKey,
    pub(super) salt: [u8; OriginKey::SALT_BYTES],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    format: u32,
    /// For people who read the file; it follows from key and salt.
    origin: String,
    /// base64url of the 32-byte seed (RFC 8032).
    seed: String,
    /// base64url.
    salt: String,
    /// SHA-256 of the JCS form of all other fields, lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl SeriesIdentity {
    /// Makes a new one.
    ///
    /// # Errors
    /// [`SeriesKeyError::Randomness`].
    pub(super) fn generate() -> Result<Self, SeriesKeyError> {
        let (mut seed, mut salt) = ([0; 32], [0; OriginKey::SALT_BYTES]);
        getrandom::fill(&mut seed).map_err(|_| SeriesKeyError::Randomness)?;
        getrandom::fill(&mut salt).map_err(|_| SeriesKeyError::Randomness)?;
        Ok(Self { key: SigningKey::from_bytes(&seed), salt })
    }

    /// Returns the origin of the series.
    pub(super) fn origin(&self) -> OriginId {
        OriginKey::new(&self.key, self.salt).id()
    }

    /// Reads the file of a data directory; `None` if there is none, or if it is damaged: then a new series has to begin.
    ///
    /// # Errors
    /// It cannot be read, or a newer program wrote it.
    pub(super) fn load(data_dir: &Path) -> Result<Option<Self>, SeriesKeyError> {
        let path = path_of(data_dir);
        let file = match plain_file::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed("read", &path))?,
        };
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(failed("read", &path))?;
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        if format.is_some_and(|found| found > u64::from(FORMAT)) {
            return Err(SeriesKeyError::Newer { path });
        }
        let identity = serde_json::from_value(value).ok().and_then(|file: KeyFile| decode(&file));
        if identity.is_none() {
            tracing::error!(?path, "the key of the series of changes is damaged; a new series is begun");
        }
        Ok(identity)
    }

    /// Replaces the file of a data directory. Durable when this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn save(&self, data_dir: &Path) -> Result<(), SeriesKeyError> {
        let (folder, path) = (data_dir.join(PEERS), path_of(data_dir));
        let failed = failed("write", &path);
        let mut file = KeyFile {
            format: FORMAT,
            origin: self.origin().to_string(),
            seed: URL_SAFE_NO_PAD.encode(self.key.to_bytes()),
            salt: URL_SAFE_NO_PAD.encode(self.salt),
            checksum: None,
        };
        file.checksum = key_checksum::compute(&file);
        let text = serde_json::to_vec_pretty(&file).map_err(|error| failed(error.into()))?;
        write_durably(&folder, &path, &text).map_err(failed)
    }
}

/// Removes the files that a kill left behind while they were written. Only for the start, when nothing else writes to the folder.
///
/// # Errors
/// They cannot be removed.
pub(super) fn remove_unfinished(data_dir: &Path) -> Result<(), SeriesKeyError> {
    let folder = data_dir.join(PEERS);
    let remove = || -> io::Result<()> {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    };
    match remove() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.map_err(failed("clean the folder of", &folder)),
    }
}

fn path_of(data_dir: &Path) -> PathBuf {
    data_dir.join(PEERS).join(FILE)
}

fn failed(action: &'static str, path: &Path) -> impl Fn(io::Error) -> SeriesKeyError + use<> {
    let path = path.to_owned();
    move |source| SeriesKeyError::Io { action, path: path.clone(), source }
}

fn decode(file: &KeyFile) -> Option<SeriesIdentity> {
    if file.checksum.is_none() || file.checksum != key_checksum::compute(file) {
        return None;
    }
    let seed: [u8; 32] = URL_SAFE_NO_PAD.decode(&file.seed).ok()?.try_into().ok()?;
    let salt = URL_SAFE_NO_PAD.decode(&file.salt).ok()?.try_into().ok()?;
    Some(SeriesIdentity { key: SigningKey::from_bytes(&seed), salt })
}

/// Replaces `path` in `folder`, which is created with mode 0700 if it does not exist.
fn write_durably(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    if !folder.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    // Files of this crate have mode 0600.
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()?;
    // The folder itself may be new.
    folder.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_again_and_a_damaged_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        assert!(SeriesIdentity::load(dir.path()).unwrap().is_none());
        let identity = SeriesIdentity::generate().unwrap();
        identity.save(dir.path()).unwrap();
        let other = dir.path().join(PEERS).join(".new-other");
        fs::write(&other, "being written").unwrap();
        identity.save(dir.path()).unwrap();
        assert!(other.exists(), "what others write at the same time stays");
        remove_unfinished(dir.path()).unwrap();
        let path = path_of(dir.path());
        let names: Vec<_> =
            fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names, std::slice::from_ref(&path));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = SeriesIdentity::load(dir.path()).unwrap().unwrap();
        assert_eq!(again.origin(), identity.origin());
        let text = fs::read_to_string(&path).unwrap();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let read = SeriesIdentity::load(dir.path());
            let other = read.is_ok_and(|read| read.is_some_and(|read| read.origin() != identity.origin()));
            assert!(!other, "byte {at}");
        }
        fs::write(&path, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
        assert!(matches!(SeriesIdentity::load(dir.path()), Err(SeriesKeyError::Newer { .. })));
    }
}
