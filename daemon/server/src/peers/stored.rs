//! Files of the folder `peers`, and which peers are paused: `peers/paused.json`.

use std::{
    collections::BTreeSet,
    fs::{DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Mutex,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::lock;

const FILE: &str = "paused.json";
const FORMAT: u32 = 1;
/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why a file of the folder cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    #[error("cannot {action} {path:?}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{path:?} is damaged ({reason}); remove it, and pause the peers again that are to be paused")]
    Damaged { path: PathBuf, reason: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    /// Names of outgoing peers, and ids of the devices of incoming ones.
    paused: BTreeSet<String>,
}

/// The peers that are paused.
pub(super) struct PausedPeers {
    folder: PathBuf,
    paused: Mutex<BTreeSet<String>>,
}

impl PausedPeers {
    /// Reads the file in `folder`, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub(super) fn load(folder: &Path) -> Result<Self, StoredError> {
        let path = folder.join(FILE);
        let paused = match read_json::<Stored>(&path, MAX_FILE_BYTES)? {
            None => BTreeSet::new(),
            Some(stored) if stored.format == FORMAT => stored.paused,
            Some(stored) => {
                let reason = format!("its format is {}", stored.format);
                return Err(StoredError::Damaged { path, reason });
            }
        };
        Ok(Self { folder: folder.to_owned(), paused: Mutex::new(paused) })
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        lock(&self.paused).contains(key)
    }

    /// Changes whether a peer is paused. Durable when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn set(&self, key: &str, paused: bool) -> Result<(), StoredError> {
        let mut known = lock(&self.paused);
        let mut next = known.clone();
        let changed = if paused { next.insert(key.to_owned()) } else { next.remove(key) };
        if changed {
            write_json(&self.folder, FILE, &Stored { format: FORMAT, paused: next.clone() })?;
            *known = next;
        }
        Ok(())
    }
}

/// Reads a JSON file; `None` if there is none.
///
/// # Errors
/// It cannot be read, or is damaged.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path, max_bytes: u64) -> Result<Option<T>, StoredError> {
    let failed = |source| StoredError::Io { action: "read", path: path.to_owned(), source };
    let damaged = |reason: String| StoredError::Damaged { path: path.to_owned(), reason };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(about) if about.len() > max_bytes => Err(damaged("it is too long".to_owned())),
        Ok(_) => {
            let text = std::fs::read(path).map_err(failed)?;
            serde_json::from_slice(&text).map(Some).map_err(|error| damaged(error.to_string()))
        }
    }
}

/// Replaces a JSON file of `folder`, which is created if it does not exist. Durable when this returns.
///
/// # Errors
/// It cannot be written.
pub(super) fn write_json(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), StoredError> {
    let path = folder.join(name);
    let failed = |source| StoredError::Io { action: "write", path: path.clone(), source };
    let text = serde_json::to_vec_pretty(value).map_err(|error| failed(error.into()))?;
    let write = || {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(failed)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_paused_stays_so() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("peers");
        let paused = PausedPeers::load(&folder).unwrap();
        paused.set("absent", false).unwrap();
        assert!(!folder.exists(), "nothing is written without need");
        paused.set("desk", true).unwrap();
        let again = PausedPeers::load(&folder).unwrap();
        assert!(again.contains("desk") && !again.contains("laptop"));
        again.set("desk", false).unwrap();
        assert!(!PausedPeers::load(&folder).unwrap().contains("desk"));
        std::fs::write(folder.join(FILE), "{\"format\":1").unwrap();
        assert!(matches!(PausedPeers::load(&folder), Err(StoredError::Damaged { .. })));
    }
}
