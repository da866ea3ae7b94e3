//! Files of the folder `peers`, and sets of peers: those that are paused, in `peers/paused.json`, and those from which attachments come only
//! when they are wanted, in `peers/on-demand.json`.

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

/// The file with the peers that are paused.
pub(super) const PAUSED: &str = "paused.json";
/// The file with the peers from which attachments come only when they are wanted.
pub(super) const ON_DEMAND: &str = "on-demand.json";
const FORMAT: u32 = 1;
/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why a file of the folder cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    #[error("cannot {action} {path:?}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "{path:?} is damaged ({reason}); remove it, and set again what it said (see `satchel peers --help`)"
    )]
    Damaged { path: PathBuf, reason: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    /// Names of outgoing peers, and ids of the devices of incoming ones.
    #[serde(alias = "paused")]
    peers: BTreeSet<String>,
}

/// A set of peers, in a file.
pub(super) struct PeerSet {
    folder: PathBuf,
    file: &'static str,
    peers: Mutex<BTreeSet<String>>,
}

impl PeerSet {
    /// Reads the file in `folder`, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub(super) fn load(folder: &Path, file: &'static str) -> Result<Self, StoredError> {
        let path = folder.join(file);
        let peers = match read_json::<Stored>(&path, MAX_FILE_BYTES)? {
            None => BTreeSet::new(),
            Some(stored) if stored.format == FORMAT => stored.peers,
            Some(stored) => {
                let reason = format!("its format is {}", stored.format);
                return Err(StoredError::Damaged { path, reason });
            }
        };
        Ok(Self { folder: folder.to_owned(), file, peers: Mutex::new(peers) })
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        lock(&self.peers).contains(key)
    }

    /// Returns whether a peer is in the set of which `known` does not hold.
    pub(super) fn contains_other(&self, known: impl Fn(&str) -> bool) -> bool {
        lock(&self.peers).iter().any(|key| !known(key))
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.peers).is_empty()
    }

    /// Changes whether a peer is in the set. Durable when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn set(&self, key: &str, member: bool) -> Result<(), StoredError> {
        let mut known = lock(&self.peers);
        let mut next = known.clone();
        let changed = if member { next.insert(key.to_owned()) } else { next.remove(key) };
        if changed {
            write_json(&self.folder, self.file, &Stored { format: FORMAT, peers: next.clone() })?;
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
        let load = || PeerSet::load(&folder, PAUSED);
        let paused = load().unwrap();
        paused.set("absent", false).unwrap();
        assert!(!folder.exists(), "nothing is written without need");
        paused.set("desk", true).unwrap();
        let again = load().unwrap();
        assert!(again.contains("desk") && !again.contains("laptop"));
        again.set("desk", false).unwrap();
        assert!(!load().unwrap().contains("desk"));
        assert!(PeerSet::load(&folder, ON_DEMAND).unwrap().is_empty());
        std::fs::write(folder.join(PAUSED), "{\"format\":1").unwrap();
        assert!(matches!(load(), Err(StoredError::Damaged { .. })));
    }
}
